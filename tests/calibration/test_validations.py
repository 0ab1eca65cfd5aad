"""Do the intervals of `Validation` cover the true figures? On simulated validations.

`support.null_validations` states what is random: items in groups, the rankings of methods, random orders.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from headatlas.atlas import ORDERS
from support.calibration import assert_covers, covers
from support.null_validations import null_validation, true_figures

pytestmark = pytest.mark.slow

FIGURES = ("sufficiency", "distance", "necessity")
DRAWS = 1500
#: the default of 3 seeds, and the 10 seeds of the paper
DESIGNS = {
    "3 seeds, 36 items in 12 groups": (3, np.arange(36) // 3),
    "10 seeds, 40 items in 13 uneven groups": (10, np.sqrt(4.5 * np.arange(40)).astype(int)),
}


@pytest.fixture(scope="module", params=DESIGNS.values(), ids=DESIGNS)
def simulated(request):
    """(seeds, validations): each with 41 random orders, one more than the default."""
    seeds, groups = request.param
    rng = np.random.default_rng(5)
    return seeds, [null_validation(rng, groups, seeds=seeds, draws=41) for _ in range(DRAWS)]


def true_values(validations, seeds):
    """method -> figure -> its true value. Sufficiency and necessity in nats are linear in items and rankings,
    so that their means over all simulations are the true ones; the true gap is 9 nats. The distance is not
    linear: it is that of 4,000 items, the mean over 250 rankings, three times."""
    rng = np.random.default_rng(6)
    true = defaultdict(dict)
    for method in ("gating", "ablate-zero", "random"):
        for figure, side in (("sufficiency", "keep"), ("necessity", "drop")):
            areas = []
            for check in validations:
                gain = check.gain(method, side)
                gain = gain if side == "keep" else check.gap.mean - gain
                areas.append(np.trapezoid(gain, check.shares))
            true[method] |= {f"{figure}_nats": float(np.mean(areas)), figure: float(np.mean(areas)) / 9}
    parts = [true_figures(rng, "gating", seeds=seeds, rankings=250) for _ in range(3)]
    for name in ("distance", "distance_nats"):
        true["gating"][name] = float(np.mean([part[name] for part in parts]))
    return true


def test_figures_and_differences(simulated):
    """Sufficiency, distance and necessity of gating and of random orders, in nats and normalized, and
    differences of sufficiency between two methods. Random: items and rankings. The true values are means over
    many of both, so an interval that leaves out rankings covers too rarely."""
    seeds, validations = simulated
    true = true_values(validations, seeds)
    hits = defaultdict(list)
    for check in validations:
        for nats in (True, False):
            names = [name + "_nats" * nats for name in FIGURES]
            for figure, name in zip(FIGURES, names, strict=True):
                hits["gating", name].append(
                    covers(check.measure(figure, "gating", nats=nats), true["gating"][name])
                )
            interval = check.sufficiency("random", nats=nats)
            hits["random", names[0]].append(covers(interval, true["random"][names[0]]))
            gap = true["gating"][names[0]] - true["ablate-zero"][names[0]]
            interval = check.difference("gating", "ablate-zero", nats=nats)
            hits["gating less ablate-zero", names[0]].append(covers(interval, gap))
        gap = true["gating"]["sufficiency"] - true["random"]["sufficiency"]
        hits["gating less random"].append(covers(check.difference("gating", "random"), gap))
    assert_covers(hits)


def test_changes(simulated):
    """`Validation.change` with 5 and 20 % of heads switched off in the order of each score. Random: items and
    seeds. The change is linear in both, so that its mean over all simulations is the true one."""
    _, validations = simulated
    hits = {}
    for order in ORDERS:
        for share in (0.05, 0.2):
            intervals = [check.change(order, share) for check in validations]
            true = float(np.mean([interval.mean for interval in intervals]))
            hits[order, share] = [covers(interval, true) for interval in intervals]
    assert_covers(hits)


def test_a_new_random_order_lies_in_the_band(simulated):
    """`Validation.ablation`: the band of 40 random orders holds the 41st, measured on the same items. Random:
    items and orders."""
    _, validations = simulated
    hits = defaultdict(list)
    for check in validations:
        losses = check.by_chance[-1]
        change = -(losses - losses[0]).mean(axis=1)
        band = replace(check, by_chance=check.by_chance[:-1]).ablation()
        for place in (3, 5, 8):
            hits[check.counts[place]].append(bool(band["low"][place] <= change[place] <= band["high"][place]))
    assert_covers(hits)


def test_all_heads_against_none(simulated):
    """`Validation.gap`: the mean metric of all heads less that of no heads. Random: items. The true gap is 9
    nats."""
    _, validations = simulated
    assert_covers({"gap": [covers(check.gap, 9) for check in validations]})
