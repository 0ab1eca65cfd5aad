"""One atlas, one model: weights that are offloaded, unknown or changed in memory, and train mode."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from accelerate import cpu_offload

from headatlas import AtlasError, RequestError, export_model, load_model, map_heads, validate_atlas
from headatlas.atlas import Fit, Store, gathering, open_atlas, record_path
from headatlas.model import fingerprint as fingerprint_module
from support.planted import word_tokenizer
from support.small_run import same_numbers, small_model, small_run, write_task
from support.tiny import build_tiny


@pytest.fixture
def task(tmp_path):
    return write_task(tmp_path / "words.jsonl")


def offloaded_model(change=0.0):
    hf = build_tiny("llama")
    with torch.no_grad():
        hf.model.layers[1].mlp.up_proj.weight.add_(change)
    return load_model(cpu_offload(hf, execution_device="cpu"), tokenizer=word_tokenizer(100), check=False)


def test_offloaded_models_have_the_hash_of_the_model_in_memory():
    assert offloaded_model().spec.content_hash == small_model().spec.content_hash
    assert offloaded_model().weights_hash == small_model().weights_hash
    assert offloaded_model(0.1).spec.content_hash != small_model().spec.content_hash


def test_two_offloaded_models_do_not_share_an_atlas(task, tmp_path):
    small_run(offloaded_model(), task, tmp_path / "atlas", seeds=1)
    with pytest.raises(AtlasError, match="weights are not those of"):
        small_run(offloaded_model(0.1), task, tmp_path / "atlas", resume=True)


def test_an_unknown_hash_equals_nothing(task, tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint_module._OffloadedWeights, "read", lambda *arguments: None)
    model = offloaded_model()
    assert model.spec.content_hash is None and model.weights_hash is None
    assert model.weights_identity != model.weights_identity
    assert not model.spec.has_same_weights(model.spec)
    small_run(model, task, tmp_path / "atlas", seeds=1)
    with pytest.raises(AtlasError, match="could not be read"):
        small_run(model, task, tmp_path / "atlas", resume=True)


def test_what_is_derived_from_unknown_weights_is_not_kept(monkeypatch):
    """Two hashes of None say nothing about whether the weights are the same."""
    monkeypatch.setattr(fingerprint_module._OffloadedWeights, "read", lambda *arguments: None)
    model = offloaded_model()
    model.norm_after(0)
    model.first_tokens()
    sources = model._sources
    with model.measuring():
        assert model._norms is None and model._first_tokens is None and model._sources is not sources


def test_the_exact_hash_needs_little_memory():
    """A sum in 64-bit integers copies its input to them; of a whole tensor that is four times its size."""
    module = torch.nn.Module()
    values = torch.arange(1 << 24, dtype=torch.int32).to(torch.int16)
    module.weight = torch.nn.Parameter(values.view(torch.bfloat16), requires_grad=False)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        fingerprint_module.fingerprint(module, exact=True)
    largest = max(event.cpu_memory_usage for event in profile.events())
    assert 0 < largest < 1.5 * values.nbytes


def test_a_model_that_changes_in_memory_has_another_hash(task, tmp_path):
    model = small_model()
    small_run(model, task, tmp_path / "atlas", seeds=1)
    with torch.no_grad():
        model.hf.model.layers[0].self_attn.v_proj.weight.mul_(-2)
    with pytest.raises(AtlasError, match="weights are not those of"):
        small_run(model, task, tmp_path / "atlas", seeds=1, resume=True)
    before = open_atlas(tmp_path / "atlas").spec.content_hash
    assert small_run(model, task, None, seeds=1).spec.content_hash not in (None, before)


def test_one_changed_value_is_another_identity(task, tmp_path):
    model = small_model()
    before = model.weights_hash
    with torch.no_grad():
        model.hf.model.embed_tokens.weight[3, 5] += 1.0
    assert model.weights_hash != before


def change_one_value(model):
    """A change that the sampled hash, which rounds to bfloat16, does not see."""
    weight = model.hf.model.layers[0].self_attn.v_proj.weight
    before = model.spec.content_hash
    with torch.no_grad():
        rounded = weight[0, 0].bfloat16().float()
        weight[0, 0] = rounded if rounded != weight[0, 0] else rounded * (1 + 2**-12)
    with model.measuring():
        assert model.spec.content_hash == before


def test_tasks_and_methods_of_one_atlas_have_the_same_exact_weights(task, tmp_path):
    model, out = small_model(), tmp_path / "atlas"
    small_run(model, task, out, seeds=1)
    change_one_value(model)
    other = write_task(tmp_path / "others.jsonl", seed=3)
    for work in (
        lambda: small_run(model, other, out, seeds=1, resume=True),
        lambda: map_heads(model, str(task), method="ablate-zero", items=4, out=out, resume=True),
        lambda: validate_atlas(out, model=model, tasks=[str(task)], methods=[], items=4, draws=2, retest=0),
        lambda: export_model(out, task, out=tmp_path / "checkpoint", model=model),
    ):
        with pytest.raises(AtlasError, match="other weights"):
            work()


def test_a_model_cast_in_memory_is_recorded_in_its_new_dtype(task, tmp_path):
    model, out = small_model(), tmp_path / "atlas"
    small_run(model, task, out, seeds=1)
    model.hf.bfloat16()
    atlas = small_run(model, task, None, seeds=1)
    assert atlas.spec.dtype == atlas.run("words").decides["dtype"] == "bfloat16"
    settings = {"tasks": [str(task)], "items": 4, "draws": 2, "retest": 0}
    with pytest.raises(RequestError, match="fitted in float32 and the model is loaded in bfloat16"):
        validate_atlas(out, model=model, methods=["ablate-zero"], **settings)


def test_a_model_in_train_mode_is_measured_without_dropout(task, tmp_path):
    hf = build_tiny("llama", attention_dropout=0.5)
    model = load_model(hf, tokenizer=word_tokenizer(100), check=False)
    small_run(model, task, tmp_path / "eval")
    hf.train()
    hf.model.layers[1].eval()  # as where only a part is trained
    small_run(model, task, tmp_path / "train")
    assert same_numbers(tmp_path / "eval", tmp_path / "train")
    assert hf.training and hf.model.layers[0].training and not hf.model.layers[1].training


def test_a_transformers_model_in_train_mode_stays_in_it(task, tmp_path):
    """`map_heads(hf)` loads it, proves it and measures it; the modes are the user's afterwards."""
    hf = build_tiny("llama", attention_dropout=0.5)
    word_tokenizer(100).save_pretrained(tmp_path / "model")
    hf.config.name_or_path = str(tmp_path / "model")
    small_run(hf, task, tmp_path / "eval")
    hf.train()
    hf.model.layers[1].eval()
    small_run(hf, task, tmp_path / "train")
    assert same_numbers(tmp_path / "eval", tmp_path / "train")
    assert hf.training and hf.model.layers[0].training and not hf.model.layers[1].training


def test_fits_of_a_task_named_notes_are_not_overwritten(tmp_path):
    """Taking a part over again leaves finished fits as they are."""
    task = write_task(tmp_path / "notes.jsonl")
    small_run(small_model(), task, tmp_path / "atlas", seeds=1)
    small_run(small_model(), task, tmp_path / "part", seeds=1)
    path = tmp_path / "atlas" / record_path(Fit, "gating", "notes", seed=0, fit="retain")
    store = Store.open(tmp_path / "part")
    run = store.runs["gating", "notes"]
    fit = store.read(Fit, run, seed=0, fit="retain")
    np.copyto(fit.logits, fit.logits + 1)
    store.write(fit)
    before = path.read_bytes()
    with gathering(tmp_path / "atlas") as take:
        take(tmp_path / "part")
    assert path.read_bytes() == before
