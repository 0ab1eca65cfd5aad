"""`map_heads`: tasks -> atlas, by causal head gating."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from headatlas.atlas import Atlas, Run, Store, open_atlas
from headatlas.core import AtlasError, RequestError
from headatlas.method import STAGES, GateFit, RowTable, evaluate, random_starts, resolve
from headatlas.model import Model, load_model
from headatlas.run.fitting import Fitter, GateSetName, Progress, Silence
from headatlas.run.prepare import Prepared, describe, measure_baseline, prepare, worse_than_chance
from headatlas.task import Task, load_task

__all__ = ["distinct_tasks", "map_heads", "opened", "report_rows", "require_place", "require_sound"]


def map_heads(
    model: Model | str,
    tasks: str | Path | Task | Sequence[str | Path | Task],
    *,
    out: str | Path | None = None,
    resume: bool = False,
    preset: str = "quick",
    seeds: int | None = None,
    updates: int | None = None,
    batch: int | None = None,
    objective: str | None = None,
    max_tokens: int | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 30.0,
) -> Atlas:
    """Fit gates for each task and give the atlas.

    With `out` everything is kept in that folder, fit by fit; `resume` goes on with what is there (or adds
    tasks and seeds to it). A seed's result does not depend on which seeds are fitted beside it.
    """
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
            *(describe(loaded, "gating", task.name, task.facts, task.settings, given) for task in ready)
        )
        fitter = Fitter(loaded, store, progress or Silence(), checkpoint_seconds)
        for run, task in zip(runs, ready, strict=True):
            _map(fitter, run, task)
        atlas = open_atlas(store.root)
    atlas.path = None if out is None else Path(out)
    return atlas


def require_sound(
    tasks: Sequence[Task], max_tokens: int | None, out: str | Path | None, resume: bool
) -> None:
    """What can be said before a model is loaded. An atlas is gone on with only if that is asked for."""
    if max_tokens is not None and max_tokens < 2:
        raise RequestError(f"max_tokens is {max_tokens}; a prompt and a target need at least 2.")
    require_place(out, resume)
    for task in tasks:
        task.require_readable()


def require_place(out: str | Path | None, resume: bool) -> None:
    """Can an atlas be written there? One that is there is gone on with only if that is asked for."""
    if out is not None:
        _require_new(Path(out), resume)
        Store.require_writable(Path(out))


def _require_new(out: Path, resume: bool) -> None:
    if Store.exists(out) and not resume:
        raise AtlasError(
            f"{out} holds an atlas already; --resume (resume=True) goes on with it or adds to it."
        )


@contextmanager
def opened(model: Model, out: str | Path | None, resume: bool) -> Iterator[Store]:
    """The folder, locked; without `out` one that goes away again. Made only when the request is sound, and
    all that is in it is read once: damage is to be known now, not after hours."""
    with ExitStack() as stack:
        root = Path(out) if out is not None else Path(stack.enter_context(TemporaryDirectory()))
        new = not Store.exists(root)
        store = stack.enter_context(Store.writing(root, model.spec))
        if not new:
            _require_new(root, resume)
            open_atlas(root)
        yield store


def distinct_tasks(tasks: str | Path | Task | Sequence[str | Path | Task]) -> list[Task]:
    """The tasks, no two of one name."""
    chosen = [load_task(task) for task in ([tasks] if isinstance(tasks, str | Path | Task) else tasks)]
    names = [task.name for task in chosen]
    if not names:
        raise RequestError("no task is given.")
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"two tasks are named {name!r}; each needs a name of its own.")
    return chosen


def report_rows(progress: Progress, task: Prepared) -> None:
    """What was left out, and why."""
    seen, spec = task.facts["records"], task.facts["spec"]
    if spec["shortest"] is None and seen > spec["rows"]:
        progress.note(f"{task.name}: a fair sample of {spec['rows']:,} of its {seen:,} records")
    if long := task.rows.too_long:
        progress.note(f"{task.name}: {long:,} rows over {task.rows.max_tokens} tokens were left out")


def _map(fitter: Fitter, run: Run, task: Prepared) -> None:
    model, store, settings = fitter.model, fitter.store, task.settings
    report_rows(fitter.progress, task)
    if not run.baseline:
        run = store.update(run, baseline=measure_baseline(model, task.held_out))
    if warning := worse_than_chance(run):
        fitter.progress.note(warning)
    table = RowTable(task.rows.train)

    def starts(stage: str, sets: Sequence[GateSetName]) -> torch.Tensor:
        if stage == "free":
            return random_starts(model, settings, [seed for seed, _ in sets])
        return torch.from_numpy(np.stack([store.read_fit(run, seed, "free").logits for seed, _ in sets]))

    def measure(fit: str, gates: np.ndarray) -> dict[str, Any]:
        if fit == "free":
            return {}
        return evaluate(model, task.held_out, gates).figures()

    for stage, fits in STAGES.items():

        def make(sets: Sequence[GateSetName], stage: str = stage) -> GateFit:
            return GateFit(model, table, settings, stage, sets, starts(stage, sets), name=task.name)

        wanted = [(seed, fit) for seed in range(settings.seeds) for fit in fits]
        fitter.stage(run, stage, wanted, make, measure)
