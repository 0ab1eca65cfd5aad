"""Effects of single heads on tasks -> atlas: the methods that stand beside gating."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headatlas.atlas import (
    Atlas,
    EffectMap,
    ItemEffects,
    Run,
    Store,
    clustered_error,
    describe_corruption,
    effect_path,
    open_atlas,
)
from headatlas.core import require_whole
from headatlas.method import (
    MOST_POINTS,
    STAND_INS,
    TOLERANCE,
    HeadEffects,
    Stream,
    ablate,
    attribute,
    choose_corruption,
    draw,
    integrate,
    mediate,
)
from headatlas.model import Model
from headatlas.run.fitter import Progress, Silence
from headatlas.run.loading import load_for_run
from headatlas.run.prepare import (
    Prepared,
    identified,
    made_with,
    measure_baseline,
    read_rows,
    row_groups,
)
from headatlas.run.requests import opened, report_rows
from headatlas.run.steps import Only, Plan, Unit, is_asked
from headatlas.task import Row, Task

__all__ = [
    "ALGORITHM",
    "ITEMS",
    "add_effects",
    "effect_step",
    "measure_effects",
    "plan_effects",
    "require_numbers",
]

#: raised when the same settings would give other numbers than before
ALGORITHM = 2
ITEMS = 32
#: held-out rows of the baseline of a task that was not gated
_HELD_OUT = 64
_MOST = {"seeds": 1000, "items": 100_000}


def measure_effects(
    model: Model | str | Path | PreTrainedModel,
    tasks: Sequence[Task],
    *,
    method: str,
    out: str | Path | None,
    resume: bool,
    seeds: int,
    items: int,
    max_tokens: int | None,
    progress: Progress | None,
    only: Only = None,
) -> Atlas:
    """See `map_heads`."""
    loaded = load_for_run(model, dtype="fast")
    ready = [read_rows(loaded, task, max_tokens, _HELD_OUT) for task in tasks]
    progress = progress or Silence()
    with opened(loaded, out, resume) as store:
        for task in ready:
            report_rows(progress, task)
        add_effects(loaded, store, ready, method, seeds, items, progress, only)
        atlas = open_atlas(store.root)
    atlas.path = None if out is None else Path(out)
    return atlas


def require_numbers(seeds: int, items: int) -> tuple[int, int]:
    """Both, if they are allowed."""
    return require_whole("seeds", seeds, 1, _MOST["seeds"]), require_whole("items", items, 1, _MOST["items"])


def add_effects(
    model: Model,
    store: Store,
    tasks: Sequence[Prepared],
    method: str,
    seeds: int,
    items: int,
    progress: Progress,
    only: Only = None,
) -> None:
    """See to it that the effects of these tasks are in the store, each run with a baseline."""
    runs = store.add(*(_describe(model, method, task, seeds, items) for task in tasks))
    for run, task in zip(runs, tasks, strict=True):
        asked = [seed for seed in range(seeds) if is_asked(effect_step(method, task.name, seed), only)]
        if asked and not run.baseline:
            # No view of effects shows items of groups that were fitted on, so they are not measured.
            baseline = _gating_baseline(store, run) or measure_baseline(model, replace(task, known=()))
            store.update(run, baseline=baseline)
        for seed in asked:
            if seed not in store.measured(run):
                _measure(model, store, run, task, seed, items, progress)


def _gating_baseline(store: Store, run: Run) -> Mapping[str, Any]:
    """The baseline of the task's gating if that has the weights, dtype and items of `run`; else empty."""
    gating = store.runs.get(("gating", run.task))
    if gating is None:
        return {}
    mine, other = (one.settings.get("decides", {}) for one in (run, gating))
    is_same = all(mine.get(key) == other.get(key) for key in ("weights", "dtype", "tasks"))
    return gating.baseline if is_same else {}


def effect_step(method: str, task: str, seed: int) -> str:
    return f"{method} {task} seed {seed}"


def plan_effects(method: str, tasks: Sequence[str], seeds: int) -> Plan:
    """Each seed of each task."""
    units = [
        Unit(
            f"{task}: {method}" + (f", seed {seed}" if seed else ""),
            (effect_step(method, task, seed),),
            (effect_path(Path(), method, task, seed),),
            (task,),
            (effect_path(Path(), method, task, seed).parent,),
        )
        for task in tasks
        for seed in range(seeds)
    ]
    return Plan([units], [(method, task) for task in tasks])


def _describe(model: Model, method: str, task: Prepared, seeds: int, items: int) -> Run:
    decides: dict[str, Any] = {"items": items}
    if method == "mediate":
        decides |= _corruption(task)
    if method == "attribute-integrated":
        decides |= {"tolerance": TOLERANCE, "most_points": MOST_POINTS, "path": "float32"}
    if task.facts["train_items"] < len(task.rows.train):
        decides["copies"] = "drawn once"  # earlier versions drew them as items of their own
    settings = {"given": {"seeds": seeds, "items": items}, "resolved": {"seeds": seeds, **decides}}
    return identified(model, method, task.name, task.facts, settings, decides, ALGORITHM)


def _corruption(task: Prepared) -> dict[str, str]:
    """How mediation corrupts a task: decided by all rows that may be drawn, so that no draw changes it."""
    chosen = choose_corruption(_distinct_rows(task))
    return {"prompts": chosen.prompts, "positions": chosen.positions}


def _distinct_rows(task: Prepared) -> list[Row]:
    return [task.rows.train[place] for place in _distinct_places(task)]


def _distinct_places(task: Prepared) -> list[int]:
    """The places of the training rows that effects are measured on: of copies the first."""
    places: dict[tuple[int, ...], int] = {}
    for place, row in enumerate(task.rows.train):
        places.setdefault(row.ids, place)
    return list(places.values())


def _measure(
    model: Model, store: Store, run: Run, task: Prepared, seed: int, items: int, progress: Progress
) -> None:
    train, distinct = task.rows.train, np.array(_distinct_places(task))
    drawn = distinct[draw(len(distinct), min(items, len(distinct)), 0, seed, Stream.EFFECTS)]
    rows = [train[place] for place in drawn]
    what = f"{task.name}: {run.method}" + (f", seed {seed}" if seed else "")
    corruption = _corruption(task) if run.method == "mediate" else {}
    if reason := choose_corruption(_distinct_rows(task)).because if corruption else "":
        progress.note(f"{task.name}: {reason}; {describe_corruption(corruption)}")
    began = time.monotonic()
    measured = _way(run.method, seed, corruption)(model, rows, progress=partial(progress.heads, what))
    facts: dict[str, Any] = {
        "items": measured.rows,
        "nll": measured.plain,
        "whole": measured.whole,
        "sum": float(np.nansum(measured.values)),
        **corruption,
        "seconds": time.monotonic() - began,
        "made_with": made_with(model),
    }
    if measured.points is not None:
        facts |= {"points": measured.points, "completeness_error": measured.completeness_error}
        facts |= {"dtype": measured.dtype, "expected_error": measured.expected_error}
    per_item = ItemEffects(measured.per_row, drawn, np.array(row_groups(train))[drawn])
    errors = clustered_error(per_item.values, per_item.groups)
    store.write_effects(
        EffectMap(run.method, run.task, seed, run.identity, measured.values, errors, facts, per_item)
    )


def _way(method: str, seed: int, corruption: dict[str, str]) -> Callable[..., HeadEffects]:
    """What measures the effects of all heads on some rows."""
    kind, _, way = method.partition("-")
    if kind == "ablate":
        assert way in STAND_INS
        return partial(ablate, instead=way, seed=seed)
    if kind == "attribute":
        return integrate if way == "integrated" else attribute
    return partial(mediate, seed=seed, prompts=corruption["prompts"], positions=corruption["positions"])
