"""The pairs of a relation in the tokens of a model.

From weights alone only pairs count whose source and target are one token each, after a space. Others can
still be put before the model in a text: a source of several tokens is then known by its last one, and a
target of several by one piece: the first of its tokens that is not blank and not also in the same place of
the source (1986 after 1985 by its last digit).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from headatlas.core import plural
from headatlas.task.encode import has_unknown, tokens_of, unknown_token
from headatlas.task.relation import Relation

__all__ = [
    "LEAST_PAIRS",
    "PairTokens",
    "RelationTokens",
    "relation_tokens",
    "too_few_text",
    "unmeasured_text",
]

#: fewer pairs than these say nothing about a relation
LEAST_PAIRS = 30
#: why a pair is left out
_UNKNOWN, _SEVERAL, _SAMPLED, _REPEATED = (
    "not in the vocabulary",
    "several tokens",
    "not in the sample",
    "repeats another pair",
)


def too_few_text(min_pairs: int) -> str:
    """Why pairs are left out of a relation that cannot be measured."""
    return f"fewer than {min_pairs} pairs remain"


def unmeasured_text(name: str, usable: int, listed: int, min_pairs: int) -> str:
    """Why a relation cannot be measured, with the repair."""
    count = f"its list has {plural(listed, 'pair')}"
    if usable < listed:
        count = f"the vocabulary has {usable} of its {plural(listed, 'pair')}"
    repair = f", or set min_pairs={usable}" if usable else ""
    return (
        f"{name}: every score is NaN, because {count} and min_pairs is {min_pairs}; give more pairs{repair}."
    )


@dataclass(frozen=True, slots=True)
class PairTokens:
    """One pair: the tokens of its source, and the token that stands for its target (`whole`: is it all of
    it?)."""

    source: tuple[int, ...]
    target: int
    whole: bool
    words: tuple[str, str]

    @property
    def single(self) -> bool:
        return self.whole and len(self.source) == 1


@dataclass(frozen=True, slots=True)
class RelationTokens:
    """A relation for one model: `single` pairs of one token each, and all `pairs` that a text can have. Of
    `unknown` pairs the vocabulary lacks a part. A score needs `min_pairs`."""

    relation: Relation
    pairs: tuple[PairTokens, ...]
    unknown: tuple[tuple[str, str], ...] = ()
    min_pairs: int = LEAST_PAIRS

    @property
    def name(self) -> str:
        return self.relation.name

    @property
    def single(self) -> tuple[PairTokens, ...]:
        return tuple(pair for pair in self.pairs if pair.single)

    @property
    def measurable(self) -> bool:
        """Can it be read off the weights?"""
        return len(self.single) >= self.min_pairs

    @property
    def in_text(self) -> tuple[PairTokens, ...]:
        """Pairs for a score in a text: those with whole targets, if they are enough."""
        whole = tuple(pair for pair in self.pairs if pair.whole)
        return whole if len(whole) >= self.min_pairs else self.pairs

    @property
    def has_enough(self) -> bool:
        """Can it be measured at all: from the weights or in texts?"""
        return self.measurable or len(self.in_text) >= self.min_pairs

    @property
    def why_unmeasured(self) -> str:
        """How many pairs there are and how many it takes, with the repair; only if it cannot be measured."""
        return unmeasured_text(self.name, len(self.in_text), len(self.relation.pairs), self.min_pairs)

    def left_out(self, scored: Collection[PairTokens]) -> dict[str, list[tuple[str, str]]]:
        """reason -> pairs that a score is not made from; `scored` are those that it is made from."""
        able = self.single if self.measurable or not scored else self.in_text
        too_few = too_few_text(self.min_pairs)
        reasons = (_UNKNOWN, _SEVERAL, _SAMPLED, too_few, _REPEATED)
        by_reason = {reason: list[tuple[str, str]]() for reason in reasons}
        by_reason[_UNKNOWN] += self.unknown
        by_reason[_REPEATED] += self.relation.repeats
        for pair in self.pairs:
            if pair not in scored:
                reason = _SEVERAL if pair not in able else _SAMPLED if scored else too_few
                by_reason[reason].append(pair.words)
        return {reason: pairs for reason, pairs in by_reason.items() if pairs}


def relation_tokens(relation: Relation, tokenizer: Any, min_pairs: int = LEAST_PAIRS) -> RelationTokens:
    """Tokenize a relation; a score needs `min_pairs`."""
    sources, targets = (
        tokens_of(tokenizer, [f" {pair[side]}" for pair in relation.pairs]) for side in (0, 1)
    )
    found, lacking = [], []
    blank, unknown = _blank(tokenizer, targets), unknown_token(tokenizer)
    for words, source, target in zip(relation.pairs, sources, targets, strict=True):
        has_gap = any(
            has_unknown(f" {word}", ids, unknown) for word, ids in zip(words, (source, target), strict=True)
        )
        if not source or not target or has_gap:
            lacking.append(words)
            continue
        whole, place = len(target) == 1, 0
        if not whole:
            shared = source if not relation.copies else []
            while place < len(target) - 1 and (
                target[place] in blank or (place < len(shared) and shared[place] == target[place])
            ):
                place += 1
        token = target[place]
        found.append(PairTokens(tuple(source), token, whole, words))
    return RelationTokens(relation, tuple(found), tuple(lacking), min_pairs)


def _blank(tokenizer: Any, texts: list[list[int]]) -> set[int]:
    """Tokens that are nothing but space."""
    some = sorted({token for ids in texts for token in ids})
    return {token for token in some if not tokenizer.decode([token]).strip()}
