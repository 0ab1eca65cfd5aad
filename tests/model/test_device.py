"""Models spread or offloaded with `device_map`, and accelerators."""

from __future__ import annotations

import pytest
import torch

from headatlas import RequestError, gates, load_model
from support.tiny import build_tiny, sample_ids


@pytest.fixture
def folder(tmp_path):
    build_tiny("llama").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


MAP = {
    "model.embed_tokens": "cpu",
    "model.layers.0": "cpu",
    "model.layers.1": "disk",
    "model.layers.2": "disk",
    "model.norm": "cpu",
    "model.rotary_emb": "cpu",
    "lm_head": "cpu",
}


def test_layers_that_lie_on_disk(folder, tmp_path):
    """Their weights are on no device until the layer runs; gates and weight reading work the same."""
    whole = load_model(folder, device="cpu")
    spread = load_model(folder, device_map=MAP, offload_folder=str(tmp_path / "offload"))
    assert spread.hf.model.layers[1].self_attn.o_proj.weight.device.type == "meta"
    assert spread.check.passed and spread.spec.content_hash == whole.spec.content_hash
    assert spread.weights_hash == whole.weights_hash
    ids = sample_ids()
    values = torch.rand(whole.spec.shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        with gates(whole, values):
            expected = whole.hf(ids).logits
        with gates(spread, values):
            found = spread.hf(ids.to(spread.device)).logits.cpu()
    assert torch.allclose(found, expected, atol=1e-6)
    for layer in range(3):
        for ours, true in zip(spread.value_output(layer, 3), whole.value_output(layer, 3), strict=True):
            assert torch.allclose(ours.cpu(), true, atol=1e-6)
    tokens = torch.arange(5, 20)
    assert torch.allclose(spread.source_vectors(tokens).cpu(), whole.source_vectors(tokens), atol=1e-6)


def test_device_and_device_map_exclude_each_other(folder):
    with pytest.raises(RequestError, match="not both"):
        load_model(folder, device="cpu", device_map="auto")


def test_a_device_that_is_not_here(folder):
    with pytest.raises(RequestError, match="'hpu:3' is not available here"):
        load_model(folder, device="hpu:3")


@pytest.mark.gpu
def test_gates_on_an_accelerator(folder):
    if not torch.accelerator.is_available():
        pytest.skip("no accelerator on this machine")
    here, there = load_model(folder, device="cpu"), load_model(folder)
    assert there.device.type != "cpu" and there.check.passed
    ids, values = sample_ids(), torch.rand(2, *here.spec.shape)
    with torch.no_grad(), gates(here, values):
        expected = here.hf(ids).logits
    with torch.no_grad(), gates(there, values):  # gates on the CPU, model elsewhere
        found = there.hf(ids.to(there.device)).logits.cpu()
    assert torch.allclose(found, expected, atol=1e-3)
