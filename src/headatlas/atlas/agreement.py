"""What the seeds agree on: Always and Any, shares of heads with intervals, correlation between seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from headatlas.atlas.scores import SCORES, THRESHOLD, roles_of
from headatlas.core import ROLES

__all__ = [
    "HELD_OUT",
    "Interval",
    "Summary",
    "always",
    "any_seed",
    "interval",
    "seed_correlation",
    "shares",
    "summarise",
]

#: what is measured on held-out rows
HELD_OUT = ("nll", "accuracy", "token_accuracy")


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds with a 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A task in numbers; shares are of all heads.

    `always` and `any`: role -> share (the paper's Table 2). `per_seed`: role -> mean share with its interval.
    `correlation`: score -> mean Pearson correlation between two seeds (None with one seed). `nll`,
    `accuracy` (rows with the whole target right) and `token_accuracy`: held-out figures of baseline, retain
    and remove, on `held_out` rows. `unclear`: mean share of heads of which no score reaches the threshold;
    `parted`: mean distance between G+ and G- of a head, small where the fits have hardly begun.
    """

    task: str
    seeds: int
    threshold: float
    always: dict[str, float]
    any: dict[str, float]
    per_seed: dict[str, Interval]
    anomalies: float
    unclear: float
    parted: float
    correlation: dict[str, float | None]
    nll: dict[str, float]
    accuracy: dict[str, float]
    token_accuracy: dict[str, float]
    held_out: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def always(scores: xr.Dataset) -> xr.Dataset:
    """The smallest score over the seeds: what holds in every one."""
    return scores.min("seed", skipna=False)


def any_seed(scores: xr.Dataset) -> xr.Dataset:
    """The largest score over the seeds: what holds in at least one."""
    return scores.max("seed", skipna=False)


def shares(scores: xr.Dataset, threshold: float = THRESHOLD) -> dict[str, float]:
    """Role -> share of heads whose score reaches the threshold, as the paper counts.

    An anomaly (G+ low, G- high) so counts as both facilitating and interfering; `Atlas.distribution` gives
    every head one word and counts anomalies apart.
    """
    there = ~np.isnan(scores["facilitation"].values)
    return {
        role: float((scores[name].values[there] >= threshold).mean()) if there.any() else float("nan")
        for role, name in SCORES.items()
    }


def interval(values: np.ndarray, draws: int = 2000, level: float = 0.95) -> Interval:
    """Mean and percentile bootstrap of it; the draws are always the same ones."""
    values = np.asarray(values, dtype=float)
    picks = np.random.default_rng(0).integers(len(values), size=(draws, len(values)))
    means = values[picks].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high))


def seed_correlation(score: xr.DataArray) -> float | None:
    """Mean Pearson correlation over the heads between every two seeds; None where it is not defined."""
    rows = score.transpose("seed", ...).values.reshape(score.sizes["seed"], -1).astype(np.float64)
    rows = rows[:, ~np.isnan(rows).any(axis=0)]
    found = []
    for one, other in combinations(rows, 2):
        if np.ptp(one) and np.ptp(other):  # a constant correlates with nothing
            found.append(float(np.corrcoef(one, other)[0, 1]))
    return float(np.mean(found)) if found else None


def summarise(
    task: str,
    scores: xr.Dataset,
    *,
    threshold: float = THRESHOLD,
    held_out: Mapping[str, dict[str, float]] | None = None,
    rows: int | None = None,
) -> Summary:
    """All that `headatlas map` says about a task; `held_out` is nll, accuracy, token_accuracy -> figures
    on so many `rows`."""
    per_seed = [shares(scores.isel(seed=place), threshold) for place in range(scores.sizes["seed"])]
    words = roles_of(scores, threshold).values
    return Summary(
        task=task,
        seeds=scores.sizes["seed"],
        threshold=threshold,
        always=shares(always(scores), threshold),
        any=shares(any_seed(scores), threshold),
        per_seed={role: interval(np.array([share[role] for share in per_seed])) for role in ROLES},
        anomalies=_share(words, "anomaly"),
        unclear=_share(words, "unclear"),
        parted=float(np.nanmean(np.abs(1 - scores["interference"].values - scores["facilitation"].values))),
        correlation={name: seed_correlation(scores[name]) for name in SCORES.values()},
        **{name: dict((held_out or {}).get(name, {})) for name in HELD_OUT},
        held_out=rows,
    )


def _share(words: np.ndarray, word: str) -> float:
    return float((words == word).sum() / max(1, (words != "").sum()))
