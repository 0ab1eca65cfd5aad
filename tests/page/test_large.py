"""How quick a page of 80 × 64 heads, six tasks and ten seeds is: printed, not judged; and how large."""

from __future__ import annotations

import numpy as np
import pytest

from page.subjects import TASKS, make_subject


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return make_subject("large", tmp_path_factory.mktemp("large")).page


SLIDE = """async (name) => {
  const input = document.getElementById(name), times = [];
  for (let step = 0; step < 20; step++) {
    input.value = String(0.3 + 0.02 * step);
    input.dispatchEvent(new Event("input"));
    const began = await new Promise(requestAnimationFrame);  // draws, before or after this
    times.push((await new Promise(requestAnimationFrame)) - began);
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
    figures = {"MB": large.stat().st_size / 1e6, "ready ms": found.page.evaluate("performance.now()")}
    assert "5,120 heads in 80 layers" in found.page.locator("header").inner_text()
    assert found.page.locator("[data-map]").count() == 2 * TASKS + 5 + 1 + 1

    def median(script, *given):
        return float(np.median(found.page.evaluate(script, *given)))

    figures["hover ms"] = median(HOVER)
    figures["slider of roles, ms per frame"] = median(SLIDE, "threshold")
    figures["of relations"] = median(SLIDE, "implements")
    found.page.locator("#cut").check()  # all cells anew at every step
    figures["of roles, yes or no"] = median(SLIDE, "threshold")
    found.page.locator("#filters").evaluate("one => { one.open = true; }")
    found.page.locator("#role").select_option("facilitating")
    figures["and filtered"] = median(SLIDE, "threshold")
    for name, value in figures.items():
        record_property(name, value)
    with capsys.disabled():
        print("\n80 × 64 page:", ", ".join(f"{name} {value:.1f}" for name, value in figures.items()))
    assert found.is_silent(), found.said
