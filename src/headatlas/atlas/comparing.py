"""Two atlases, or two tasks of one: where do the same heads do the same?

Models of the same shape are compared head by head. Others have no heads in common; there, what is compared is
how much heads do at the same relative depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headatlas.atlas.agreement import Interval
from headatlas.atlas.atlas import Atlas
from headatlas.atlas.scores import ROLE_WORDS, SCORES, THRESHOLD, roles_of
from headatlas.atlas.statistics import correlated, permutation_p, rank_correlation, shuffled_correlation
from headatlas.core import AtlasError, RequestError, UnknownNameError

__all__ = ["BINS", "Comparison", "compare_atlases", "depth_profile", "shared_tasks"]

#: parts of the depth of a model, from its first layer to its last
BINS = 10
#: heads of which it is said how much they changed
_NAMED = 10
_COMPARED = tuple(SCORES.values())[:2]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One task in one atlas beside one in another.

    `correlation`: score -> rank correlation of the means over seeds, over heads of models of the same shape,
    over ten parts of the depth otherwise; `p` for each of these, heads permuted (within layers), parts
    permuted; None where a score is the same everywhere. `roles` counts heads by (role here, role there), by
    the mean over seeds; `same` is the share with the same one, `within` that of pairs of seeds of the same
    atlas (here, there; None with one seed), `between` that of pairs of seeds of both: only where `between` is
    clearly less than `within` do they differ by more than seeds do. `changed` are the heads whose importance
    differs most: (head, here, there).
    """

    names: tuple[str, str]
    tasks: tuple[str, str]
    by_heads: bool
    correlation: dict[str, Interval | None]
    p: dict[str, float | None]
    roles: dict[tuple[str, str], int] | None
    same: float | None
    within: tuple[float | None, float | None] | None
    between: float | None
    changed: list[tuple[str, float, float]]
    profiles: dict[str, tuple[list[float], list[float]]]
    relations: float | None

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        for score, pair in self.profiles.items():
            found["profiles"][score] = [[None if np.isnan(x) else x for x in values] for values in pair]
        if self.roles is not None:
            found["roles"] = [{"here": a, "there": b, "heads": n} for (a, b), n in self.roles.items()]
        return found


def shared_tasks(one: Atlas, other: Atlas, tasks: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(task here, task there): the one or two that are asked for, or all that both have."""
    if len(tasks) > 2:
        raise RequestError("give one task, which both atlases have, or two: the first one's and the other's.")
    wanted = [*tasks, *tasks] if len(tasks) == 1 else list(tasks)
    for task, atlas in zip(wanted, (one, other), strict=False):
        if task not in atlas.tasks:
            where = atlas.path or atlas.spec.name
            raise UnknownNameError(f"gated task in {where}", task, atlas.tasks or ["none"])
    if tasks:
        pair = (tasks[0], tasks[-1])
        if one is other and pair[0] == pair[1]:
            raise RequestError(f"{tasks[0]} and itself: give two tasks, or two atlases.")
        return [pair]
    found = [(task, task) for task in one.tasks if task in other.tasks]
    if one is other or not found:
        if one is other:
            raise RequestError("an atlas and itself: give two of its tasks with --task.")
        have = [", ".join(atlas.tasks) or "none" for atlas in (one, other)]
        raise AtlasError(
            f"no task is gated in both ({have[0]}; {have[1]}): give two with --task, the first one's and the "
            "other's."
        )
    return found


def compare_atlases(
    one: Atlas, other: Atlas, task: str, other_task: str | None = None, threshold: float = THRESHOLD
) -> Comparison:
    """One task of each."""
    there = other_task or task
    by_heads = one.spec.heads == other.spec.heads
    atlases, tasks = (one, other), (task, there)
    means = [atlas.scores(name).mean("seed") for atlas, name in zip(atlases, tasks, strict=True)]
    correlation: dict[str, Interval | None] = {}
    p: dict[str, float | None] = {}
    profiles: dict[str, tuple[list[float], list[float]]] = {}
    for score in _COMPARED:
        maps = [mean[score].values for mean in means]
        depths = [depth_profile(values) for values in maps]
        profiles[score] = (depths[0].tolist(), depths[1].tolist())
        if by_heads:
            layers, heads = np.nonzero(~np.isnan(maps[0]))
            first, second = (values[layers, heads] for values in maps)
        else:
            layers = np.zeros(BINS, dtype=int)
            first, second = depths
        known = ~np.isnan(first) & ~np.isnan(second)
        layers, first, second = layers[known], first[known], second[known]
        observed = rank_correlation(first, second)
        if np.isnan(observed):  # the same everywhere: there is no order to compare
            correlation[score], p[score] = None, None
            continue
        correlation[score] = correlated(first, second)
        p[score] = permutation_p(observed, shuffled_correlation(first, second, _within(layers)))
    if not by_heads:
        names = one.spec.name, other.spec.name
        return Comparison(names, tasks, False, correlation, p, None, None, None, None, [], profiles, None)
    roles = [roles_of(mean, threshold).values for mean in means]
    counted: dict[tuple[str, str], int] = {}
    for words in zip(*(values[roles[0] != ""] for values in roles), strict=True):
        counted[words] = counted.get(words, 0) + 1
    order = {word: place for place, word in enumerate(ROLE_WORDS)}
    counted = dict(sorted(counted.items(), key=lambda pair: (order[pair[0][0]], order[pair[0][1]])))
    seeds = [atlas.roles(name, threshold).values for atlas, name in zip(atlases, tasks, strict=True)]
    importance = [atlas.importance(name).values for atlas, name in zip(atlases, tasks, strict=True)]
    difference = np.nan_to_num(np.abs(importance[1] - importance[0]), nan=-1)
    first = np.argsort(-difference, axis=None, kind="stable")[: min(_NAMED, int((difference >= 0).sum()))]
    places = [np.unravel_index(place, difference.shape) for place in first]
    return Comparison(
        names=(one.spec.name, other.spec.name),
        tasks=tasks,
        by_heads=True,
        correlation=correlation,
        p=p,
        roles=counted,
        same=sum(n for (a, b), n in counted.items() if a == b) / sum(counted.values()),
        within=(_agreement(seeds[0], seeds[0]), _agreement(seeds[1], seeds[1])),
        between=_agreement(seeds[0], seeds[1], apart=False),
        changed=[
            (f"L{layer}H{head}", float(importance[0][layer, head]), float(importance[1][layer, head]))
            for layer, head in places
        ],
        profiles=profiles,
        relations=_relations(one, other),
    )


def depth_profile(values: np.ndarray, bins: int = BINS) -> np.ndarray:
    """[part of the depth]: the mean over the heads of the layers that lie there; where there are few layers,
    one counts for all parts that it reaches into."""
    layers = len(values)
    each = np.array([np.nanmean(row) if not np.isnan(row).all() else np.nan for row in values])
    fine = np.repeat(each, bins).reshape(bins, layers)  # every part is `layers` pieces long
    with np.errstate(invalid="ignore"):
        known = ~np.isnan(fine)
        sums = np.where(known, fine, 0).sum(1)
        found: np.ndarray = sums / np.where(known.any(1), known.sum(1), np.nan)
    return found


def _within(layers: np.ndarray) -> Any:
    """Orders that move heads only within their layers."""

    def order(chance: np.random.Generator) -> np.ndarray:
        return np.lexsort((chance.random(len(layers)), layers))

    return order


def _agreement(one: np.ndarray, other: np.ndarray, apart: bool = True) -> float | None:
    """The mean share of heads with the same role, over pairs of seeds; of one atlas, of different ones."""
    there = one[0] != ""
    pairs = [
        float((a[there] == b[there]).mean())
        for place, a in enumerate(one)
        for b in (other[place + 1 :] if apart else other)
    ]
    return float(np.mean(pairs)) if pairs else None


def _relations(one: Atlas, other: Atlas) -> float | None:
    """Correlation of relation scores over heads, for relations that both have."""
    shared = [name for name in one.relations if name in other.relations]
    if not shared or one is other:
        return None
    maps = [atlas.relation_scores().sel(relation=shared).values.ravel() for atlas in (one, other)]
    there = ~np.isnan(maps[0]) & ~np.isnan(maps[1])
    if not there.any() or not np.ptp(maps[0][there]) or not np.ptp(maps[1][there]):
        return None
    return float(np.corrcoef(maps[0][there], maps[1][there])[0, 1])
