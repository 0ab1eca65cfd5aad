"""Carries out a `ValidateRequest`: heads kept, taken away and switched off, on items that no fit has seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headatlas.atlas import Run, Store, open_atlas
from headatlas.core import NLL, AtlasError, Metric, Note, Progress
from headatlas.method.gating import GatingSettings
from headatlas.method.method import METHODS
from headatlas.model import Model
from headatlas.request.plan import Step, seed_blocks
from headatlas.request.validate_request import (
    MOST_RETESTS,
    ValidateRequest,
    compared_methods,
    curve_metric,
    dropped_methods,
    gate_metric,
    require_dtype,
)
from headatlas.run.fitter import Fitter
from headatlas.run.map_job import effects_run, fit_block, measure_effects
from headatlas.run.prepare import Prepared, enter_run, read_rows, require_same, row_groups
from headatlas.run.validation_curves import measure_curves
from headatlas.task import Row

__all__ = ["ValidateJob", "split_halves"]

#: raised when the same request would give other numbers than before
_RETEST_VERSION = 2


class ValidateJob:
    """Enters nothing at first: each step adds the runs that it makes."""

    def __init__(self, request: ValidateRequest, model: Model, progress: Progress) -> None:
        self.request, self.model, self.progress = request, model, progress
        self.tasks: dict[str, Prepared] = {}
        self.metrics: dict[str, Metric] = {}

    def enter(self, store: Store) -> None:
        """Check that tasks and model are those that were mapped."""
        atlas = open_atlas(store.root)
        names = [task.name for task in self.request.tasks]
        require_dtype(atlas, names, self.request.methods, self.model.spec.dtype, self.request.metric)
        if self.request.left_out:
            listed = ", ".join(self.request.left_out)
            self.progress(Note(f"left out: {listed}; give their files with tasks=…"))
        for task in self.request.tasks:
            dropped = dropped_methods(atlas, task.name, self.request.methods, self.request.metric)
            for method, reason in dropped.items():
                self.progress(Note(f"{task.name}: {method} is no longer compared: {reason}"))
            run = atlas.run(task.name)
            run.require_weights(self.model.spec.dtype, self.model.weights_identity)
            metric = curve_metric(atlas, task.name, self.request.metric)
            self.metrics[task.name] = metric
            limit = run.task_facts.get("max_tokens")
            ready = read_rows(self.model, task, limit, self.request.items, metric)
            require_same(run, ready)
            if len(ready.held_out) < self.request.items:
                count = len(ready.held_out)
                self.progress(Note(f"{task.name}: has {count} held-out items, not {self.request.items}"))
            self.tasks[task.name] = ready

    def run(self, store: Store, steps: Sequence[Step]) -> None:
        curves: dict[str, list[str]] = {}
        for step in steps:
            (name,) = step.subjects
            kind, _, part = step.part.partition(" ")
            if kind == "effects":
                self._measure_effects(store, name, part)
            elif kind == "half":
                self._retest(store, name, part)
            else:
                curves.setdefault(name, []).append(part)
        for name, parts in curves.items():
            atlas = open_atlas(store.root)
            methods = compared_methods(atlas, name, self.request.methods, self.request.metric)
            measure_curves(
                self.model, store, atlas, self.tasks[name], methods, self.request.only([name]),
                self.progress, parts, self.metrics[name],
            )  # fmt: skip

    def _measure_effects(self, store: Store, name: str, method: str) -> None:
        task, chosen = self.tasks[name], METHODS[method].options
        metric = self.metrics[name]
        given = {"metric": metric} if metric != NLL and "metric" in chosen.names() else {}
        options = chosen.of(seeds=1, items=self.request.effect_items, **given)
        request = self.request.only([name]).to_json()
        (run,) = store.add(effects_run(self.model, METHODS[method], task, options, request))
        measure_effects(self.model, store, run, task, options, 0, self.progress)

    def _retest(self, store: Store, name: str, letter: str) -> None:
        """Fits on one of two halves of the items, which have no group in common, with seeds of its own."""
        run, task, seeds = store.runs["gating", name], self.tasks[name], self.request.retest
        settings = _gating_settings(run, self.request.metric)
        halves = split_halves(task.rows.train)
        assert settings.batch is not None
        if min(map(len, halves)) < settings.batch:
            if letter == "a":
                self.progress(
                    Note(f"{name}: too few items or groups for two halves; not tested again on other items")
                )
            return
        decides = {key: value for key, value in settings.to_json().items() if key != "seeds"}
        again = enter_run(
            self.model,
            f"retest-{letter}",
            name,
            {**task.facts, "half": letter},
            {"given": {"seeds": seeds}, "resolved": {"seeds": seeds, "half": letter}},
            {**decides, "half": letter},
            version=_RETEST_VERSION,
            request=self.request.only([name]).to_json(),
        )
        (again,) = store.add(again)
        fitter = Fitter(self.model, store, self.progress)
        first = "ab".index(letter) * MOST_RETESTS
        for block in seed_blocks(range(first, first + seeds)):
            fit_block(fitter, METHODS["gating"], again, halves["ab".index(letter)], None, settings, block)


def _gating_settings(run: Run, metric: Metric | None) -> GatingSettings:
    """The settings that a task was gated with; if its metric is a function, that is `metric`."""
    try:
        return GatingSettings.from_json({**run.settings["resolved"], **_metric_of(run, metric)})
    except (KeyError, TypeError, ValueError) as error:
        raise AtlasError(
            f"{run.task!r} cannot be fitted again, because its settings are not in the atlas or damaged "
            f"({type(error).__name__} {error}); validate it without (retest=0)."
        ) from None


def _metric_of(run: Run, metric: Metric | None) -> dict[str, Metric]:
    chosen = gate_metric(run, metric)
    return {} if chosen == NLL else {"metric": chosen}


def split_halves(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Two halves of about as many rows. All rows of a group (`row_groups`) are in one of them."""
    groups = np.array(row_groups(rows))
    rng = np.random.default_rng(5)
    is_first = np.zeros(len(rows), dtype=bool)
    sizes = [0, 0]
    for group in rng.permutation(np.unique(groups)):
        smaller = int(sizes[1] < sizes[0])
        is_first[groups == group] = smaller == 0
        sizes[smaller] += int((groups == group).sum())
    order = rng.permutation(len(rows))
    first, second = ([rows[row] for row in order if is_first[row] == side] for side in (True, False))
    return first, second
