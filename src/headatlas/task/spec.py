"""What a task is: a few lines of YAML, checked when they are read.

    name: past-tense
    version: 1
    licence: CC0-1.0
    about: Verbs in the past tense.
    source: {file: verbs.jsonl}          # or {generator: module:function}, {hub: owner/name, …}, {items: […]}
    instruction: Write the verb in the past tense.
    prompt: "Q: {verb}\\nA:"
    target: " {past}"
    examples: 1                          # worked examples before each question
    examples_by: kind                    # examples have the same value in this column
    group: template                      # records with the same value in this column are held out together
    test: 0.1                            # share of the groups that is held out

`instruction`, `prompt` and `target` are templates; `{column}` stands for a column of the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from string import Formatter
from typing import Any

from headatlas.core import TaskError, UnknownNameError, is_printable
from headatlas.task.item_list import DEFAULT_SHARE, HeldOut, checked_test, item_records

__all__ = ["SOURCES", "WORDS", "TaskSpec", "columns_of", "fill"]

#: kind of source -> the keys that it takes
SOURCES = {
    "generator": {"generator", "options"},
    "file": {"file", "format", "columns"},
    "relation": {"relation"},
    "hub": {"hub", "configs", "split", "test_split", "revision", "columns", "transform"},
    "items": {"items"},
}
#: what is not text
_KINDS: dict[str, type] = {"columns": dict, "options": dict, "configs": list, "items": list}
_REQUIRED = ("name", "source", "prompt", "target")
_WHOLE = ("version", "examples", "rows", "shortest", "longest", "per_group")
#: the column that tells which pairs of a relation are related
WORDS = "words"


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One task. `rows` bounds how many records are kept (a fair sample of a longer source), `shortest`
    keeps that many of the shortest ones instead. `corrupted` is a prompt in which what the target depends on
    is changed, for causal mediation. `foil` is the template of a wrong target, for the metric logit_diff;
    without it a task whose target is `{target}` takes the column `foil` where its records have one.

    `group` names the column that holds a record's group. The split holds out whole groups, a share of `test`,
    and a few records of the other groups. Without it the records of one prompt are a group. `per_group` keeps
    that many records of each group, and only groups that have so many; `longest` leaves out records with more
    characters in prompt and target.

    A source of items in memory holds the records themselves. There `test` is a share or a number of the
    items, other items, None (nothing is held out), or "auto"."""

    name: str
    source: Mapping[str, Any]
    prompt: str
    target: str
    version: int = 1
    licence: str = "not stated"
    about: str = ""
    instruction: str = ""
    examples: int = 0
    examples_by: str | None = None
    corrupted: str = ""
    test: HeldOut = DEFAULT_SHARE
    rows: int = 20_000
    shortest: int | None = None
    group: str | None = None
    longest: int | None = None
    per_group: int | None = None
    foil: str = ""
    kind: str = field(init=False, default="")

    def __post_init__(self) -> None:
        for key in ("name", "prompt", "target", "instruction", "licence", "about", "corrupted", "foil"):
            if not isinstance(getattr(self, key), str):
                raise TaskError(f"task {self.name!r}: {key} is text, not {getattr(self, key)!r}.")
        for key in _WHOLE:
            value = getattr(self, key)
            least = 0 if key in ("version", "examples") else 1
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise TaskError(
                    f"task {self.name!r}: {key} is a whole number from {least} on, not {value!r}."
                )
        if not self.name.strip() or not is_printable(self.name):
            raise TaskError(f"a task's name is a line of text, not {self.name!r}.")
        if self.examples_by is not None and not isinstance(self.examples_by, str):
            raise TaskError(f"task {self.name!r}: examples_by names one column, not {self.examples_by!r}.")
        if self.group is not None and not (isinstance(self.group, str) and self.group):
            raise TaskError(f"task {self.name!r}: group names one column, not {self.group!r}.")
        object.__setattr__(self, "kind", _source_kind(self.name, self.source))
        if self.kind == "items":
            where = f"task {self.name!r}"
            object.__setattr__(self, "source", {"items": item_records(self.source["items"], where)})
            object.__setattr__(self, "test", checked_test(self.test, where))
        elif not isinstance(self.test, int | float) or not 0 < self.test < 1:
            raise TaskError(f"task {self.name!r}: test is a share between 0 and 1, not {self.test!r}.")
        if self.kind == "relation" and self.group is None:
            object.__setattr__(self, "group", WORDS)
        if self.per_group is not None and (self.group is None or self.shortest is not None):
            raise TaskError(f"task {self.name!r}: per_group needs 'group: COLUMN', and no 'shortest'.")
        for key in ("instruction", "prompt", "target", "corrupted", "foil"):
            columns_of(getattr(self, key), f"task {self.name!r}: {key}")

    @classmethod
    def from_mapping(cls, data: Any, where: str) -> TaskSpec:
        """Read what YAML gave; `where` names it in errors."""
        if not isinstance(data, Mapping):
            raise TaskError(f"{where} holds no task: it must have lines such as 'prompt: …'.")
        known = {entry.name for entry in fields(cls)} - {"kind"}
        for key in data:
            if key not in known:
                raise UnknownNameError(f"setting of a task (in {where})", str(key), known)
        for key in _REQUIRED:
            if key not in data:
                raise TaskError(f"{where} has no {key!r}; a task needs {', '.join(_REQUIRED)}.")
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        """A task without a template of foils is written as in atlases written before foils existed."""
        data = asdict(self)
        return data if self.foil else {key: value for key, value in data.items() if key != "foil"}


def _source_kind(name: str, source: Any) -> str:
    kinds = [kind for kind in SOURCES if isinstance(source, Mapping) and kind in source]
    if len(kinds) != 1:
        raise TaskError(f"task {name!r}: source has one of {', '.join(SOURCES)}.")
    for key, value in source.items():
        if key not in SOURCES[kinds[0]]:
            raise UnknownNameError(
                f"setting of a {kinds[0]} source (task {name!r})", str(key), SOURCES[kinds[0]]
            )
        if value is not None and not isinstance(value, _KINDS.get(key, str)):
            raise TaskError(f"task {name!r}: {key} of the source cannot be {value!r}.")
    if not all(isinstance(config, str) for config in source.get("configs") or []):
        raise TaskError(f"task {name!r}: configs is a list of names, not {source['configs']!r}.")
    return kinds[0]


def columns_of(template: str, where: str) -> list[str]:
    """The columns that a template names."""
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise TaskError(f"{where}: {error}; write {{{{ and }}}} for braces that are meant.") from None
    names = []
    for _, name, form, conversion in parsed:
        if name is None:
            continue
        if not name.isidentifier() or form or conversion:
            raise TaskError(f"{where}: {{{name}}} is no plain column name.")
        names.append(name)
    return names


def fill(template: str, record: Mapping[str, Any], where: str) -> str:
    """The template with the record's values in it."""
    for name in columns_of(template, where):
        if name not in record:
            there = ", ".join(str(key) for key in record) or "none"
            raise TaskError(f"{where}: there is no column {name!r}; the columns are {there}.")
        if not _is_plain(record[name]):
            kind = type(record[name]).__name__
            raise TaskError(f"{where}: column {name!r} holds a {kind} ({record[name]!r:.60}), not text.")
    text = template.format_map({key: "" if value is None else value for key, value in record.items()})
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TaskError(f"{where}: {text!r:.60} holds half a character (a lone surrogate).") from None
    return text


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
