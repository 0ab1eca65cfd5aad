"""`map_heads`: tasks -> atlas, by causal head gating or by one of the methods that stand beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from headatlas.atlas import Atlas, Run, chance_doubt, fit_path, open_atlas
from headatlas.core import RequestError, method_named
from headatlas.method import STAGES, GateFit, GatingSettings, Pressure, RowTable, random_starts, resolve
from headatlas.model import Model
from headatlas.run.effects import ITEMS, measure_effects, plan_effects, require_numbers
from headatlas.run.executing import Executor, executed
from headatlas.run.fitter import Fitter, GateSetName, Progress, Silence
from headatlas.run.loading import load_for_run
from headatlas.run.prepare import Prepared, describe, held_out_figures, measure_baseline, prepare
from headatlas.run.requests import distinct_tasks, opened, report_rows, require_sound
from headatlas.run.steps import Only, Plan, Unit, is_asked, seed_blocks
from headatlas.task import Row, Task

__all__ = ["fit_gates", "map_heads", "map_steps", "plan_map", "require_settings"]

#: how a model is loaded that is given by name
_LOAD = {"dtype": "fast"}


def map_heads(
    model: Model | str | Path | PreTrainedModel,
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
    executor: Executor | None = None,
) -> Atlas:
    """Fit gates for each task and give the atlas.

    With `out` everything is kept in that folder, fit by fit; `resume` goes on with what is there (or adds
    tasks and seeds to it). A run that was killed and resumed gives the numbers of an uninterrupted run.

    Seeds are fitted together in blocks of five (0 to 4, 5 to 9, …). The seeds of a block change how each
    other's numbers are rounded, and a fit amplifies rounding: three seeds, and two more added later, are not
    bit for bit the five seeds of one run. Every fit records the seeds that it was fitted with
    (`seeds_together`).

    `method` takes another one of `METHODS` instead: the effect of every head on the loss of `items` items
    (32 by default), which each seed draws anew (one seed by default).

    `executor` (a `Ray`) has the work done elsewhere; the model is then given by its name.
    """
    method = method_named(method)
    require_settings(method, preset, items, updates=updates, batch=batch, objective=objective)
    asked: dict[str, Any] = {"tasks": distinct_tasks(tasks), "max_tokens": max_tokens}
    require_sound(asked["tasks"], max_tokens, out, resume)
    names = [task.name for task in asked["tasks"]]
    if method != "gating":
        asked |= {"method": method, "seeds": 1 if seeds is None else seeds}
        asked |= {"items": ITEMS if items is None else items}
        require_numbers(asked["seeds"], asked["items"])
        if executor is None:
            return measure_effects(model, out=out, resume=resume, progress=progress, **asked)
        plan = plan_effects(method, names, asked["seeds"])
        return executed(executor, "effects", model, _LOAD, asked, plan, out, progress)
    asked |= {"preset": preset, "seeds": seeds, "updates": updates, "batch": batch, "objective": objective}
    settings = resolve(preset, seeds=seeds, updates=updates, batch=batch, objective=objective)
    asked["checkpoint_seconds"] = checkpoint_seconds
    if executor is not None:
        return executed(executor, "map", model, _LOAD, asked, plan_map(names, settings.seeds), out, progress)
    return map_steps(model, out=out, resume=resume, progress=progress, **asked)


def map_steps(
    model: Model | str | Path | PreTrainedModel,
    tasks: Sequence[Task],
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
    loaded = load_for_run(model, **_LOAD)
    ready = [prepare(loaded, task, settings, max_tokens) for task in tasks]
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
            (task,),
            (fit_path(Path(), "gating", task, 0, "free").parent,),
        )
        for task in tasks
        for block in seed_blocks(range(seeds))
    ]
    return Plan([units], [("gating", task) for task in tasks])


def _step(method: str, task: str, block: Sequence[int]) -> str:
    return f"{method} {task} from seed {block[0]}"


def _map(fitter: Fitter, run: Run, task: Prepared, settings: GatingSettings, only: Only) -> None:
    model, store = fitter.model, fitter.store
    report_rows(fitter.progress, task)
    if not run.baseline:
        run = store.update(run, baseline=measure_baseline(model, task))
    if doubt := chance_doubt(run.baseline):
        fitter.progress.note(f"{run.task}: {doubt.text}")
    fit_gates(fitter, run, task.rows.train, task, settings, range(settings.seeds), only)


def fit_gates(
    fitter: Fitter,
    run: Run,
    rows: Sequence[Row],
    held_out: Prepared | None,
    settings: GatingSettings,
    seeds: Sequence[int],
    only: Only = None,
) -> None:
    """All fits of these seeds on these rows; finished gates are measured on held-out rows of `held_out`."""
    model, store, table = fitter.model, fitter.store, RowTable(rows)

    def starts(stage: str, sets: Sequence[GateSetName]) -> torch.Tensor:
        if stage == "free":
            return random_starts(model, settings, [seed for seed, _ in sets])
        return torch.from_numpy(np.stack([store.read_fit(run, seed, "free").logits for seed, _ in sets]))

    def measure(fit: str, gates: np.ndarray) -> dict[str, Any]:
        if fit == "free" or held_out is None:
            return {}
        return held_out_figures(model, held_out, gates)

    def make(stage: str, sets: Sequence[GateSetName]) -> GateFit:
        objective = Pressure(model, table, settings, stage, sets)
        return GateFit(model, objective, starts(stage, sets), name=run.task)

    for block in seed_blocks(seeds):
        if is_asked(_step(run.method, run.task, block), only):
            fitter.note_split_block(run, block, STAGES)
            for stage, fits in STAGES.items():
                wanted = [(seed, fit) for seed in block for fit in fits]
                fitter.stage(run, stage, wanted, partial(make, stage), measure)
