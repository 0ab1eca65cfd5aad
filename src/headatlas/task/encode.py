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

__all__ = ["Row", "Rows", "encode", "has_unknown", "tokens_of", "unknown_token"]

#: sides that need rows, and what their targets are called
_SIDES = {"train": "target to fit with", "test": "held-out target"}

#: texts that a target can be tokenised behind
_ANCHORS = ("\n", "a\n", ":", "=")


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids of prompt and target; `start` is the place of the target's first token. `corrupted` is
    another prompt, in which what the target depends on is changed, where the task has one. Rows of one
    `group` are related; a row without a group is related only to those with its prompt. `foil` is another
    target, which the metric logit_diff compares with, where the task has one."""

    ids: tuple[int, ...]
    start: int
    corrupted: tuple[int, ...] = ()
    group: str = ""
    foil: tuple[int, ...] = ()

    @property
    def prompt(self) -> tuple[int, ...]:
        return self.ids[: self.start]

    @property
    def target(self) -> tuple[int, ...]:
        return self.ids[self.start :]


@dataclass(frozen=True, slots=True)
class Rows:
    """A task's items as token ids, on the sides of `Items`.

    `too_long` counts the items that were left out for their length, `unknown_targets` those left out because
    the vocabulary lacks a part of the target (`unknown_example` is one such target), `unknown_prompts` the
    kept items whose prompt has a part that the vocabulary lacks. `content_hash` is that of the items,
    `rows_hash` that of the token ids.
    """

    train: Sequence[Row]
    test: Sequence[Row]
    too_long: int
    max_tokens: int
    content_hash: str
    rows_hash: str
    known: Sequence[Row] = ()
    unknown_targets: int = 0
    unknown_prompts: int = 0
    unknown_example: str = ""


def encode(
    items: Items, tokenizer: Any, *, first: Sequence[int] = (), max_tokens: int, name: str = ""
) -> Rows:
    """Tokenise a task for a model. `first` goes before every prompt; longer rows are left out, and rows with
    a target that the vocabulary does not have."""
    where = f"task {name!r}"
    unknown = unknown_token(tokenizer)
    encoded = {
        side: list(zip(asked, _rows(asked, tokenizer, tuple(first), where), strict=True))
        for side, asked in (("train", items.train), ("test", items.test), ("known", items.known))
    }
    usable = {
        side: [(item, row) for item, row in entries if not has_unknown(item.target, row.target, unknown)]
        for side, entries in encoded.items()
    }
    unknown_targets = [
        item.target
        for entries in encoded.values()
        for item, row in entries
        if has_unknown(item.target, row.target, unknown)
    ]
    if unusable := [side for side in _SIDES if encoded[side] and not usable[side]]:
        which = _SIDES[unusable[0]] if len(unusable) == 1 else "target"
        raise TaskError(
            f"{where}: no {which} can be used: this model's vocabulary has no token for a part of each, "
            f"such as {encoded[unusable[0]][-1][0].target!r}; choose targets that it knows, or another model."
        )
    kept = {
        side: [(item, row) for item, row in entries if _longest(row) <= max_tokens]
        for side, entries in usable.items()
    }
    for side in _SIDES:
        if usable[side] and not kept[side]:
            shortest = min(len(row.ids) for _, row in usable[side])
            raise TaskError(
                f"{where}: no row fits in {max_tokens} tokens (the shortest has {shortest}); "
                "allow more with max_tokens=…."
            )
    rows = {side: [row for _, row in entries] for side, entries in kept.items()}
    digest = sha256(json.dumps([[_said(row) for row in side] for side in rows.values()]).encode())
    return Rows(
        rows["train"],
        rows["test"],
        sum(len(usable[side]) - len(kept[side]) for side in usable),
        max_tokens,
        items.content_hash,
        digest.hexdigest(),
        rows["known"],
        len(unknown_targets),
        sum(
            has_unknown(item.prompt, row.prompt[len(first) :], unknown)
            or has_unknown(item.corrupted, row.corrupted[len(first) :], unknown)
            for entries in kept.values()
            for item, row in entries
        ),
        unknown_targets[0] if unknown_targets else "",
    )


def unknown_token(tokenizer: Any) -> tuple[int, str] | None:
    """The token that stands for text outside the vocabulary, and its own text; None if there is none.

    The model behind a fast tokenizer writes it, whether the tokenizer declares it or not. Some tokenizers
    declare their end-of-text token, which nothing writes if the vocabulary has every byte.
    """
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    text: str | None = getattr(getattr(backend, "model", None), "unk_token", None)
    written: int | None = None if text is None else backend.token_to_id(text)
    if written is not None and text is not None:
        return written, text
    if tokenizer.unk_token_id is not None:
        return tokenizer.unk_token_id, str(tokenizer.unk_token)
    if backend is not None and not hasattr(backend.model, "unk_token"):  # Unigram: only its JSON says
        written = json.loads(backend.to_str())["model"].get("unk_id")
        return None if written is None else (written, backend.id_to_token(written))
    return None


def has_unknown(text: str, ids: Sequence[int], unknown: tuple[int, str] | None) -> bool:
    """Does the vocabulary lack a part of `text`, whose tokens are `ids`? Where the text itself holds the text
    of the unknown token, that token is no gap."""
    return unknown is not None and ids.count(unknown[0]) > text.count(unknown[1])


def _longest(row: Row) -> int:
    return max(len(row.ids), len(row.corrupted) + len(row.target))


def _said(row: Row) -> list[Any]:
    foil = [{"foil": row.foil}] if row.foil else []
    return [row.ids, row.start, *([row.corrupted] if row.corrupted else []), *foil]


def _rows(items: Iterable[Item], tokenizer: Any, first: tuple[int, ...], where: str) -> Iterable[Row]:
    items = list(items)
    prompts = _batch(tokenizer, [item.prompt for item in items])
    corrupted = _batch(tokenizer, [item.corrupted for item in items])
    targets = _continuations(tokenizer, [item.target for item in items])
    foils = iter(_continuations(tokenizer, [item.foil for item in items if item.foil]))
    for item, prompt, other, target in zip(items, prompts, corrupted, targets, strict=True):
        ids = (*first, *prompt)
        if not ids:
            raise TaskError(
                f"{where}: an empty prompt leaves nothing to predict from: this model has no first token."
            )
        if not target:
            raise TaskError(f"{where}: the target {item.target!r} has no tokens in this model's vocabulary.")
        replaced = (*first, *other) if item.corrupted else ()
        foil = tuple(next(foils)) if item.foil else ()
        yield Row((*ids, *target), len(ids), replaced, item.group, foil)


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
