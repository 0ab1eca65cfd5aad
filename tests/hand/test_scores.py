"""Scores, roles, Always and Any, worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headatlas import AtlasError, UnknownNameError
from headatlas.atlas.agreement import held_out_summary
from headatlas.atlas.interval import Interval
from support.atlases import atlas_of, spec_of, without_fits

#             facilitating  interfering  irrelevant  anomaly  unclear
HIGH = np.array([[0.9, 0.2, 0.8, 0.1, 0.6]])
LOW = np.array([[0.7, 0.1, 0.1, 0.9, 0.4]])


def test_one_seed():
    atlas = atlas_of({"sums": {0: (HIGH, LOW)}})
    scores = atlas.scores("sums").isel(seed=0, layer=0)
    np.testing.assert_allclose(scores["facilitation"], [0.7, 0.1, 0.1, 0.9, 0.4], rtol=1e-6)
    np.testing.assert_allclose(scores["interference"], [0.1, 0.8, 0.2, 0.9, 0.4], rtol=1e-6)
    np.testing.assert_allclose(scores["irrelevance"], [0.27, 0.18, 0.72, 0.01, 0.36], rtol=1e-5)
    words = ["facilitating", "interfering", "irrelevant", "anomaly", "unclear"]
    assert atlas.roles("sums").values[0, 0].tolist() == words
    assert atlas.roles("sums", threshold=0.3).values[0, 0].tolist()[4] == "anomaly"
    assert atlas.roles("sums").attrs["threshold"] == 0.5
    shares = atlas.distribution("sums").loc[0].to_dict()
    assert shares == dict.fromkeys(words, 0.2)


def test_three_seeds():
    """Head 0 helps always, head 1 helps once and hurts once, head 2 never does anything."""
    gates = {
        0: ([[0.9, 0.9, 0.9]], [[0.9, 0.8, 0.1]]),
        1: ([[0.9, 0.1, 0.9]], [[0.6, 0.1, 0.2]]),
        2: ([[0.8, 0.9, 0.7]], [[0.7, 0.3, 0.1]]),
    }
    atlas = atlas_of({"sums": {seed: tuple(map(np.array, pair)) for seed, pair in gates.items()}})
    always, some = atlas.always("sums"), atlas.any("sums")
    np.testing.assert_allclose(always["facilitation"], [[0.6, 0.1, 0.1]], rtol=1e-6)
    np.testing.assert_allclose(some["facilitation"], [[0.9, 0.8, 0.2]], rtol=1e-6)
    np.testing.assert_allclose(always["interference"], [[0.1, 0.1, 0.1]], rtol=1e-5)
    np.testing.assert_allclose(some["interference"], [[0.2, 0.9, 0.3]], rtol=1e-6)
    summary = atlas.summary("sums")
    third = pytest.approx(1 / 3)
    assert summary.always == {"facilitating": third, "interfering": 0, "irrelevant": third}
    assert summary.any == {
        "facilitating": pytest.approx(2 / 3),
        "interfering": third,
        "irrelevant": pytest.approx(2 / 3),
    }
    # facilitating heads per seed: 2, 1, 1 of three, so the standard error is 1/9; t with 2 degrees of
    # freedom is 4.303, and a share cannot be below 0
    assert summary.per_seed["facilitating"].mean == pytest.approx(4 / 9)
    assert summary.per_seed["facilitating"].low == 0
    assert summary.per_seed["facilitating"].high == pytest.approx(4 / 9 + 4.30265 / 9)
    assert summary.parted == pytest.approx((0 + 0.1 + 0.8 + 0.3 + 0 + 0.7 + 0.1 + 0.6 + 0.6) / 9)
    assert summary.unclear == 0 and summary.anomalies == 0 and summary.held_out == 7
    assert summary.nll == {"baseline": 3.0, "retain": 2.0, "remove": 2.0}
    pairs = [np.corrcoef(gates[a][1], gates[b][1])[0, 1] for a, b in [(0, 1), (0, 2), (1, 2)]]
    assert summary.correlation["facilitation"] == pytest.approx(np.mean(pairs), abs=1e-6)


def test_holes_are_no_heads():
    spec = spec_of(2, 0, 1)
    atlas = atlas_of({"sums": {0: (np.full((3, 2), 0.9), np.full((3, 2), 0.9))}}, spec)
    assert atlas.roles("sums").values[0].tolist() == [["facilitating"] * 2, ["", ""], ["facilitating", ""]]
    assert atlas.summary("sums").always["facilitating"] == 1
    assert np.isnan(atlas.any("sums")["facilitation"].values).sum() == 3
    table = atlas.to_table()
    assert len(table) == 3 * 3 and table["value"].notna().all()
    assert list(table.columns) == [
        "method", "task", "seed", "fit", "relation", "direction", "layer", "head", "value"
    ]  # fmt: skip


def test_one_seed_has_no_interval():
    shares = atlas_of({"sums": {0: (HIGH, LOW)}}).summary("sums").per_seed
    assert all(share.low is None and share.high is None for share in shares.values())


def test_equal_shares_have_no_interval():
    """In a small model three seeds often have equally many heads of a role; the share is not certain."""
    seeds = dict.fromkeys(range(3), (HIGH, LOW))
    assert atlas_of({"sums": seeds}).summary("sums").per_seed["facilitating"] == Interval(pytest.approx(0.4))


def test_the_gain_varies_with_items_and_seeds():
    """Gains of 1, 2, 3, 4 nats with one seed, of 3, 4, 5, 6 with the other. The means over seeds have the
    variance 5/3 over four items, so their mean has 5/12; the means over items have the variance 2, so their
    mean has 1, with one degree of freedom."""
    before = np.full(4, 9.0)
    baseline = {"rows": 4, "groups": [0, 1, 2, 3], "held_out_nll": before.tolist()}
    fits = [{"held_out_nll": (before - gains).tolist()} for gains in ([1, 2, 3, 4], [3, 4, 5, 6])]
    gain = held_out_summary(baseline, {"retain": fits})["gain"]["retain"]
    degrees = 1 / ((5 / 17) ** 1.5 / 3 + (12 / 17) ** 1.5 / 1)
    half = stats.t.ppf(0.975, degrees) * np.sqrt(5 / 12 + 1)
    assert (gain.mean, gain.low, gain.high) == pytest.approx((3.5, 3.5 - half, 3.5 + half))
    alone = held_out_summary(baseline, {"retain": fits[:1]})["gain"]["retain"]
    half = stats.t.ppf(0.975, 3) * np.sqrt(5 / 12)
    assert (alone.mean, alone.low, alone.high) == pytest.approx((2.5, 2.5 - half, 2.5 + half))
    one_group = {**baseline, "groups": [0, 0, 0, 0]}
    assert held_out_summary(one_group, {"retain": fits})["gain"]["retain"] == Interval(3.5)


def test_one_seed_has_no_correlation():
    assert atlas_of({"sums": {0: (HIGH, LOW)}}).summary("sums").correlation["facilitation"] is None


def test_unknown_tasks_and_unfinished_seeds():
    atlas = atlas_of({"sums": {0: (HIGH, LOW), 1: (HIGH, LOW)}})
    atlas = without_fits(atlas, (1, "remove"))
    assert atlas.seeds("sums") == [0] and atlas.gates("sums").sizes["seed"] == 1
    assert len(atlas.to_table()) == 5 * 5  # what is there of seed 1 is in the table
    with pytest.raises(UnknownNameError, match="did you mean 'sums'"):
        atlas.scores("sum")
    atlas = without_fits(atlas, (0, "retain"), (1, "remove"))
    assert atlas.tasks == []
    with pytest.raises(AtlasError, match="no seed of 'sums' is finished"):
        atlas.scores("sums")
    with pytest.raises(AtlasError, match="no finished fit 'retain' with seed 7"):
        atlas.fit("sums", 7, "retain")
