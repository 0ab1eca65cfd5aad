"""`validate_atlas`: what is a map worth? Heads kept, taken away and switched off, on items that no fit
has seen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headatlas.atlas import Atlas, EffectMap, Run, Store, open_atlas, record_path
from headatlas.core import (
    EFFECT_METHODS,
    AtlasError,
    RequestError,
    TaskError,
    UnknownNameError,
    method_named,
    require_whole,
)
from headatlas.method import GatingSettings
from headatlas.model import Model
from headatlas.run.effects import ALGORITHM, ITEMS, add_effects, effect_step, require_numbers
from headatlas.run.executing import Executor, executed
from headatlas.run.fitter import Fitter, Progress, Silence
from headatlas.run.loading import load_mapped, mapped_dtype, mapped_revision
from headatlas.run.map_job import fit_gates
from headatlas.run.prepare import Prepared, identified, read_rows, row_groups
from headatlas.run.requests import opened, require_same
from headatlas.run.steps import Only, Plan, Unit, is_asked
from headatlas.run.validation_curves import ALL_CURVES, curve_names, curve_path, curve_step, measure_curves
from headatlas.task import Row, Task, load_task

__all__ = [
    "HELD_OUT",
    "plan_validation",
    "require_validation",
    "split_halves",
    "unknown_tasks",
    "validate_atlas",
    "validate_steps",
]

#: raised when the same request would give other numbers than before
_RETEST_ALGORITHM = 2
#: held-out items, random orders that heads are switched off in
HELD_OUT, DRAWS = 48, 40
#: seeds that a half of the items can have; those of the other half begin there
_MOST_AGAIN = 1000
#: dtype options whose outcome only a worker knows, which checks it when it has loaded the model
_KNOWN_BY_WORKERS = ("auto", "fast", "int8", "int4")
_OWN = (
    "not built in; give the file that it was mapped from with --task (relation:FILE for a relation), and all "
    "others that are to be validated."
)


def validate_atlas(
    folder: str | Path,
    *,
    model: Model | str | Path | PreTrainedModel | None = None,
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
    names = [task.name for task in chosen]
    load: dict[str, Any] = {"revision": mapped_revision(atlas, model)}
    options = getattr(executor, "load", {})
    if "dtype" not in options:
        load["dtype"] = mapped_dtype(atlas, names)
    elif options["dtype"] not in _KNOWN_BY_WORKERS:
        _require_dtype(atlas, names, wanted, str(options["dtype"]).removeprefix("torch."))
    where = atlas.spec.name if model is None else model
    return executed(executor, "validate", where, load, asked, plan, folder, progress)


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
    model: Model | str | Path | PreTrainedModel | None,
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
    given = isinstance(model, Model | PreTrainedModel)
    dtype = "auto" if given else mapped_dtype(atlas, [task.name for task in chosen])
    loaded = load_mapped(atlas, model, dtype)
    _require_dtype(atlas, [task.name for task in chosen], wanted, loaded.spec.dtype)
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
                if asked and not _has_effects(atlas, method, task.name):
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
            if not _has_effects(atlas, method, task):
                made = (record_path(EffectMap, method, task, seed=0),)
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


def _has_effects(atlas: Atlas, method: str, task: str) -> bool:
    """True if the atlas has effects that can be compared with the gates, of however many items.

    They must have been measured by this version of the methods, with the weights, in the dtype and with the
    items of the gates; others are refused. The records alone decide, so a plan and a worker agree.
    """
    if method not in atlas.methods(task):
        return False
    effects, gating = (atlas.run(task, one).settings.get("decides", {}) for one in (method, "gating"))
    differing = [key for key in ("dtype", "weights", "tasks") if effects.get(key) != gating.get(key)]
    differing += ["algorithm"] if effects.get("algorithm") != ALGORITHM else []
    if differing:
        why = {
            "algorithm": "by another version of headatlas, whose numbers differ",
            "dtype": f"in {effects.get('dtype')}, its gates in {gating.get('dtype')}",
            "weights": "with other weights than its gates",
            "tasks": "with other items or tokens than its gates",
        }[differing[0]]
        raise AtlasError(
            f"{task}: the effects of {method} were measured {why}, so they cannot be compared; validate "
            "other methods (--method), or map both in one dtype into a new atlas."
        )
    return True


def _require_dtype(atlas: Atlas, tasks: Sequence[str], methods: Sequence[str], dtype: str) -> None:
    """Refuse a dtype in which effects would be measured that cannot be compared with the gates of a task."""
    for task in tasks:
        missing = [one for one in _compared(atlas, task, methods) if not _has_effects(atlas, one, task)]
        fitted = atlas.run(task).settings.get("decides", {}).get("dtype", dtype)
        if missing and fitted != dtype:
            raise RequestError(
                f"{task}: its gates were fitted in {fitted} and the model is loaded in {dtype}, so effects "
                f"measured now ({', '.join(missing)}) could not be compared with them; load the model in "
                f"{fitted} (--dtype {fitted}), or validate gating alone (--method gating, methods=[])."
            )


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
        require_whole(name, value, least, most)
    for method in methods:
        method_named(method)
    for task in tasks:
        name = task.name if isinstance(task, Task) else str(task)
        if name in atlas.imported and name not in atlas.tasks:
            raise AtlasError(f"{name!r} is an imported score: there are no gates and no items to validate.")
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


def _retest(
    model: Model, store: Store, run: Run, task: Prepared, seeds: int, progress: Progress, only: Only
) -> None:
    """Fits on two halves of the items, which have no group in common, with other seeds each."""
    settings = GatingSettings.from_json(run.settings["resolved"])
    halves = split_halves(task.rows.train)
    assert settings.batch is not None
    if min(map(len, halves)) < settings.batch:
        progress.note(f"{task.name}: too few items or groups for two halves; not tested again on other items")
        return
    for place, (letter, half) in enumerate(zip("ab", halves, strict=True)):
        if not is_asked(_half_step(task.name, letter), only):
            continue
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
