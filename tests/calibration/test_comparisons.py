"""Do the tests of `compare` reject at their level, and do its intervals cover? On maps without any effect."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

import numpy as np
import pytest

from headatlas.atlas import compare_atlases, comparing, roles_of
from headatlas.atlas.comparing import _Agreement, _by_depth, _by_heads, _over_layers
from headatlas.atlas.statistics import permutation_p
from support.calibration import assert_covers, assert_rejects, covers
from support.null_atlases import EVEN, LARGE, RAGGED, null_atlas, null_maps, null_scores

pytestmark = pytest.mark.slow

SCORES = ("facilitation", "interference")


@pytest.fixture(autouse=True)
def _fewer_permutations(monkeypatch):
    """With 199 or 399 permutations instead of 5,000, p < 0.05 still has a chance of 5 %."""
    monkeypatch.setattr(comparing, "permutation_p", partial(permutation_p, draws=199))
    monkeypatch.setattr(comparing, "PERMUTATIONS", 399)


@pytest.mark.parametrize(
    ("shape", "have_layers_in_common"), [(EVEN, False), (EVEN, True), (RAGGED, True)], ids=str
)
def test_correlation_of_the_same_shape(shape, have_layers_in_common):
    """`Comparison.p` with heads permuted within layers. Random: two independent tasks of 3 seeds each. With
    layers in common the same layers are high in both, which is no agreement of heads."""
    rng = np.random.default_rng(0)
    p_values = defaultdict(list)
    for _ in range(800):
        layer_effects = rng.standard_normal(len(shape)) if have_layers_in_common else None
        maps = [null_scores(rng, shape, 3, layer_effects=layer_effects).mean("seed") for _ in range(2)]
        for score in SCORES:
            p_values[score].append(_by_heads(*(one[score].values for one in maps))[1])
    assert_rejects(p_values)


@pytest.mark.parametrize(
    "shapes",
    [((8,) * 5, EVEN), ((8,) * 6, (9,) * 9), (EVEN, LARGE), (RAGGED, LARGE), ((9,) * 14, RAGGED)],
    ids=["5 and 12", "6 and 9", "12 and 30", "ragged and 30", "14 and ragged"],
)
def test_correlation_of_different_shapes(shapes):
    """`Comparison.p` with whole layers permuted. Random: independent tasks of 3 seeds in models of different
    depths."""
    rng = np.random.default_rng(1)
    p_values = defaultdict(list)
    for _ in range(800):
        maps = [null_scores(rng, shape, 3).mean("seed") for shape in shapes]
        for score in SCORES:
            p_values[score].append(_by_depth(*(one[score].values for one in maps))[1])
    assert_rejects(p_values)


@pytest.mark.parametrize("true", [0, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(8,) * 6, EVEN, RAGGED, LARGE], ids=["6", "12", "ragged", "30"])
def test_interval_of_a_correlation(shape, true):
    """`Comparison.correlation`: the interval over layers. Random: two maps that correlate 0, 0.5 or 0.9 both
    between layers and between heads of a layer; the true rank correlation is 6/π asin(r/2)."""
    rng = np.random.default_rng(2)
    hits = []
    for _ in range(800):
        one, other = null_maps(rng, shape, 2)
        other = true * one + np.sqrt(1 - true**2) * other
        layers, heads = np.nonzero(~np.isnan(one))
        interval = _over_layers(one[layers, heads], other[layers, heads], layers)
        hits.append(covers(interval, 6 / np.pi * np.arcsin(true / 2)))
    assert_covers({true: hits})


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
    for _ in range(1000):
        scores = null_scores(rng, shape, here + there)
        if same_numbers:
            first, second = scores.isel(seed=slice(here)), scores.isel(seed=slice(here, None))
            scores = scores.copy()
            for name in scores:
                mixed = (first[name].values + second[name].values) / 2
                halves = [(part[name].values + mixed) / 2 for part in (first, second)]
                scores[name] = scores[name].copy(data=np.concatenate(halves))
        roles = roles_of(scores)
        numbers = range(there) if same_numbers else range(here, here + there)
        second = roles.isel(seed=slice(here, None)).assign_coords(seed=list(numbers))
        p_values.append(_Agreement(roles.isel(seed=slice(here)), second).p)
    assert_rejects({"verdict": p_values})


def test_parts_are_those_of_a_comparison():
    """`compare_atlases` gives what the functions above give."""
    rng = np.random.default_rng(4)
    one, other = (null_atlas(rng, EVEN, seeds=4, first_seed=first, relations=False) for first in (0, 4))
    found = compare_atlases(one, other, "first")
    maps = [atlas.scores("first").mean("seed")["facilitation"].values for atlas in (one, other)]
    assert (found.correlation["facilitation"], found.p["facilitation"]) == _by_heads(*maps)
    assert found.verdict_p == _Agreement(*(atlas.roles("first") for atlas in (one, other))).p
    small = null_atlas(rng, (4,) * 6, relations=False)
    depth = compare_atlases(one, small, "first")
    values = small.scores("first").mean("seed")["facilitation"].values
    assert depth.p["facilitation"] == _by_depth(maps[0], values)[1]
