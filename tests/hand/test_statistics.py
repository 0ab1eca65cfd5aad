"""Intervals and tests against cases worked out by hand, and against scipy."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headatlas.atlas import Atlas
from headatlas.atlas.finding import Heads
from headatlas.atlas.statistics import (
    bootstrap,
    concentration,
    holm,
    jaccard,
    mcnemar,
    overlap,
    permutation_p,
    proportion,
    rank_correlation,
    shuffled_correlation,
)
from support.atlases import spec_of


def test_the_bootstrap_of_a_mean():
    """Next to scipy's percentile interval, of other draws; and the same each time."""
    values = np.random.default_rng(0).normal(3, 1, size=60)
    found = bootstrap(60, lambda places: float(values[places].mean()))
    other = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=1)
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(other.confidence_interval.low, abs=0.03)
    assert found.high == pytest.approx(other.confidence_interval.high, abs=0.03)
    assert bootstrap(60, lambda places: float(values[places].mean())) == found


def test_the_bootstrap_of_a_constant_and_of_what_is_not_always_defined():
    assert bootstrap(5, lambda places: 2.0).low == 2.0
    some = bootstrap(4, lambda places: np.nan if len(set(places)) < 3 else 1.0)
    assert (some.low, some.high) == (1.0, 1.0)


def test_a_permutation_test_by_hand():
    """Three values of six, all on one side: 1 of the 20 choices is as far out to one side."""
    values, chosen = np.array([1.0, 2, 3, 10, 11, 12]), np.array([0, 0, 0, 1, 1, 1], dtype=bool)
    observed = float(values[chosen].mean())

    def draw(chance):
        return float(values[chance.permutation(chosen)].mean())

    more = permutation_p(observed, draw, draws=4000, sides="more")
    assert more == pytest.approx(1 / comb(6, 3), abs=0.012)
    assert permutation_p(observed, draw, draws=4000, sides="less") == 1
    assert permutation_p(observed, draw, draws=4000) == pytest.approx(2 * more)
    assert permutation_p(99.0, draw, draws=199, sides="more") == 1 / 200  # never zero


def test_ranks():
    one, other = [1, 2, 3, 4, 5], [2, 1, 4, 3, 5]
    assert rank_correlation(one, other) == pytest.approx(1 - 6 * 4 / (5 * 24))  # the squares sum up to 4
    draw = np.random.default_rng(2).integers(0, 5, size=(2, 40))  # with ties
    assert rank_correlation(*draw) == pytest.approx(stats.spearmanr(*draw).statistic)
    assert np.isnan(rank_correlation([1, 1, 1], [1, 2, 3]))


def test_mcnemar_by_hand():
    """Of ten heads in which the two differ, nine are in the first alone: 2 · (1 + 10) / 1024."""
    one = np.array([True] * 9 + [False] + [True] * 5 + [False] * 5)
    other = np.array([False] * 9 + [True] + [True] * 5 + [False] * 5)
    assert mcnemar(one, other) == pytest.approx(22 / 1024)
    assert mcnemar(one, one) == 1


def test_an_overlap_by_hand():
    """Two of four and two of four, the same ones: one choice in six."""
    found = overlap(np.array([1, 1, 0, 0], dtype=bool), np.array([1, 1, 0, 0], dtype=bool))
    assert (found.both, found.expected, found.jaccard) == (2, 1.0, 1.0)
    assert found.p == pytest.approx(1 / 6)
    none = overlap(np.array([1, 1, 0, 0], dtype=bool), np.array([0, 0, 1, 1], dtype=bool))
    assert (none.both, none.jaccard, none.p) == (0, 0.0, 1.0)
    assert jaccard(np.zeros(3, dtype=bool), np.zeros(3, dtype=bool)) == 1


def test_columns():
    """Six heads, all in one of three columns: counts 6, 0, 0, mean 2, variance 8. Two in each: 0."""
    columns = np.tile(np.arange(3), 6)
    assert concentration(columns, columns == 1, 3) == 4
    assert concentration(columns, np.arange(18) < 6, 3) == 0


def test_holm_by_hand():
    """0.01 times 3, 0.02 times 2, 0.03 once but not below the one before."""
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm({"a": 0.6, "b": 0.5}) == [1.0, 1.0] and holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_laws(values):
    """Never below the p-value itself, never above Bonferroni's, and in the same order."""
    found = holm(values)
    for p, adjusted in zip(values, found, strict=True):
        assert p <= adjusted <= min(1, len(values) * p) + 1e-12
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(found)[order]) >= 0).all()


@pytest.mark.parametrize("heads", [(3, 3, 3), (2, 0, 4, 1), (5,)])
def test_heads_stay_in_their_layers(heads):
    places = Heads(Atlas(spec_of(*heads), [], []))
    chance = np.random.default_rng(0)
    drawn = [places.within_layers(chance) for _ in range(300)]
    for order in drawn:
        assert sorted(order) == list(range(sum(heads)))
        assert (places.layers[order] == places.layers).all()
    # every head comes to every place of its layer about as often
    first = np.bincount([order[0] for order in drawn], minlength=heads[0])[: heads[0]]
    assert first.min() > 300 / heads[0] / 2


def test_ranks_go_along_when_values_are_shuffled():
    draw = np.random.default_rng(3)
    one, other = draw.normal(size=40), draw.integers(5, size=40).astype(float)  # with ties
    order = draw.permutation(40)
    found = shuffled_correlation(one, other, lambda _: order)(draw)
    assert found == pytest.approx(stats.spearmanr(one, other[order]).statistic)


def test_a_proportion_by_hand():
    """Wilson: (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n), with z = 1.96."""
    found, z = proportion(3, 20), stats.norm.ppf(0.975)
    middle, room = 0.15 + z**2 / 40, z * np.sqrt(0.15 * 0.85 / 20 + z**2 / 1600)
    assert (found.low, found.high) == pytest.approx(
        ((middle - room) / (1 + z**2 / 20), (middle + room) / (1 + z**2 / 20))
    )
    assert found.mean == 0.15 and proportion(0, 20).low == pytest.approx(0, abs=1e-12)
    assert proportion(0, 20).high == pytest.approx(z**2 / 20 / (1 + z**2 / 20))
