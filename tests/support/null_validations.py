"""Simulated validations, of which the true figures are known: what the intervals of `Validation` are
calibrated on.

A head has a true weight. Keeping some heads takes the loss of an item from that of no heads towards that of
all heads, the farther the more weight is kept. Random are, in every draw:

* items, in groups: their losses (skewed, half of the variance between groups) and how much each head weighs
  for them;
* rankings: a method sorts heads by the mean of several noisy measurements (seeds, or items that effects were
  measured on).

Fixed are the weights and what each method measures on average, which correlates 0.7 with the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from headatlas.atlas import ORDERS, SHARES, Validation
from headatlas.run.validation_curves import _RANDOM

__all__ = ["HEADS", "grouped_losses", "null_validation", "true_figures", "true_figures_of_order"]

HEADS = 96
#: true weights with heavy tails; a quarter of the heads hurt
_WEIGHTS = np.random.default_rng(0).permutation(
    (np.linspace(-2, 2, HEADS) + 0.3 * np.linspace(-2, 2, HEADS) ** 3 + 1.2) / (1.2 * HEADS)
)
#: method -> what it measures on average
_MEASURES = {
    method: _WEIGHTS + _WEIGHTS.std() * np.random.default_rng(seed).standard_normal(HEADS)
    for seed, method in enumerate(("gating", "ablate-zero"))
}
#: method -> noise of one measurement, in standard deviations of the weights: two seeds correlate 0.8, and the
#: standard error of an effect over 32 items is a quarter of the standard deviation of the effects
_NOISE = {"gating": 0.7, "ablate-zero": 2.0}
#: how much the weight of a head varies over items, as a share of it
_ITEM_NOISE = 1.5
_COUNTS = sorted({round(share * HEADS) for share in SHARES})
_EFFECT_ITEMS, _PARTS = 32, 5


def grouped_losses(rng: np.random.Generator, groups: Sequence[int] | np.ndarray) -> np.ndarray:
    """[item]: losses with mean and variance 1 and a skewness of 1.2 (NLLs in the gallery: 0.8, 1.2 and 1.7).
    Half of the variance lies between groups."""
    return 1 + _grouped(groups, lambda size: (rng.gamma(1.4, size=size) - 1.4) / np.sqrt(1.4))


def _grouped(groups: Sequence[int] | np.ndarray, draw: Callable[[Any], np.ndarray]) -> np.ndarray:
    """[item, ...]: a value of the group plus one of the item, with the variance of `draw(size)`."""
    labels = np.unique(np.asarray(groups), return_inverse=True)[1]
    common, single = draw(int(labels.max()) + 1), draw(len(labels))
    values: np.ndarray = np.sqrt(0.5) * (common[labels] + single)
    return values


class _Items:
    """Held-out items: losses without heads and with all, and the weight of every head for each item."""

    def __init__(self, rng: np.random.Generator, groups: np.ndarray) -> None:
        self.full = grouped_losses(rng, groups)
        self.none = self.full + 9 + _grouped(groups, rng.standard_normal)
        factors = _grouped(groups, lambda size: rng.standard_normal((size, HEADS)))
        moved = _WEIGHTS * _ITEM_NOISE * factors
        self._weights = (_WEIGHTS + moved - moved.mean(axis=1, keepdims=True)).T

    def keep(self, order: np.ndarray) -> np.ndarray:
        """[share, item]: losses with the first heads of an order kept alone."""
        kept = np.vstack([np.zeros_like(self.full), np.cumsum(self._weights[order], axis=0)])[_COUNTS]
        losses: np.ndarray = self.none - (self.none - self.full) * np.tanh(2 * kept) / np.tanh(2)
        return losses

    def drop(self, order: np.ndarray) -> np.ndarray:
        """[share, item]: losses with the first heads of an order taken away."""
        total = 1 - np.vstack([np.zeros_like(self.full), np.cumsum(self._weights[order], axis=0)])[_COUNTS]
        losses: np.ndarray = self.none - (self.none - self.full) * np.tanh(2 * total) / np.tanh(2)
        return losses


def _measured(rng: np.random.Generator, method: str, count: int) -> np.ndarray:
    """[measurement, head]: what a method measures, several times."""
    noise = _NOISE[method] * _WEIGHTS.std()
    found: np.ndarray = _MEASURES[method] + noise * rng.standard_normal((count, HEADS))
    return found


def _orders(measured: np.ndarray) -> list[np.ndarray]:
    """The ranking by all measurements, and those with one of at most five parts left out; one measurement
    has no parts."""
    count = len(measured)
    if count == 1:
        return [_order(measured)]
    parts = np.array_split(np.arange(count), min(count, _PARTS))
    kept = [np.arange(count), *(np.setdiff1d(np.arange(count), part) for part in parts)]
    return [_order(measured[part]) for part in kept]


def _order(measured: np.ndarray) -> np.ndarray:
    return np.argsort(-measured.mean(axis=0), kind="stable")


def null_validation(
    rng: np.random.Generator,
    groups: Sequence[int] | np.ndarray,
    *,
    seeds: int = 10,
    draws: int = 40,
    random_orders: int = _RANDOM,
) -> Validation:
    """A validation of "gating" with so many seeds, of "ablate-zero" with 32 effect items and of as many
    random orders as `headatlas validate` takes, on items of these `groups`. Heads are switched off by the
    scores of each seed, and in `draws` random orders. The fact "order" is the ranking of gating."""
    groups = np.asarray(groups)
    items, gating = _Items(rng, groups), _measured(rng, "gating", seeds)
    rankings = {
        "gating": _orders(gating),
        "ablate-zero": _orders(_measured(rng, "ablate-zero", _EFFECT_ITEMS)),
        "random": [rng.permutation(HEADS) for _ in range(random_orders)],
    }
    labels, orders = [], []
    for method, some in rankings.items():
        first = 1 if method == "random" else 0
        labels += [f"{method} {number}" if number else method for number in range(first, first + len(some))]
        orders += some
    keep, drop = (np.stack([side(order) for order in orders]) for side in (items.keep, items.drop))
    by_score = {"facilitation": -gating, "irrelevance": np.abs(gating), "interference": gating}
    off = np.array(
        [
            [items.drop(np.argsort(by_score[name][seed], kind="stable")) for name in ORDERS]
            for seed in range(seeds)
        ]
    )
    by_chance = np.array([items.drop(rng.permutation(HEADS)) for _ in range(draws)])
    right = np.zeros_like(keep)
    facts = {"groups": groups.tolist(), "order": rankings["gating"][0].tolist()}
    return Validation(
        "null", tuple(labels), tuple(_COUNTS), HEADS, keep, drop, right, right, off, by_chance, facts
    )


def true_figures(
    rng: np.random.Generator, method: str, *, seeds: int = 10, rankings: int = 300
) -> dict[str, float]:
    """The true figures of a method, in nats and (without suffix) normalized: means over many rankings, with
    losses that are means over many items. "random" is the mean curve of as many orders as a validation has.
    """
    every = []
    for _ in range(_ITEM_SETS):
        items = _Items(rng, np.arange(_MANY))
        for _ in range(rankings // _ITEM_SETS):
            if method == "random":
                orders = [rng.permutation(HEADS) for _ in range(_RANDOM)]
            else:
                count = seeds if method == "gating" else _EFFECT_ITEMS
                orders = [_order(_measured(rng, method, count))]
            every.append(_figures(items, orders))
    return {name: float(np.mean([one[name] for one in every])) for name in every[0]}


def true_figures_of_order(order: Sequence[int]) -> dict[str, float]:
    """The true figures of one ranking: with losses that are means over many items, always the same."""
    return _figures(_many_items(), [np.asarray(order)])


#: items whose means are taken for true ones, and in how many sets, so that no set counts alone
_MANY, _ITEM_SETS = 2000, 3


@cache
def _many_items() -> _Items:
    return _Items(np.random.default_rng(9), np.arange(_MANY))


def _figures(items: _Items, orders: Sequence[np.ndarray]) -> dict[str, float]:
    """Sufficiency, distance and necessity of the mean curve of some orders, in nats and normalized."""
    none, full, shares = items.none.mean(), items.full.mean(), np.array(_COUNTS) / HEADS
    keep, drop = (
        np.mean([side(order).mean(axis=1) for order in orders], axis=0) for side in (items.keep, items.drop)
    )
    heights = {"sufficiency": none - keep, "distance": np.abs(keep - full), "necessity": drop - full}
    nats = {name: float(np.trapezoid(height, shares)) for name, height in heights.items()}
    return {
        **{f"{name}_nats": area for name, area in nats.items()},
        **{name: area / float(none - full) for name, area in nats.items()},
    }
