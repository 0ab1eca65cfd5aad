"""`headatlas export`, as it is typed."""

from __future__ import annotations

import json

import pytest
from transformers import AutoModelForCausalLM

from support.cli import assert_refused, invoke


def test_what_export_says(tiny, task, atlas, tmp_path):
    out = tmp_path / "checkpoint"
    options = ("--gates", "remove", "--hard", 0.5, "--prune", "--model", tiny)
    found = invoke("export", atlas, "--task", task, *options, "--items", 6, "--out", out)
    assert found.returncode == 0, found.stderr
    assert "words, 6 held-out items" in found.stdout and "NLL, nats per token" in found.stdout
    assert "removed" in found.stdout and "an ordinary checkpoint" in found.stdout
    *_, faithful, task_line = found.stdout.strip().splitlines()
    assert "reproduces the gated model" in faithful and "bit for bit" not in task_line
    assert (
        task_line.startswith("task words: NLL ") and task_line.count("(") == 2
    )  # changes of NLL and accuracy
    assert AutoModelForCausalLM.from_pretrained(out).config.model_type == "llama"


def test_as_json(tiny, task, atlas, tmp_path):
    options = ("--gates", "retain", "--model", tiny, "--json")
    found = invoke("export", atlas, "--task", task, *options, "--items", 6, "--out", tmp_path / "x")
    data = json.loads(found.stdout)
    assert data["task"] == "words" and data["before"].keys() == data["after"].keys()
    change = data["accuracy_change"]
    gained = data["after"]["accuracy"] - data["before"]["accuracy"]
    assert change["mean"] == pytest.approx(gained, abs=1e-6)
    assert change["low"] is None or change["low"] <= change["mean"] <= change["high"]


def test_wrong_ones(tiny, task, atlas, tmp_path):
    out = tmp_path / "x"
    common = ("export", atlas, "--task", task, "--out", out, "--model", tiny)
    assert_refused(invoke(*common, "--gates", "rettain"), "no gates named")
    assert_refused(invoke(*common, "--hard", 0.5), "hard is for the gates of retain")
    assert_refused(invoke(*common, "--gates", "retain", "--seed", 4), "there are 0, 1")
    there = ("export", atlas, "--task", task, "--out", tmp_path, "--gates", "retain")
    assert_refused(invoke(*there), "already exists")
    wrong_task = invoke("export", atlas, "--task", "wrds", "--out", out)
    assert_refused(wrong_task, "no gated task", "did you mean 'words'")
    assert_refused(invoke("export", tmp_path, "--task", task, "--out", out), "no atlas")
    assert not out.exists()
