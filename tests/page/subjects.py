"""The atlases whose pages are tested: a ragged one with hard tokens, the gallery's, a large one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from headatlas.atlas import Atlas, Fit, Run, ScoreMap, open_atlas, unpack_atlas
from headatlas.page import write_page
from page.test_payload import some_atlas, with_tokens
from support.atlases import spec_of

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
LAYERS, HEADS, TASKS, SEEDS = 80, 64, 6, 10
CATEGORIES = ["algorithmic"] * 6 + ["knowledge"] * 6 + ["linguistic"] * 9 + ["translation"] * 4


def large_atlas():
    draw = np.random.default_rng(0)
    shape = (LAYERS, HEADS)
    spec = replace(spec_of(*[HEADS] * LAYERS), name="80 × 64", kv_heads=(8,) * LAYERS)
    settings = {"objective": "bounded", "free": {"updates": 500}, "pressed": {"updates": 500}, "batch": 64}
    updates = np.arange(0, 501, 20).astype(np.int32)
    runs, fits, scores = [], [], []
    for number in range(TASKS):
        task = f"task {number}"
        runs.append(Run("gating", task, "id", settings={"resolved": settings}))
        base = draw.normal(0, 2, size=shape)
        for seed in range(SEEDS):
            for fit, shift in (("free", 0.5), ("retain", 2), ("remove", -1)):
                logits = (base + shift + draw.normal(0, 1.2, size=shape)).clip(-4, 4).astype(np.float32)
                path = np.broadcast_to(1 / (1 + np.exp(-logits)), (len(updates), *shape)).astype(np.float32)
                fits.append(Fit("gating", task, seed, fit, "id", logits, path, updates, np.zeros(1), {}))
    for number, category in enumerate(CATEGORIES):
        name = f"relation-{number}"
        runs.append(Run("relations", name, "id"))
        values = (draw.uniform(size=(2, *shape)) ** 12).astype(np.float32)
        facts = {"category": category, "kind": "static", "pairs": 99, "single": 99, "listed": 99, "k": 10}
        scores.append(ScoreMap("relations", name, "id", values, facts))
    tokens = {
        "tokens": draw.integers(128_000, size=(*shape, 15)).astype(np.int32),
        "mapped": draw.integers(128_000, size=(*shape, 15, 5)).astype(np.int32),
        "strength": draw.uniform(1, 5, size=(*shape, 15)).astype(np.float32),
    }
    texts = {str(number): f" token{number}" for number in range(128_000)}
    return Atlas(spec, runs, fits, scores=scores, notes={"salient": (tokens, {"texts": texts})})


@dataclass(frozen=True)
class Subject:
    name: str
    atlas: Atlas
    page: Path

    @property
    def shape(self) -> tuple[int, int]:
        return self.atlas.spec.shape

    @property
    def task(self) -> str:
        return self.atlas.tasks[0]


SUBJECTS = ("ragged", "smollm2", "large")


def make_subject(name: str, folder: Path) -> Subject:
    if name == "smollm2":  # the page that goes with the documentation
        return Subject(
            name, open_atlas(unpack_atlas(GALLERY / "atlas.zip", folder / name)), GALLERY / "atlas.html"
        )
    atlas = with_tokens(some_atlas((6, 6, 0, 6, 4), seeds=4)) if name == "ragged" else large_atlas()
    with pytest.MonkeyPatch.context() as patch:
        if name == "large":
            patch.setattr("headatlas.page.payload.find", lambda atlas: [])  # tests of its own; a minute here
        return Subject(name, atlas, write_page(atlas, folder / f"{name}.html"))
