"""From text to token ids: prompt and target joined without changing the tokens of either.

A target is tokenised on its own and put behind the tokens of its prompt, so that no token reaches over
the seam. Tokenisers that put a space before every text (SentencePiece ones) would see a word where the
text goes on; there the target is tokenised behind a short text of which the tokens are then taken off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from headatlas.core import TaskError
from headatlas.task.task import Item, Items

__all__ = ["Row", "Rows", "encode", "tokens_of"]

#: texts that a target can be tokenised behind
_ANCHORS = ("\n", "a\n", ":", "=")


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids of prompt and target; `start` is the place of the target's first token. `corrupted` is
    another prompt, in which what the target depends on is changed, where the task has one."""

    ids: tuple[int, ...]
    start: int
    corrupted: tuple[int, ...] = ()

    @property
    def prompt(self) -> tuple[int, ...]:
        return self.ids[: self.start]

    @property
    def target(self) -> tuple[int, ...]:
        return self.ids[self.start :]


@dataclass(frozen=True, slots=True)
class Rows:
    """A task's items as token ids. `too_long` counts the items that were left out for their length;
    `content_hash` is that of the items, `rows_hash` that of the token ids."""

    train: Sequence[Row]
    test: Sequence[Row]
    too_long: int
    max_tokens: int
    content_hash: str
    rows_hash: str


def encode(
    items: Items, tokenizer: Any, *, first: Sequence[int] = (), max_tokens: int, name: str = ""
) -> Rows:
    """Tokenise a task for a model. `first` goes before every prompt; longer rows are left out."""
    sides, too_long = [], 0
    for side in (items.train, items.test):
        rows = list(_rows(side, tokenizer, tuple(first), f"task {name!r}"))
        kept = [row for row in rows if max(len(row.ids), len(row.corrupted) + len(row.target)) <= max_tokens]
        too_long += len(rows) - len(kept)
        if not kept:
            shortest = min(len(row.ids) for row in rows)
            raise TaskError(
                f"task {name!r}: no row fits in {max_tokens} tokens (the shortest has {shortest}); "
                "allow more with --max-tokens."
            )
        sides.append(kept)
    digest = sha256(json.dumps([[_said(row) for row in side] for side in sides]).encode())
    return Rows(sides[0], sides[1], too_long, max_tokens, items.content_hash, digest.hexdigest())


def _said(row: Row) -> list[Any]:
    return [row.ids, row.start, *([row.corrupted] if row.corrupted else [])]


def _rows(items: Iterable[Item], tokenizer: Any, first: tuple[int, ...], where: str) -> Iterable[Row]:
    items = list(items)
    prompts = _batch(tokenizer, [item.prompt for item in items])
    corrupted = _batch(tokenizer, [item.corrupted for item in items])
    targets = _continuations(tokenizer, [item.target for item in items])
    for item, prompt, other, target in zip(items, prompts, corrupted, targets, strict=True):
        ids = (*first, *prompt)
        if not ids:
            raise TaskError(
                f"{where}: an empty prompt leaves nothing to predict from: this model has no first token."
            )
        if not target:
            raise TaskError(f"{where}: the target {item.target!r} has no tokens in this model's vocabulary.")
        yield Row((*ids, *target), len(ids), (*first, *other) if item.corrupted else ())


def tokens_of(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """The tokens of each text where it follows other text."""
    return _continuations(tokenizer, texts)


def _batch(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    found: list[list[int]] = tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []
    return found


def _continuations(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    if not _adds_a_space(tokenizer):
        return _batch(tokenizer, texts)
    found: dict[int, list[int]] = {}
    for anchor in _ANCHORS:
        places = [place for place in range(len(texts)) if place not in found]
        before = _batch(tokenizer, [anchor])[0]
        joined = _batch(tokenizer, [anchor + texts[place] for place in places])
        for place, ids in zip(places, joined, strict=True):
            if before and ids[: len(before)] == before:
                found[place] = ids[len(before) :]
    for place, text in enumerate(texts):
        if place not in found:
            raise TaskError(f"the tokens of {text!r} cannot be told from those of the text before it.")
    return [found[place] for place in range(len(texts))]


def _adds_a_space(tokenizer: Any) -> bool:
    """Does the tokeniser see a space before a text that has none?"""
    alone, spaced = _batch(tokenizer, ["a", " a"])
    pieces = tokenizer.convert_ids_to_tokens(alone)
    return alone == spaced or str(pieces[0]).startswith("▁")
