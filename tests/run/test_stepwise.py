"""A plan carried out at once, and step by step as workers do it: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from headatlas import Relation, load_model
from headatlas.atlas import Store, open_atlas
from headatlas.core import silent
from headatlas.request import ContrastRequest, MapRequest, RelationsRequest, ValidateRequest
from headatlas.run import LocalExecutor, execute
from headatlas.run.executor import carry_out
from support.planted import word_tokenizer
from support.small_run import differences, write_task
from support.tiny import build_tiny

NEXT, SECOND = (
    Relation(name, tuple((f"w{n}", f"w{(n + by) % 100}") for n in range(40)), category="algorithmic")
    for name, by in (("next", 1), ("second", 2))
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("stepwise")
    build_tiny("llama").save_pretrained(root / "model")
    word_tokenizer(100).save_pretrained(root / "model")
    for seed, name in enumerate(("words", "others")):
        write_task(root / f"{name}.jsonl", 120, seed)
    return root


@pytest.fixture(scope="module")
def model(root):
    return load_model(root / "model", dtype="float32")


def requests(root, out):
    """One of each kind; each needs the atlas that the ones before have made."""
    model, tasks = str(root / "model"), [root / "words.jsonl", root / "others.jsonl"]
    load = {"dtype": "float32"}
    yield MapRequest.of(model, tasks, seeds=6, updates=2, batch=4, load=load)
    yield MapRequest.of(model, tasks, "attribute", seeds=2, items=5, load=load)
    yield ContrastRequest.of(model, *tasks, seeds=6, updates=2, batch=4, load=load)
    yield RelationsRequest.of(model, [NEXT, SECOND], dynamic=True, causal=["next"], load=load)
    yield ValidateRequest.of(out, methods=["ablate"], items=5, draws=2)


def test_step_by_step(root, model, tmp_path):
    for request in requests(root, tmp_path / "whole"):
        execute(request, tmp_path / "whole", resume=True, executor=LocalExecutor(model))
    for request in requests(root, tmp_path / "steps"):
        atlas = open_atlas(tmp_path / "steps") if (tmp_path / "steps").exists() else None
        steps = [step for stage in request.plan(atlas).stages for step in stage]
        assert len(steps) > 1
        for step in steps:
            part = request.only(step.subjects) if step.subjects else request
            carry_out(part, model, tmp_path / "steps", [[step]], silent)
    assert differences(tmp_path / "whole", tmp_path / "steps") == []
    assert open_atlas(tmp_path / "steps").validated == ["words", "others"]


def test_differences_are_seen(root, model, tmp_path):
    request = next(requests(root, None))
    for name in ("one", "other"):
        execute(request, tmp_path / name, executor=LocalExecutor(model))
    atlas = open_atlas(tmp_path / "other")
    assert differences(tmp_path / "one", tmp_path / "other") == []
    fit = atlas.fit("words", 5, "retain")
    np.copyto(fit.logits, fit.logits + 1)
    Store.open(tmp_path / "other").write(fit)
    assert differences(tmp_path / "one", tmp_path / "other") == ["('gating', 'words') 5 retain"]
