"""What is remembered of a model between calls: its self-check, the model itself, the choice of source."""

from __future__ import annotations

import json
import os

import pytest
import torch

from headatlas import load_model
from headatlas.model import idle_model, load, proof_cache
from headatlas.model.idle_model import borrowed_model
from headatlas.model.proof import self_check
from support.tiny import build_tiny


@pytest.fixture
def folder(tmp_path):
    build_tiny("llama").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def checks(monkeypatch):
    """The self-checks that are made, as a list that grows."""
    made: list[object] = []

    def check(*args):
        made.append(self_check(*args))
        return made[-1]

    monkeypatch.setattr(load, "self_check", check)
    return made


def test_a_passed_check_is_not_made_again(folder, checks):
    first, second = load_model(folder), load_model(folder)
    assert len(checks) == 1 and second.check == first.check and second.check.passed


def test_a_check_can_be_asked_for(folder, checks):
    load_model(folder)
    load_model(folder, check=True)
    assert len(checks) == 2
    assert load_model(folder, check=False).check is None and len(checks) == 2


@pytest.mark.parametrize(
    "change",
    ["weights", "dtype", "attention", "version of torch", "version of headatlas", "code", "anatomy"],
)
def test_a_check_holds_for_the_same_model_and_versions_only(change, folder, checks, monkeypatch):
    load_model(folder)
    options = {}
    if change == "weights":
        other = build_tiny("llama")
        with torch.no_grad():
            other.model.layers[0].self_attn.o_proj.weight[0, 0] += 0.01
        other.save_pretrained(folder)
    elif change == "dtype":
        options = {"dtype": "bfloat16"}
    elif change == "attention":
        options = {"attn_implementation": "eager"}
    elif change == "version of torch":
        monkeypatch.setattr(proof_cache, "version", lambda name: "0.0" if name == "torch" else "1.0")
    elif change == "version of headatlas":
        monkeypatch.setattr(proof_cache, "__version__", "0.0")
    elif change == "code":
        monkeypatch.setattr(proof_cache, "_code_hash", lambda: "other code")
    else:
        found = load.find_heads
        monkeypatch.setattr(load, "find_heads", lambda hf: _Renamed(found(hf)))
    load_model(folder, **options)
    assert len(checks) == 2


class _Renamed:
    """An anatomy that says something else of itself."""

    def __init__(self, anatomy):
        self._anatomy = anatomy

    def __getattr__(self, name):
        return getattr(self._anatomy, name)

    def __repr__(self):
        return "another anatomy"


def test_a_damaged_record_is_not_believed(folder, checks):
    load_model(folder)
    (record,) = proof_cache.checks_folder().iterdir()
    stored = json.loads(record.read_text())
    for damage in ("", "[]", json.dumps({**stored, "key": "other"}), json.dumps({**stored, "passed": False})):
        record.write_text(damage)
        load_model(folder)
    assert len(checks) == 5


def test_a_cache_that_cannot_be_written_costs_no_more_than_time(folder, checks, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(proof_cache, "checks_folder", lambda: tmp_path / "file")
    assert load_model(folder).check.passed and load_model(folder).check.passed
    assert len(checks) == 2


def test_a_loaded_model_is_always_checked(checks):
    hf = build_tiny("llama")
    load_model(hf)
    load_model(hf)
    assert len(checks) == 2 and not proof_cache.checks_folder().exists()


def test_modules_of_other_packages_are_always_checked(folder, checks, monkeypatch):
    monkeypatch.setattr(proof_cache, "_PACKAGES", ("torch",))
    load_model(folder)
    load_model(folder)
    assert len(checks) == 2


def test_a_model_is_lent_again(folder):
    with borrowed_model(folder, dtype="float32") as first:
        pass
    with borrowed_model(folder, dtype="float32") as second:
        assert second is first
        with borrowed_model(folder, dtype="float32") as other:  # to one call at a time
            assert other is not first


@pytest.mark.parametrize("change", ["options", "files", "error", "size"])
def test_a_model_is_loaded_again(change, folder, monkeypatch):
    options = {"dtype": "float32"}
    if change == "size":
        monkeypatch.setattr(idle_model, "_LARGEST", 100)
    if change == "error":
        with pytest.raises(ZeroDivisionError), borrowed_model(folder, **options) as first:
            raise ZeroDivisionError
    else:
        with borrowed_model(folder, **options) as first:
            pass
    if change == "options":
        options["dtype"] = "bfloat16"
    if change == "files":
        os.utime(folder / "model.safetensors", ns=(1, 1))
    with borrowed_model(folder, **options) as second:
        assert second is not first


def test_device_auto(folder):
    kind = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    assert load_model(folder, device="auto").device.type == kind
