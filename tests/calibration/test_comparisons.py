"""Do the tests of `compare` reject at their level, and do its intervals cover? On maps without any effect."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import xarray as xr

from headatlas.atlas import compare_atlases, comparison
from headatlas.atlas.comparison import SeedAgreement, correlation_by_depth, correlation_by_heads
from headatlas.atlas.roles import roles_of
from headatlas.atlas.statistics import layer_correlation_interval, permutation_p
from support.calibration import DRAWS, assert_covers, assert_rejects, covers
from support.null_atlases import EVEN, LARGE, RAGGED, null_atlas, null_maps, null_score_arrays

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _fewer_permutations(monkeypatch):
    """With 199 or 399 permutations instead of 5,000, p < 0.05 still has a chance of 5 %."""
    monkeypatch.setattr(comparison, "permutation_p", partial(permutation_p, draws=199))
    monkeypatch.setattr(comparison, "PERMUTATIONS", 399)


@pytest.mark.parametrize(
    ("shape", "have_layers_in_common"),
    [(EVEN, False), (EVEN, True), (RAGGED, False), (RAGGED, True)],
    ids=["even", "even, common layers", "ragged", "ragged, common layers"],
)
def test_correlation_of_the_same_shape(shape, have_layers_in_common):
    """`Comparison.p` with heads permuted within layers. Random: two independent tasks of 3 seeds each. With
    layers in common the same layers are high in both, which is no agreement of heads. Ranks alone count, so
    facilitation stands for both scores."""
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(DRAWS):
        layer_effects = rng.standard_normal(len(shape)) if have_layers_in_common else None
        maps = [
            null_score_arrays(rng, shape, 3, layer_effects=layer_effects)["facilitation"].mean(axis=0)
            for _ in range(2)
        ]
        p_values.append(correlation_by_heads(*maps)[1])
    assert_rejects({f"{len(shape)} layers, {'common' if have_layers_in_common else 'independent'}": p_values})


@pytest.mark.parametrize(
    ("shapes", "score"),
    [
        (((8,) * 5, EVEN), "facilitation"),
        (((8,) * 6, (9,) * 9), "facilitation"),
        ((EVEN, LARGE), "facilitation"),
        ((EVEN, LARGE), "interference"),
        ((RAGGED, LARGE), "facilitation"),
        (((9,) * 14, RAGGED), "interference"),
    ],
    ids=["5 and 12", "6 and 9", "12 and 30", "12 and 30, interference", "ragged and 30", "14 and ragged"],
)
def test_correlation_of_different_shapes(shapes, score):
    """`Comparison.p` with whole layers permuted. Random: independent tasks of 3 seeds in models of different
    depths."""
    rng = np.random.default_rng(1)
    p_values = []
    for _ in range(DRAWS):
        maps = [null_score_arrays(rng, shape, 3)[score].mean(axis=0) for shape in shapes]
        p_values.append(correlation_by_depth(*maps)[1])
    assert_rejects({f"{len(shapes[0])} and {len(shapes[1])} layers, {score}": p_values})


@pytest.mark.parametrize(
    ("shape", "true"),
    [(EVEN, 0), (EVEN, 0.5), (EVEN, 0.9), (RAGGED, 0), (RAGGED, 0.9), ((8,) * 6, 0.5), (LARGE, 0.5)],
    ids=["12-0", "12-0.5", "12-0.9", "ragged-0", "ragged-0.9", "6-0.5", "30-0.5"],
)
def test_interval_of_a_correlation(shape, true):
    """`Comparison.correlation`: the interval over layers. Random: two maps that correlate 0, 0.5 or 0.9 both
    between layers and between heads of a layer; the true rank correlation is 6/π asin(r/2)."""
    rng = np.random.default_rng(2)
    hits = []
    for _ in range(DRAWS):
        one, other = null_maps(rng, shape, 2)
        other = true * one + np.sqrt(1 - true**2) * other
        layers, heads = np.nonzero(~np.isnan(one))
        interval = layer_correlation_interval(one[layers, heads], other[layers, heads], layers)
        hits.append(covers(interval, 6 / np.pi * np.arcsin(true / 2)))
    assert_covers({f"{len(shape)} layers, {true}": hits})


@pytest.mark.parametrize(
    ("shape", "here", "there", "same_numbers"),
    [
        (EVEN, 4, 4, False),
        (RAGGED, 5, 5, False),
        (EVEN, 3, 7, False),
        (EVEN, 10, 10, False),
        (RAGGED, 6, 6, True),
        (EVEN, 10, 10, True),
    ],
    ids=str,
)
def test_verdict(shape, here, there, same_numbers):
    """`Comparison.verdict_p`: do two atlases differ more than two seeds do? Random: the seeds of one task,
    dealt out to two atlases. Seeds with the same number draw the same items; they share half of their noise
    here."""
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(DRAWS):
        scores = null_score_arrays(rng, shape, here + there)
        if same_numbers:
            for name, values in scores.items():
                mixed = (values[:here] + values[here:]) / 2
                halves = [(part + mixed) / 2 for part in (values[:here], values[here:])]
                scores[name] = np.concatenate(halves)
        scores["irrelevance"] = (1 - scores["interference"]) * (1 - scores["facilitation"])
        numbers = [*range(here), *(range(there) if same_numbers else range(here, here + there))]
        labelled = {name: (("seed", "layer", "head"), values) for name, values in scores.items()}
        roles = roles_of(xr.Dataset(labelled, coords={"seed": numbers}))
        p_values.append(SeedAgreement(roles.isel(seed=slice(here)), roles.isel(seed=slice(here, None))).p)
    numbered = "same numbers" if same_numbers else "other numbers"
    assert_rejects({f"verdict, {here} and {there} seeds, {numbered}": p_values})


def test_parts_are_those_of_a_comparison():
    """`compare_atlases` gives what the functions above give."""
    rng = np.random.default_rng(4)
    one, other = (null_atlas(rng, EVEN, seeds=4, first_seed=first, relations={}) for first in (0, 4))
    found = compare_atlases(one, other, "first")
    maps = [atlas.scores("first").mean("seed")["facilitation"].values for atlas in (one, other)]
    assert (found.correlation["facilitation"], found.p["facilitation"]) == correlation_by_heads(*maps)
    layers, heads = np.nonzero(~np.isnan(maps[0]))
    interval = layer_correlation_interval(*(values[layers, heads] for values in maps), layers)
    assert found.correlation["facilitation"] == interval
    assert found.verdict_p == SeedAgreement(*(atlas.roles("first") for atlas in (one, other))).p
    small = null_atlas(rng, (4,) * 6, relations={})
    depth = compare_atlases(one, small, "first")
    values = small.scores("first").mean("seed")["facilitation"].values
    assert depth.p["facilitation"] == correlation_by_depth(maps[0], values)[1]
