"""A relation: pairs of words, source and target, such as France and Paris. Built in, or a file of yours."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import StringIO
from pathlib import Path
from string import Formatter
from typing import Any, TypeGuard

import yaml

from headatlas.core import CATEGORIES, RequestError, TaskError, UnknownNameError, is_printable
from headatlas.task.item_list import is_table, rows_of

__all__ = [
    "OTHER",
    "Relation",
    "RelationSource",
    "Relations",
    "builtin_relations",
    "distinct_relations",
    "load_relation",
]

_BUILTIN = files("headatlas.task") / "relations"
#: the category of a relation that names none
OTHER = "other"
#: the name of a list of pairs that is given without one
_UNNAMED = "pairs"


@dataclass(frozen=True, slots=True)
class Relation:
    """Pairs of words, each once; `repeats` are those that were given again. Spaces around a word are
    stripped, because every word is read after a space. `prompt` is a text that asks for the target, with
    {source} in it; `about`, `licence` and `published` (is it one of MAPS's twenty?) say where
    it comes from."""

    name: str
    pairs: Sequence[tuple[str, str]]
    _: KW_ONLY
    category: str = OTHER
    prompt: str | None = None
    about: str = ""
    licence: str | None = None
    published: bool = False
    repeats: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        for key in ("name", "category"):
            value = getattr(self, key)
            if not (isinstance(value, str) and value.strip() and is_printable(value)):
                raise TaskError(f"the {key} of a relation is a line of text, not {value!r:.60}.")
        pairs = _require_pairs(self.name, self.pairs)
        counts = Counter(pairs)
        again = [pair for pair, count in counts.items() for _ in range(count - 1)]
        object.__setattr__(self, "pairs", tuple(counts))
        object.__setattr__(self, "repeats", (*self.repeats, *again))
        if self.prompt is not None:
            _require_prompt(self.prompt, f"relation {self.name!r}")

    @property
    def copies(self) -> bool:
        """Is every target its own source? Then only the very top place counts."""
        return all(source == target for source, target in self.pairs)

    @property
    def content_hash(self) -> str:
        return sha256(json.dumps([self.prompt, self.pairs]).encode()).hexdigest()


#: a relation: its name, its file, itself, or a list of pairs
RelationSource = str | Path | Relation | Sequence[tuple[str, str]]
#: one relation or several, or {name: pairs}
Relations = RelationSource | Mapping[str, Relation | Sequence[tuple[str, str]]] | Sequence[RelationSource]


def builtin_relations() -> list[str]:
    """The names of the built-in relations, category by category."""
    return list(_catalogue())


def load_relation(name: RelationSource, *, category: str | None = None) -> Relation:
    """A built-in relation, a CSV file with the columns `source` and `target`, a JSON list of pairs, or a list
    of pairs as it is, which is named "pairs".

    A file's relation is named after it; its category is that of its column or key of this name, else
    `category`, else "other".
    """
    if isinstance(name, Relation):
        return name
    if isinstance(name, str) and name in _catalogue():
        return _builtin(name)
    name = _plain_pairs(name)
    if _is_pairs(name):
        return Relation(_UNNAMED, name, category=category or OTHER)
    if not isinstance(name, str | Path):
        raise TaskError(
            f"{name!r:.60} is not a relation; give a name, a file, a list of pairs or Relation(name, pairs)."
        )
    path = Path(name)
    if path.suffix.lower() not in (".csv", ".json"):
        raise UnknownNameError(
            "relation",
            str(name),
            _catalogue(),
            "(or give a .csv file with the columns source and target, or a .json list of pairs; several are "
            "given one by one.)",
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TaskError(f"{path.name} is not valid UTF-8 (byte {error.start}).") from None
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {error.strerror or error}.") from None
    pairs, named, prompt = _from_csv(path, text) if path.suffix.lower() == ".csv" else _from_json(path, text)
    said = (named or category or OTHER).strip()
    said = said.lower() if said.lower() in CATEGORIES else said  # Knowledge is knowledge
    return Relation(path.stem, _sound(path.name, pairs), category=said, prompt=prompt)


def distinct_relations(relations: Relations | None) -> list[Relation]:
    """The relations, no two of one name; all built-in ones for None."""
    chosen = [
        relation
        for source in _listed(relations)
        for relation in (_named(source) if isinstance(source, Mapping) else [load_relation(source)])
    ]
    names = [relation.name for relation in chosen]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"two relations are named {name!r}; each needs a name of its own.")
    if not names:
        raise RequestError("no relation is given.")
    return chosen


def _listed(relations: Relations | None) -> list[Any]:
    if relations is None:
        return list(builtin_relations())
    relations = _plain_pairs(relations)
    if isinstance(relations, str | Mapping) or not isinstance(relations, Iterable):
        return [relations]
    listed = list(relations)
    return [listed] if _is_pairs(listed) else listed


def _named(relations: Mapping[Any, Any]) -> list[Relation]:
    """The relations of {name: pairs}."""
    return [
        replace(load_relation(pairs), name=name)
        if isinstance(pairs, str | Path | Relation)
        else Relation(name, pairs)
        for name, pairs in relations.items()
    ]


def _plain_pairs(pairs: Any) -> Any:
    """The pairs of a DataFrame with the columns `source` and `target`, or of an array; others as they are."""
    if not is_table(pairs):
        return rows_of(pairs)
    columns = [str(name) for name in pairs.columns]
    for column in ("source", "target"):
        if column not in columns:
            raise TaskError(
                f"the table of pairs has no column {column!r}; it has {', '.join(columns) or 'none'}."
            )
    return pairs[["source", "target"]].to_numpy().tolist()


def _is_pairs(value: Any) -> TypeGuard[Sequence[tuple[str, str]]]:
    """True for a list of pairs: each entry holds two texts."""
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or not value:
        return False
    first = value[0]
    return isinstance(first, tuple | list) and len(first) == 2 and all(isinstance(w, str) for w in first)


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    found = yaml.safe_load((_BUILTIN / "relations.yaml").read_text(encoding="utf-8"))
    order = {category: place for place, category in enumerate(CATEGORIES)}
    return dict(sorted(found.items(), key=lambda entry: (order[entry[1]["category"]], entry[0])))


@cache
def _builtin(name: str) -> Relation:
    about = _catalogue()[name]
    text = (_BUILTIN / f"{name}.csv").read_text(encoding="utf-8")
    pairs = tuple((line["source"], line["target"]) for line in csv.DictReader(text.splitlines()))
    return Relation(
        name,
        pairs,
        category=about["category"],
        prompt=about.get("prompt"),
        about=about.get("about", ""),
        licence=about.get("licence"),
        published=bool(about.get("published")),
    )


_Read = tuple[Iterator[tuple[int, Any, Any]], str | None, str | None]


def _from_csv(path: Path, text: str) -> _Read:
    reader = csv.DictReader(StringIO(text, newline=""), strict=True)
    try:
        reader.fieldnames = [str(name).strip().lower() for name in reader.fieldnames or []]
        lines = [(reader.line_num, line) for line in reader]
    except csv.Error as error:
        raise TaskError(f"{path.name}: line {reader.reader.line_num} is not CSV ({error}).") from None
    there = [name for name in reader.fieldnames if name]
    if twice := [name for name in there if there.count(name) > 1]:
        raise TaskError(f"{path.name} has two columns named {twice[0]!r}.")
    for column in ("source", "target"):
        if column not in there:
            raise TaskError(
                f"{path.name} has no column {column!r}; its columns are {', '.join(there) or 'none'}."
            )
    for number, line in lines:
        if None in line:
            raise TaskError(
                f"{path.name}: line {number} has more fields than the header ({len(there)}); put quotes "
                "around a word with a comma."
            )
    categories = {line["category"].strip() for _, line in lines if (line.get("category") or "").strip()}
    if len(categories) > 1:
        raise TaskError(
            f"{path.name} names several categories ({', '.join(sorted(categories))}); a relation has one."
        )
    pairs = ((number, line["source"], line["target"]) for number, line in lines)
    return pairs, next(iter(categories), None), None


def _from_json(path: Path, text: str) -> _Read:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise TaskError(f"{path.name} is not JSON.") from None
    keys: dict[str, Any] = {}
    if isinstance(data, dict):
        keys, data = data, data.get("pairs")
    if not isinstance(data, list):
        raise TaskError(
            f'{path.name} holds no list of pairs; write [["France", "Paris"], …], or an object with the keys '
            '"pairs" and "category".'
        )
    pairs = []
    for number, entry in enumerate(data, 1):
        pair = [entry.get("source"), entry.get("target")] if isinstance(entry, dict) else entry
        if not isinstance(pair, list) or len(pair) != 2:
            raise TaskError(f"{path.name}: entry {number} is not a pair: {json.dumps(pair)[:60]}.")
        pairs.append((number, *pair))
    category, prompt = (keys.get(key) for key in ("category", "prompt"))
    for key, value in (("category", category), ("prompt", prompt)):
        if value is not None and not isinstance(value, str):
            raise TaskError(f"{path.name}: {key} is a text, not {value!r}.")
    if prompt is not None:
        _require_prompt(prompt, path.name)
    return iter(pairs), category.strip() if category else None, prompt


def _require_prompt(prompt: str, where: str) -> None:
    """{source} and nothing else in braces: no parts of it, no widths."""
    try:
        places = [part[1:] for part in Formatter().parse(prompt) if part[1] is not None]
    except ValueError:
        places = []
    if not places or any(place != ("source", "", None) for place in places):
        raise TaskError(f"{where}: the prompt {prompt!r} has to hold {{source}}, and no other place.")


def _require_pairs(name: str, pairs: Any) -> list[tuple[str, str]]:
    """Tuples; a pair may be given as any sequence of two texts."""
    pairs = _plain_pairs(pairs)
    if isinstance(pairs, str | Mapping) or not isinstance(pairs, Iterable):
        raise TaskError(
            f'relation {name!r}: pairs are a list such as [("France", "Paris")], not {pairs!r:.60}.'
        )
    kept: list[tuple[str, str]] = []
    for number, pair in enumerate(pairs, 1):
        words = tuple(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else ()
        if len(words) != 2 or not all(isinstance(word, str) for word in words):
            raise TaskError(
                f"relation {name!r}: pair {number} is {pair!r:.60}; give two texts, source and target."
            )
        source, target = (word.strip() for word in words)
        if not source or not target:
            raise TaskError(f"relation {name!r}: pair {number} is {pair!r:.60}; both texts need a word.")
        kept.append((source, target))
    return kept


def _sound(name: str, pairs: Iterator[tuple[int, Any, Any]]) -> tuple[tuple[str, str], ...]:
    """The pairs in their order, also those that repeat another."""
    kept: list[tuple[str, str]] = []
    for number, *words in pairs:
        for word in words:
            if not isinstance(word, str | None):
                raise TaskError(f"{name}: entry {number} holds {word!r}; sources and targets are texts.")
            if not (word or "").strip():
                raise TaskError(f"{name}: line {number} lacks a source or a target.")
        kept.append((words[0].strip(), words[1].strip()))
    if not kept:
        raise TaskError(f"{name} holds no pairs.")
    return tuple(kept)
