"""Stability of a map: with fewer seeds, with other seeds, with other items."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.roles import SCORES
from headatlas.atlas.statistics import jaccard, rank_correlation, rank_correlations
from headatlas.core import THRESHOLD, require_share
from headatlas.core.lazy import pd, xr

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["HALVES", "HalfOverlap", "Stability", "by_seeds", "half_overlap", "retest", "stability_of"]

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
    halves = [
        (half, [seed for seed in both if seed not in half])
        for both in chosen
        for half in _parted(both, size, -(-_CHOICES // len(chosen)))
    ]
    left, right = (values[np.array(part)].mean(axis=1) for part in zip(*halves, strict=True))
    return float(np.mean(rank_correlations(left, right)))


def _parted(seeds: tuple[int, ...], size: int, most: int) -> list[tuple[int, ...]]:
    """Ways to part the seeds into halves: all, or a fixed sample of them."""
    ways = [one for one in combinations(seeds, size) if one[0] == seeds[0]]  # the other halves are the same
    if len(ways) <= most:
        return ways
    places = np.random.default_rng(seeds).choice(len(ways), most, replace=False)
    return [ways[place] for place in places]


def by_seeds(scores: xr.Dataset, threshold: float = THRESHOLD) -> pd.DataFrame:
    """One line per number of seeds: Always and Any shares, and the rank correlation of the mean scores with
    those of as many other seeds, none of them the same (NaN where there are too few); means over the choices
    of seeds."""
    threshold = require_share("threshold", threshold)
    count = scores.sizes["seed"]
    flat = {role: _flat(scores[name]) for role, name in SCORES.items()}
    lines = []
    for size in range(1, count + 1):
        chosen = np.array(list(_choices(count, size)))  # [choice, seed]
        line: dict[str, float] = {"seeds": size, "choices": len(chosen)}
        for role, values in flat.items():
            reaches = values[chosen] >= threshold
            line[f"always_{role}"] = float(reaches.all(axis=1).mean())
            line[f"any_{role}"] = float(reaches.any(axis=1).mean())
        for name in ("facilitation", "interference"):
            line[f"{name}_with_others"] = _apart(flat[_ROLES[name]], size)
        lines.append(line)
    return pd.DataFrame(lines)


def _flat(score: xr.DataArray) -> np.ndarray:
    """[seed, head that is there]."""
    rows = score.transpose("seed", ...).values.reshape(score.sizes["seed"], -1).astype(float)
    found: np.ndarray = rows[:, ~np.isnan(rows).any(axis=0)]
    return found


@dataclass(frozen=True, slots=True)
class HalfOverlap:
    """How much the facilitating heads of two disjoint sets of `seeds` seeds overlap: the mean Jaccard index,
    and what `chance` gives two sets of these sizes."""

    seeds: int
    jaccard: float
    chance: float


def half_overlap(scores: xr.Dataset, threshold: float = THRESHOLD) -> HalfOverlap | None:
    """The overlap of facilitating sets (mean score at least the threshold) of disjoint halves of the seeds;
    None with one seed, or if no half has such a head."""
    threshold = require_share("threshold", threshold)
    rows = _flat(scores["facilitation"])
    size = len(rows) // 2
    if not size:
        return None
    observed, chance = [], []
    for seeds in _choices(len(rows), 2 * size):
        for half in _parted(seeds, size, _CHOICES):
            rest = [seed for seed in seeds if seed not in half]
            left, right = (rows[list(part)].mean(axis=0) >= threshold for part in (half, rest))
            if left.any() or right.any():
                observed.append(jaccard(left, right))
                chance.append(_chance_jaccard(int(left.sum()), int(right.sum()), rows.shape[1]))
    if not observed:
        return None
    return HalfOverlap(size, float(np.mean(observed)), float(np.mean(chance)))


def _chance_jaccard(first: int, second: int, heads: int) -> float:
    """The expected Jaccard index of two random sets of these sizes."""
    from scipy import stats  # importing scipy takes a second; most commands do not need it

    both = np.arange(max(0, first + second - heads), min(first, second) + 1)
    weights = stats.hypergeom.pmf(both, heads, first, second)
    return float(weights @ (both / (first + second - both)))


def retest(one: xr.Dataset, other: xr.Dataset, threshold: float = THRESHOLD) -> dict[str, float]:
    """Two maps of the same task from different items: rank correlations of their mean scores, and the Jaccard
    index of what is facilitating, with what chance gives sets of these sizes."""
    threshold = require_share("threshold", threshold)
    found: dict[str, float] = {}
    for name in ("facilitation", "interference"):
        found[name] = rank_correlation(*(_flat(part[name]).mean(axis=0) for part in (one, other)))
    sets = [_flat(part["facilitation"]).mean(axis=0) >= threshold for part in (one, other)]
    is_any = any(some.any() for some in sets)
    first, second = (int(some.sum()) for some in sets)
    found["jaccard"] = jaccard(*sets) if is_any else float("nan")
    found["chance"] = _chance_jaccard(first, second, len(sets[0])) if is_any else float("nan")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Stability:
    """How stable the map of a task is: `by_seeds` with fewer seeds and with other seeds, `halves` for
    disjoint halves of the seeds, `retest` for `retest_seeds` seeds fitted on each half of the items. None:
    there are too few."""

    by_seeds: pd.DataFrame
    halves: HalfOverlap | None
    retest: dict[str, float] | None
    retest_seeds: int

    def to_json(self) -> dict[str, Any]:
        return {
            "seeds": json.loads(self.by_seeds.to_json(orient="records")),
            "halves": None if self.halves is None else asdict(self.halves),
            "retest": self.retest,
        }


def stability_of(atlas: Atlas, task: str, threshold: float = THRESHOLD) -> Stability:
    """How stable the map of a task is."""
    threshold = require_share("threshold", threshold)
    scores = atlas.scores(task)
    halves = [atlas.scores(task, half) for half in HALVES if atlas.seeds(task, half)]
    has_both = len(halves) == len(HALVES)
    return Stability(
        by_seeds=by_seeds(scores, threshold),
        halves=half_overlap(scores, threshold),
        retest=retest(halves[0], halves[1], threshold) if has_both else None,
        retest_seeds=halves[0].sizes["seed"] if has_both else 0,
    )
