"""Contrasts: gates that keep one task and destroy another, with what they do to held-out items of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.interval import Interval, crossed_interval
from headatlas.core import THRESHOLD

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas
    from headatlas.atlas.finding.doubts import Doubt

__all__ = [
    "FIGURES",
    "ContrastSeeds",
    "ContrastSummary",
    "contrast_by_seed",
    "contrasts_of",
    "summarize_contrast",
]

#: what is measured of both tasks, without the gates and with them
FIGURES = tuple(f"{side}_{name}" for side in ("retain", "forget") for name in ("nll", "accuracy"))


@dataclass(frozen=True, slots=True)
class ContrastSummary:
    """A contrast in numbers.

    `before` and `after` map the names of `FIGURES` to held-out figures without the gates, and with them on
    average over seeds; names that were not measured are absent. `change` maps "retain" and "forget" to how
    far the gates raise the NLL of that task, with an interval over groups of items and over seeds. `shut`
    counts the heads whose gate is below `THRESHOLD`: in every seed, in at least one, on average over seeds.
    """

    name: str
    retain: str
    forget: str
    seeds: list[int]
    before: dict[str, float]
    after: dict[str, float]
    change: dict[str, Interval]
    shut: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ContrastSeeds:
    """A contrast seed by seed: held-out figures without gates (`ungated`) and with those of each seed
    (`gated`), and how many heads each seed shuts."""

    contrast: str
    ungated: dict[str, Any]
    gated: dict[int, dict[str, float]]
    heads_shut: dict[int, int]
    doubts: tuple[Doubt, ...]

    def to_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "doubts": [doubt.to_json() for doubt in self.doubts]}


def contrasts_of(atlas: Atlas) -> list[str]:
    """Contrasts with at least one finished seed."""
    return [name for method, name in atlas.runs if method == "contrast" and atlas.seeds(name, method)]


def summarize_contrast(atlas: Atlas, name: str) -> ContrastSummary:
    """A contrast in numbers; every seed counts once."""
    run, seeds = atlas.run(name, "contrast"), atlas.seeds(name, "contrast")
    parts = run.task_facts.get("parts", {})
    retain, _, forget = name.partition(" without ")
    facts = [atlas.fit(name, seed, "retain", "contrast").facts for seed in seeds]
    shut = atlas.gates(name, "contrast").sel(fit="retain").values < THRESHOLD  # False where there is no head
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


def contrast_by_seed(atlas: Atlas, name: str) -> ContrastSeeds:
    """A contrast that was fitted here, seed by seed."""
    fits = {seed: atlas.fit(name, seed, "retain", "contrast") for seed in atlas.seeds(name, "contrast")}
    baseline = atlas.run(name, "contrast").baseline
    others = (f"{side}_{figure}" for side in ("retain", "forget") for figure in ("token_accuracy", "rows"))
    return ContrastSeeds(
        contrast=name,
        ungated={key: baseline[key] for key in (*FIGURES, *others) if key in baseline},
        gated={seed: {key: fit.facts[key] for key in FIGURES} for seed, fit in fits.items()},
        heads_shut={seed: int((fit.gates < THRESHOLD).sum()) for seed, fit in fits.items()},
        doubts=tuple(atlas.doubts(name, "contrast")),
    )
