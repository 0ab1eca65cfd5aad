"""`validate_atlas`: what is a map worth? Heads kept, taken away and switched off, on items that no fit
has seen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from headatlas.atlas import Atlas, Run, Store, effect_path, open_atlas
from headatlas.core import (
    EFFECT_METHODS,
    AtlasError,
    RequestError,
    TaskError,
    UnknownNameError,
    method_named,
)
from headatlas.method import GatingSettings
from headatlas.model import Model, load_model
from headatlas.run.curves import ALL_CURVES, curve_names, curve_path, curve_step, measure_curves
from headatlas.run.effects import ITEMS, add_effects, effect_step, require_numbers
from headatlas.run.executing import Executor, executed
from headatlas.run.fitting import Fitter, Progress, Silence
from headatlas.run.mapping import fit_gates
from headatlas.run.prepare import Prepared, identified, read_rows
from headatlas.run.requests import opened, require_same
from headatlas.run.steps import Only, Plan, Unit, is_asked
from headatlas.task import Task, load_task

__all__ = [
    "HELD_OUT",
    "plan_validation",
    "require_validation",
    "unknown_tasks",
    "validate_atlas",
    "validate_steps",
]

#: raised when the same request would give other numbers than before
_RETEST_ALGORITHM = 1
#: held-out items, random orders that heads are switched off in
HELD_OUT, DRAWS = 48, 20
#: seeds that a half of the items can have; those of the other half begin there
_MOST_AGAIN = 1000
_OWN = (
    "not built in; give the file that it was mapped from with --task (relation:FILE for a relation), and all "
    "others that are to be validated."
)


def validate_atlas(
    folder: str | Path,
    *,
    model: Model | str | None = None,
    tasks: Sequence[str | Path | Task] = (),
    methods: Sequence[str] | None = None,
    items: int = HELD_OUT,
    draws: int = DRAWS,
    retest: int = 1,
    effect_items: int = ITEMS,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Atlas:
    """Measure what the maps of an atlas are worth, and keep it there; what is there is not made again.

    For every task that was gated (or those of `tasks`): the paper's ablation curves, with `draws` random
    orders; sufficiency and necessity of the heads that gating and each of `methods` (all if None) put
    first, on `items` held-out items; and `retest` seeds fitted anew on each of two halves of the items. A
    method that the atlas does not have yet is run, on `effect_items` items. A task that is not built in is
    given as the file that it was mapped from; `model` only if the atlas's name does not say where it is.
    `executor` as in `map_heads`.
    """
    asked: dict[str, Any] = {"methods": methods, "items": items, "draws": draws, "retest": retest}
    asked["effect_items"] = effect_items
    if executor is None:
        return validate_steps(folder, model=model, tasks=tasks, progress=progress, **asked)
    atlas = open_atlas(folder)
    chosen, wanted = _asked(atlas, tasks, methods, items, draws, retest)
    _say_left_out(atlas, tasks, progress)
    asked["tasks"] = chosen
    plan = plan_validation(atlas, [task.name for task in chosen], wanted, retest)
    where = atlas.spec.name if model is None else model
    return executed(executor, "validate", where, _fitted_dtype(atlas), asked, plan, folder, progress)


def _asked(
    atlas: Atlas,
    tasks: Sequence[str | Path | Task],
    methods: Sequence[str] | None,
    items: int,
    draws: int,
    retest: int,
) -> tuple[list[Task], list[str]]:
    """The tasks to be validated, and the methods beside gating."""
    wanted = [one for one in (methods if methods is not None else EFFECT_METHODS) if one != "gating"]
    chosen = require_validation(atlas, tasks, wanted, items, draws, retest)
    return chosen, [method_named(one) for one in wanted]


def validate_steps(
    folder: str | Path,
    *,
    model: Model | str | None,
    tasks: Sequence[str | Path | Task],
    methods: Sequence[str] | None,
    items: int,
    draws: int,
    retest: int,
    effect_items: int,
    progress: Progress | None,
    only: Only = None,
) -> Atlas:
    """See `validate_atlas`."""
    atlas = open_atlas(folder)
    chosen, wanted = _asked(atlas, tasks, methods, items, draws, retest)
    require_numbers(1, effect_items)
    loaded = _loaded(atlas, model)
    progress = progress or Silence()
    _say_left_out(atlas, tasks, progress)
    with opened(loaded, folder, resume=True) as store:
        for task in chosen:
            run = atlas.run(task.name)
            ready = read_rows(loaded, task, run.task_facts.get("max_tokens"), items)
            require_same(run, ready)
            if len(ready.held_out) < items:
                progress.note(f"{task.name}: has {len(ready.held_out)} held-out items, not {items}")
            compared = _compared(atlas, task.name, wanted)
            for method in compared:
                asked = is_asked(effect_step(method, task.name, 0), only)
                if asked and not _there(loaded, store, method, ready):
                    add_effects(loaded, store, [ready], method, 1, effect_items, progress)
            if retest:
                _retest(loaded, store, run, ready, retest, progress, only)
            if only is None or any(step.startswith(curve_step(task.name, "")) for step in only):
                now = open_atlas(store.root)
                measure_curves(loaded, store, now, run, ready, compared, draws, progress, only)
    return open_atlas(folder)


def _say_left_out(atlas: Atlas, tasks: Sequence[str | Path | Task], progress: Progress | None) -> None:
    left = [] if tasks else unknown_tasks(atlas)
    if left and progress is not None:
        progress.note(f"left out: {', '.join(left)}; {_OWN}")


def _half_step(task: str, half: str) -> str:
    return f"half {half} of {task}"


def plan_validation(atlas: Atlas, tasks: Sequence[str], methods: Sequence[str], retest: int) -> Plan:
    """What is compared, fits on two halves; then the curves of every order; then all of them together."""
    first: list[Unit] = []
    curves: list[Unit] = []
    last: list[Unit] = []
    passing: list[Path] = []
    runs: list[tuple[str, str]] = []
    for task in tasks:
        compared = _compared(atlas, task, methods)
        for method in compared:
            if method not in atlas.methods(task):
                made = (effect_path(Path(), method, task, 0),)
                first.append(Unit(f"{task}: {method}", (effect_step(method, task, 0),), made, (task,)))
        halves = "ab" if retest else ""
        first += [_unit(f"{task}: half {one} of its items", _half_step(task, one), task) for one in halves]
        curves += [
            _unit(step, step, task) for step in (curve_step(task, one) for one in curve_names(compared))
        ]
        runs += [(method, task) for method in [*compared, *(f"retest-{half}" for half in halves)]]
        last.append(_unit(curve_step(task, ALL_CURVES), curve_step(task, ALL_CURVES), task))
        passing += [curve_path(task, one) for one in curve_names(compared)]
    return Plan([stage for stage in (first, curves, last) if stage], runs, passing)


def _unit(name: str, step: str, task: str) -> Unit:
    return Unit(name, (step,), (), (task,))


def _compared(atlas: Atlas, task: str, wanted: Sequence[str]) -> list[str]:
    """The methods asked for and those that were compared before: what is there is not lost."""
    before = atlas.validation(task).named() if task in atlas.validated else []
    known = [method for method in before if method in atlas.methods(task) and method != "gating"]
    return [method for method in EFFECT_METHODS if method in {*wanted, *known}]


def _there(model: Model, store: Store, method: str, task: Prepared) -> bool:
    """Has the atlas effects of this model and these items already, of however many of them?"""
    run = store.runs.get((method, task.name))
    if run is None or not store.measured(run):
        return False
    decides = run.settings.get("decides", {})
    same = identified(model, method, task.name, task.facts, {}, {}, 0).settings["decides"]
    return all(decides.get(key) == same[key] for key in ("weights", "tasks"))


def _task_of(atlas: Atlas, task: str | Path | Task) -> Task:
    if isinstance(task, str) and task in unknown_tasks(atlas):
        raise RequestError(f"{task}: {_OWN}")
    name = str(task)
    with suppress(UnknownNameError):
        found = load_task(task)
        if found.name in atlas.tasks:
            return found
        name = found.name
    raise UnknownNameError("gated task in this atlas", name, atlas.tasks)


def require_validation(
    atlas: Atlas,
    tasks: Sequence[str | Path | Task],
    methods: Sequence[str],
    items: int,
    draws: int,
    retest: int,
) -> list[Task]:
    """The tasks; what can be said before a model is loaded."""
    for name, value, least, most in (
        ("items", items, 2, 10_000),
        ("draws", draws, 1, 10_000),
        ("retest", retest, 0, _MOST_AGAIN),
    ):
        if not least <= value <= most:
            raise RequestError(f"{name} is {value}; allowed are {least} to {most:,}.")
    for method in methods:
        method_named(method)
    if not atlas.tasks:
        raise AtlasError(f"{atlas.path} has no task that was gated to the end; 'headatlas map' makes one.")
    given = [_task_of(atlas, task) for task in tasks]
    imported = [name for name in atlas.tasks if "imported_from" in atlas.run(name).task_facts]
    if not given:
        given = [load_task(name) for name in atlas.tasks if name not in imported and _is_built_in(name)]
    if not given and len(imported) < len(atlas.tasks):
        raise RequestError(f"{', '.join(unknown_tasks(atlas))}: {_OWN}")
    for name in [task.name for task in given] or imported:
        if name in imported:
            raise AtlasError(f"{name!r} was imported: there are no items to measure it on.")
    return given


def unknown_tasks(atlas: Atlas) -> list[str]:
    """Gated tasks of which only the user knows where they are."""
    return [
        name
        for name in atlas.tasks
        if "imported_from" not in atlas.run(name).task_facts and not _is_built_in(name)
    ]


def _is_built_in(name: str) -> bool:
    try:
        load_task(name)
    except (UnknownNameError, TaskError):
        return False
    return True


def _loaded(atlas: Atlas, model: Model | str | None) -> Model:
    """In the dtype that the gates were fitted in."""
    if isinstance(model, Model):
        return model
    return load_model(model or atlas.spec.name, dtype=_fitted_dtype(atlas))


def _fitted_dtype(atlas: Atlas) -> str:
    return str(atlas.run(atlas.tasks[0]).settings.get("decides", {}).get("dtype", "fast"))


def _retest(
    model: Model, store: Store, run: Run, task: Prepared, seeds: int, progress: Progress, only: Only
) -> None:
    """Fits on two halves of the items that have no item in common, with other seeds each."""
    settings = GatingSettings.from_json(run.settings["resolved"])
    train = task.rows.train
    order = np.random.default_rng(5).permutation(len(train))
    assert settings.batch is not None
    if len(train) // 2 < settings.batch:
        progress.note(f"{task.name}: too few items for two halves; not tested again on other items")
        return
    for place, letter in enumerate("ab"):
        if not is_asked(_half_step(task.name, letter), only):
            continue
        half = [train[row] for row in order[place::2]]
        decides = {key: value for key, value in settings.to_json().items() if key != "seeds"}
        said = {"given": {"seeds": seeds}, "resolved": {"seeds": seeds, "half": letter}}
        about = {**task.facts, "half": letter}
        again = identified(
            model, f"retest-{letter}", task.name, about, said, {**decides, "half": letter}, _RETEST_ALGORITHM
        )
        (again,) = store.add(again)
        fitter = Fitter(model, store, progress)
        fit_gates(
            fitter, again, half, None, settings, range(place * _MOST_AGAIN, place * _MOST_AGAIN + seeds)
        )
