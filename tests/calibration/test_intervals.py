"""Do the intervals of means cover their true values? On simulated losses, effects, seeds and contrasts."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from headatlas.atlas import (
    Atlas,
    EffectMap,
    Fit,
    Run,
    chance_doubt,
    clustered_error,
    summarize_contrast,
)
from headatlas.atlas.agreement import held_out_summary
from headatlas.atlas.effect_summary import pool_effects
from headatlas.atlas.interval import jackknife, t_interval
from headatlas.core import THRESHOLD
from headatlas.export.engine.checkpoint_writer import nll_change
from headatlas.run.prepare import group_error
from support.atlases import spec_of
from support.calibration import DRAWS, assert_covers, covers
from support.null_atlases import EVEN, LARGE, RAGGED, null_item_effects, null_score_arrays
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
    ("shape", "seeds", "missing"),
    [
        (EVEN, 3, 0.06),
        (EVEN, 10, 0),
        (RAGGED, 3, 0.08),
        (RAGGED, 10, 0),
        (LARGE, 3, 0.03),
        ((4,) * 4, 3, 0.35),
    ],
    ids=["even-3", "even-10", "ragged-3", "ragged-10", "30 layers-3", "4 layers of 4-3"],
)
def test_shares_of_roles_per_seed(shape, seeds, missing):
    """`Summary.per_seed`: t intervals of shares of heads. Random: the map of a task and the noise of its
    seeds. The true shares are the means over 200 other seeds of the same map.

    A share is a count. Seeds with equal counts give no interval (up to `missing` of the draws), and these are
    the draws in which it would be too narrow. So intervals cover up to as much more than 97 %: in a model of
    4 x 4 heads up to 100 % with three seeds."""
    rng = np.random.default_rng(0)
    hits, without = defaultdict(list), defaultdict(int)
    for _ in range(DRAWS):
        scores = null_score_arrays(rng, shape, seeds + 200)
        helps, hurts = (values[:, ~np.isnan(values[0])] for values in scores.values())
        by_role = {"facilitating": helps, "interfering": hurts, "irrelevant": (1 - hurts) * (1 - helps)}
        for role, values in by_role.items():
            shares = (values >= THRESHOLD).mean(axis=1)
            interval = t_interval(shares[:seeds], bounds=(0, 1))
            if interval.low is None:
                without[role] += 1
            else:
                hits[role].append(covers(interval, shares[seeds:].mean()))
    rarest = max(without.values(), default=0) / DRAWS
    assert missing / 3 <= rarest <= missing, rarest
    if missing:
        rates = {role: float(np.mean(values)) for role, values in hits.items()}
        for role, rate in rates.items():
            share = without[role] / DRAWS
            print(f"coverage | {role}, {share:.3f} without | {len(hits[role])} | {rate:.3f}")
            assert 0.93 <= rate <= 0.97 + share, (role, rate)
    else:
        assert_covers(hits)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_means_over_groups(sizes):
    """`jackknife` of a mean, as in `Summary.gain` and in `Exported.change`: gains are losses before less
    losses after. Random: the losses of all items, skewed, half of their variance between groups. The true
    mean of the losses is 1 before and 0.8 after; both correlate 0.86."""
    rng = np.random.default_rng(1)
    groups = groups_of(sizes)
    hits = defaultdict(list)
    for _ in range(2 * DRAWS):
        before, after = grouped_losses(rng, groups), grouped_losses(rng, groups)
        after = 0.5 * before + 0.3 * after
        hits["losses"].append(covers(mean_of(before, groups), 1))
        baseline = {"rows": len(groups), "groups": groups.tolist(), "held_out_nll": before}
        gain = held_out_summary(baseline, {"retain": [{"held_out_nll": after}]})["gain"]["retain"]
        hits["gain"].append(covers(gain, 0.2))
    outcomes = (SimpleNamespace(nll=torch.from_numpy(losses)) for losses in (before, after))
    change = nll_change(*outcomes, SimpleNamespace(groups=groups.tolist()))
    assert (-change.mean, -change.high, -change.low) == pytest.approx((gain.mean, gain.low, gain.high))
    assert_covers(hits)


def test_ratios_over_groups():
    """`jackknife` of a ratio of means. Random: numerators and denominators of 48 items in 12 groups, with
    means 1 and 5; the true ratio is 0.2."""
    rng = np.random.default_rng(2)
    groups = groups_of([4] * 12)
    hits = []
    for _ in range(DRAWS):
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
        for gains in values.reshape(len(groups), -1).T:
            half = half_width(group_error(gains, groups.tolist()), groups)
            hits["gain over chance"].append(abs(gains.mean()) <= half)
    assert_covers(hits)


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
                every[items], items, groups[items],
            )
            for seed, items in enumerate(drawn)
        ]  # fmt: skip
        effect, error, _ = pool_effects(maps)
        half = half_width(error, groups[np.unique(np.concatenate(drawn))])
        hits.extend((np.abs(effect) <= half)[~np.isnan(true)].tolist())
    assert_covers({"pooled": hits})


#: standard deviation of the gain between seeds, and between items of one seed apart from what all seeds share
_SEED_NOISE, _ITEM_SEED_NOISE = 0.2, 0.3


def gains_of_seeds(rng, groups, seeds):
    """(baseline, fits, gains): held-out losses without gates, and with those of each seed; what each seed
    gains on average. The mean over seeds is 0.2. Seeds differ by as much as means over 12 groups do, several
    times more than in the gallery."""
    before, after = grouped_losses(rng, groups), grouped_losses(rng, groups)
    gains = 0.2 + _SEED_NOISE * rng.standard_normal(seeds)
    noise = _ITEM_SEED_NOISE * rng.standard_normal((seeds, len(groups)))
    gated = 0.5 * before + 0.3 * after + 0.2 - gains[:, None] + noise
    baseline = {"rows": len(groups), "groups": groups.tolist(), "held_out_nll": before}
    return baseline, [{"held_out_nll": losses} for losses in gated], gains


@pytest.mark.parametrize("seeds", [3, 10])
def test_gains_over_items_and_seeds(seeds):
    """`Summary.gain`. Random: items in 12 groups, and seeds. Over groups alone three seeds cover 86 %."""
    rng = np.random.default_rng(5)
    hits = []
    for _ in range(2 * DRAWS):
        baseline, fits, _ = gains_of_seeds(rng, groups_of([4] * 12), seeds)
        hits.append(covers(held_out_summary(baseline, {"retain": fits})["gain"]["retain"], 0.2))
    assert_covers({f"gain, {seeds} seeds": hits})


def test_the_gain_of_one_seed_is_that_of_its_gates():
    """`Summary.gain` with one seed counts items alone, as its docstring says. It covers what the gates of
    this seed gain. What such gates gain on average it covers in 70 to 80 % here, because one seed cannot tell
    how much seeds vary."""
    rng = np.random.default_rng(6)
    of_its_gates, of_all = [], []
    for _ in range(2 * DRAWS):
        baseline, fits, gains = gains_of_seeds(rng, groups_of([4] * 12), 1)
        interval = held_out_summary(baseline, {"retain": fits})["gain"]["retain"]
        of_its_gates.append(covers(interval, gains[0]))
        of_all.append(covers(interval, 0.2))
    assert_covers({"gain of the gates of one seed": of_its_gates})
    print(f"coverage | gain of all seeds, from one | {len(of_all)} | {np.mean(of_all):.3f} | 0.700 to 0.800")
    assert 0.70 <= np.mean(of_all) <= 0.80


def contrast_of(facts, gates, baseline):
    """An atlas with one contrast: the facts and gates of each seed, and the figures without gates."""
    fits = [
        Fit(
            "contrast", "a without b", seed, "retain", "id", np.log(values / (1 - values)).astype(np.float32),
            values[None].astype(np.float32), np.array([1], np.int32), np.ones(1, np.float32), one,
        )
        for seed, (one, values) in enumerate(zip(facts, gates, strict=True))
    ]  # fmt: skip
    return Atlas(
        spec_of(*[gates.shape[2]] * gates.shape[1]),
        [Run("contrast", "a without b", "id", baseline=baseline)],
        fits,
    )


@pytest.mark.parametrize("seeds", [3, 10])
def test_contrasts_over_items_and_seeds(seeds):
    """`ContrastSummary.change`. Random: items in 12 groups, and seeds, as for `Summary.gain`. The gates lower
    the NLL of one task by 0.2; for the other the same numbers are taken with the opposite sign."""
    rng = np.random.default_rng(7)
    hits = defaultdict(list)
    gates = np.full((seeds, 2, 2), 0.7)
    for _ in range(2 * DRAWS):
        baseline, fits, _ = gains_of_seeds(rng, groups_of([4] * 12), seeds)
        before, after = np.array(baseline["held_out_nll"]), [np.array(fit["held_out_nll"]) for fit in fits]
        whole = {"retain_groups": baseline["groups"], "forget_groups": baseline["groups"]}
        whole |= held_out_losses("retain", before) | held_out_losses("forget", 2 - before)
        facts = [held_out_losses("retain", one) | held_out_losses("forget", 2 - one) for one in after]
        change = summarize_contrast(contrast_of(facts, gates, whole), "a without b").change
        hits["contrast, kept"].append(covers(change["retain"], -0.2))
        hits["contrast, forgotten"].append(covers(change["forget"], 0.2))
    assert_covers(hits)


def held_out_losses(side, losses):
    return {f"{side}_nll": float(losses.mean()), f"{side}_held_out_nll": losses.tolist()}


@pytest.mark.parametrize("sizes", [[3] * 8, [1] * 32, [1, 1, 2, 2, 2, 3, 3, 2] * 3], ids=["8", "32", "24"])
def test_a_model_at_chance_is_called_so(sizes):
    """`chance_doubt`: there is no doubt if the interval of the gain over chance lies above zero. Random: the
    losses of right targets and of others, skewed, half of the variance between groups. At chance the mean
    gain is zero, and the interval excludes it in 5 % of draws, half of them above zero."""
    rng = np.random.default_rng(8)
    groups = groups_of(sizes)
    is_doubted, is_clear = [], []
    for _ in range(2 * DRAWS):
        gains = grouped_losses(rng, groups) - grouped_losses(rng, groups)
        figures = {"nll": 2.0, "chance_nll": 2.0, "accuracy": 0.5, "groups": groups.tolist()}
        figures["gain_error"] = group_error(gains, groups.tolist())
        better, worse = (chance_doubt({**figures, "gain": sign * gains.mean()}) is None for sign in (1, -1))
        is_doubted.append(not (better or worse))
        is_clear.append(better)
    assert_covers({"chance": is_doubted})
    print(f"rejection | chance, one side | {len(is_clear)} | {np.mean(is_clear):.3f} | 0.015 to 0.035")
    assert 0.015 <= np.mean(is_clear) <= 0.035
