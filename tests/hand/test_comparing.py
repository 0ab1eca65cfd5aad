"""Two atlases side by side: worked by hand, and laws."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headatlas import AtlasError, RequestError, UnknownNameError
from headatlas.atlas import BINS, compare_atlases, shared_tasks
from headatlas.atlas.comparing import depth_profile
from headatlas.figure import plot_comparison
from support.atlases import atlas_of, spec_of


def random_atlas(seed, seeds=2, shape=(4, 5), spec=None, tasks=("sums",)):
    draw = np.random.default_rng(seed)
    return atlas_of(
        {
            task: {place: tuple(draw.uniform(0.02, 0.98, (2, *shape))) for place in range(seeds)}
            for task in tasks
        },
        spec,
    )


def test_by_hand():
    """Four heads; one is lost, one begins to hurt, the others stay."""
    high, low = np.array([[0.9, 0.9, 0.9, 0.2]]), np.array([[0.8, 0.7, 0.1, 0.1]])
    there_high, there_low = np.array([[0.9, 0.9, 0.1, 0.3]]), np.array([[0.8, 0.1, 0.05, 0.2]])
    one = atlas_of({"sums": {0: (high, low), 1: (high, low)}})
    other = atlas_of({"sums": {0: (there_high, there_low), 1: (there_high, there_low)}})
    found = compare_atlases(one, other, "sums")
    assert found.by_heads and found.same == 0.5
    assert found.roles == {
        ("facilitating", "facilitating"): 1,
        ("facilitating", "irrelevant"): 1,
        ("interfering", "interfering"): 1,
        ("irrelevant", "interfering"): 1,
    }
    assert found.within == (1.0, 1.0) and found.between == 0.5  # more than seeds differ
    heads = [head for head, *_ in found.changed]
    assert heads[:2] == ["L0H2", "L0H1"]
    assert found.changed[0][1:] == pytest.approx((0.0, -0.85), abs=1e-6)
    wanted = stats.spearmanr(low[0], there_low[0]).statistic
    assert found.correlation["facilitation"].mean == pytest.approx(wanted)
    json.dumps(found.to_json(), allow_nan=False)


@given(st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_an_atlas_is_like_itself_and_order_is_irrelevant(seed):
    one, other = random_atlas(seed), random_atlas(seed + 1000)
    same = compare_atlases(one, random_atlas(seed), "sums")
    assert same.same == 1 and same.correlation["facilitation"].mean == pytest.approx(1)
    assert all(here == pytest.approx(there) for _, here, there in same.changed)
    there, back = compare_atlases(one, other, "sums"), compare_atlases(other, one, "sums")
    assert there.same == back.same and there.between == pytest.approx(back.between)
    assert there.correlation["facilitation"].mean == pytest.approx(back.correlation["facilitation"].mean)
    assert {(b, a): n for (a, b), n in there.roles.items()} == back.roles


def test_models_of_different_shapes_by_depth():
    """Heads that help rise with depth in both, whatever the number of layers and heads."""

    def rising(layers, heads):
        low = np.linspace(0.05, 0.95, layers)[:, None] * np.ones(heads)
        return atlas_of({"sums": {0: (np.full_like(low, 0.95), low)}})

    found = compare_atlases(rising(4, 3), rising(13, 6), "sums")
    assert not found.by_heads and found.roles is None and not found.changed
    assert found.correlation["facilitation"].mean > 0.95 and found.p["facilitation"] < 0.01
    assert len(found.profiles["facilitation"][0]) == BINS
    figure = plot_comparison(rising(4, 3), rising(13, 6), found)
    assert len(figure.axes) == 2
    assert found.correlation["interference"] is None  # the same in all layers
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("layers", [1, 3, 10, 32])
def test_profiles_keep_the_mean(layers):
    values = np.random.default_rng(layers).uniform(size=(layers, 4))
    assert depth_profile(values).mean() == pytest.approx(values.mean())
    values[0] = np.nan  # a layer without attention
    assert layers == 1 or np.nanmax(depth_profile(values)) <= np.nanmax(values)


def test_holes_and_figures():
    spec = spec_of(5, 3, 0, 5)
    one, other = random_atlas(1, spec=spec), random_atlas(2, spec=spec, seeds=1)
    found = compare_atlases(one, other, "sums")
    assert sum(found.roles.values()) == 13 and found.within[1] is None
    figure = plot_comparison(one, other, found)
    assert len(figure.axes) == 3


def test_few_heads_and_a_hole():
    """No place without a head is said to have changed."""
    one, other = (random_atlas(seed, spec=spec_of(3, 2), shape=(2, 3)) for seed in (1, 2))
    found = compare_atlases(one, other, "sums")
    assert len(found.changed) == 5
    json.dumps(found.to_json(), allow_nan=False)


def test_which_tasks():
    one, other = random_atlas(1, tasks=("sums", "plurals")), random_atlas(2, tasks=("plurals", "verbs"))
    assert shared_tasks(one, other) == [("plurals", "plurals")]
    assert shared_tasks(one, other, ["sums", "verbs"]) == [("sums", "verbs")]
    assert shared_tasks(one, one, ["sums", "plurals"]) == [("sums", "plurals")]
    for pair, tasks, error in (
        ((one, one), [], RequestError),
        ((one, one), ["sums"], RequestError),
        ((one, other), ["sums"], UnknownNameError),
        ((one, other), ["a", "b", "c"], RequestError),
        ((one, random_atlas(3, tasks=("verbs",))), [], AtlasError),
    ):
        with pytest.raises(error):
            shared_tasks(*pair, tasks)
