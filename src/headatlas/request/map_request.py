"""Requests that fit gates or measure effects: `MapRequest`, `ContrastRequest`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from headatlas.atlas import Atlas, EffectMap, Fit, Run, open_atlas, record_path, work_path
from headatlas.core import (
    NLL,
    ModelRef,
    RequestError,
    metric_to_json,
    metric_words,
    require_whole,
    seed_numbers,
)
from headatlas.method.gating import GatingSettings, resolve
from headatlas.method.method import METHODS
from headatlas.request.origin import (
    absolute_task,
    model_ref,
    recorded_model,
    recorded_task,
    task_from_json,
    task_to_json,
)
from headatlas.request.plan import Plan, Step, seed_blocks, seeds_text
from headatlas.task import AUTO, DEFAULT_SHARE, HeldOut, Task, Tasks, TaskSource, listed_tasks, load_task

__all__ = [
    "ContrastRequest",
    "MapRequest",
    "contrast_name",
    "distinct_tasks",
    "given_options",
    "plain_options",
]

#: the stage of a contrast, and what is fitted in it
CONTRAST_STAGES = {"contrast": ("retain",)}


@dataclass(frozen=True, slots=True)
class MapRequest:
    """Maps of tasks by one method. `given` are the options as the user gave them."""

    kind: ClassVar[str] = "map"
    job: ClassVar[str] = "headatlas.run.map_job:MapJob"

    model: ModelRef
    tasks: tuple[Task, ...]
    method: str
    options: Any
    given: Mapping[str, Any]
    max_tokens: int | None = None
    #: seconds between two checkpoints of a fit; numbers do not depend on it
    checkpoint_seconds: float = field(default=30.0, compare=False)

    @classmethod
    def of(
        cls,
        model: Any,
        tasks: Tasks,
        method: str = "gating",
        *,
        test: HeldOut = AUTO,
        max_tokens: int | None = None,
        trust_code: bool = False,
        checkpoint_seconds: float = 30.0,
        load: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> MapRequest:
        """`test` is held out of tasks in memory, as for `Task.of`. `load` are options of `load_model` for a
        model given by name, by default in dtype "fast"."""
        chosen = METHODS[method]
        given = given_options(**options)
        checked = chosen.options.given(chosen.name, given)
        if given.get("metric") == NLL:  # the default is stored as in atlases written before metrics existed
            del given["metric"]
        named = _held_out(distinct_tasks(tasks, trust_code=trust_code), test, bool(chosen.stages))
        readable = _readable(named)
        if metric_words(getattr(checked, "metric", NLL)).needs_foil:
            for task in readable:
                task.require_foils()
        return cls(
            model_ref(model, **{"dtype": "fast", **(load or {})}),
            readable,
            chosen.name,
            checked,
            given,
            _checked_tokens(max_tokens),
            checkpoint_seconds,
        )

    @classmethod
    def resumed(
        cls,
        folder: str | Path,
        model: Any = None,
        tasks: Sequence[str | Path | Task] | None = None,
        method: str = "gating",
        *,
        max_tokens: int | None = None,
        trust_code: bool = False,
        load: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> MapRequest:
        """Continue an atlas: without `model` and `tasks` those that it remembers. Options that are not given
        are those of the tasks that it has already."""
        atlas = open_atlas(folder)
        runs = {task: run for (name, task), run in atlas.runs.items() if name == METHODS[method].name}
        if tasks is None and not runs:
            raise RequestError(f"{folder} has no task mapped by {method}; give one with tasks=….")
        chosen = [
            _recorded(runs[task], trust_code)
            if isinstance(task, str) and task in runs
            else load_task(task, trust_code=trust_code)
            for task in (runs if tasks is None else tasks)
        ]
        given = given_options(max_tokens=max_tokens, **options)
        earlier = [run for name, run in runs.items() if name in {task.name for task in chosen}]
        given |= _stored_options(earlier, METHODS[method].options.names(), given)
        load = _load_options(load, earlier)
        request = cls.of(model, chosen, method, load=load, **given)
        return replace(request, model=recorded_model(atlas, **load)) if model is None else request

    def only(self, subjects: Sequence[str]) -> MapRequest:
        """The same request for some of its tasks."""
        return replace(self, tasks=tuple(task for task in self.tasks if task.name in subjects))

    def plan(self, atlas: Atlas | None = None) -> Plan:
        """A step for each task and block of seeds that are fitted together, or each seed that is measured."""
        method = METHODS[self.method]
        seeds = seed_numbers(self.options.seeds)
        blocks = list(seed_blocks(seeds)) if method.stages else [(seed,) for seed in seeds]
        stage = [
            _step(method.name, task.name, block, method.stages) for task in self.tasks for block in blocks
        ]
        return Plan([stage], [(self.method, task.name) for task in self.tasks])

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_json(),
            "tasks": [task_to_json(task) for task in self.tasks],
            "method": self.method,
            "options": plain_options(self.given),
            "max_tokens": self.max_tokens,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MapRequest:
        ref = ModelRef.from_json(data["model"])
        tasks = [task_from_json(task) for task in data["tasks"]]
        request = cls.of(None, tasks, data["method"], max_tokens=data["max_tokens"], **data["options"])
        return replace(request, model=ref)


@dataclass(frozen=True, slots=True)
class ContrastRequest:
    """Gates that keep the task `retain` and destroy the task `forget`."""

    kind: ClassVar[str] = "contrast"
    job: ClassVar[str] = "headatlas.run.contrast_job:ContrastJob"

    model: ModelRef
    retain: Task
    forget: Task
    options: GatingSettings
    given: Mapping[str, Any]
    max_tokens: int | None = None
    checkpoint_seconds: float = field(default=30.0, compare=False)

    @classmethod
    def of(
        cls,
        model: Any,
        retain: TaskSource,
        forget: TaskSource,
        *,
        test: HeldOut = AUTO,
        max_tokens: int | None = None,
        trust_code: bool = False,
        checkpoint_seconds: float = 30.0,
        load: Mapping[str, Any] | None = None,
        preset: str | None = None,
        seeds: int | Sequence[int] | None = None,
        updates: int | None = None,
        batch: int | None = None,
    ) -> ContrastRequest:
        """As `MapRequest.of`; both tasks are fitted with the schedule of the free stage."""
        given = given_options(preset=preset, seeds=seeds, updates=updates, batch=batch)
        settings = resolve(**given)
        kept, forgotten = _held_out(
            [_side(retain, "retain", trust_code), _side(forget, "forget", trust_code)], test, True
        )
        if kept.name == forgotten.name:
            raise RequestError(f"retain and forget are both {kept.name!r}; a contrast needs two tasks.")
        _readable([kept, forgotten])
        return cls(
            model_ref(model, **{"dtype": "fast", **(load or {})}),
            kept,
            forgotten,
            replace(settings, pressed=settings.free),
            given,
            _checked_tokens(max_tokens),
            checkpoint_seconds,
        )

    @classmethod
    def resumed(
        cls,
        folder: str | Path,
        model: Any = None,
        retain: str | Path | Task | None = None,
        forget: str | Path | Task | None = None,
        *,
        trust_code: bool = False,
        load: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ContrastRequest:
        """Continue an atlas: without `model`, `retain` and `forget` its model and its only contrast. Options
        that are not given are those of the contrast."""
        atlas = open_atlas(folder)
        run, sides = _recorded_contrast(atlas, folder, retain, forget)
        tasks = [
            _recorded(run, trust_code, name) if task is None or task == name else task
            for task, name in zip((retain, forget), sides, strict=True)
        ]
        given = given_options(**options)
        given |= _stored_options([run], GatingSettings.names(), given)
        load = _load_options(load, [run])
        request = cls.of(model, *tasks, trust_code=trust_code, load=load, **given)
        return replace(request, model=recorded_model(atlas, **load)) if model is None else request

    @property
    def name(self) -> str:
        """What the contrast is called in an atlas."""
        return contrast_name(self.retain.name, self.forget.name)

    def only(self, subjects: Sequence[str]) -> ContrastRequest:
        return self

    def plan(self, atlas: Atlas | None = None) -> Plan:
        """A step for each block of seeds that are fitted together."""
        blocks = seed_blocks(seed_numbers(self.options.seeds))
        stage = [_step("contrast", self.name, block, CONTRAST_STAGES) for block in blocks]
        return Plan([stage], [("contrast", self.name)])

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_json(),
            "tasks": [task_to_json(task) for task in (self.retain, self.forget)],
            "options": dict(self.given),
            "max_tokens": self.max_tokens,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ContrastRequest:
        tasks = [task_from_json(task) for task in data["tasks"]]
        request = cls.of(None, *tasks, max_tokens=data["max_tokens"], **data["options"])
        return replace(request, model=ModelRef.from_json(data["model"]))


def given_options(**options: Any) -> dict[str, Any]:
    """The options that a user gave, as plain values that JSON can hold."""
    given = {name: value for name, value in options.items() if value is not None}
    return {name: _plain(value) for name, value in given.items()}


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, and sequences of numbers as lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, tuple | range | set | frozenset) else value


def plain_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as JSON holds them: a metric that is a function is its name and the hash of its source."""
    return {
        name: metric_to_json(value) if name == "metric" and callable(value) else value
        for name, value in given.items()
    }


def contrast_name(retain: str, forget: str) -> str:
    return f"{retain} without {forget}"


def distinct_tasks(tasks: Tasks, *, trust_code: bool = False) -> list[Task]:
    """The tasks, no two of one name."""
    chosen = [absolute_task(load_task(task, trust_code=trust_code)) for task in listed_tasks(tasks)]
    names = [task.name for task in chosen]
    if not names:
        raise RequestError("no task is given.")
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"two tasks are named {name!r}; each needs a name of its own.")
    return chosen


def _held_out(tasks: Sequence[Task], test: HeldOut, is_fitted: bool) -> list[Task]:
    """The tasks; those in memory hold out `test`, which is by default what they say themselves, else what
    suits a method that fits gates, or one that does not."""
    if isinstance(test, str) and test == AUTO:
        usual = DEFAULT_SHARE if is_fitted else None
        return [
            task.holding_out(usual) if task.in_memory and task.spec.test == AUTO else task for task in tasks
        ]
    chosen = [task.holding_out(test) for task in tasks]
    if len(chosen) > 1 and not isinstance(chosen[0].spec.test, int | float | None):
        raise RequestError(
            "test is a list of items of one task, but there are several tasks; give each its own with "
            "Task.of(items, name=…, test=…)."
        )
    return chosen


def _side(source: TaskSource, name: str, trust_code: bool) -> Task:
    """A task of a contrast; items without a name are called `name`."""
    listed = listed_tasks(source, name)
    if len(listed) != 1:
        raise RequestError(f"{name} is one task, not {len(listed)}.")
    return absolute_task(load_task(listed[0], trust_code=trust_code))


def _stored_options(runs: Sequence[Run], names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options (of these `names`) and the limit of tokens that earlier runs share, less those `given`
    now. Runs that differ in them are refused."""
    stored = [
        {
            name: value
            for name, value in {**_options_of(run, names), "max_tokens": _max_tokens(run)}.items()
            if name not in given
        }
        for run in runs
    ]
    if any(options != stored[0] for options in stored):
        raise RequestError(
            "these tasks were mapped with different options; continue them one by one (tasks=…), or "
            "give the options."
        )
    options = dict(stored[0]) if stored else {}
    if all(_has_default_limit(run) for run in runs):
        options.pop("max_tokens", None)
    return given_options(**options)


def _options_of(run: Run, names: Sequence[str]) -> dict[str, Any]:
    """The options of an earlier run as its user gave them. An atlas may come from elsewhere: only options of
    the method count, no other argument of a request."""
    return {name: value for name, value in run.settings.get("given", {}).items() if name in names}


def _max_tokens(run: Run) -> int | None:
    """The tokens that a row of the run may have. The rows of a contrast have one limit."""
    facts = [run.task_facts, *run.task_facts.get("parts", {}).values()]
    return next((each["max_tokens"] for each in facts if each.get("max_tokens") is not None), None)


def _has_default_limit(run: Run) -> bool:
    """True if the request of the run set no limit of tokens. Effects that validate measured take the limit
    of the gates, which their request does not state."""
    is_stated = run.request.get("kind") in (MapRequest.kind, ContrastRequest.kind)
    return is_stated and run.request.get("max_tokens") is None


def _load_options(load: Mapping[str, Any] | None, runs: Sequence[Run]) -> dict[str, Any]:
    """The `load_model` options given; by default in the dtype of earlier runs."""
    options = {name: value for name, value in (load or {}).items() if value is not None}
    dtypes = {str(run.decides.get("dtype", "fast")) for run in runs}
    options.setdefault("dtype", dtypes.pop() if len(dtypes) == 1 else "fast")
    return options


def _contrast_sides(run: Run) -> tuple[str, str] | None:
    """The names of the tasks that a contrast keeps and destroys; None for an imported one."""
    parts = run.task_facts.get("parts", {})
    retain, forget = (parts.get(side, {}).get("task") for side in ("retain", "forget"))
    return (retain, forget) if isinstance(retain, str) and isinstance(forget, str) else None


def _recorded_contrast(
    atlas: Atlas, folder: str | Path, retain: str | Path | Task | None, forget: str | Path | Task | None
) -> tuple[Run, tuple[str, str]]:
    """The only contrast of an atlas that was fitted here, or the only one with these tasks; and its tasks."""
    contrasts = [run for (method, _), run in atlas.runs.items() if method == "contrast"]
    fitted = [(run, sides) for run in contrasts if (sides := _contrast_sides(run))]
    names = [task.name if isinstance(task, Task) else task for task in (retain, forget)]
    fitting = [
        (run, sides)
        for run, sides in fitted
        if all(
            name is None or str(name) == side or Path(name).stem == side
            for name, side in zip(names, sides, strict=True)
        )
    ]
    if not fitted:
        other = " (an imported one cannot be continued)" if contrasts else ""
        raise RequestError(f"{folder} has no contrast{other}; give a model, retain=… and forget=….")
    if len(fitting) != 1:
        listed = ", ".join(repr(run.task) for run, _ in fitted)
        problem = "has no such contrast" if not fitting else "has several contrasts"
        raise RequestError(f"{folder} {problem}; choose one with retain=… and forget=…: {listed}.")
    return fitting[0]


def _recorded(run: Run, trust_code: bool, name: str | None = None) -> Task:
    task = recorded_task(run, name, trust_code=trust_code)
    if task is None:
        option = "tasks=…" if name is None else "retain=… or forget=…"
        raise RequestError(f"{name or run.task}: its file is not known or has moved; give it with {option}.")
    return task


def _readable(tasks: Sequence[Task]) -> tuple[Task, ...]:
    for task in tasks:
        task.require_readable()
    return tuple(tasks)


def _checked_tokens(max_tokens: int | None) -> int | None:
    if max_tokens is None:
        return None
    return require_whole("max_tokens", max_tokens, 2, 1_000_000_000)  # a prompt and a target need one each


def _step(method: str, task: str, seeds: tuple[int, ...], stages: Mapping[str, tuple[str, ...]]) -> Step:
    """A block of seeds of a method that fits gates, or one seed of a method that measures effects."""
    if not stages:
        path = record_path(EffectMap, method, task, seed=seeds[0])
        name = f"{task}: {method}" + (f", seed {seeds[0]}" if seeds[0] else "")
        return Step(name, (task,), seeds, makes=(path,), reads=(path.parent,))
    fits = [fit for names in stages.values() for fit in names]
    makes = tuple(record_path(Fit, method, task, seed=seed, fit=fit) for seed in seeds for fit in fits)
    work = tuple(work_path(method, task, stage) for stage in stages)
    prefix = task if method == "gating" else f"{task}: {method}"
    return Step(
        f"{prefix}, {seeds_text(seeds)}", (task,), seeds, makes=makes, work=work, reads=(makes[0].parent,)
    )
