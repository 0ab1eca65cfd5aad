"""The lines of the notebook that touch an atlas, on a tiny model."""

from __future__ import annotations

import copy

import matplotlib as mpl
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import headatlas as ha
from support.small_run import SMALL, small_model, write_task
from support.tiny import sample_ids

FEW = {"items": 6, "draws": 3, "methods": ["ablate-mean"], "effect_items": 4}


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return str(write_task(tmp_path_factory.mktemp("tasks") / "words.jsonl", 120))


@pytest.fixture(scope="module")
def atlas(model, task):
    """Effects and gates, made in two calls and merged; in memory only."""
    atlas = ha.map_heads(model, task, method="ablate-mean", items=6)
    return atlas.merge(ha.map_heads(model, task, **SMALL))


@pytest.fixture(scope="module")
def noisy(model):
    """The same model with other weights."""
    hf = copy.deepcopy(model.hf)
    with torch.no_grad():
        for parameter in hf.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    return ha.load_model(hf, tokenizer=model.tokenizer, check=False)


def test_effects_gates_and_their_tables(atlas):
    assert atlas.path is None
    assert repr(atlas).endswith(": words; ablate-mean of words>")
    strongest = atlas.effects("words").to_dataframe().sort_values("effect", ascending=False).iloc[0]
    assert strongest["name"] == str(atlas.effect_summary("words", "ablate-mean").heads[0].head)
    table = atlas.to_dataframe()
    assert len(table) == len(atlas.spec) and table["effect_ablate-mean"].max() == strongest["effect"]


def test_figures_of_the_session(atlas):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure, axes = pyplot.subplots(1, 2)
    atlas.plot.agreement(
        "words", axes=axes, palette={"helps": "C0", "hurts": "C3"}, title="{task} ({agreement})"
    )
    assert [ax.get_title() for ax in axes] == ["Words (Always)", "Words (Any)"]
    figure.canvas.draw()
    pyplot.close(figure)
    assert mpl.rcParams["font.size"] == mpl.rcParamsDefault["font.size"]


def test_saved_opened_and_joined(atlas, tmp_path):
    atlas.save(tmp_path / "atlas")
    opened = ha.open_atlas(tmp_path / "atlas")
    assert opened.contents == atlas.contents
    scores = opened.scores().sel(layer=slice(1, 2)).mean("seed")
    table = scores.to_dataframe()
    np.testing.assert_array_equal(
        table["facilitation"].dropna(),
        atlas.scores("words").mean("seed")["facilitation"].sel(layer=[1, 2]).values.ravel(),
    )
    own = table[["interference"]].rename(columns={"interference": "my_score"})
    table.join(own).to_parquet(tmp_path / "heads.parquet")
    with pytest.raises(ha.AtlasError, match="holds an atlas already; choose a new folder"):
        atlas.save(tmp_path / "atlas")


def test_a_saved_atlas_goes_on_as_one_that_was_made_there(model, task, tmp_path):
    first = ha.map_heads(model, task, **{**SMALL, "seeds": 1})
    first.save(tmp_path / "atlas")
    resumed = ha.map_heads(model, task, out=tmp_path / "atlas", resume=True, **SMALL)
    assert resumed.seeds("words") == [0, 1]
    np.testing.assert_array_equal(resumed.gates().sel(seed=0), first.gates().sel(seed=0))
    assert first.merge(resumed).gates().equals(resumed.gates())


def test_gates_of_a_contrast_go_back_into_the_model(model, task, tmp_path):
    other = str(write_task(tmp_path / "others.jsonl", 120, seed=1))
    contrast = ha.contrast_heads(model, retain=task, forget=other, seeds=2, updates=3, batch=4)
    name = "words without others"
    assert contrast.contrasts == [name] and name in repr(contrast) and name in contrast._repr_html_()
    gates = contrast.gates().mean("seed")
    expected = torch.as_tensor(gates.sel(fit="retain").values)
    with model.gates(gates):
        shown = model(sample_ids(batch=1, length=6))
    with model.gates(expected):
        assert torch.equal(model(sample_ids(batch=1, length=6)), shown)


def test_two_models_are_compared(atlas, noisy, task):
    other = ha.map_heads(noisy, task, **{**SMALL, "updates": 4})
    with pytest.warns(ha.HeadatlasWarning, match=r"not fitted alike: updates 5\+5 and 4\+4; heads may"):
        comparison = ha.compare(atlas, other, task="words")
    assert comparison.differences == ("updates 5+5 and 4+4",)
    with pytest.raises(ha.AtlasError, match=r"weights of .* differ; headatlas.compare"):
        atlas.merge(other)


def test_a_validation_of_an_atlas_in_memory(atlas, model, task):
    validated = ha.validate_atlas(atlas, model=model, tasks=[task], **FEW)
    assert validated.validated == ["words"] and validated.path is None
    assert atlas.validated == [] and atlas.path is None
    assert validated.validation("words").named()[0] == "gating"
    assert validated.gates().equals(atlas.gates())


def test_an_export_of_an_atlas_in_memory(atlas, model, task, tmp_path):
    exported = ha.export_model(
        atlas, task, tmp_path / "checkpoint", model=model, gates="retain", items=8, force=True
    )
    assert exported.path == tmp_path / "checkpoint"
    AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint")


def test_an_atlas_in_memory_is_packed(atlas, tmp_path):
    ha.pack_atlas(atlas, tmp_path / "atlas.zip")
    assert (
        ha.open_atlas(ha.unpack_atlas(tmp_path / "atlas.zip", tmp_path / "atlas")).contents == atlas.contents
    )
