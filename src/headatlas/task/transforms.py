"""From the records of a published data set to the records that a task asks with.

A transform takes one record and gives none, one or several. It is named in the YAML of a hub source.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import takewhile
from typing import Any

__all__ = ["TRANSFORMS"]

_Record = dict[str, Any]


def _first_target(record: _Record) -> Iterator[_Record]:
    """BIG-Bench: `targets` is a list of answers; the first is the answer."""
    targets = record.get("targets") or []
    if targets:
        yield {**record, "target": targets[0]}


def _lettered_choices(record: _Record) -> Iterator[_Record]:
    """Multiple choice: options shuffled and lettered, the answer is the letter.

    The order depends on the question alone, so that it is the same at every reading.
    """
    labels, texts = record["choices"]["label"], list(record["choices"]["text"])
    if record.get("answerKey") not in labels:
        return
    right = texts[labels.index(record["answerKey"])]
    seed = int.from_bytes(sha256(str(record["question"]).encode()).digest()[:8])
    random.Random(seed).shuffle(texts)
    letters = [chr(ord("A") + place) for place in range(len(texts))]
    options = "\n".join(f"{letter}. {text}" for letter, text in zip(letters, texts, strict=True))
    yield {**record, "options": options, "letter": letters[texts.index(right)]}


def _minimal_pair(record: _Record) -> Iterator[_Record]:
    """A good and a bad sentence: the prompt is what they share, the target how the good one goes on.

    Pairs that differ from the first word on have nothing to ask with and are left out.
    """
    good, bad = record["sentence_good"], record["sentence_bad"]
    pairs = zip(good.split(" "), bad.split(" "), strict=False)
    shared = " ".join(word for word, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if shared and shared != good:
        yield {**record, "shared": shared, "rest": good[len(shared) :]}


TRANSFORMS: dict[str, Callable[[_Record], Iterator[_Record]]] = {
    "first_target": _first_target,
    "lettered_choices": _lettered_choices,
    "minimal_pair": _minimal_pair,
}
