"""Models that do not fit on one device: layers on disk, weights in eight bits; gated, read and validated."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from transformers import TorchAoConfig

from headatlas import Relation, RequestError, load_model, map_heads, relate_heads, validate_atlas
from support.planted import word_tokenizer
from support.small_run import write_task
from support.tiny import build_tiny

pytestmark = pytest.mark.slow

SMALL = {"seeds": 2, "updates": 5, "batch": 4}
CHECKED = {"items": 4, "draws": 2, "methods": ["ablate"], "retest": 0}
NEXT = Relation("next", tuple((f"w{n}", f"w{(n + 1) % 100}") for n in range(60)), category="algorithmic")
#: the model lies on two devices: this machine's memory and its disk
MAP = {
    "model.embed_tokens": "cpu",
    "model.layers.0": "disk",
    "model.layers.1": "cpu",
    "model.layers.2": "disk",
    "model.norm": "cpu",
    "model.rotary_emb": "cpu",
    "lm_head": "disk",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    model = build_tiny("llama", hidden_size=64, head_dim=16, intermediate_size=128)
    assert len(model.model.layers) == 3
    model.save_pretrained(path)
    word_tokenizer(100).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("task") / "words.jsonl", 120)


def all_of(model, task, out):
    """(gates, relation scores, losses with heads kept) by all three ways of looking at a model."""
    map_heads(model, task, out=out, **SMALL)
    relate_heads(model, NEXT, out=out, resume=True)
    atlas = validate_atlas(out, model=model, tasks=[task], **CHECKED)
    return atlas.gates("words").values, atlas.relation_scores().values, atlas.validation("words").keep


@pytest.fixture(scope="module")
def plain(folder, task, tmp_path_factory):
    return all_of(load_model(folder, dtype="float32"), task, tmp_path_factory.mktemp("plain") / "atlas")


def test_layers_on_two_devices(folder, task, plain, tmp_path):
    """The same numbers as of the model in one piece."""
    spread = load_model(folder, dtype="float32", device_map=MAP, offload_folder=str(tmp_path / "disk"))
    assert {str(one) for one in spread.hf.hf_device_map.values()} == {"cpu", "disk"}
    found = all_of(spread, task, tmp_path / "atlas")
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5, equal_nan=True)


@pytest.mark.filterwarnings("ignore:MatMul8bitLt")
@pytest.mark.filterwarnings("ignore:.*dtype.*")
@pytest.mark.parametrize(("dtype", "kind", "coarse"), [("int8", "Int8Params", 1), ("int4", "Params4bit", 4)])
def test_weights_in_few_bits(folder, task, plain, tmp_path, dtype, kind, coarse):
    """Near the numbers of the plain model: its weights are rounded."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    near(load_model(folder, dtype=dtype), kind, coarse, plain, task, tmp_path)


@pytest.mark.filterwarnings("ignore:.*register_constant")
def test_weights_by_torchao(folder, task, plain, tmp_path):
    quantization = pytest.importorskip("torchao.quantization")
    config = TorchAoConfig(quantization.Int8WeightOnlyConfig())
    rounded = load_model(folder, dtype="float32", quantization_config=config)
    near(rounded, "Int8Tensor", 1, plain, task, tmp_path)


def near(rounded, kind, coarse, plain, task, tmp_path):
    weight = rounded.hf.get_submodule(rounded.attention(0).output).weight
    assert kind in {type(weight).__name__, type(weight.data).__name__}
    gates, scores, losses = all_of(rounded, task, tmp_path / "atlas")
    assert np.nanmax(np.abs(gates - plain[0])) < 0.2 * coarse
    assert np.nanmax(np.abs(scores - plain[1])) <= 0.1 * coarse
    ends = [0, -1]  # no heads, all heads: between them heads of nearly the same score change places
    np.testing.assert_allclose(losses[:, ends].mean(-1), plain[2][:, ends].mean(-1), atol=0.05 * coarse)
    np.testing.assert_allclose(losses[:, ends], plain[2][:, ends], atol=0.15 * coarse)
    assert not np.array_equal(losses[:, ends], plain[2][:, ends])


def test_without_bitsandbytes(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RequestError, match=r"headatlas\[quantised\]"):
        load_model(folder, dtype="int8")
    with pytest.raises(RequestError, match="not both"):
        load_model(folder, dtype="int4", quantization_config=object())
