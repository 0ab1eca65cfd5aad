"""Carries out a `ContrastRequest`: gates that keep one task and destroy another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headatlas.atlas import Store, chance_doubt
from headatlas.core import Note, Progress
from headatlas.method.engine.gate_fit import GateFit, random_starts
from headatlas.method.engine.objective import Contrast
from headatlas.method.method import METHODS
from headatlas.model import Model
from headatlas.request.map_request import CONTRAST_STAGES, ContrastRequest
from headatlas.request.plan import Step
from headatlas.run.fitter import Fitter, GateSetName
from headatlas.run.prepare import (
    dtype_notes,
    enter_run,
    held_out_figures,
    measure_baseline,
    prepare,
    row_notes,
)

__all__ = ["ContrastJob"]


class ContrastJob:
    """Reads and tokenizes both tasks when it is made."""

    def __init__(self, request: ContrastRequest, model: Model, progress: Progress) -> None:
        self.request, self.model, self.progress = request, model, progress
        kept, self.settings = prepare(model, request.retain, request.options, request.max_tokens)
        # with the same batch, or a smaller one if the task to forget has fewer rows
        if request.options.batch is None and request.forget.in_memory:
            forgotten, smaller = prepare(model, request.forget, request.options, request.max_tokens)
            if len(forgotten.rows.train) < (self.settings.batch or 0):
                self.settings = replace(self.settings, batch=smaller.batch)
        else:
            forgotten, _ = prepare(model, request.forget, self.settings, request.max_tokens)
        # No view of a contrast shows items of groups that were fitted on, so they are not measured.
        self.sides = {"retain": replace(kept, known=()), "forget": replace(forgotten, known=())}

    def enter(self, store: Store) -> None:
        request, resolved = self.request, self.settings.to_json()
        given = {"preset": "quick", **request.given}
        run = enter_run(
            self.model,
            "contrast",
            request.name,
            {"parts": {side: {"task": task.name, **task.facts} for side, task in self.sides.items()}},
            {"given": given, "resolved": resolved},
            {name: value for name, value in resolved.items() if name != "seeds"},
            version=METHODS["gating"].version,
            request=request.to_json(),
        )
        for entered in store.add(run):
            for note in dtype_notes(store, entered):
                self.progress(note)
        for task in self.sides.values():
            for note in row_notes(task):
                self.progress(note)

    def run(self, store: Store, steps: Sequence[Step]) -> None:
        run = store.runs["contrast", self.request.name]
        if not run.baseline:
            baselines = {side: measure_baseline(self.model, task) for side, task in self.sides.items()}
            flat = {
                f"{side}_{name}": value
                for side, figures in baselines.items()
                for name, value in figures.items()
            }
            run = store.update(run, baseline=flat)
        for side in self.sides:
            if doubt := chance_doubt(run.baseline, side):
                self.progress(Note(f"{run.task}: {doubt.text}", "early"))
        fitter = Fitter(self.model, store, self.progress, self.request.checkpoint_seconds)
        (stage,) = CONTRAST_STAGES
        for step in steps:
            fitter.note_split_block(run, step.seeds, CONTRAST_STAGES)
            fitter.stage(run, stage, [(seed, "retain") for seed in step.seeds], self._fit, self._measure)

    def _fit(self, sets: Sequence[GateSetName]) -> Any:
        starts = random_starts(self.model, self.settings, [seed for seed, _ in sets])
        retain, forget = (task.rows.train for task in self.sides.values())
        objective = Contrast(self.model, retain, forget, self.settings, sets)
        return GateFit(self.model, objective, starts, name=self.request.name)

    def _measure(self, _: str, gates: np.ndarray) -> dict[str, Any]:
        figures: dict[str, Any] = {}
        for side, task in self.sides.items():
            measured = held_out_figures(self.model, task, gates)
            figures |= {f"{side}_{name}": value for name, value in measured.items()}
            figures[f"{side}_rows"] = len(task.held_out)
        return figures
