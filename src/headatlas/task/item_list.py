"""Items in memory: lists of pairs or dicts, and tables. They become records of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import isnan
from operator import index
from typing import Any

from headatlas.core import TaskError, warn_user
from headatlas.task.record_file import Record

__all__ = [
    "AUTO",
    "DEFAULT_SHARE",
    "ITEM_KEYS",
    "HeldOut",
    "checked_test",
    "is_item_list",
    "is_table",
    "item_records",
    "rows_of",
]

#: what an item may say; prompt and target are needed
ITEM_KEYS = ("prompt", "target", "corrupted", "foil", "group")
#: hold out what suits the method: a share of `DEFAULT_SHARE` if it fits gates, else nothing
AUTO, DEFAULT_SHARE = "auto", 0.1
#: a share, a count, the items themselves, None (nothing), or `AUTO`
HeldOut = float | int | str | Sequence[Any] | None


def is_item_list(value: Any) -> bool:
    """True for a table, and for a list that holds items and not tasks."""
    if is_table(value):
        return True
    value = rows_of(value)
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        return False
    first = value[0]
    if isinstance(first, Mapping):
        return any(isinstance(text, str) for text in first.values())
    return isinstance(first, tuple | list) and bool(first) and isinstance(first[0], str)


def item_records(items: Any, where: str) -> list[Record]:
    """A record for each item; the keys that any item has are in all of them."""
    items = rows_of(items)
    if is_table(items):
        columns = [str(name) for name in items.columns]
        for key in ITEM_KEYS[:2]:
            if key not in columns:
                raise TaskError(
                    f"{where}: the table has no column {key!r}; it has {', '.join(columns) or 'none'}."
                )
        _warn_of_slips(columns, where)
        kept = [key for key in ITEM_KEYS if key in columns]
        items = items[kept].to_dict("records")
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise TaskError(f"{where}: items are a list of (prompt, target) pairs or dicts, not {items!r:.60}.")
    records = [_record(item, f"{where}: item {number}") for number, item in enumerate(items, 1)]
    if not records:
        raise TaskError(f"{where} has no items.")
    used = [key for key in ITEM_KEYS if any(key in record for record in records)]
    return [{key: record.get(key, "") for key in used} for record in records]


def checked_test(test: Any, where: str) -> HeldOut:
    """What is held out, as plain values that JSON can hold."""
    if test is None or (isinstance(test, str) and test == AUTO):
        return test
    test = rows_of(test)
    if is_table(test) or (isinstance(test, Sequence) and not isinstance(test, str)):
        return item_records(test, f"{where}: test")
    number = test.item() if hasattr(test, "item") else test  # of NumPy
    is_count = isinstance(number, int) and not isinstance(number, bool) and number >= 1
    if is_count or (isinstance(number, float) and 0 < number < 1):
        return number  # type: ignore[no-any-return]
    raise TaskError(
        f"{where}: test is {test!r:.60}; allowed are a share between 0 and 1, a number of items from 1 on, a "
        "list of items, and None."
    )


def is_table(value: Any) -> bool:
    """True for a pandas DataFrame, which is not imported for this."""
    return hasattr(value, "columns") and hasattr(value, "to_dict")


def rows_of(value: Any) -> Any:
    """The rows of a NumPy array of shape [n, 2] as lists; anything else as it is."""
    return value.tolist() if getattr(value, "ndim", 0) == 2 and hasattr(value, "tolist") else value


def _warn_of_slips(columns: Sequence[str], where: str) -> None:
    """Warn of columns that are almost a key of an item. Other columns of a table are nobody's concern."""
    for column in columns:
        close = get_close_matches(column.lower(), ITEM_KEYS, 1, 0.75)
        if column not in ITEM_KEYS and close and close[0] not in columns:
            warn_user(f"{where}: the column {column!r} is not used; did you mean {close[0]!r}?")


def _record(item: Any, where: str) -> Record:
    if isinstance(item, Mapping):
        for key in item:
            if key not in ITEM_KEYS:
                raise TaskError(f"{where} has the key {key!r}; allowed are {', '.join(ITEM_KEYS)}.")
        texts = dict(item)
    elif isinstance(item, tuple | list) and len(item) == 2:
        texts = dict(zip(ITEM_KEYS, item, strict=False))
    else:
        raise TaskError(f"{where} is {item!r:.60}; give a pair (prompt, target) or a dict with these keys.")
    record = {}
    for key in ITEM_KEYS:
        text = texts.get(key)
        if text is None or (isinstance(text, float) and isnan(text)):  # a missing value of a table
            if key in ITEM_KEYS[:2]:
                raise TaskError(f"{where} has no {key}.")
            continue
        if key == "group" and hasattr(text, "__index__"):
            text = str(index(text))
        if not isinstance(text, str):
            raise TaskError(f"{where}: {key} is {text!r:.60}, not text.")
        record[key] = str(text)
    return record
