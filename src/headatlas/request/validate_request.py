"""A request that measures what the maps of an atlas are worth: `ValidateRequest`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from headatlas.atlas import Atlas, EffectMap, Run, note_path, open_atlas, record_path
from headatlas.core import (
    AtlasError,
    Metric,
    ModelRef,
    RequestError,
    UnknownNameError,
    metric_from_json,
    metric_name,
    metric_to_json,
    metric_words,
    require_metric,
    require_whole,
    slug,
    warn_user,
)
from headatlas.method.method import METHODS, EffectOptions
from headatlas.request.map_request import distinct_tasks
from headatlas.request.origin import named_model, recorded_task, task_from_json, task_to_json
from headatlas.request.plan import Plan, Step
from headatlas.task import AUTO, Task, Tasks, listed_tasks

__all__ = [
    "ALL_CURVES",
    "OTHER_CURVES",
    "TaskNotFoundError",
    "ValidateRequest",
    "check_held_out",
    "compared_methods",
    "curve_metric",
    "curve_name",
    "dropped_methods",
    "effect_methods",
    "gate_metric",
    "gated_names",
    "gated_tasks",
    "has_effects",
    "mapped_dtype",
    "require_dtype",
]

#: held-out items, and random orders that heads are switched off in
HELD_OUT, DRAWS = 48, 40
#: seeds that a half of the items can have; those of the other half begin there
MOST_RETESTS = 1000
#: dtypes whose outcome is known only when the model is loaded
_OPEN_DTYPES = ("auto", "fast", "int8", "int4")
#: curves that are not those of an order of heads; and all of them together
OTHER_CURVES, ALL_CURVES = ("off", "by_chance"), "all"
_NOT_FOUND = (
    "its file is not known or has moved; give the file that it was mapped from with tasks=… (relation:FILE "
    "for a relation)"
)
_NO_CONTRASTS = "contrasts are not validated or exported; map_heads gates a task, which is"


class TaskNotFoundError(RequestError):
    """Tasks of an atlas whose file is not known; `problem` is the message without its full stop."""

    def __init__(self, names: str) -> None:
        self.problem = f"{names}: {_NOT_FOUND}"
        super().__init__(f"{self.problem}.")


@dataclass(frozen=True, slots=True)
class ValidateRequest:
    """The maps of these tasks compared with those of `methods`, on held-out items."""

    kind: ClassVar[str] = "validate"
    job: ClassVar[str] = "headatlas.run.validate_job:ValidateJob"

    model: ModelRef
    tasks: tuple[Task, ...]
    methods: tuple[str, ...]
    items: int
    draws: int
    retest: int
    effect_items: int
    #: gated tasks of the atlas that nothing says where to find
    left_out: tuple[str, ...] = ()
    #: the metric of the curves; None: that of the gates of each task
    metric: Metric | None = None

    @classmethod
    def of(
        cls,
        folder: str | Path | Atlas,
        *,
        model: Any = None,
        tasks: Tasks = (),
        methods: Sequence[str] | None = None,
        items: int = HELD_OUT,
        draws: int = DRAWS,
        retest: int = 1,
        effect_items: int = EffectOptions.items,
        trust_code: bool = False,
        load: Mapping[str, Any] | None = None,
        metric: Metric | None = None,
    ) -> ValidateRequest:
        """All gated tasks that can be found if none is given; the model as the atlas remembers it, in the
        dtype of the gates. Methods that are not given: the built-in ones, and those of plugins that the atlas
        has for one of the tasks. Curves are in the metric of the gates of each task unless `metric` names
        another one; a metric that is a function must be given again."""
        atlas = folder if isinstance(folder, Atlas) else open_atlas(folder)
        for name, value, least, most in (
            ("items", items, 2, 10_000),
            ("draws", draws, 1, 10_000),
            ("retest", retest, 0, MOST_RETESTS),
        ):
            require_whole(name, value, least, most)
        EffectOptions(1, effect_items)
        if metric is not None:
            require_metric(metric)
        named = None if methods is None else _named_methods(methods)
        tasks = listed_tasks(tasks)
        atlas = _of_gating(atlas, tasks)
        try:
            chosen, left_out = gated_tasks(atlas, tasks, trust_code=trust_code)
        except TaskNotFoundError as error:
            raise RequestError(f"{error.problem}, and all others that are to be validated.") from None
        names = [task.name for task in chosen]
        for task in chosen:
            if metric_words(curve_metric(atlas, task.name, metric)).needs_foil:
                task.require_foils()
            if retest:
                gate_metric(atlas.run(task.name), metric)
        for name in names:
            check_held_out(atlas, name, "validate the map on")
        wanted = _default_methods(atlas, names, metric) if named is None else named
        load = {name: value for name, value in (load or {}).items() if value is not None}
        if model is None or isinstance(model, str | Path):
            if "dtype" not in load:
                load["dtype"] = mapped_dtype(atlas, names)
            elif load["dtype"] not in _OPEN_DTYPES:
                require_dtype(atlas, names, wanted, str(load["dtype"]).removeprefix("torch."), metric)
        ref = named_model(model, atlas, **load)
        return cls(ref, tuple(chosen), wanted, items, draws, retest, effect_items, left_out, metric)

    def only(self, subjects: Sequence[str]) -> ValidateRequest:
        """The same request for some of its tasks."""
        return replace(self, tasks=tuple(task for task in self.tasks if task.name in subjects))

    def plan(self, atlas: Atlas | None = None) -> Plan:
        """Effects of the methods that are compared, and fits on two halves; then the curves of every order;
        then all curves of a task together."""
        assert atlas is not None
        first: list[Step] = []
        curves: list[Step] = []
        last: list[Step] = []
        temporary: list[Path] = []
        runs: list[tuple[str, str]] = []
        for task in self.tasks:
            name, subject = task.name, (task.name,)
            compared = compared_methods(atlas, name, self.methods, self.metric)
            for method in compared:
                if not has_effects(atlas, method, name, self.metric):
                    makes = (record_path(EffectMap, method, name, seed=0),)
                    first.append(Step(f"{name}: {method}", subject, part=f"effects {method}", makes=makes))
            halves = "ab" if self.retest else ""
            first += [
                Step(f"{name}: half {half} of its items", subject, part=f"half {half}") for half in halves
            ]
            parts = ["gating", *compared, "random", *OTHER_CURVES]
            curves += [Step(f"curves of {name}: {part}", subject, part=f"curve {part}") for part in parts]
            last.append(Step(f"curves of {name}: {ALL_CURVES}", subject, part=f"curve {ALL_CURVES}"))
            runs += [(method, name) for method in [*compared, *(f"retest-{half}" for half in halves)]]
            temporary += [note_path(curve_name(name, part)) for part in parts]
        return Plan([stage for stage in (first, curves, last) if stage], runs, temporary)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_json(),
            "tasks": [task_to_json(task) for task in self.tasks],
            "methods": list(self.methods),
            "items": self.items,
            "draws": self.draws,
            "retest": self.retest,
            "effect_items": self.effect_items,
            "left_out": list(self.left_out),
            **({} if self.metric is None else {"metric": metric_to_json(self.metric)}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ValidateRequest:
        counts = {name: data[name] for name in ("items", "draws", "retest", "effect_items")}
        tasks = tuple(task_from_json(task) for task in data["tasks"])
        methods, left_out = tuple(data["methods"]), tuple(data["left_out"])
        metric = None if data.get("metric") is None else require_metric(data["metric"])
        ref = ModelRef.from_json(data["model"])
        return cls(ref, tasks, methods, left_out=left_out, metric=metric, **counts)


def check_held_out(atlas: Atlas, task: str, purpose: str) -> None:
    """Refuse a task that holds nothing out."""
    if atlas.run(task).task_facts.get("test_rows") == 0:
        raise AtlasError(
            f"{task} holds nothing out, so there are no items to {purpose}; map it again with test=0.1."
        )


def effect_methods() -> list[str]:
    """The methods that give one number per head."""
    return [name for name, method in METHODS.items() if method.measure is not None]


def _named_methods(names: Sequence[str]) -> tuple[str, ...]:
    """The methods that gating is to be compared with, by their full names."""
    wanted = tuple(METHODS[name].name for name in names if name != "gating")
    for name in wanted:
        if METHODS[name].measure is None:
            raise UnknownNameError("method that gives one number per head", name, effect_methods())
    return wanted


def _default_methods(atlas: Atlas, tasks: Sequence[str], metric: Metric | None) -> tuple[str, ...]:
    """The built-in methods, and those of plugins that one of the tasks was measured by. Left out with a
    warning: a method that measured a task in memory on other items than its gates were fitted on, or by
    another metric than that of the curves."""
    measured = {
        method
        for task in tasks
        for method in atlas.methods(task)
        if "imported_from" not in atlas.run(task, method).task_facts
    }
    names = [name for name in effect_methods() if name in METHODS.built_in or name in measured]
    lines, dropped = [], set()
    for name in names:
        for task in tasks:
            if mismatch := _item_mismatch(atlas, name, task) or _metric_mismatch(atlas, name, task, metric):
                dropped.add(name)
                lines.append(f"left out: {name} of {task}, because the effects were {'; '.join(mismatch)}")
    if lines:
        warn_user("\n".join(lines))
    return tuple(name for name in names if name not in dropped)


def _item_mismatch(atlas: Atlas, method: str, task: str) -> tuple[str, str] | None:
    """(how the items of effects of a task in memory differ from those of its gates, how to repair that); None
    if they do not, or there are no effects."""
    if method not in atlas.methods(task):
        return None
    runs = [atlas.run(task, name) for name in (method, "gating")]
    facts = [run.task_facts for run in runs]
    specs = [fact.get("spec", {}) for fact in facts]
    is_in_memory = all(spec.get("kind") == "items" for spec in specs)
    if not is_in_memory or runs[0].decides.get("tasks") == runs[1].decides.get("tasks"):
        return None
    repair = "map both with the same items"
    if specs[0].get("test") != specs[1].get("test"):
        test = specs[1].get("test")
        repair = f"map both with the same test={'…' if isinstance(test, Mapping) else test}"
    counts = [fact.get("train_rows") for fact in facts]
    if None in counts or counts[0] == counts[1]:
        return "measured on other items than its gates were fitted on", repair
    return f"measured on {counts[0]} items and its gates fitted on {counts[1]}", repair


def _metric_mismatch(atlas: Atlas, method: str, task: str, metric: Metric | None) -> tuple[str, str] | None:
    """(how the metric of effects differs from that of the curves, how to repair that); None if it does not,
    there are no effects, or the method has no choice of metrics."""
    if method not in atlas.methods(task) or "metric" not in METHODS[method].options.names():
        return None
    measured = atlas.run(task, method).metric
    of_curves = atlas.run(task).metric if metric is None else metric_to_json(metric)
    if measured == of_curves:
        return None
    names = metric_name(measured), metric_name(of_curves)
    if names[0] == names[1]:
        names = (f"another {names[0]}", names[1])
    repair = (
        f"give metric={measured!r}"
        if isinstance(measured, str)
        else "give the metric of the effects (metric=…)"
    )
    return f"measured by the metric {names[0]}, and the curves are in {names[1]}", repair


def gate_metric(run: Run, metric: Metric | None = None) -> Metric:
    """The metric that gates were fitted on. One that is a function must be `metric`."""
    return metric_from_json(run.metric, metric)


def curve_metric(atlas: Atlas, task: str, metric: Metric | None = None) -> Metric:
    """The metric of the curves of a task: that of its gates unless another one is given."""
    return gate_metric(atlas.run(task)) if metric is None else metric


def curve_name(task: str, part: str) -> str:
    """The note that keeps a curve until all curves of the task are there."""
    return slug(f"curve {task} {part}")


def _of_gating(atlas: Atlas, tasks: Sequence[str | Path | Task]) -> Atlas:
    """The atlas with the gates of gating alone: the curves of a validation are of those. Refused if `tasks`
    (all if none) have gates of other methods only."""
    names = [task.name if isinstance(task, Task) else str(task) for task in tasks]
    gated = [task for task in atlas.tasks if "gating" in atlas.fitted_methods(task)]
    others = [task for task in atlas.tasks if task not in gated and (task in names or not (names or gated))]
    if others:
        methods = dict.fromkeys(method for task in others for method in atlas.fitted_methods(task))
        raise AtlasError(
            f"{', '.join(others)}: fitted by {', '.join(methods)}, and only gates of the method gating are "
            "validated; map it with method='gating' first."
        )
    return atlas.fitted_by("gating") if gated else atlas


def gated_names(
    atlas: Atlas, tasks: Sequence[str | Path | Task] = (), *, trust_code: bool = False
) -> list[str]:
    """The names of the tasks of an atlas that were gated to the end, or of those of `tasks`, all of which
    must be among them."""
    _require_gated(atlas, tasks)
    return [
        task if isinstance(task, str) and task in atlas.tasks else _given_task(atlas, task, trust_code).name
        for task in tasks or atlas.tasks
    ]


def _require_gated(atlas: Atlas, tasks: Sequence[str | Path | Task]) -> None:
    """Refuse imported scores, and an atlas without gates."""
    for task in tasks:
        name = task.name if isinstance(task, Task) else str(task)
        if name in atlas.imported and name not in atlas.tasks:
            raise AtlasError(f"{name!r} is an imported score: there are no gates and no items to measure.")
        if name in atlas.contrasts and name not in atlas.tasks:
            raise AtlasError(f"{name!r} is a contrast; {_NO_CONTRASTS}.")
    if not atlas.tasks:
        if atlas.contrasts:
            raise AtlasError(
                f"this atlas has contrasts only ({', '.join(atlas.contrasts)}); {_NO_CONTRASTS}."
            )
        raise AtlasError("this atlas has no task that was gated to the end; map_heads makes one.")


def gated_tasks(
    atlas: Atlas, tasks: Sequence[str | Path | Task] = (), *, trust_code: bool = False
) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks of `gated_names`, found again, and the names of those that nothing says where to find.

    Tasks that are named must be found, and at least one of all: otherwise a `TaskNotFoundError`.
    """
    _require_gated(atlas, tasks)
    imported = {name for name in atlas.tasks if "imported_from" in atlas.run(name).task_facts}
    if tasks:
        chosen = [_gated_task(atlas, task, trust_code) for task in tasks]
        for task in chosen:
            if task.name in imported:
                raise AtlasError(f"{task.name!r} was imported: there are no items to measure it on.")
        return distinct_tasks(chosen), ()
    found = {
        name: recorded_task(atlas.run(name), trust_code=trust_code)
        for name in atlas.tasks
        if name not in imported
    }
    missing = tuple(name for name, task in found.items() if task is None)
    chosen = [task for task in found.values() if task is not None]
    if not found:
        raise AtlasError(f"{', '.join(sorted(imported))} was imported: there are no items to measure it on.")
    if not chosen:
        raise TaskNotFoundError(", ".join(missing))
    return chosen, missing


def _gated_task(atlas: Atlas, task: str | Path | Task, trust_code: bool) -> Task:
    """A task of the atlas: by its name there, or as the user finds it."""
    if isinstance(task, str) and task in atlas.tasks:
        if "imported_from" in atlas.run(task).task_facts:
            raise AtlasError(f"{task!r} was imported: there are no items to measure it on.")
        known = recorded_task(atlas.run(task), trust_code=trust_code)
        if known is None:
            raise TaskNotFoundError(task)
        return known
    return _given_task(atlas, task, trust_code)


def _given_task(atlas: Atlas, task: str | Path | Task, trust_code: bool) -> Task:
    """A task as the user gives it, which must be one that the atlas has gates for."""
    name = str(task)
    try:
        chosen = distinct_tasks([task], trust_code=trust_code)[0]
        if chosen.in_memory and chosen.name in atlas.tasks:
            chosen = _as_recorded(atlas, chosen)
    except UnknownNameError:
        raise UnknownNameError("gated task in this atlas", name, atlas.tasks) from None
    if chosen.name not in atlas.tasks:
        raise UnknownNameError("gated task in this atlas", chosen.name, atlas.tasks)
    return chosen


def _as_recorded(atlas: Atlas, task: Task) -> Task:
    """A task in memory with the items held out that the atlas holds out, unless the task states its own."""
    recorded = recorded_task(atlas.run(task.name))
    if task.spec.test != AUTO or recorded is None or not recorded.in_memory:
        return task
    return task.holding_out(recorded.spec.test)


def mapped_dtype(atlas: Atlas, tasks: Sequence[str]) -> str:
    """The dtype that the gates of these tasks were fitted in; refused if there are several."""
    fitted = {task: str(atlas.run(task).decides.get("dtype", "fast")) for task in tasks}
    if len(set(fitted.values())) > 1:
        listed = ", ".join(f"{task} in {dtype}" for task, dtype in fitted.items())
        raise RequestError(
            f"these tasks were fitted in different dtypes ({listed}); give tasks of one dtype (tasks=…), or "
            "validate gating alone (methods=[]) and give the dtype to measure in (dtype=…, "
            "or a loaded model)."
        )
    return next(iter(fitted.values()), "fast")


def compared_methods(
    atlas: Atlas, task: str, wanted: Sequence[str], metric: Metric | None = None
) -> list[str]:
    """The methods asked for, and those compared before whose effects are still comparable in curves of
    `metric`."""
    known = [method for method, reason in _compared_before(atlas, task, metric).items() if not reason]
    return [method for method in effect_methods() if method in {*wanted, *known}]


def dropped_methods(
    atlas: Atlas, task: str, wanted: Sequence[str], metric: Metric | None = None
) -> dict[str, str]:
    """method -> why it was compared before and will not be now."""
    before = _compared_before(atlas, task, metric)
    return {method: reason for method, reason in before.items() if reason and method not in wanted}


def _compared_before(atlas: Atlas, task: str, metric: Metric | None) -> dict[str, str]:
    """The methods that the stored validation compares with gating: method -> why its effects are not
    comparable now; empty if they are."""
    reasons = {}
    for method in atlas.validation(task).named() if task in atlas.validated else ():
        if method in ("gating", "random"):
            continue
        if method not in METHODS:
            reasons[method] = "it is not installed"
        elif method not in atlas.methods(task):
            reasons[method] = "the atlas has no effects of it"
        else:
            mismatch = _why_incomparable(atlas, method, task, metric)
            reasons[method] = f"its effects were {mismatch[0]}" if mismatch else ""
    return reasons


def has_effects(atlas: Atlas, method: str, task: str, metric: Metric | None = None) -> bool:
    """True if the atlas has effects that can be compared with the gates, of however many items.

    They must have been measured by this version of the method, with the weights, in the dtype and with the
    items of the gates, by the metric of the curves; others are refused. The records alone decide, so a plan
    and a worker agree.
    """
    if method not in atlas.methods(task):
        return False
    if mismatch := _why_incomparable(atlas, method, task, metric):
        why, repair = mismatch
        raise AtlasError(
            f"{task}: the effects of {method} were {why}, so they cannot be compared; {repair}, or validate "
            "other methods (methods=…)."
        )
    return True


def _why_incomparable(atlas: Atlas, method: str, task: str, metric: Metric | None) -> tuple[str, str] | None:
    """(what keeps effects from being compared with the gates, how to repair that); None if nothing does."""
    runs = [atlas.run(task, name) for name in (method, "gating")]
    effects, gating = (run.decides for run in runs)
    again = "measure gates and effects"
    if "imported_from" in runs[0].task_facts:
        return "imported from a table, which does not say its items", f"{again} of the task in a new atlas"
    dtypes = effects.get("dtype"), gating.get("dtype")
    mismatches: dict[str, tuple[str, str]] = {
        "dtype": (
            f"measured in {dtypes[0]}, its gates in {dtypes[1]}",
            f"{again} in one dtype (dtype={dtypes[1]!r}) in a new atlas",
        ),
        "weights": (
            "measured with other weights than its gates",
            f"{again} with the same weights in a new atlas",
        ),
        "tasks": _item_mismatch(atlas, method, task)
        or (
            "measured with other items or tokens than its gates",
            f"{again} with the same task in a new atlas",
        ),
    }
    for key, mismatch in mismatches.items():
        if effects.get(key) != gating.get(key):
            return mismatch
    if by_metric := _metric_mismatch(atlas, method, task, metric):
        return by_metric
    declared = {"algorithm": METHODS[method].version, **METHODS[method].constants}
    declared = json.loads(json.dumps(declared, default=int))  # as the atlas stores them
    if all(effects.get(key) == value for key, value in declared.items()):
        return None
    return (
        "measured by another version of headatlas, whose numbers differ",
        f"{again} with this version in a new atlas",
    )


def require_dtype(
    atlas: Atlas,
    tasks: Sequence[str],
    methods: Sequence[str],
    dtype: str,
    metric: Metric | None = None,
) -> None:
    """Refuse a dtype in which effects would be measured that cannot be compared with the gates of a task."""
    for task in tasks:
        missing = [
            name
            for name in compared_methods(atlas, task, methods, metric)
            if not has_effects(atlas, name, task, metric)
        ]
        fitted = atlas.run(task).decides.get("dtype", dtype)
        if missing and fitted != dtype:
            raise RequestError(
                f"{task}: its gates were fitted in {fitted} and the model is loaded in {dtype}, so effects "
                f"measured now ({', '.join(missing)}) could not be compared with them; load the model in "
                f"{fitted} (dtype={fitted!r}), or validate gating alone (methods=[])."
            )
