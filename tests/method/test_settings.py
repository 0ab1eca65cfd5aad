"""Presets, and what can be changed about them."""

from __future__ import annotations

import pytest

from headatlas import RequestError, UnknownNameError
from headatlas.method.gating import PRESETS, Stage, resolve


def test_paper_is_the_published_schedule():
    paper = PRESETS["paper"]
    assert (paper.objective, paper.batch, paper.seeds, paper.pressure) == ("paper", 64, 10, 0.1)
    assert paper.free == Stage(500, 0.1, 0.01) and paper.pressed == Stage(500, 0.5, 0.1)
    assert (paper.clip, paper.limit, paper.start) == (1.0, 4.0, (0.0, 1.0))
    assert (paper.push, paper.momentum) == (1.0, (0.9, 0.999))


def test_quick_has_three_seeds_or_more():
    assert PRESETS["quick"].seeds >= 3


def test_changes():
    changed = resolve("paper", seeds=3, updates=7, batch=5, objective="bounded")
    assert changed.free == Stage(7, 0.1, 0.01) and changed.pressed == Stage(7, 0.5, 0.1)
    assert (changed.seeds, changed.batch, changed.objective) == (3, 5, "bounded")
    assert PRESETS["paper"].seeds == 10  # the preset is as it was


@pytest.mark.parametrize(("tokens", "batch"), [(45.0, 2), (12.0, 3), (5.7, 6), (1.0, 12), (900.0, 2)])
def test_a_batch_that_suits_the_targets(tokens, batch):
    assert resolve("quick").for_targets(tokens).batch == batch
    assert resolve("quick", batch=9).for_targets(tokens).batch == 9


@pytest.mark.parametrize("change", [{"seeds": 0}, {"batch": 0}, {"updates": 0}, {"seeds": 10**15}])
def test_nothing_is_refused(change):
    with pytest.raises(RequestError, match="allowed are 1 to"):
        resolve("quick", **change)


def test_unknown_words():
    with pytest.raises(UnknownNameError):
        resolve("papers")
    with pytest.raises(UnknownNameError):
        resolve("paper", objective="none")
