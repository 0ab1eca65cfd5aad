"""What the tests of several commands share."""

from __future__ import annotations

import pytest

from support.cli import invoke
from support.planted import word_tokenizer
from support.small_run import write_task
from support.tiny import build_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny"
    build_tiny("llama").save_pretrained(path)
    word_tokenizer(100).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("tasks") / "words.jsonl", 120)


@pytest.fixture(scope="module")
def atlas(tiny, task, tmp_path_factory):
    """A quick map of that task."""
    folder = tmp_path_factory.mktemp("atlases") / "atlas"
    small = ("--seeds", 2, "--updates", 3, "--batch", 4, "--dtype", "float32")
    result = invoke("map", tiny, "--task", task, *small, "--out", folder)
    assert result.returncode == 0, result.stderr
    return folder
