"""Effects of single heads on tasks -> atlas: the methods that stand beside gating."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headatlas.atlas import Atlas, EffectMap, Run, Store, effect_path, open_atlas
from headatlas.core import RequestError
from headatlas.method import STAND_INS, STEPS_ALONG, HeadEffects, ablate, attribute, draw, mediate
from headatlas.model import Model, load_model
from headatlas.run.fitting import Progress, Silence
from headatlas.run.prepare import Prepared, identified, made_with, read_rows
from headatlas.run.requests import opened, report_rows
from headatlas.run.steps import Only, Plan, Unit, is_asked
from headatlas.task import Task

__all__ = ["ITEMS", "add_effects", "effect_step", "measure_effects", "plan_effects", "require_numbers"]

#: raised when the same settings would give other numbers than before
_ALGORITHM = 1
ITEMS = 32
_MOST = {"seeds": 1000, "items": 100_000}


def measure_effects(
    model: Model | str,
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
    loaded = load_model(model, dtype="fast") if isinstance(model, str) else model
    ready = [read_rows(loaded, task, max_tokens, 0) for task in tasks]
    progress = progress or Silence()
    with opened(loaded, out, resume) as store:
        for task in ready:
            report_rows(progress, task)
        add_effects(loaded, store, ready, method, seeds, items, progress, only)
        atlas = open_atlas(store.root)
    atlas.path = None if out is None else Path(out)
    return atlas


def require_numbers(seeds: int, items: int) -> None:
    for name, value in (("seeds", seeds), ("items", items)):
        if not 1 <= value <= _MOST[name]:
            raise RequestError(f"{name} is {value}; allowed are 1 to {_MOST[name]:,}.")


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
    if method == "attribute-integrated":
        decides["steps"] = STEPS_ALONG
    settings = {"given": {"seeds": seeds, "items": items}, "resolved": {"seeds": seeds, **decides}}
    return identified(model, method, task.name, task.facts, settings, decides, _ALGORITHM)


def _measure(
    model: Model, store: Store, run: Run, task: Prepared, seed: int, items: int, progress: Progress
) -> None:
    train = task.rows.train
    rows = [train[place] for place in draw(len(train), min(items, len(train)), 0, seed, 11)]
    what = f"{task.name}: {run.method}" + (f", seed {seed}" if seed else "")
    if run.method == "mediate" and not all(row.corrupted for row in rows):
        progress.note(f"{task.name}: no corrupted prompts are given; each item gets the prompt of another")
    began = time.monotonic()
    found = _way(run.method, seed)(model, rows, progress=partial(progress.heads, what))
    facts = {
        "items": found.rows,
        "nll": found.plain,
        "whole": found.whole,
        "sum": float(np.nansum(found.values)),
        "seconds": time.monotonic() - began,
        "made_with": made_with(model),
    }
    store.write_effects(
        EffectMap(run.method, run.task, seed, run.identity, found.values, found.errors, facts)
    )


def _way(method: str, seed: int) -> Callable[..., HeadEffects]:
    """What measures the effects of all heads on some rows."""
    kind, _, way = method.partition("-")
    if kind == "ablate":
        assert way in STAND_INS
        return partial(ablate, instead=way, seed=seed)
    if kind == "attribute":
        return partial(attribute, steps=STEPS_ALONG if way == "integrated" else None)
    return partial(mediate, seed=seed)
