"""Intervals and tests against cases worked out by hand, and against scipy."""

from __future__ import annotations

from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headatlas.atlas import Atlas
from headatlas.atlas.finding.category_findings import first_layer
from headatlas.atlas.finding.flat_heads import Heads
from headatlas.atlas.finding.role_findings import depth_trend
from headatlas.atlas.interval import Interval, Spread, jackknife, spread_interval, t_interval
from headatlas.atlas.statistics import (
    concentration,
    correlation_interval,
    depth_correlation_interval,
    difference_interval,
    holm,
    jaccard,
    layer_correlation_interval,
    permutation_p,
    rank_correlation,
    shuffled_correlation,
    tail_p,
    welch,
)
from support.atlases import spec_of


def test_one_unit_has_no_interval():
    assert jackknife(1, lambda index: 3.0).low is None
    assert t_interval([3.0]).high is None
    assert t_interval([3.0]).brackets() == ""


def test_t_interval_against_scipy():
    values = [0.3, 0.5, 0.9]
    exact = stats.ttest_1samp(values, 0).confidence_interval()
    found = t_interval(values)
    assert (found.low, found.high) == (pytest.approx(exact.low), pytest.approx(exact.high))


def test_values_that_do_not_vary_have_no_interval():
    """Three equal shares, or equal items, do not show how much a share or an item varies: [x to x] covers
    nothing but x."""
    assert t_interval([0.3, 0.3, 0.3]) == Interval(pytest.approx(0.3))
    assert spread_interval(0.3, [Spread(0.0, 2), Spread(0.0, 11)]) == Interval(0.3)
    assert jackknife(12, lambda index: 0.3) == Interval(0.3)
    assert spread_interval(0.3, [Spread(0.0, 2), Spread(0.01, 11)]).low < 0.3


def test_an_interval_over_layers_against_scipy():
    """The jackknife over layers of Fisher's z of scipy's correlation."""
    layers = np.repeat([0, 1, 2, 5], [3, 2, 4, 3])
    first, second = np.random.default_rng(1).normal(size=(2, 12))

    def transformed(index):
        return float(np.arctanh(stats.spearmanr(first[index], second[index]).statistic))

    expected = jackknife(12, transformed, groups=layers)
    found = layer_correlation_interval(first, second, layers)
    assert found.mean == pytest.approx(stats.spearmanr(first, second).statistic)
    assert np.arctanh([found.low, found.high]) == pytest.approx([expected.low, expected.high])
    assert layer_correlation_interval(first, second, np.zeros(12)).low is None


def test_the_ends_of_the_depth_do_not_widen_the_interval_of_a_trend():
    """Without noise between layers the correlation with depth changes only because layers are left out. It
    changes most without the first or the last; that says nothing about another model with these layers."""
    layers = np.repeat(np.arange(12), 8)
    values = layers + np.tile(np.linspace(-5, 5, 8), 12)  # the same scatter in every layer
    over_layers = layer_correlation_interval(layers, values, layers)
    with_depth = depth_correlation_interval(layers, values)
    assert with_depth.mean == over_layers.mean == pytest.approx(stats.spearmanr(layers, values).statistic)
    assert over_layers.low < with_depth.low < with_depth.mean < with_depth.high < over_layers.high
    assert with_depth.high - with_depth.low < 0.5 * (over_layers.high - over_layers.low)
    no_trend = depth_correlation_interval(layers, np.random.default_rng(0).normal(size=96))
    assert no_trend.low < 0 < no_trend.high
    assert depth_correlation_interval(np.zeros(4), np.arange(4)).low is None


def test_the_interval_of_a_depth_trend_is_over_layers():
    """It was that of the permutation test: it covered zero exactly where the test did not reject."""
    places = Heads(Atlas(spec_of(*[8] * 12), [], []))
    values = places.layers + np.random.default_rng(0).normal(scale=8, size=96)
    assert depth_trend(places, values, 999)[0] == depth_correlation_interval(places.layers, values)


def test_a_permutation_test_by_hand():
    """Three values of six, all on one side: 1 of the 20 choices is as extreme, and ties count half."""
    values, chosen = np.array([1.0, 2, 3, 10, 11, 12]), np.array([0, 0, 0, 1, 1, 1], dtype=bool)
    observed = float(values[chosen].mean())

    def draw(chance):
        return float(values[chance.permutation(chosen)].mean())

    more = permutation_p(observed, draw, draws=4000, sides="more")
    assert more == pytest.approx(0.5 / comb(6, 3), abs=0.006)
    assert permutation_p(observed, draw, draws=4000, sides="less") == pytest.approx(1 - more)
    assert permutation_p(observed, draw, draws=4000) == pytest.approx(2 * more)
    assert permutation_p(99.0, draw, draws=199, sides="more") == 0.5 / 200  # never zero


def test_a_mid_p_value_by_hand():
    """Of 9 null values 2 lie above 3 and 3 equal it; with the observed value there are 4 ties in 10."""
    null = np.array([1, 1, 2, 2, 3, 3, 3, 4, 5])
    assert tail_p(3, null, "more") == pytest.approx((2 + 4 / 2) / 10)
    assert tail_p(3, null, "less") == pytest.approx((4 + 4 / 2) / 10)
    assert tail_p(3, null) == pytest.approx(0.8)


def test_intervals_invert_their_tests():
    """The interval of a correlation or a difference excludes zero where the two-sided p is below 0.05."""
    null = np.linspace(-0.6, 0.6, 999)
    for observed in (0.05, 0.3, 0.5, 0.55, 0.58, 0.7):
        is_significant = tail_p(observed, null) < 0.05
        for interval in (correlation_interval(observed, null), difference_interval(observed, null)):
            assert (interval.low > 0) == is_significant and interval.low < observed < interval.high
    assert correlation_interval(1.0, null).high <= 1


@pytest.mark.parametrize("interval", [correlation_interval, difference_interval])
def test_few_permutations_give_no_interval(interval):
    """Two of 16 heads in layers of four have 16 places: none of them lies outside of 95 %."""
    assert interval(0.2, np.repeat(np.linspace(-0.5, 0.5, 16), 50)) == Interval(0.2)
    assert interval(0.2, np.repeat(np.linspace(-0.5, 0.5, 41), 50)).low is not None


def test_ranks():
    one, other = [1, 2, 3, 4, 5], [2, 1, 4, 3, 5]
    assert rank_correlation(one, other) == pytest.approx(1 - 6 * 4 / (5 * 24))  # the squares sum up to 4
    draw = np.random.default_rng(2).integers(0, 5, size=(2, 40))  # with ties
    assert rank_correlation(*draw) == pytest.approx(stats.spearmanr(*draw).statistic)
    assert np.isnan(rank_correlation([1, 1, 1], [1, 2, 3]))


def test_jaccard_of_empty_sets():
    assert jaccard(np.zeros(3, dtype=bool), np.zeros(3, dtype=bool)) == 1


def test_columns():
    """Six heads, all in one of three columns: counts 6, 0, 0, mean 2, variance 8. Two in each: 0."""
    assert concentration(np.array([[6, 0, 0], [2, 2, 2]])).tolist() == [4, 0]


def test_holm_by_hand():
    """0.01 times 3, 0.02 times 2, 0.03 once but not below the one before."""
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.6, 0.5]) == [1.0, 1.0] and holm([]) == []


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
    drawn = places.within_layers(chance, 300)
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


@pytest.mark.parametrize("heads", [(3, 3, 3, 3), (2, 0, 4, 1, 3)])
def test_depth_ranks_against_scipy(heads):
    """Mean ranks by depth of whole layers that were moved are those of a rank of all heads."""
    places = Heads(Atlas(spec_of(*heads), [], []))
    depths = places.shuffled_layers(np.random.default_rng(0), 20)
    for depth, ranks in zip(depths, places.depth_ranks(depths), strict=True):
        assert sorted(depth) == list(range(len(places.sizes)))
        every = stats.rankdata(depth[places.layer_index])
        assert ranks[places.layer_index] == pytest.approx(every)


def test_a_depth_trend_against_brute_force():
    """All orders of five layers, one by one, with scipy's rank correlation."""
    places = Heads(Atlas(spec_of(2, 1, 3, 2, 2), [], []))
    values = np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.9, 0.6, 0.8, 0.7, 1.0])
    every = [
        stats.spearmanr(np.array(order)[places.layer_index], values).statistic
        for order in permutations(range(5))
    ]
    rho, p = depth_trend(places, values, 40_000)
    observed = stats.spearmanr(places.layers, values).statistic
    assert rho.mean == pytest.approx(observed)
    above, ties = np.sum(every > observed + 1e-9), np.sum(np.isclose(every, observed))
    assert p == pytest.approx(2 * (above + ties / 2) / 120, abs=0.003)


def test_one_layer_cannot_show_a_trend():
    """Four heads in one layer: with layers as units there is one observation (p was 0.002 with heads)."""
    places = Heads(Atlas(spec_of(*[9] * 30), [], []))
    chosen = (places.layers == 23) & (places.columns < 4)
    finding = first_layer(places, "knowledge", chosen, 5000)
    assert finding.value == 23 and finding.p == pytest.approx(6.5 / 30, abs=0.02)
    assert "4 heads of category knowledge" in finding.text and "in 1 layer" in finding.text


def test_welch_against_scipy():
    first, second = np.array([0.31, 0.35, 0.33]), np.array([0.30, 0.28, 0.36, 0.29])
    interval, p = welch(first, second)
    other = stats.ttest_ind(first, second, equal_var=False)
    assert p == pytest.approx(other.pvalue)
    assert (interval.low, interval.high) == pytest.approx(tuple(other.confidence_interval()))
    assert welch(first[:1], second)[1] is None  # one seed says nothing about others
    assert welch(np.array([0.3, 0.3]), np.array([0.4, 0.4])) == (Interval(pytest.approx(-0.1)), None)
