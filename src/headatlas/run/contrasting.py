"""`contrast_heads`: which heads does one task need that another does not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headatlas.atlas import Atlas, chance_doubt, open_atlas
from headatlas.core import RequestError
from headatlas.method import Contrast, GateFit, random_starts, resolve
from headatlas.model import Model
from headatlas.run.fitter import Fitter, GateSetName, Progress, Silence
from headatlas.run.loading import load_for_run
from headatlas.run.prepare import describe, held_out_figures, measure_baseline, prepare
from headatlas.run.requests import opened, report_rows, require_sound
from headatlas.run.steps import seed_blocks
from headatlas.task import Task, load_task

__all__ = ["contrast_heads", "contrast_name", "contrasted"]

_STAGE = "contrast"


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
    model: Model | str | Path | PreTrainedModel,
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
    `baseline` and in the fits' `facts`, as `retain_nll`, `forget_accuracy` and so on. Seeds are fitted
    side by side in blocks of five, as in `map_heads`.
    """
    asked = {"seeds": seeds, "updates": updates, "batch": batch}
    settings = resolve(preset, seeds=seeds, updates=updates, batch=batch)
    settings = replace(settings, pressed=settings.free)
    given = {"preset": preset, **{key: value for key, value in asked.items() if value is not None}}
    tasks = contrasted(retain, forget)
    require_sound(list(tasks.values()), max_tokens, out, resume)
    loaded = load_for_run(model, dtype="fast")
    kept, settings = prepare(loaded, tasks["retain"], settings, max_tokens)
    lost, _ = prepare(loaded, tasks["forget"], settings, max_tokens)  # with the same batch
    # No view of a contrast shows items of groups that were fitted on, so they are not measured.
    parts = {side: replace(part, known=()) for side, part in (("retain", kept), ("forget", lost))}
    with opened(loaded, out, resume) as store:
        name = contrast_name(parts["retain"].name, parts["forget"].name)
        facts = {"parts": {side: {"task": part.name, **part.facts} for side, part in parts.items()}}
        (run,) = store.add(describe(loaded, "contrast", name, facts, settings, given))
        progress = progress or Silence()
        for part in parts.values():
            report_rows(progress, part)

        def measure_gated(_: str, gates: np.ndarray) -> dict[str, Any]:
            figures: dict[str, Any] = {}
            for side, part in parts.items():
                measured = held_out_figures(loaded, part, gates)
                figures |= {f"{side}_{name}": value for name, value in measured.items()}
                figures[f"{side}_rows"] = len(part.held_out)
            return figures

        if not run.baseline:
            baselines = {side: measure_baseline(loaded, part) for side, part in parts.items()}
            flat = {f"{side}_{key}": value for side, one in baselines.items() for key, value in one.items()}
            run = store.update(run, baseline=flat)
        for side in parts:
            if doubt := chance_doubt(run.baseline, side):
                progress.note(f"{name}: {doubt.text}")

        def make(sets: Sequence[GateSetName]) -> GateFit:
            starts = random_starts(loaded, settings, [seed for seed, _ in sets])
            rows = (parts["retain"].rows.train, parts["forget"].rows.train)
            return GateFit(loaded, Contrast(loaded, *rows, settings, sets), starts, name=name)

        fitter = Fitter(loaded, store, progress, checkpoint_seconds)
        for block in seed_blocks(range(settings.seeds)):
            fitter.note_split_block(run, block, [_STAGE])
            fitter.stage(run, _STAGE, [(seed, "retain") for seed in block], make, measure_gated)
        atlas = open_atlas(store.root)
    atlas.path = None if out is None else Path(out)
    return atlas
