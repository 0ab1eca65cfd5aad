"""Contrasts: gates that keep one task and destroy another, with what they do to held-out items of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.interval import Interval, crossed_interval

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["FIGURES", "OPEN", "ContrastSummary", "contrasts_of", "summarize_contrast"]

#: what is measured of both tasks, without the gates and with them
FIGURES = tuple(f"{side}_{name}" for side in ("retain", "forget") for name in ("nll", "accuracy"))
#: a gate from here on is open
OPEN = 0.5


@dataclass(frozen=True, slots=True)
class ContrastSummary:
    """A contrast in numbers.

    `before` and `after` map the names of `FIGURES` to held-out figures without the gates, and with them on
    average over seeds; names that were not measured are absent. `change` maps "retain" and "forget" to how
    far the gates raise the NLL of that task, with an interval over groups of items and over seeds. `shut`
    counts the heads whose gate is below `OPEN`: in every seed, in at least one seed, on average over seeds.
    """

    name: str
    retain: str
    forget: str
    seeds: list[int]
    before: dict[str, float]
    after: dict[str, float]
    change: dict[str, Interval]
    shut: dict[str, float]


def contrasts_of(atlas: Atlas) -> list[str]:
    """Contrasts with at least one finished seed."""
    return [name for method, name in atlas.runs if method == "contrast" and atlas.seeds(name, method)]


def summarize_contrast(atlas: Atlas, name: str) -> ContrastSummary:
    """A contrast in numbers; every seed counts once."""
    run, seeds = atlas.run(name, "contrast"), atlas.seeds(name, "contrast")
    parts = run.task_facts.get("parts", {})
    retain, _, forget = name.partition(" without ")
    facts = [atlas.fit(name, seed, "retain", "contrast").facts for seed in seeds]
    shut = atlas.gates(name, "contrast").sel(fit="retain").values < OPEN  # False where there is no head
    return ContrastSummary(
        name=name,
        retain=str(parts.get("retain", {}).get("task", retain)),
        forget=str(parts.get("forget", {}).get("task", forget)),
        seeds=seeds,
        before={key: float(run.baseline[key]) for key in FIGURES if key in run.baseline},
        after={
            key: float(np.mean([fact[key] for fact in facts]))
            for key in FIGURES
            if all(key in fact for fact in facts)
        },
        change={
            side: _change(run.baseline, facts, side)
            for side in ("retain", "forget")
            if all(f"{side}_nll" in one for one in (run.baseline, *facts))
        },
        shut={
            "always": float(shut.all(axis=0).sum()),
            "any": float(shut.any(axis=0).sum()),
            "mean": float(shut.sum(axis=(1, 2)).mean()),
        },
    )


def _change(baseline: Mapping[str, Any], fits: Sequence[Mapping[str, Any]], side: str) -> Interval:
    """How far the gates raise the NLL. No interval if the losses of items are not stored."""
    losses = f"{side}_held_out_nll"
    if f"{side}_groups" in baseline and all(losses in one for one in (baseline, *fits)):
        rises = np.array([fit[losses] for fit in fits]) - np.asarray(baseline[losses])
        return crossed_interval(rises, baseline[f"{side}_groups"])
    return Interval(float(np.mean([fit[f"{side}_nll"] for fit in fits])) - baseline[f"{side}_nll"])
