"""Where the model and the tasks of an atlas are: found again from what its runs remember."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headatlas.atlas import Atlas, Run
from headatlas.core import (
    ModelRef,
    RequestError,
    TaskError,
    UnknownNameError,
    require_device,
    require_dtype_name,
)
from headatlas.task import Task, TaskSpec, builtin_relations, task_by_name

__all__ = [
    "absolute_task",
    "model_ref",
    "named_model",
    "recorded_model",
    "recorded_task",
    "task_from_json",
    "task_to_json",
]


def model_ref(model: Any, **load: Any) -> ModelRef:
    """The model that a user names, with the `load_model` options given; or one that is loaded already.

    A path becomes absolute, because a worker or a later command starts elsewhere.
    """
    if not isinstance(model, str | os.PathLike):
        return ModelRef(None)
    from headatlas.model.embedded import EMBEDDED

    source = os.fspath(model)
    if not source:
        raise RequestError("the name of the model is empty; give a name, a folder or a file.")
    try:
        path = Path(source).expanduser()
        if source not in EMBEDDED and path.exists():
            source = str(path.resolve())
    except (OSError, RuntimeError):  # far too long, or in the home of nobody: loading it says so
        pass
    given = {name: value for name, value in load.items() if value is not None}
    known = ModelRef.__slots__[1:]
    for name in given:
        if name not in known:
            raise UnknownNameError("option of a model that is given by name", name, known)
    if "dtype" in given:
        given["dtype"] = require_dtype_name(str(given["dtype"]).removeprefix("torch."))
    if "device" in given:
        given["device"] = require_device(str(given["device"]))
    return ModelRef(source, **given)


def recorded_model(atlas: Atlas, **load: Any) -> ModelRef:
    """The model that the atlas was made of: where the latest run that says so found it, else by its name.

    Options that are not given are those of that run; whether to run the model's own code is never read from
    an atlas.
    """
    refs = [ModelRef.from_json(run.request.get("model", {})) for run in atlas.runs.values()]
    ref = next((ref for ref in reversed(refs) if ref.source is not None), ModelRef(None))
    source = ref.source
    if source is None or (Path(source).is_absolute() and not _is_there(Path(source), Path.exists)):
        source, ref = atlas.spec.name, ModelRef(None, revision=atlas.spec.revision)
    kept = {"device_map": ref.device_map, "revision": ref.revision}
    return model_ref(source, **{**kept, **{name: value for name, value in load.items() if value is not None}})


def named_model(model: Any, atlas: Atlas, **load: Any) -> ModelRef:
    """The model that a user names, or by default that of the atlas, in the revision of the atlas."""
    if model is None:
        return recorded_model(atlas, **load)
    if str(model) == atlas.spec.name and load.get("revision") is None:
        load["revision"] = atlas.spec.revision
    return model_ref(model, **load)


def _is_there(path: Path, look: Callable[[Path], bool]) -> bool:
    """What `look` finds; False also for a name that no file can have, as one that is too long."""
    try:
        return look(path)
    except (OSError, ValueError):
        return False


def recorded_task(run: Run, name: str | None = None, *, trust_code: bool = False) -> Task | None:
    """The task of a run (of a contrast, the one of that `name`), as the run remembers it, else the built-in
    one of its name. None if nothing says where it is, or if its file is gone.

    A task that has changed is found all the same: the content hash of its items shows that later.
    """
    name = run.task if name is None else name
    for data in run.request.get("tasks", ()):
        if data.get("name") != name:
            continue
        try:
            task = task_from_json(data, trust_code=trust_code)
        except (KeyError, TypeError, TaskError, UnknownNameError):
            return None
        if task.name == name:
            if _has_moved(task):
                return None
            task.require_readable()
            return task
    return task_by_name(name)


def _has_moved(task: Task) -> bool:
    """True if the file that the task is read from is gone."""
    if _is_built_in(task) or task.in_memory:
        return False
    if task.spec.kind in ("file", "relation"):
        name = str(task.spec.source[task.spec.kind])
        return name not in builtin_relations() and not _is_there(task.folder / name, Path.is_file)
    return not _is_there(task.folder, Path.is_dir)


def absolute_task(task: Task) -> Task:
    """The task with a folder that does not depend on the working directory: a worker has another one."""
    return task if task.in_memory or _is_built_in(task) else replace(task, folder=task.folder.resolve())


def task_to_json(task: Task) -> dict[str, Any]:
    """What it takes to read the task again, without the permission to run its code. A task in memory brings
    its items."""
    if task.in_memory:
        return {"name": task.name, "spec": task.spec.to_json()}
    if _is_built_in(task):
        return {"name": task.name}
    return {"name": task.name, "spec": task.spec.to_json(), "folder": str(task.folder.resolve())}


def _is_built_in(task: Task) -> bool:
    """True for a built-in task or one of a plugin, which says itself whether its code is trusted."""
    known = task_by_name(task.name)
    return known is not None and replace(known, trust_code=False) == replace(task, trust_code=False)


def task_from_json(data: Mapping[str, Any], *, trust_code: bool = False) -> Task:
    if "spec" not in data:
        known = task_by_name(str(data["name"]))
        if known is None:
            raise TaskError(f"no task is named {data['name']!r}, and the atlas does not say where it is.")
        return known
    spec = {name: value for name, value in data["spec"].items() if name != "kind"}
    return Task(TaskSpec.from_mapping(spec, "the atlas"), Path(data.get("folder", "")), trust_code)
