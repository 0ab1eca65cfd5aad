"""Do the intervals of means cover their true values? On simulated losses, effects and seeds."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from headatlas.atlas import EffectMap, ItemEffects, clustered_error
from headatlas.atlas.agreement import held_out_summary
from headatlas.atlas.effects import pool_effects
from headatlas.atlas.interval import jackknife, t_interval
from headatlas.atlas.scores import SCORES, THRESHOLD
from headatlas.run.exporting import _nll_change
from headatlas.run.prepare import _group_error
from support.calibration import assert_covers, covers
from support.null_atlases import EVEN, LARGE, RAGGED, null_item_effects, null_scores
from support.null_validations import grouped_losses

pytestmark = pytest.mark.slow

#: groups of the same size and of different sizes; held-out items are chosen so that groups are about even
SIZES = {
    "4 groups of 4": [4] * 4,
    "12 groups of 4": [4] * 12,
    "40 groups of 4": [4] * 40,
    "12 single items": [1] * 12,
    "40 single items": [1] * 40,
    "4 uneven groups": [2, 3, 4, 5],
    "12 uneven groups": [1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7],
    "40 uneven groups": [1, 2, 3, 4, 4, 5, 6, 7] * 5,
}


def groups_of(sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def mean_of(values, groups):
    return jackknife(len(values), lambda index: float(values[index].mean()), groups=groups)


@pytest.mark.parametrize(
    ("shape", "seeds"), [(EVEN, 3), (EVEN, 10), (RAGGED, 3), (RAGGED, 10), (LARGE, 3)], ids=str
)
def test_shares_of_roles_per_seed(shape, seeds):
    """`Summary.per_seed`: t intervals of shares of heads. Random: the noise of seeds; 20 maps are fixed, one
    after the other. Sets of 3 or 10 seeds are drawn from 300 of each map, and the true shares are the means
    over the 300."""
    rng = np.random.default_rng(0)
    hits = defaultdict(list)
    for _ in range(20 if seeds == 3 else 40):
        scores = null_scores(rng, shape, 300)
        is_head = ~np.isnan(scores["facilitation"].values[0])
        for role, name in SCORES.items():
            values = (scores[name].values[:, is_head] >= THRESHOLD).mean(axis=1)
            for some in values.reshape(-1, seeds):
                hits[role].append(covers(t_interval(some, bounds=(0, 1)), values.mean()))
    assert_covers(hits)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_means_over_groups(sizes):
    """`jackknife` of a mean, as in `Summary.gain` and in `Exported.change`: gains are losses before less
    losses after. Random: the losses of all items, skewed, half of their variance between groups. The true
    mean of the losses is 1 before and 0.8 after; both correlate 0.86."""
    rng = np.random.default_rng(1)
    groups = groups_of(sizes)
    hits = defaultdict(list)
    for _ in range(4000 if len(sizes) < 40 else 2000):
        before, after = grouped_losses(rng, groups), grouped_losses(rng, groups)
        after = 0.5 * before + 0.3 * after
        hits["losses"].append(covers(mean_of(before, groups), 1))
        baseline = {"rows": len(groups), "groups": groups.tolist(), "held_out_nll": before}
        gain = held_out_summary(baseline, {"retain": [{"held_out_nll": after}]})["gain"]["retain"]
        hits["gain"].append(covers(gain, 0.2))
    outcomes = (SimpleNamespace(nll=torch.from_numpy(losses)) for losses in (before, after))
    change = _nll_change(*outcomes, SimpleNamespace(groups=groups.tolist()))
    assert (-change.mean, -change.high, -change.low) == pytest.approx((gain.mean, gain.low, gain.high))
    assert_covers(hits)


def test_ratios_over_groups():
    """`jackknife` of a ratio of means. Random: numerators and denominators of 48 items in 12 groups, with
    means 1 and 5; the true ratio is 0.2."""
    rng = np.random.default_rng(2)
    groups = groups_of([4] * 12)
    hits = []
    for _ in range(2000):
        above, below = grouped_losses(rng, groups), 4 + grouped_losses(rng, groups)
        ratio = jackknife(
            48, lambda index, a=above, b=below: a[index].mean() / b[index].mean(), groups=groups
        )
        hits.append(covers(ratio, 0.2))
    assert_covers({"ratio": hits})


def half_width(error, groups):
    return stats.t.ppf(0.975, len(np.unique(groups)) - 1) * error


@pytest.mark.parametrize("sizes", [[3] * 8, [1] * 32, [1, 1, 2, 2, 2, 3, 3, 2] * 3], ids=["8", "32", "24"])
def test_errors_of_effects(sizes):
    """`clustered_error` and the error of the gain over chance: the mean lies within t standard errors of the
    true one, with one degree of freedom less than there are groups. Random: effects of 96 heads on items of
    8 or 24 groups and on 32 single items, skewed, half of their variance between groups."""
    rng = np.random.default_rng(3)
    groups = groups_of(sizes)
    hits = defaultdict(list)
    true = np.zeros((12, 8))
    for _ in range(100):
        values = null_item_effects(rng, EVEN, groups, true=true)
        half = half_width(clustered_error(values, groups), groups)
        hits["effects"].extend((np.abs(values.mean(axis=0)) <= half).ravel().tolist())
        for head in range(8):
            half = half_width(_group_error(values[:, 0, head], groups.tolist()), groups)
            hits["gain over chance"].append(abs(values[:, 0, head].mean()) <= half)
    assert_covers({"effects": hits["effects"]})
    assert 0.92 <= np.mean(hits["gain over chance"]) <= 0.98  # few draws of the same formula


@pytest.mark.parametrize("shape", [EVEN, RAGGED], ids=["even", "ragged"])
def test_errors_of_pooled_effects(shape):
    """`pool_effects` of 3 seeds that draw 24 of 60 items in 20 groups each, so that most items are measured
    twice or more. Random: the effects of all items, and which items a seed draws."""
    rng = np.random.default_rng(4)
    groups = np.arange(60) // 3
    true = np.where(np.arange(max(shape)) < np.array(shape)[:, None], 0.0, np.nan)
    hits = []
    for _ in range(100):
        every = null_item_effects(rng, shape, groups, true=true)
        drawn = [np.sort(rng.choice(60, 24, replace=False)) for _ in range(3)]
        maps = [
            EffectMap(
                "ablate-zero", "null", seed, "id", every[items].mean(axis=0), every[items].std(axis=0), {},
                ItemEffects(every[items], items, groups[items]),
            )
            for seed, items in enumerate(drawn)
        ]  # fmt: skip
        effect, error, _ = pool_effects(maps)
        half = half_width(error, groups[np.unique(np.concatenate(drawn))])
        hits.extend((np.abs(effect) <= half)[~np.isnan(true)].tolist())
    assert_covers({"pooled": hits})
