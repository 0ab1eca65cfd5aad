"""Carries out a `MapRequest`: gates fitted, or effects of single heads measured, task by task."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from headatlas.atlas import (
    HALF_PRECISION,
    EffectMap,
    Fit,
    ItemEffects,
    Run,
    Store,
    chance_doubt,
    clustered_error,
    describe_corruption,
)
from headatlas.core import (
    NLL,
    ExtensionError,
    HeadatlasError,
    Metric,
    Note,
    Progress,
    Update,
    first_line,
    metric_words,
    plural,
)
from headatlas.method.engine.head_effects import HeadEffects, checked_effects
from headatlas.method.engine.rows import RowTable, Stream, draw
from headatlas.method.method import METHODS, Method
from headatlas.model import Model
from headatlas.request.map_request import MapRequest, plain_options
from headatlas.request.plan import Step
from headatlas.run.fitter import Fitter, GateSetName
from headatlas.run.prepare import (
    Prepared,
    dtype_notes,
    enter_run,
    held_out_figures,
    made_with,
    measure_baseline,
    prepare,
    read_rows,
    row_groups,
    row_notes,
)
from headatlas.task import Row

__all__ = ["MapJob", "effects_run", "fit_block", "measure_effects", "metric_of"]

#: held-out rows of the baseline of a task whose gates are not fitted
_HELD_OUT = 64


class MapJob:
    """Reads and tokenizes all tasks when it is made."""

    def __init__(self, request: MapRequest, model: Model, progress: Progress) -> None:
        self.request, self.model, self.progress = request, model, progress
        self.method = METHODS[request.method]
        self.tasks: dict[str, Prepared] = {}
        self.options: dict[str, Any] = {}
        self._at_chance: set[str] = set()
        for task in request.tasks:
            ready, options = self._prepare(task)
            self.tasks[task.name], self.options[task.name] = ready, options

    def _prepare(self, task: Any) -> tuple[Prepared, Any]:
        request = self.request
        if self.method.stages:
            return prepare(self.model, task, request.options, request.max_tokens)
        metric = metric_of(request.options)
        ready, options = read_rows(self.model, task, request.max_tokens, _HELD_OUT, metric), request.options
        if task.in_memory and "items" not in request.given:  # effects use every item
            options = replace(options, items=len(_distinct_indices(ready)))
        return ready, options

    def enter(self, store: Store) -> None:
        runs = [self._run_of(name) for name in self.tasks]
        for run in store.add(*runs):
            for note in (*row_notes(self.tasks[run.task]), *dtype_notes(store, run)):
                self.progress(note)
            if store.keys(EffectMap, run):  # earlier versions measured no baseline of effects
                metric = metric_of(self.options[run.task])
                _measure_effects_baseline(self.model, store, run, self.tasks[run.task], metric)

    def _run_of(self, name: str) -> Run:
        request = self.request.only([name]).to_json()
        if not self.method.stages:
            run = effects_run(self.model, self.method, self.tasks[name], self.options[name], request)
            return replace(run, settings={**run.settings, "given": _given(run, self.request)})
        resolved = self.options[name].to_json()
        decides = {key: value for key, value in resolved.items() if key != "seeds"}
        given = plain_options(self.request.given)
        if "preset" in self.method.options.names():
            given = {"preset": "quick", **given}
        if self.request.max_tokens is not None:
            given["max_tokens"] = self.request.max_tokens
        return enter_run(
            self.model,
            self.method.name,
            name,
            self.tasks[name].facts,
            {"given": given, "resolved": resolved},
            {**decides, **self.method.constants},
            version=self.method.version,
            request=request,
            about={**self.method.about, **_metric_label(metric_of(self.options[name]))},
        )

    def run(self, store: Store, steps: Sequence[Step]) -> None:
        for step in steps:
            (name,) = step.subjects
            run, task = store.runs[self.method.name, name], self.tasks[name]
            if self.method.stages:
                self._fit(store, run, task, step.seeds)
            else:
                measure_effects(
                    self.model, store, run, task, self.options[name], step.seeds[0], self.progress
                )

    def _fit(self, store: Store, run: Run, task: Prepared, seeds: Sequence[int]) -> None:
        if not run.baseline:
            metric = metric_of(self.options[task.name])
            run = store.update(run, baseline=measure_baseline(self.model, task, metric))
        if run.task not in self._at_chance and (doubt := chance_doubt(run.baseline)):
            self._at_chance.add(run.task)  # said once
            self.progress(Note(f"{run.task}: {doubt.text}", "early"))
        fitter = Fitter(self.model, store, self.progress, self.request.checkpoint_seconds)
        fit_block(fitter, self.method, run, task.rows.train, task, self.options[task.name], seeds)


def _given(run: Run, request: MapRequest) -> dict[str, Any]:
    """The options of a run that measures effects as it stores them; the number of items of a task in memory
    only if it was given, because another task has another."""
    given = dict(run.settings["given"])
    if run.task_facts["spec"]["kind"] == "items" and "items" not in request.given:
        given.pop("items", None)
    return given


def fit_block(
    fitter: Fitter,
    method: Method,
    run: Run,
    rows: Sequence[Row],
    held_out: Prepared | None,
    options: Any,
    seeds: Sequence[int],
) -> None:
    """All fits of these seeds on these rows, side by side; finished gates are measured on held-out rows of
    `held_out`."""
    model, store, table = fitter.model, fitter.store, RowTable(rows)
    assert method.fit is not None
    fit, first = method.fit, next(iter(method.stages))

    def finished(seed: int, name: str) -> np.ndarray:
        result = store.read(Fit, run, seed=seed, fit=name)
        assert result is not None  # the stage before this one wrote it
        return result.logits

    def measure(name: str, gates: np.ndarray) -> dict[str, Any]:
        if held_out is None or (name in method.stages[first] and len(method.stages) > 1):
            return {}
        return held_out_figures(model, held_out, gates, metric=metric_of(options))

    def make(stage: str, sets: Sequence[GateSetName]) -> Any:
        return fit(model, table, options, stage, sets, finished, run.task)

    fitter.note_split_block(run, seeds, method.stages)
    for stage, names in method.stages.items():
        wanted = [(seed, name) for seed in seeds for name in names]
        fitter.stage(run, stage, wanted, partial(make, stage), measure)


def effects_run(
    model: Model, method: Method, task: Prepared, options: Any, request: Mapping[str, Any] | None = None
) -> Run:
    """The entry of a run that measures effects of single heads."""
    given = options.to_json()
    decides = {name: value for name, value in given.items() if name != "seeds"}
    if method.decide is not None:
        decides |= method.decide(_distinct_rows(task))
    decides |= method.constants
    if task.facts["train_items"] < len(task.rows.train):
        decides["copies"] = "drawn once"  # earlier versions drew them as items of their own
    settings = {"given": given, "resolved": {"seeds": options.seeds, **decides}}
    return enter_run(
        model,
        method.name,
        task.name,
        task.facts,
        settings,
        decides,
        version=method.version,
        request=request,
        about={**method.about, **_metric_about(metric_of(options))},
    )


def metric_of(options: Any) -> Metric:
    """The metric of a method's options; that of methods without the option is the default."""
    metric: Metric = getattr(options, "metric", NLL)
    return metric


def _metric_about(metric: Metric) -> dict[str, str]:
    """What an atlas keeps of a metric to show its effects; nothing of the default."""
    if metric == NLL:
        return {}
    return {"unit": metric_words(metric).unit, **_metric_label(metric)}


def _metric_label(metric: Metric) -> dict[str, str]:
    return {} if metric == NLL else {"metric": metric_words(metric).label}


def measure_effects(
    model: Model, store: Store, run: Run, task: Prepared, options: Any, seed: int, progress: Progress
) -> None:
    """Measure the effects and the baseline that the store lacks."""
    method = METHODS[run.method]
    metric = metric_of(options)
    _measure_effects_baseline(model, store, run, task, metric)
    if (seed,) in store.keys(EffectMap, run):
        return
    rows = task.rows.train
    drawn = _drawn(task, options.items, seed)
    _note_items(task, len(drawn), progress)
    extra: dict[str, Any] = {}
    if method.decide is not None:
        decided = method.decide(_distinct_rows(task))
        extra = {"decided": decided}
        if method.remark is not None and (remark := method.remark(_distinct_rows(task))):
            progress(Note(f"{task.name}: {remark}; {describe_corruption(decided)}"))
    title = f"{task.name}: {method.name}" + (f", seed {seed}" if seed else "")
    began = time.monotonic()
    measured = _measured(
        model,
        method,
        [rows[index] for index in drawn],
        options=options,
        seed=seed,
        progress=lambda done, total: progress(Update(title, done, total)),
        **extra,
    )
    if measured.points is not None and measured.dtype in HALF_PRECISION:
        progress(
            Note(
                f"{task.name}: {method.name} was measured in {measured.dtype}, because a float32 copy of the "
                "model does not fit in memory or does not run; expect a larger completeness error"
            )
        )
    losses = {"nll": measured.plain, "whole": measured.whole}
    if metric != NLL and measured.plain is not None:
        losses = {"metric": metric_words(metric).sign * measured.plain, "whole": measured.whole}
    facts: dict[str, Any] = {
        "items": measured.rows,
        **{name: float(loss) for name, loss in losses.items() if loss is not None},
        "sum": float(np.nansum(measured.values)),
        **extra.get("decided", {}),
        **measured.facts(),
        "seconds": time.monotonic() - began,
        "made_with": made_with(model),
    }
    per_item = ItemEffects(measured.per_row, drawn, np.array(row_groups(rows))[drawn])
    errors = clustered_error(per_item.values, per_item.groups)
    store.write(
        EffectMap(run.method, run.task, seed, run.identity, measured.values, errors, facts, *per_item)
    )


def _note_items(task: Prepared, measured: int, progress: Progress) -> None:
    """Tell how many items of a task in memory are measured, unless it is all."""
    records = task.facts["records"]
    if task.facts["spec"]["kind"] == "items" and measured < records:
        progress(Note(f"{task.name}: measured on {measured} of {plural(records, 'item')}", "fact"))


def _measured(model: Model, method: Method, rows: Sequence[Row], **given: Any) -> HeadEffects:
    """What the method measures; a mistake of its author is said in one sentence."""
    assert method.measure is not None
    try:
        measured = method.measure(model, rows, **given)
    except HeadatlasError:
        raise
    except Exception as error:
        if method.name in METHODS.built_in:
            raise
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ExtensionError(f"the method {method.name!r} failed ({reason}).") from error
    return checked_effects(method.name, measured, model.spec, len(rows))


def _measure_effects_baseline(model: Model, store: Store, run: Run, task: Prepared, metric: Metric) -> None:
    """See to it that the run has a baseline. No view of effects shows items of groups that were fitted on, so
    they are not measured."""
    if not store.runs[run.method, run.task].baseline:
        baseline = _gating_baseline(store, run) or measure_baseline(model, replace(task, known=()), metric)
        store.update(run, baseline=baseline)


def _gating_baseline(store: Store, run: Run) -> Mapping[str, Any]:
    """The baseline of the task's gating if that has the weights, dtype, metric and items of `run`; else
    empty."""
    gating = store.runs.get(("gating", run.task))
    if gating is None:
        return {}
    decides, other = (entry.decides for entry in (run, gating))
    is_same = all(decides.get(key) == other.get(key) for key in ("weights", "dtype", "tasks", "metric"))
    return gating.baseline if is_same else {}


def _drawn(task: Prepared, items: int, seed: int) -> np.ndarray:
    """The training rows that a seed draws."""
    distinct = np.array(_distinct_indices(task))
    return distinct[draw(len(distinct), min(items, len(distinct)), 0, seed, Stream.EFFECTS)]


def _distinct_rows(task: Prepared) -> list[Row]:
    return [task.rows.train[index] for index in _distinct_indices(task)]


def _distinct_indices(task: Prepared) -> list[int]:
    """The training rows that effects are measured on: the first of rows that are the same."""
    indices: dict[tuple[tuple[int, ...], ...], int] = {}
    for index, row in enumerate(task.rows.train):
        indices.setdefault((row.ids, row.foil), index)
    return list(indices.values())
