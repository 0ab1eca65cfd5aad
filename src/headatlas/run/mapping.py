"""`map_heads`: tasks -> atlas, by causal head gating or by one of the methods that stand beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headatlas.atlas import Atlas, Run, fit_path, open_atlas
from headatlas.core import RequestError, method_named
from headatlas.method import STAGES, GateFit, GatingSettings, RowTable, evaluate, random_starts, resolve
from headatlas.model import Model, load_model
from headatlas.run.effects import ITEMS, measure_effects
from headatlas.run.fitting import Fitter, GateSetName, Progress, Silence
from headatlas.run.prepare import Prepared, describe, measure_baseline, prepare, worse_than_chance
from headatlas.run.requests import distinct_tasks, opened, report_rows, require_sound
from headatlas.run.steps import Only, Plan, Unit, is_asked, seed_blocks
from headatlas.task import Row, Task

__all__ = ["fit_gates", "map_heads", "map_steps", "plan_map", "require_settings"]


def map_heads(
    model: Model | str,
    tasks: str | Path | Task | Sequence[str | Path | Task],
    *,
    method: str = "gating",
    out: str | Path | None = None,
    resume: bool = False,
    preset: str = "quick",
    seeds: int | None = None,
    updates: int | None = None,
    batch: int | None = None,
    objective: str | None = None,
    items: int | None = None,
    max_tokens: int | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 30.0,
) -> Atlas:
    """Fit gates for each task and give the atlas.

    With `out` everything is kept in that folder, fit by fit; `resume` goes on with what is there (or adds
    tasks and seeds to it). A seed's result does not depend on which seeds are fitted beside it.

    `method` takes another one of `METHODS` instead: the effect of every head on the loss of `items` items
    (32 by default), which each seed draws anew (one seed by default).
    """
    method = method_named(method)
    require_settings(method, preset, items, updates=updates, batch=batch, objective=objective)
    if method != "gating":
        return measure_effects(
            model,
            tasks,
            method,
            out=out,
            resume=resume,
            seeds=1 if seeds is None else seeds,
            items=ITEMS if items is None else items,
            max_tokens=max_tokens,
            progress=progress,
        )
    return map_steps(
        model,
        tasks,
        out=out,
        resume=resume,
        preset=preset,
        seeds=seeds,
        max_tokens=max_tokens,
        updates=updates,
        batch=batch,
        objective=objective,
        progress=progress,
        checkpoint_seconds=checkpoint_seconds,
    )


def map_steps(
    model: Model | str,
    tasks: str | Path | Task | Sequence[str | Path | Task],
    *,
    out: str | Path | None,
    resume: bool,
    preset: str,
    seeds: int | None,
    updates: int | None,
    batch: int | None,
    objective: str | None,
    max_tokens: int | None,
    progress: Progress | None,
    checkpoint_seconds: float = 30.0,
    only: Only = None,
) -> Atlas:
    """Gating; see `map_heads`."""
    asked = {
        "seeds": seeds,
        "updates": updates,
        "batch": batch,
        "objective": objective,
        "max_tokens": max_tokens,
    }
    settings = resolve(preset, seeds=seeds, updates=updates, batch=batch, objective=objective)
    given = {"preset": preset, **{key: value for key, value in asked.items() if value is not None}}
    chosen = distinct_tasks(tasks)
    require_sound(chosen, max_tokens, out, resume)
    loaded = load_model(model, dtype="fast") if isinstance(model, str) else model
    ready = [prepare(loaded, task, settings, max_tokens) for task in chosen]
    with opened(loaded, out, resume) as store:
        runs = store.add(
            *(describe(loaded, "gating", task.name, task.facts, fitted, given) for task, fitted in ready)
        )
        fitter = Fitter(loaded, store, progress or Silence(), checkpoint_seconds)
        for run, (task, fitted) in zip(runs, ready, strict=True):
            _map(fitter, run, task, fitted, only)
        atlas = open_atlas(store.root)
    atlas.path = None if out is None else Path(out)
    return atlas


def require_settings(method: str, preset: str, items: int | None, **gating: Any) -> None:
    """Nothing is asked for that the method does not have."""
    if method == "gating":
        if items is not None:
            raise RequestError("gating sees other items at every update; 'items' is for the other methods.")
        return
    given = [name for name, value in gating.items() if value is not None]
    given += ["preset"] if preset != "quick" else []
    if given:
        raise RequestError(f"{given[0]!r} is a setting of gating; {method} has 'seeds' and 'items'.")


def plan_map(tasks: Sequence[str], seeds: int) -> Plan:
    """Blocks of seeds, task by task."""
    units = [
        Unit(
            f"{task}, seeds {block[0]} to {block[-1]}" if len(block) > 1 else f"{task}, seed {block[0]}",
            (_step("gating", task, block),),
            tuple(
                fit_path(Path(), "gating", task, seed, fit)
                for seed in block
                for fits in STAGES.values()
                for fit in fits
            ),
        )
        for task in tasks
        for block in seed_blocks(range(seeds))
    ]
    return Plan([units])


def _step(method: str, task: str, block: Sequence[int]) -> str:
    return f"{method} {task} from seed {block[0]}"


def _map(fitter: Fitter, run: Run, task: Prepared, settings: GatingSettings, only: Only) -> None:
    model, store = fitter.model, fitter.store
    report_rows(fitter.progress, task)
    if not run.baseline:
        run = store.update(run, baseline=measure_baseline(model, task.held_out))
    if warning := worse_than_chance(run):
        fitter.progress.note(warning)
    fit_gates(fitter, run, task.rows.train, task.held_out, settings, range(settings.seeds), only)


def fit_gates(
    fitter: Fitter,
    run: Run,
    rows: Sequence[Row],
    held_out: Sequence[Row] | None,
    settings: GatingSettings,
    seeds: Sequence[int],
    only: Only = None,
) -> None:
    """All fits of these seeds on these rows; finished gates are measured on the rows held out, if given."""
    model, store, table = fitter.model, fitter.store, RowTable(rows)

    def starts(stage: str, sets: Sequence[GateSetName]) -> torch.Tensor:
        if stage == "free":
            return random_starts(model, settings, [seed for seed, _ in sets])
        return torch.from_numpy(np.stack([store.read_fit(run, seed, "free").logits for seed, _ in sets]))

    def measure(fit: str, gates: np.ndarray) -> dict[str, Any]:
        if fit == "free" or held_out is None:
            return {}
        return evaluate(model, held_out, gates).figures()

    def make(stage: str, sets: Sequence[GateSetName]) -> GateFit:
        return GateFit(model, table, settings, stage, sets, starts(stage, sets), name=run.task)

    for block in seed_blocks(seeds):
        if is_asked(_step(run.method, run.task, block), only):
            for stage, fits in STAGES.items():
                wanted = [(seed, fit) for seed in block for fit in fits]
                fitter.stage(run, stage, wanted, partial(make, stage), measure)
