"""One stage of a run: what is missing is fitted, saved on the way, kept when finished.

A run can be killed at any moment. What is finished is never made again; what was in progress goes on from
its last checkpoint, the same gate sets side by side, so that it ends with the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headatlas.atlas import Fit, Run, Store
from headatlas.core import Note, Progress, Update, plural
from headatlas.method.engine.gate_fit import FitResult, GateFit, Step
from headatlas.model import Model
from headatlas.run.prepare import made_with

__all__ = ["Fitter", "GateSetName"]

#: what a stage is called while it runs
_TITLES = {"pressed": "retain + remove"}

#: (seed, fit)
GateSetName = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Fitter:
    """Fits gate sets into a store. A checkpoint is written every so many seconds."""

    model: Model
    store: Store
    progress: Progress
    checkpoint_seconds: float = 30.0

    def note_split_block(self, run: Run, block: Sequence[int], stages: Iterable[str]) -> None:
        """Tell the user if seeds of a block are fitted without those of it that earlier runs have fitted or
        begun. `stages` are all stages of a fit."""
        earlier = {seed for seed, _ in self.store.keys(Fit, run)}
        for stage in stages:
            work = self.store.read_work(run, stage)
            if work is not None:  # an interrupted stage goes on with the seeds that it began with
                earlier |= {int(seed) for seed, _ in work[1]["sets"]}
        present = [seed for seed in block if seed in earlier]
        added = [seed for seed in block if seed not in earlier]
        if present and added:
            self._note(
                f"{run.task}: adding {_seed_list(added)} to a block that has {_seed_list(present)} already; "
                "one run of the whole block would round differently, so some gates would differ"
            )

    def stage(
        self,
        run: Run,
        stage: str,
        wanted: Sequence[GateSetName],
        make: Callable[[Sequence[GateSetName]], GateFit],
        measure: Callable[[str, np.ndarray], dict[str, Any]],
    ) -> None:
        """See to it that the wanted gate sets are in the store.

        `make` makes the fit of some gate sets, `measure` says what is to be known about finished gates.
        """
        work = self.store.read_work(run, stage)
        if work is not None:
            sets = [(int(seed), str(fit)) for seed, fit in work[1]["sets"]]
            self._fit(run, make(sets), measure, work)
        finished = self.store.keys(Fit, run)
        missing = [one for one in wanted if one not in finished]
        if missing:
            self._fit(run, make(missing), measure, None)

    def _fit(
        self,
        run: Run,
        fit: GateFit,
        measure: Callable[[str, np.ndarray], dict[str, Any]],
        work: tuple[dict[str, np.ndarray], dict[str, Any]] | None,
    ) -> None:
        seconds, tokens = 0.0, 0
        if work is not None and work[0].keys() == fit.arrays().keys():
            fit.restore(*work)
            seconds, tokens = work[1]["seconds"], work[1]["tokens"]
        what = f"{_TITLES.get(fit.stage, fit.stage)}, {plural(len(fit.sets), 'fit')}"
        self.progress(Update(what, fit.update, fit.schedule.updates, run.task))
        began = saved = time.monotonic()

        def after(step: Step) -> None:
            nonlocal saved, tokens
            tokens += step.tokens
            self.progress(Update(what, step.update, step.updates, run.task, step.loss, step.tokens))
            # A finished stage is saved before its fits are written: killed between two of them, they
            # still all come from the same sets side by side.
            if fit.done or time.monotonic() - saved >= self.checkpoint_seconds:
                saved = time.monotonic()
                about = {**fit.facts(), "seconds": seconds + saved - began, "tokens": tokens}
                self.store.write_work(run, fit.stage, fit.arrays(), about)

        fit.run(after)
        cost = {
            "seconds": (seconds + time.monotonic() - began) / len(fit.sets),
            "tokens": tokens // len(fit.sets),
            "tokens_per_pass": fit.runner.budget,
            "compiled": bool(fit.runner.compiler),
            # Neighbors in a pass change how a seed's numbers are rounded, and the fit amplifies that.
            "seeds_together": sorted({seed for seed, _ in fit.sets}),
            "made_with": made_with(self.model),
        }
        if fit.runner.any_order:
            self._note(
                f"{run.task}: the model has an operation that adds up in no fixed order on this device; the "
                "last digits of its gates may differ from run to run"
            )
        finished = self.store.keys(Fit, run)  # some may be, if the run was killed between two of them
        results = [one for one in fit.results() if (one.seed, one.fit) not in finished]
        for number, result in enumerate(results):
            self.progress(Update("held-out items", number, len(results), run.task))
            self._keep(run, result, measure, cost)
        self.progress(Update("held-out items", len(results), len(results), run.task))
        self.store.drop_work(run, fit.stage)

    def _keep(
        self,
        run: Run,
        result: FitResult,
        measure: Callable[[str, np.ndarray], dict[str, Any]],
        cost: dict[str, Any],
    ) -> None:
        fit = Fit(
            run.method,
            run.task,
            result.seed,
            result.fit,
            run.identity,
            result.logits,
            result.path,
            result.path_updates,
            result.losses,
        )
        found = measure(fit.fit, np.nan_to_num(fit.gates, nan=1.0))
        self.store.write(replace(fit, facts={**cost, **found}))

    def _note(self, text: str) -> None:
        self.progress(Note(text))


def _seed_list(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
