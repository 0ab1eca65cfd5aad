"""Findings about the roles that tasks give to heads: how many, where, shared by which tasks."""

from __future__ import annotations

from math import factorial, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.finding import Finding
from headatlas.atlas.finding.flat_heads import Heads
from headatlas.atlas.finding.published import (
    PUBLISHED_MODELS,
    PUBLISHED_SEEDS,
    PUBLISHED_SHARES,
    compares_with_paper,
    has_papers_data,
)
from headatlas.atlas.interval import Interval, t_interval
from headatlas.atlas.statistics import (
    TEST_LEVEL,
    concentration,
    depth_correlation_interval,
    jaccard,
    rank_correlation,
    standardized_ranks,
    tail_p,
    welch,
)

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = [
    "both_roles",
    "columns",
    "density",
    "depth",
    "depth_trend",
    "shared_heads",
    "task_columns",
    "task_difference",
]

#: the scores of the two roles that a task gives to heads
_SCORES = ("facilitation", "interference")


def _seed_shares(atlas: Atlas, heads: Heads, task: str, score: str, threshold: float) -> np.ndarray:
    """[seed]: the share of heads whose score reaches the threshold."""
    scores = atlas.scores(task)[score]
    each = [heads.flat(scores.isel(seed=seed)) >= threshold for seed in range(scores.sizes["seed"])]
    shares: np.ndarray = np.mean(each, axis=1)
    return shares


def density(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    """Shares of heads with a role: per seed with an interval, in every seed and in any as plain counts."""
    findings = []
    seeds = len(atlas.seeds(task))
    for score in _SCORES:
        share = t_interval(_seed_shares(atlas, heads, task, score, threshold), bounds=(0, 1))
        about = f"{task}, per seed, {score}"
        findings.append(Finding.of("density", "per seed", about, share, task=task, score=score, seeds=seeds))
    if seeds == 1:
        return findings
    for when, maps in (("always", atlas.always(task)), ("any", atlas.any(task))):
        for role, score in enumerate(_SCORES):
            value = float((heads.flat(maps[score]) >= threshold).mean())
            published = _published_share(atlas, task, when, role)
            about = f"{task}, {when}, {score}"
            findings.append(
                Finding.of(
                    "density", when, about, value, published=published, task=task, score=score, seeds=seeds
                )
            )
    return findings


def _published_share(atlas: Atlas, task: str, when: str, role: int) -> str | None:
    name = task.removeprefix("paper/")
    if name not in PUBLISHED_SHARES:
        return None
    if not task.startswith("paper/"):
        return f"none: paper/{name} is another data set of this name"
    if not has_papers_data(atlas, task):
        return f"none: this is another data set than the paper's {name}"
    if not compares_with_paper(atlas, task):
        return f"none: the paper has {PUBLISHED_SEEDS} seeds"
    shares = [pair[role] for pair in PUBLISHED_SHARES[name][when]]
    listed = ", ".join(f"{model} {share:g} %" for model, share in zip(PUBLISHED_MODELS, shares, strict=True))
    return f"{listed} ({PUBLISHED_SEEDS} seeds)"


def task_difference(atlas: Atlas, heads: Heads, first: str, second: str, threshold: float) -> list[Finding]:
    """The difference in the share of facilitating heads, by Welch's test over seeds."""
    samples = [_seed_shares(atlas, heads, task, "facilitation", threshold) for task in (first, second)]
    gap, p = welch(*samples)
    published = None
    names = [task.removeprefix("paper/") for task in (first, second)]
    if all(compares_with_paper(atlas, task) for task in (first, second)):
        pairs = zip(*(PUBLISHED_SHARES[name]["always"] for name in names), strict=True)
        gaps = [left[0] - right[0] for left, right in pairs]
        listed = zip(PUBLISHED_MODELS, gaps, strict=True)
        published = "in every seed: " + ", ".join(f"{model} {value:+.1f}" for model, value in listed)
    about = f"{first} − {second}"
    return [Finding.of("tasks", "difference", about, gap, p, published, first=first, second=second)]


def _always(atlas: Atlas, heads: Heads, task: str, seeds: int, threshold: float) -> np.ndarray:
    """[head]: True if it facilitates in each of the first `seeds` seeds."""
    lowest = atlas.scores(task)["facilitation"].isel(seed=slice(seeds)).min("seed", skipna=False)
    return heads.flat(lowest) >= threshold


def shared_heads(
    atlas: Atlas, heads: Heads, first: str, second: str, threshold: float, permutations: int
) -> list[Finding]:
    """How many heads two tasks share, with equally many seeds of each: more seeds leave fewer heads."""
    counts = [len(atlas.seeds(task)) for task in (first, second)]
    left, right = (_always(atlas, heads, task, min(counts), threshold) for task in (first, second))
    if not (left.any() and right.any()):
        return []
    both = int((left & right).sum())
    null = (left & right[heads.within_layers(np.random.default_rng(0), permutations)]).sum(axis=1)
    p = None if np.ptp(null) == 0 else tail_p(both, null, "more")
    return [
        Finding.of(
            "overlap",
            "tasks",
            f"{first}, {second}",
            both,
            p,
            first=first,
            second=second,
            seeds=counts,
            by_chance=float(null.mean()),
            jaccard=jaccard(left, right),
        )
    ]


def depth(atlas: Atlas, heads: Heads, task: str, permutations: int) -> list[Finding]:
    """Rank correlations of scores with depth; whole layers are permuted."""
    scores, highest = atlas.scores(task).mean("seed"), atlas.any(task)
    maps = {
        "mean facilitation": scores["facilitation"],
        "facilitation in any seed": highest["facilitation"],
        "interference in any seed": highest["interference"],
    }
    if len(atlas.seeds(task)) == 1:
        del maps["facilitation in any seed"]  # the same as the mean
    findings = []
    for name, values in maps.items():
        rho, p = depth_trend(heads, heads.flat(values), permutations)
        if isnan(rho.mean):
            continue
        is_published = compares_with_paper(atlas, task) and "any" in name
        published = "higher in deeper layers (read off the figures)" if is_published else None
        about = f"{task}, {name}"
        findings.append(Finding.of("layers", "trend", about, rho, p, published, task=task, score=name))
    return findings


def depth_trend(heads: Heads, values: np.ndarray, permutations: int) -> tuple[Interval, float | None]:
    """The rank correlation of `values` [head] with depth, its interval over layers, and its p with whole
    layers permuted.

    With few layers no p can be small: then there is neither a p nor an interval.
    """
    observed = rank_correlation(heads.layers, values)
    if isnan(observed) or 2 / factorial(len(heads.sizes)) >= TEST_LEVEL:
        return Interval(observed), None
    sums = heads.layer_sums(standardized_ranks(values))
    depths = heads.shuffled_layers(np.random.default_rng(0), permutations)
    ranks = heads.depth_ranks(depths) - (heads.count + 1) / 2
    null = ranks @ sums / np.sqrt((heads.sizes * ranks**2).sum(axis=1))
    return depth_correlation_interval(heads.layers, values), tail_p(observed, null)


def task_columns(atlas: Atlas, heads: Heads, task: str, threshold: float, permutations: int) -> list[Finding]:
    """Are the heads that facilitate in every seed gathered in some head columns?"""
    always = heads.flat(atlas.always(task)["facilitation"]) >= threshold
    return columns(heads, always, "task", task, permutations)


def columns(heads: Heads, chosen: np.ndarray, kind: str, subject: str, permutations: int) -> list[Finding]:
    """Are the chosen heads, of a task or of a category (`kind`), gathered in some head columns?"""
    if chosen.sum() < 2:
        return []
    is_column = (heads.columns[:, None] == np.arange(heads.width)).astype(float)
    counts = chosen @ is_column
    orders = heads.within_layers(np.random.default_rng(0), permutations)
    null = concentration(chosen[orders].astype(float) @ is_column)
    value, best = float(concentration(counts)), int(counts.argmax())
    p = None if np.ptp(null) == 0 else tail_p(value, null, "more")
    numbers: dict[str, Any] = {"subject": subject, "column": best, "heads_in_column": int(counts[best])}
    return [Finding.of("columns", kind, subject, value, p, **numbers, heads=int(chosen.sum()))]


def both_roles(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    """Heads that facilitate in one seed and interfere in another."""
    scores = atlas.scores(task)
    count = scores.sizes["seed"]
    if count < 2:
        return []
    helps, hurts = (
        np.stack([heads.flat(scores[score].isel(seed=seed)) >= threshold for seed in range(count)])
        for score in _SCORES
    )
    in_two_seeds = helps.sum(axis=0) * hurts.sum(axis=0) > (helps & hurts).sum(axis=0)
    return [Finding.of("several", "roles", f"{task}, both roles", int(in_two_seeds.sum()), task=task)]
