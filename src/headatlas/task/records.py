"""The records of a task, from whichever source, bounded in number without being held whole."""

from __future__ import annotations

import heapq
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from headatlas.core import HeadatlasError, TaskError
from headatlas.task.hub import read_hub, require_datasets
from headatlas.task.record_file import Record, read_file
from headatlas.task.relation import builtin_relations, load_relation
from headatlas.task.spec import WORDS, TaskSpec
from headatlas.task.split import word_groups

__all__ = ["first_records", "read_records"]

#: code that is not foreign; not all of the package, which can be made to do anything
_OURS = "headatlas.task.generators."


def read_records(
    spec: TaskSpec,
    folder: Path,
    tokenizer: Any,
    text: Callable[[Record], str],
    trust_code: bool = False,
) -> tuple[list[Record], list[Record] | None, int]:
    """(records, held-out records where the source has a split for them, how many there were).

    Relative paths start from `folder`; `text` is all that a record says, where its length matters.
    """
    if spec.kind == "items":
        items, held_out = list(spec.source["items"]), _held_out_items(spec)
        return items, held_out, len(items) + len(held_out or ())
    test = None
    if spec.kind == "generator":
        stream = _generated(spec, folder, tokenizer, trust_code)
    elif spec.kind == "file":
        stream = _from_file(spec, folder)
    elif spec.kind == "relation":
        stream = _of_relation(spec, folder)
    else:
        stream = read_hub(spec.source, spec.source.get("split", "train"))
        if "test_split" in spec.source:
            held_out_stream = _renamed(spec, read_hub(spec.source, spec.source["test_split"]))
            assert isinstance(spec.test, int | float)  # only items in memory have anything else
            test = _sample(held_out_stream, max(1, int(spec.rows * spec.test)))[0]
    counted = _Counted(_renamed(spec, stream))
    stream = (record for record in counted if spec.longest is None or len(text(record)) <= spec.longest)
    if spec.shortest is not None:
        kept = _shortest(stream, spec.shortest, lambda record: len(text(record)))
    elif spec.per_group is not None:
        kept = _per_group(spec, stream, text)
    else:
        kept = _sample(stream, spec.rows)[0]
    return kept, test, counted.seen


class _Counted:
    """Records, counted as they pass."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records, self.seen = records, 0

    def __iter__(self) -> Iterator[Record]:
        for record in self.records:
            self.seen += 1
            yield record


def first_records(spec: TaskSpec, folder: Path, trust_code: bool, most: int) -> list[Record]:
    """As many records as can be had without a tokenizer or a network; what is wrong with them is said now."""
    if spec.kind == "file":
        return list(islice(_renamed(spec, _from_file(spec, folder)), most))
    if spec.kind == "relation":
        return list(islice(_of_relation(spec, folder), most))
    if spec.kind == "items":
        return [*spec.source["items"], *(_held_out_items(spec) or ())][:most]
    if spec.kind == "generator":
        _generator(spec, folder, trust_code)
    else:
        require_datasets()
    return []


def _held_out_items(spec: TaskSpec) -> list[Record] | None:
    """The held-out items of a task in memory, if it states them."""
    if spec.test is None or isinstance(spec.test, int | float | str):
        return None
    held_out = cast("list[Record]", spec.test)
    columns = {key for record in (*spec.source["items"], *held_out) for key in record}
    return [{**dict.fromkeys(columns, ""), **record} for record in held_out]


def _from_file(spec: TaskSpec, folder: Path) -> Iterator[Record]:
    return read_file(folder / str(spec.source["file"]), spec.source.get("format"))


def _of_relation(spec: TaskSpec, folder: Path) -> Iterator[Record]:
    """The pairs of a relation: a built-in one, or a file next to the task."""
    name = str(spec.source["relation"])
    pairs = load_relation(name if name in builtin_relations() else folder / name).pairs
    for (source, target), words in zip(pairs, word_groups(pairs), strict=True):
        yield {"source": source, "target": target, WORDS: words}


def _generated(spec: TaskSpec, folder: Path, tokenizer: Any, trust_code: bool) -> Iterator[Record]:
    path = str(spec.source["generator"])
    where = f"task {spec.name!r}"
    function = _generator(spec, folder, trust_code)
    options = dict(spec.source.get("options") or {})
    if "tokenizer" in signature(function).parameters:
        options["tokenizer"] = tokenizer
    try:
        for record in function(**options):
            if not isinstance(record, dict):
                raise TaskError(f"{where}: {path} gave {record!r}, not a record with columns.")
            yield record
    except HeadatlasError:
        raise
    except Exception as error:  # someone else's code
        raise TaskError(f"{where}: {path} failed with {type(error).__name__}: {error}.") from error


def _generator(spec: TaskSpec, folder: Path, trust_code: bool) -> Callable[..., Iterable[Any]]:
    path = str(spec.source["generator"])
    where = f"task {spec.name!r}"
    ours = path.startswith(_OURS)
    if not ours and not trust_code:
        raise TaskError(
            f"{where} runs the code of {path!r}; if you trust it, load it with load_task(…, trust_code=True)."
        )
    module, _, name = path.partition(":")
    try:
        function: Callable[..., Iterable[Any]] = getattr(
            import_module(module) if ours else _foreign(module, folder), name
        )
        signature(function)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise TaskError(f"{where}: no generator {path!r} (module:function): {error}.") from error
    return function


def _foreign(name: str, folder: Path) -> ModuleType:
    """An installed module, or one that lies beside the task's YAML: read anew, under a name of its own, as
    two tasks may each have a `words.py`."""
    folder = folder.resolve()
    file = folder.joinpath(*name.split(".")).with_suffix(".py")
    sys.path.insert(0, str(folder))
    try:
        if not file.is_file():
            return import_module(name)
        own = f"_task_{sha256(str(file).encode()).hexdigest()[:16]}"
        spec = spec_from_file_location(own, file)
        assert spec is not None and spec.loader is not None  # a .py file has both
        module = sys.modules[own] = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(folder))


def _renamed(spec: TaskSpec, records: Iterable[Record]) -> Iterator[Record]:
    """`columns: {prompt: question}` makes the column `question` known as `prompt` too."""
    columns = spec.source.get("columns") or {}
    for record in records:
        for old in columns.values():
            if old not in record:
                there = ", ".join(str(key) for key in record) or "none"
                raise TaskError(f"task {spec.name!r}: there is no column {old!r}; the columns are {there}.")
        yield {**record, **{new: record[old] for new, old in columns.items()}} if columns else record


def _sample(records: Iterator[Record], most: int) -> tuple[list[Record], int]:
    """All, or a fair sample of `most` (a reservoir), in the order of the source."""
    chance = random.Random(0)
    kept: list[tuple[int, Record]] = []
    seen = 0
    for record in records:
        if seen < most:
            kept.append((seen, record))
        elif (place := chance.randrange(seen + 1)) < most:
            kept[place] = seen, record
        seen += 1
    return [record for _, record in sorted(kept, key=lambda pair: pair[0])], seen


def _shortest(records: Iterator[Record], most: int, length: Callable[[Record], int]) -> list[Record]:
    """The `most` shortest, in the order of the source; of equal ones the earlier."""
    heap: list[tuple[int, int, Record]] = []
    for number, record in enumerate(records):
        _push(heap, (-length(record), -number, record), most)
    return _in_order(heap)


def _per_group(spec: TaskSpec, records: Iterator[Record], text: Callable[[Record], str]) -> list[Record]:
    """`per_group` records of every group that has so many, chosen by a hash of their text, in the order of
    the source."""
    assert spec.group is not None and spec.per_group is not None
    heaps: defaultdict[str, list[tuple[int, int, Record]]] = defaultdict(list)
    for number, record in enumerate(records):
        value = int.from_bytes(sha256(text(record).encode("utf-8", "surrogatepass")).digest()[:8])
        _push(heaps[str(record.get(spec.group))], (value, -number, record), spec.per_group)
    return _in_order([entry for heap in heaps.values() if len(heap) == spec.per_group for entry in heap])


def _push(heap: list[tuple[int, int, Record]], entry: tuple[int, int, Record], most: int) -> None:
    """Keep the `most` largest entries."""
    if len(heap) < most:
        heapq.heappush(heap, entry)
    elif entry[:2] > heap[0][:2]:
        heapq.heapreplace(heap, entry)


def _in_order(heap: list[tuple[int, int, Record]]) -> list[Record]:
    return [record for _, _, record in sorted(heap, key=lambda entry: -entry[1])]
