"""What the seeds agree on: Always and Any, shares of heads with intervals, correlation between seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from headatlas.atlas.interval import Interval, crossed_interval, t_interval
from headatlas.atlas.roles import SCORES, roles_of
from headatlas.core import ROLES, THRESHOLD, require_share
from headatlas.core.lazy import xr

__all__ = [
    "HELD_OUT",
    "Summary",
    "always",
    "any_seed",
    "held_out_summary",
    "seed_correlation",
    "shares",
    "summarise",
]

#: what is measured on held-out rows
HELD_OUT = ("nll", "accuracy", "token_accuracy")


@dataclass(frozen=True, slots=True)
class Summary:
    """A task in numbers; shares are of all heads.

    `always` and `any`: role -> share (the paper's Table 2). `per_seed`: role -> mean share with its interval.
    `correlation`: score -> mean Pearson correlation between two seeds (None with one seed). `nll`,
    `accuracy` (rows with the whole target right) and `token_accuracy`: held-out figures of baseline, retain
    and remove, on `held_out` rows of `groups` groups that no gate was fitted on; empty if the
    task holds nothing out (`held_out` is 0). `gain`: how far the gates of
    retain and remove lower that NLL, with an interval over groups and seeds (over groups alone with one
    seed). `known`: the same figures on `known_rows` held-out rows of groups that were fitted on; empty if
    there are none. `metric`: the mean of the metric that gates were fitted on, called `metric_label`, for
    baseline, retain and remove; empty for the negative log-likelihood. `unclear`: mean share of heads of
    which no score reaches the threshold;
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
    groups: int | None = None
    gain: dict[str, Interval] = field(default_factory=dict)
    known: dict[str, dict[str, float]] = field(default_factory=dict)
    known_rows: int | None = None
    metric: dict[str, float] = field(default_factory=dict)
    metric_label: str = ""

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        if not self.metric:
            del data["metric"], data["metric_label"]
        return data


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
    threshold = require_share("threshold", threshold)
    there = ~np.isnan(scores["facilitation"].values)
    return {
        role: float((scores[name].values[there] >= threshold).mean()) if there.any() else float("nan")
        for role, name in SCORES.items()
    }


def seed_correlation(score: xr.DataArray) -> float | None:
    """Mean Pearson correlation over the heads between every two seeds; None where it is not defined."""
    rows = score.transpose("seed", ...).values.reshape(score.sizes["seed"], -1).astype(np.float64)
    rows = rows[:, ~np.isnan(rows).any(axis=0)]
    found = []
    for one, other in combinations(rows, 2):
        if np.ptp(one) and np.ptp(other):  # a constant correlates with nothing
            found.append(float(np.corrcoef(one, other)[0, 1]))
    return float(np.mean(found)) if found else None


def held_out_summary(
    baseline: Mapping[str, Any], facts: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """The held-out fields of a `Summary`; `facts` is retain, remove -> the facts of each seed's fit."""
    measured = {"baseline": [baseline], **facts}

    def figures(name: str) -> dict[str, float]:
        return {
            fit: float(np.mean([one[name] for one in found]))
            for fit, found in measured.items()
            if found and all(name in one for one in found)
        }

    known = {name: figures(f"known_{name}") for name in HELD_OUT}
    groups = baseline.get("groups")
    return {
        **{name: figures(name) for name in HELD_OUT},
        "metric": figures("metric"),
        "held_out": int(baseline["rows"]) if "rows" in baseline else None,
        "groups": len(set(groups)) if groups else None,
        "gain": {
            fit: _gain(baseline, found)
            for fit, found in facts.items()
            if groups and found and all("held_out_nll" in one for one in (baseline, *found))
        },
        "known": known if any(known.values()) else {},
        "known_rows": int(baseline["known_rows"]) if "known_rows" in baseline else None,
    }


def _gain(baseline: Mapping[str, Any], fits: Sequence[Mapping[str, Any]]) -> Interval:
    """How far gates lower the NLL, on average over seeds and rows; the interval is over groups of rows and
    over seeds. With one seed it leaves out how much the gates vary."""
    gains = np.asarray(baseline["held_out_nll"]) - np.array([fit["held_out_nll"] for fit in fits])
    return crossed_interval(gains, baseline["groups"])


def summarise(
    task: str,
    scores: xr.Dataset,
    *,
    threshold: float = THRESHOLD,
    held_out: Mapping[str, Any] | None = None,
) -> Summary:
    """All that `map_heads` says about a task; `held_out` are the fields of `held_out_summary`."""
    per_seed = [shares(scores.isel(seed=place), threshold) for place in range(scores.sizes["seed"])]
    words = roles_of(scores, threshold).values
    return Summary(
        task=task,
        seeds=scores.sizes["seed"],
        threshold=threshold,
        always=shares(always(scores), threshold),
        any=shares(any_seed(scores), threshold),
        per_seed={role: t_interval([share[role] for share in per_seed], bounds=(0, 1)) for role in ROLES},
        anomalies=_share(words, "anomaly"),
        unclear=_share(words, "unclear"),
        parted=float(np.nanmean(np.abs(1 - scores["interference"].values - scores["facilitation"].values))),
        correlation={name: seed_correlation(scores[name]) for name in SCORES.values()},
        **(held_out or held_out_summary({}, {})),
    )


def _share(words: np.ndarray, word: str) -> float:
    return float((words == word).sum() / max(1, (words != "").sum()))
