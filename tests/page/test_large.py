"""A page of 80 × 64 heads, six tasks, ten seeds: small enough; and how quick it is, printed, not judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headatlas.atlas import Atlas, Fit, Run, ScoreMap
from headatlas.page import page_of, payload_of
from support.atlases import spec_of

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


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    file = tmp_path_factory.mktemp("large") / "large.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headatlas.page.payload.find", lambda atlas: [])  # tests of its own; minutes here
        file.write_text(page_of(payload_of([large_atlas()])))
    return file


SLIDE = """async () => {
  const input = document.getElementById("threshold"), times = [];
  for (let step = 0; step < 20; step++) {
    const began = performance.now();
    input.value = String(0.3 + 0.02 * step);
    input.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    times.push(performance.now() - began);
  }
  return times;
}"""
HOVER = """() => {
  const grid = document.querySelector("[role=grid]"), box = grid.getBoundingClientRect(), times = [];
  for (let step = 0; step < 40; step++) {
    const began = performance.now();
    const at = { clientX: box.left + 40 + 5 * step, clientY: box.top + 40 + 4 * step, bubbles: true };
    grid.dispatchEvent(new PointerEvent("pointermove", at));
    times.push(performance.now() - began);
  }
  return times;
}"""


def test_a_large_model(visit, large, record_property, capsys):
    assert large.stat().st_size < 15_000_000
    found = visit(large)
    ready = found.page.evaluate("performance.now()")
    assert "5,120 heads in 80 layers" in found.page.locator("header").inner_text()
    assert found.page.locator("[data-map]").count() == 2 * TASKS + 5 + 1 + 1
    slide, hover = found.page.evaluate(SLIDE), found.page.evaluate(HOVER)
    figures = {
        "MB": large.stat().st_size / 1e6,
        "ready ms": ready,
        "slider ms, two frames": float(np.median(slide)),
        "hover ms": float(np.median(hover)),
    }
    for name, value in figures.items():
        record_property(name, value)
    with capsys.disabled():
        print("\n80 × 64 page:", ", ".join(f"{name} {value:.1f}" for name, value in figures.items()))
    assert found.is_silent(), found.said
