"""Tasks by name: built-in ones, YAML files, data files, hub data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from re import fullmatch
from typing import Any
from urllib.parse import parse_qsl

import yaml

from headatlas.core import TaskError, UnknownNameError, is_local_path, without_local_paths
from headatlas.core.registry import Registry
from headatlas.task.item_list import is_item_list
from headatlas.task.record_file import FORMATS, file_format
from headatlas.task.relation import builtin_relations, load_relation
from headatlas.task.spec import SOURCES, TaskSpec
from headatlas.task.task import Task

__all__ = [
    "PLUGIN_TASKS",
    "TaskSource",
    "Tasks",
    "builtin_tasks",
    "listed_tasks",
    "load_task",
    "task_by_name",
]

#: tasks that installed packages provide; their generators are trusted as far as the packages say
PLUGIN_TASKS = Registry("task", Task, None, "headatlas.tasks")

_BUILTIN = files("headatlas.task") / "builtin"
#: a task: its name, its file, itself, or its items
TaskSource = str | Path | Task | Sequence[Any]
#: one task or several, or {name: items}
Tasks = TaskSource | Mapping[str, Any] | Sequence[TaskSource]
#: BLiMP has 67 paradigms of one layout: one file stands for all of them
_FAMILY = "blimp/"
_PLACEHOLDERS = (_FAMILY, f"{_FAMILY}<paradigm>", f"{_FAMILY}paradigm")
_RELATION = "relation:"
#: worked examples before a question about a relation
_SHOTS = 3


def builtin_tasks() -> Iterator[TaskSpec]:
    """All built-in tasks, by name, then those of plugins; a family is shown as one task."""
    for name in _names():
        spec = _builtin(name).spec
        yield replace(spec, name=_FAMILY + "<paradigm>") if name.startswith(_FAMILY) else spec
    yield from (task.spec for task in PLUGIN_TASKS.values())


def listed_tasks(tasks: Any, name: str = "items") -> list[str | Path | Task]:
    """One task or several, or {name: items}, as a list. Items in memory become tasks; a list of items without
    a name is called `name`."""
    if isinstance(tasks, Mapping):
        return [_named(label, items) for label, items in tasks.items()]
    if is_item_list(tasks):
        return [Task.of(tasks, name=name)]
    if isinstance(tasks, str | Path | Task) or not isinstance(tasks, Iterable):
        return [tasks]
    entries: list[Any] = list(tasks)
    if is_item_list(entries) and not is_item_list(tasks):  # an iterator of items
        return [Task.of(entries, name=name)]
    return [
        task
        for entry in entries
        for task in (
            listed_tasks(entry, name) if isinstance(entry, Mapping) or is_item_list(entry) else [entry]
        )
    ]


def _named(name: Any, items: Any) -> Task:
    if isinstance(items, str | Path):
        items = load_task(items)
    if not isinstance(items, Task):
        return Task.of(items, name=name)
    return replace(items, spec=replace(items.spec, name=name))


def load_task(name: TaskSource, *, trust_code: bool = False) -> Task:
    """A built-in task, a `.yaml` file, a `.jsonl`, `.csv` or `.parquet` file with the columns `prompt` and
    `target` (or `file.csv?prompt=question&target=answer&group=template`), a list of items as for `Task.of`,
    a relation asked for with worked
    examples (`relation:past-tense`, or a file of pairs), or a hub data set:
    `hub:owner/name?split=train&prompt=question&target=answer`. Records with the same value in the column
    `group` are held out together.

    A YAML file may name a generator, which is code: it runs only with `trust_code`.
    """
    if isinstance(name, Task):
        return name
    if is_item_list(name):
        return Task.of(name)
    if not isinstance(name, str | Path):
        raise TaskError(
            f"{name!r:.60} is not a task; give a name, a file, a list of items or what load_task returns."
        )
    text = str(name)
    if isinstance(name, str) and text.startswith("hub:"):
        return _hub(text)
    if isinstance(name, str) and text.startswith(_RELATION):
        return _asking(text.removeprefix(_RELATION))
    if isinstance(name, str) and text in _PLACEHOLDERS:
        raise TaskError(
            "blimp has 67 paradigms, each a task: name one, as in blimp/anaphor_gender_agreement."
        )
    if isinstance(name, str) and (text in _names() or text.startswith(_FAMILY)):
        return _builtin(text)
    if isinstance(name, str) and text in PLUGIN_TASKS:
        return PLUGIN_TASKS[text]
    path = Path(text)
    if isinstance(name, str) and "?" in text and not path.is_file():
        file, _, query = text.partition("?")
        if Path(file).suffix.lower() in FORMATS or Path(file).is_file():
            return _from_file(Path(file), query)
    if path.suffix.lower() in (".yaml", ".yml"):
        return replace(_from_yaml(path), trust_code=trust_code)
    if path.suffix.lower() in FORMATS or path.is_file():
        return _from_file(path)
    names = [entry for entry in (*_names(), *PLUGIN_TASKS) if not entry.startswith(_FAMILY)]
    raise UnknownNameError("task", text, names, "(or give a .yaml, .jsonl, .csv or .parquet file.)")


def task_by_name(name: str) -> Task | None:
    """The built-in task of that name, or that of a plugin; None if there is none. Unlike `load_task` it opens
    no file and no data set."""
    is_family = fullmatch(rf"{_FAMILY}\w+", name) is not None and name not in _PLACEHOLDERS
    asks_relation = name.startswith(_RELATION) and name.removeprefix(_RELATION) in builtin_relations()
    is_known = name in _names() or is_family or asks_relation or name in PLUGIN_TASKS
    return load_task(name) if is_known else None


def _names() -> list[str]:
    """`paper-math.yaml` is the task `paper/math`."""
    return sorted(
        entry.name.removesuffix(".yaml").replace("-", "/", 1)
        for entry in _BUILTIN.iterdir()
        if entry.name.endswith(".yaml")
    )


def _builtin(name: str) -> Task:
    family = name.startswith(_FAMILY)
    file = _BUILTIN / (("blimp-paradigm" if family else name.replace("/", "-", 1)) + ".yaml")
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    if family:
        data["name"] = name
        data["source"]["configs"] = [name.removeprefix(_FAMILY)]
    return Task(TaskSpec.from_mapping(data, f"the built-in task {name!r}"))


def _from_yaml(path: Path) -> Task:
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"{path.name} is not valid UTF-8 (byte {error.start}).") from None
    except RecursionError:
        raise TaskError(f"{path.name} is nested too deeply.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark else ""
        raise TaskError(
            f"{path.name} is not valid YAML{place}: {getattr(error, 'problem', error)}."
        ) from None
    return Task(TaskSpec.from_mapping(data, path.name), path.parent)


def _query_options(query: str) -> dict[str, str]:
    """key -> value of "prompt=question&target=answer"; a key that stands there twice is refused."""
    pairs = parse_qsl(query, keep_blank_values=True)
    given = dict(pairs)
    if len(given) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        values = ", ".join(repr(value) for key, value in pairs if key == repeated)
        raise TaskError(f"{repeated!r} is given more than once ({values}); give each option of a task once.")
    return given


def _from_file(path: Path, query: str = "") -> Task:
    given = _query_options(query)
    columns = {key: given.pop(key) for key in ("prompt", "target", "foil") if key in given}
    name, group, form = given.pop("name", path.stem), given.pop("group", None), given.pop("format", None)
    for key in given:
        raise UnknownNameError(
            "option of a task file", key, ["foil", "format", "group", "name", "prompt", "target"]
        )
    file_format(path, form)
    if not path.is_file():
        raise TaskError(f"{path} does not exist or is not a file.")
    source: dict[str, Any] = {"file": path.name}
    source |= {"columns": columns} if columns else {}
    source |= {"format": form} if form else {}
    spec = TaskSpec(name=name, source=source, prompt="{prompt}", target="{target}", group=group)
    return Task(spec, path.parent)


def _asking(name: str) -> Task:
    """The targets of a relation are asked for, with its own prompt."""
    relation = load_relation(name)
    path = Path() if name in builtin_relations() else Path(name)
    return Task(
        TaskSpec(
            name=_RELATION + relation.name,
            source={"relation": path.name or name},
            prompt=relation.prompt or "{source} ->",
            target=" {target}",
            licence=relation.licence or "not stated",
            about=relation.about,
            examples=_SHOTS,
            test=0.2,
        ),
        path.parent,
    )


def _hub(text: str) -> Task:
    name, _, query = text.removeprefix("hub:").partition("?")
    given = _query_options(query)
    columns = {key: given.pop(key) for key in ("prompt", "target", "foil") if key in given}
    group = given.pop("group", None)
    source: dict[str, Any] = {"hub": name, "columns": columns}
    folder_or_name = without_local_paths(name) if is_local_path(name) else name
    called = given.pop("name", "/".join([folder_or_name, *([given["config"]] if "config" in given else [])]))
    if "config" in given:
        source["configs"] = [given.pop("config")]
    plain = SOURCES["hub"] - {"hub", "configs", "columns"}
    for key, value in given.items():
        if key not in plain:
            allowed = sorted({"config", "group", "name", "prompt", "target"} | plain)
            raise UnknownNameError("option of a hub data set", key, allowed)
        source[key] = value
    if not name:
        raise TaskError(f"{text!r} names no data set; write hub:owner/name?prompt=column&target=column.")
    return Task(TaskSpec(name=called, source=source, prompt="{prompt}", target="{target}", group=group))
