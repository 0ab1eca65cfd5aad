"""`contrast_heads`: which heads does one task need that another does not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headatlas.atlas import Atlas, open_atlas
from headatlas.core import RequestError
from headatlas.method import ContrastFit, evaluate, random_starts, resolve
from headatlas.model import Model, load_model
from headatlas.run.fitting import Fitter, GateSetName, Progress, Silence
from headatlas.run.prepare import describe, prepare
from headatlas.run.requests import opened, report_rows, require_sound
from headatlas.task import Task, load_task

__all__ = ["contrast_heads", "contrast_name", "contrasted"]


def contrast_name(retain: str, forget: str) -> str:
    """What a contrast is called in an atlas."""
    return f"{retain} without {forget}"


def contrasted(retain: str | Task, forget: str | Task, trust_code: bool = False) -> dict[str, Task]:
    """The two tasks, by what is to become of them."""
    tasks = {
        "retain": load_task(retain, trust_code=trust_code),
        "forget": load_task(forget, trust_code=trust_code),
    }
    if tasks["retain"].name == tasks["forget"].name:
        raise RequestError(
            f"retain and forget are both {tasks['retain'].name!r}; a contrast needs two tasks."
        )
    return tasks


def contrast_heads(
    model: Model | str,
    retain: str | Task,
    forget: str | Task,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    preset: str = "quick",
    seeds: int | None = None,
    updates: int | None = None,
    batch: int | None = None,
    max_tokens: int | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 30.0,
) -> Atlas:
    """Fit gates that keep the task `retain` and destroy the task `forget`.

    Both are measured on held-out items, without the gates and with them; the figures are in the run's
    `baseline` and in the fits' `facts`, as `retain_nll`, `forget_accuracy` and so on.
    """
    asked = {"seeds": seeds, "updates": updates, "batch": batch}
    settings = resolve(preset, seeds=seeds, updates=updates, batch=batch)
    settings = replace(settings, pressed=settings.free)
    given = {"preset": preset, **{key: value for key, value in asked.items() if value is not None}}
    tasks = contrasted(retain, forget)
    require_sound(list(tasks.values()), max_tokens, out, resume)
    loaded = load_model(model, dtype="fast") if isinstance(model, str) else model
    kept, settings = prepare(loaded, tasks["retain"], settings, max_tokens)
    lost, _ = prepare(loaded, tasks["forget"], settings, max_tokens)  # with the same batch
    parts = {"retain": kept, "forget": lost}
    with opened(loaded, out, resume) as store:
        name = contrast_name(parts["retain"].name, parts["forget"].name)
        facts = {"parts": {side: {"task": part.name, **part.facts} for side, part in parts.items()}}
        (run,) = store.add(describe(loaded, "contrast", name, facts, settings, given))
        progress = progress or Silence()
        for part in parts.values():
            report_rows(progress, part)

        def both(gates: np.ndarray | None) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for side, part in parts.items():
                outcome = evaluate(loaded, part.held_out, gates)
                found |= {f"{side}_{name}": value for name, value in outcome.figures().items()}
                found[f"{side}_rows"] = len(part.held_out)
            return found

        if not run.baseline:
            run = store.update(run, baseline=both(None))

        def make(sets: Sequence[GateSetName]) -> ContrastFit:
            starts = random_starts(loaded, settings, [seed for seed, _ in sets])
            rows = (parts["retain"].rows.train, parts["forget"].rows.train)
            return ContrastFit(loaded, *rows, settings, sets, starts, name=name)

        fitter = Fitter(loaded, store, progress, checkpoint_seconds)
        wanted = [(seed, "retain") for seed in range(settings.seeds)]
        fitter.stage(run, "contrast", wanted, make, lambda _, gates: both(gates))
        atlas = open_atlas(store.root)
    atlas.path = None if out is None else Path(out)
    return atlas
