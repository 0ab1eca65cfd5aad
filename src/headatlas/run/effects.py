"""Effects of single heads on tasks -> atlas: the methods that stand beside gating."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
    ablate,
    attribute,
    choose_corruption,
    draw,
    integrate,
    mediate,
)
from headatlas.model import Model
from headatlas.run.fitting import Progress, Silence
from headatlas.run.loading import load_for_run
from headatlas.run.prepare import Prepared, identified, made_with, read_rows, row_groups
from headatlas.run.requests import opened, report_rows
from headatlas.run.steps import Only, Plan, Unit, is_asked
from headatlas.task import Task

__all__ = ["ITEMS", "add_effects", "effect_step", "measure_effects", "plan_effects", "require_numbers"]

#: raised when the same settings would give other numbers than before
_ALGORITHM = 2
ITEMS = 32
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
    ready = [read_rows(loaded, task, max_tokens, 0) for task in tasks]
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
    """See to it that the effects of these tasks are in the store."""
    runs = store.add(*(_describe(model, method, task, seeds, items) for task in tasks))
    for run, task in zip(runs, tasks, strict=True):
        for seed in range(seeds):
            if is_asked(effect_step(method, task.name, seed), only) and seed not in store.measured(run):
                _measure(model, store, run, task, seed, items, progress)


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
    settings = {"given": {"seeds": seeds, "items": items}, "resolved": {"seeds": seeds, **decides}}
    return identified(model, method, task.name, task.facts, settings, decides, _ALGORITHM)


def _corruption(task: Prepared) -> dict[str, str]:
    """How mediation corrupts a task: decided by all rows that may be drawn, so that no draw changes it."""
    chosen = choose_corruption(task.rows.train)
    return {"prompts": chosen.prompts, "positions": chosen.positions}


def _measure(
    model: Model, store: Store, run: Run, task: Prepared, seed: int, items: int, progress: Progress
) -> None:
    train = task.rows.train
    drawn = np.array(draw(len(train), min(items, len(train)), 0, seed, 11))
    rows = [train[row] for row in drawn]
    what = f"{task.name}: {run.method}" + (f", seed {seed}" if seed else "")
    corruption = _corruption(task) if run.method == "mediate" else {}
    if reason := choose_corruption(train).because if corruption else "":
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
