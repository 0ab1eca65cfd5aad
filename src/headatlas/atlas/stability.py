"""Would the same map come out again? With fewer seeds, with other seeds, with other items."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import xarray as xr

from headatlas.atlas.agreement import Interval
from headatlas.atlas.scores import SCORES, THRESHOLD
from headatlas.atlas.statistics import DRAWS, jaccard, rank_correlation

__all__ = ["HALVES", "by_seeds", "facilitating_jaccard", "retest"]

#: runs fitted on one half of the items each
HALVES = ("retest-a", "retest-b")
_ROLES = {name: role for role, name in SCORES.items()}
#: choices of seeds that are looked at for each number of them
_CHOICES = 200


def _choices(count: int, size: int) -> Iterator[tuple[int, ...]]:
    """All choices of `size` of `count` seeds, or a fixed sample where there are many."""
    if comb(count, size) <= _CHOICES:
        yield from combinations(range(count), size)
        return
    chance = np.random.default_rng([count, size])
    for _ in range(_CHOICES):
        yield tuple(sorted(chance.choice(count, size, replace=False).tolist()))


def _apart(values: np.ndarray, size: int) -> float:
    """The mean rank correlation of two sets of `size` seeds that share none; NaN where there are too few."""
    count = len(values)
    if 2 * size > count:
        return float("nan")
    chosen = list(_choices(count, 2 * size))
    found = []
    for both in chosen:
        for one in _parted(both, size, -(-_CHOICES // len(chosen))):
            other = [seed for seed in both if seed not in one]
            found.append(rank_correlation(values[list(one)].mean(axis=0), values[other].mean(axis=0)))
    return float(np.mean(found))


def _parted(seeds: tuple[int, ...], size: int, most: int) -> list[tuple[int, ...]]:
    """Ways to part the seeds into halves: all, or a fixed sample of them."""
    ways = [one for one in combinations(seeds, size) if one[0] == seeds[0]]  # the other halves are the same
    if len(ways) <= most:
        return ways
    places = np.random.default_rng(seeds).choice(len(ways), most, replace=False)
    return [ways[place] for place in places]


def by_seeds(scores: xr.Dataset, threshold: float = THRESHOLD) -> pd.DataFrame:
    """One line per number of seeds: Always and Any shares, and the rank correlation of the mean scores with
    those of all seeds and with those of as many other seeds; means over the choices of seeds.

    Against other seeds: as many, none of them the same (NaN where there are too few).
    """
    count = scores.sizes["seed"]
    flat = {role: _flat(scores[name]) for role, name in SCORES.items()}
    lines = []
    for size in range(1, count + 1):
        found = []
        for chosen in _choices(count, size):
            line = {}
            for role, values in flat.items():
                some = values[list(chosen)] >= threshold
                line[f"always_{role}"] = float(some.all(axis=0).mean())
                line[f"any_{role}"] = float(some.any(axis=0).mean())
            for name in ("facilitation", "interference"):
                values = flat[_ROLES[name]]
                mean = values[list(chosen)].mean(axis=0)
                line[f"{name}_with_all"] = rank_correlation(mean, values.mean(axis=0))
            found.append(line)
        apart = {
            f"{name}_with_others": _apart(flat[_ROLES[name]], size)
            for name in ("facilitation", "interference")
        }
        lines.append({"seeds": size, "choices": len(found), **_means(found), **apart})
    return pd.DataFrame(lines)


def _means(found: list[dict[str, float]]) -> dict[str, float]:
    table = pd.DataFrame(found)
    return {str(name): float(values.mean()) for name, values in table.items()}


def _flat(score: xr.DataArray) -> np.ndarray:
    """[seed, head that is there]."""
    rows = score.transpose("seed", ...).values.reshape(score.sizes["seed"], -1).astype(float)
    found: np.ndarray = rows[:, ~np.isnan(rows).any(axis=0)]
    return found


def facilitating_jaccard(
    scores: xr.Dataset, threshold: float = THRESHOLD, draws: int = DRAWS
) -> Interval | None:
    """The facilitating set (mean score at least the threshold) of seeds drawn with replacement against
    that of all: Jaccard index, the mean and 95 % of the draws. None with fewer than three seeds."""
    rows = _flat(scores["facilitation"])
    if len(rows) < 3:
        return None
    whole = rows.mean(axis=0) >= threshold

    def one(places: np.ndarray) -> float:
        return jaccard(rows[places].mean(axis=0) >= threshold, whole)

    chance = np.random.default_rng(0)
    found = [one(chance.integers(len(rows), size=len(rows))) for _ in range(draws)]
    low, high = np.quantile(found, [0.025, 0.975])
    return Interval(float(np.mean(found)), float(low), float(high))


def retest(one: xr.Dataset, other: xr.Dataset, threshold: float = THRESHOLD) -> dict[str, float]:
    """Two maps of the same task from different items: rank correlations of their mean scores, and the Jaccard
    index of what is facilitating."""
    found: dict[str, float] = {}
    for name in ("facilitation", "interference"):
        found[name] = rank_correlation(*(_flat(part[name]).mean(axis=0) for part in (one, other)))
    sets = [_flat(part["facilitation"]).mean(axis=0) >= threshold for part in (one, other)]
    found["jaccard"] = jaccard(*sets) if any(some.any() for some in sets) else float("nan")
    return found
