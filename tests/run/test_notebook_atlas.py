"""The lines of the notebook that touch an atlas, on a tiny model."""

from __future__ import annotations

import copy
import warnings

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


def folder_contents(folder):
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()
    }


def test_a_cell_that_saves_can_run_twice(atlas, model, task, tmp_path):
    folder = atlas.save(tmp_path / "atlas")
    before = folder_contents(folder)
    assert atlas.save(folder) == ha.open_atlas(folder).save(folder) == folder
    again = ha.map_heads(model, task, method="ablate-mean", items=6)  # its seconds differ
    with pytest.raises(ha.AtlasError, match="holds another atlas; choose a new folder, or merge"):
        again.save(folder)
    assert folder_contents(folder) == before


def test_merged_seeds_are_joined(model, task, tmp_path):
    given = {**SMALL, "progress": False}
    first, second = (ha.map_heads(model, task, **{**given, "seeds": seeds}) for seeds in ([0, 1], [2, 3]))
    merged = first.merge(second)
    assert merged.seeds("words") == [0, 1, 2, 3]
    settings = merged.run("words").settings
    assert settings["resolved"]["seeds"] == settings["given"]["seeds"] == 4
    few = ha.map_heads(model, task, **{**given, "seeds": [1]}).merge(second)
    assert few.run("words").requested_seeds == {1, 2, 3}
    assert few.run("words").settings["resolved"]["seeds"] == [1, 2, 3]
    merged.save(tmp_path / "atlas")
    resumed = ha.map_heads(model, task, **{**given, "seeds": 4}, out=tmp_path / "atlas")
    assert resumed.gates().equals(merged.gates())


def test_a_merge_of_two_dtypes_warns(task, tmp_path):
    small = small_model()
    small.hf.save_pretrained(tmp_path / "model")
    small.tokenizer.save_pretrained(tmp_path / "model")
    gates = ha.map_heads(tmp_path / "model", task, dtype="float32", **SMALL)
    effects = {
        dtype: ha.map_heads(tmp_path / "model", task, method="ablate-mean", items=4, dtype=dtype)
        for dtype in ("float32", "bfloat16")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gates.merge(effects["float32"])
    words = r"words \(ablate-mean\) is in bfloat16, .* has words by gating in float32; rounding .*'float32'"
    with pytest.warns(ha.HeadatlasWarning, match=words):
        gates.merge(effects["bfloat16"])


def test_a_contrast_is_neither_validated_nor_exported(atlas, model, task, tmp_path):
    other = str(write_task(tmp_path / "others.jsonl", 120, seed=1))
    contrast = ha.contrast_heads(model, retain=task, forget=other, seeds=1, updates=3, batch=4)
    words = r"contrasts only \(words without others\); contrasts are not validated or exported; .*map_heads"
    for use in (
        lambda: ha.validate_atlas(contrast, model=model),
        lambda: ha.export_model(contrast, None, tmp_path / "checkpoint", model=model),
    ):
        with pytest.raises(ha.AtlasError, match=words) as error:
            use()
        assert "/tmp" not in str(error.value)
    with pytest.raises(ha.AtlasError, match="'words without others' is a contrast; contrasts are not"):
        ha.validate_atlas(atlas.merge(contrast), model=model, tasks=["words without others"])
    effects = ha.map_heads(model, task, method="ablate-mean", items=4)
    with pytest.raises(
        ha.AtlasError, match=r"^this atlas has no task that was gated to the end; .*map_heads"
    ):
        ha.validate_atlas(effects, model=model)


def test_effects_on_more_items_than_the_gates(model):
    """The advice names the number of items held out."""
    items = [(f"w{number} w{number + 1}", f" w{number + 2}") for number in range(20)]
    effects = ha.map_heads(model, {"words": items}, method="ablate-mean")
    merged = effects.merge(ha.map_heads(model, {"words": items}, test=4, **SMALL))
    options = {"model": model, "items": 4, "draws": 3, "effect_items": 2, "retest": 0}
    words = "measured on 20 items and its gates fitted on 16"
    with pytest.warns(ha.HeadatlasWarning, match=f"{words}; map both with the same test=4"):
        ha.validate_atlas(merged, **options)
    with pytest.raises(ha.AtlasError, match=f"{words}, .* map both with the same test=4, or"):
        ha.validate_atlas(merged, methods=["ablate-mean"], **options)
    alike = ha.map_heads(model, {"words": items}, method="ablate-mean", test=4)
    merged = alike.merge(ha.map_heads(model, {"words": items}, test=4, **SMALL))
    assert (
        "ablate-mean"
        in ha.validate_atlas(merged, methods=["ablate-mean"], **options).validation("words").named()
    )


def test_effects_of_another_metric_are_not_ranked_by_the_curves(model, task):
    effects = ha.map_heads(model, task, method="ablate-mean", items=4, metric="kl")
    merged = effects.merge(ha.map_heads(model, task, **SMALL))
    options = {"model": model, "tasks": [task], "items": 4, "draws": 3, "effect_items": 2, "retest": 0}
    words = "measured by the metric kl, and the curves are in nll"
    with pytest.raises(ha.AtlasError, match=f"{words}, .*; give metric='kl', or"):
        ha.validate_atlas(merged, methods=["ablate-mean"], **options)
    with pytest.warns(ha.HeadatlasWarning, match=f"left out: ablate-mean of words, .* {words}"):
        assert "ablate-mean" not in ha.validate_atlas(merged, **options).validation("words").named()
    by_kl = ha.validate_atlas(merged, methods=["ablate-mean"], metric="kl", **options).validation("words")
    assert by_kl.metric.name == "kl" and "ablate-mean" in by_kl.named()


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
