"""Which source vectors a model's relations are read with: those that agree with what heads do in texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headatlas.core import ModelRefusedError
from headatlas.method.relation.in_text import TEMPLATES, text_scores
from headatlas.method.relation.scorer import Writer, choose_k, relations_for, sampled, static_scores
from headatlas.model import SOURCES, Model
from headatlas.task import RelationTokens

__all__ = ["ProgressCallback", "SourceChoice", "choose_source", "head_counter"]

#: pairs of a relation that the choice is made with
_SAMPLE = 16
#: agreement with texts below which a source is not believed, and by how much the better one is to be better
_LEAST_AGREEMENT, _CLEARLY = 0.05, 0.02

#: the key of the choice in `Model.remembered`, with the norms of the scores
_CHOICE = "source choice"

ProgressCallback = Callable[[str, int, int], None]
"""Takes (what is being done, heads done, heads in all)."""


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """The source vectors that were used and why: `agreement` is that of each kind with dynamic scores, None
    where there is none to be had."""

    source: str
    because: str
    agreement: Mapping[str, float | None]


def choose_source(
    writer: Writer,
    relations: Sequence[RelationTokens] = (),
    k: int | Mapping[str, int] | None = None,
    progress: ProgressCallback | None = None,
) -> SourceChoice:
    """The source whose static scores agree best with the forced ones, over heads and relations.

    It is a property of the model, so it is judged by all built-in relations that can be measured, whatever
    is asked for; by `relations`, with their `k`, only where there is none of those. Agreement is the
    concordance 2·cov / (var + var + (difference of means)²): as a correlation, but scores that are next
    to nothing everywhere do not agree with strong ones, whatever their pattern. Where texts hardly tell
    the two apart the published source is taken.

    The model remembers a choice that the built-in relations made, until its weights or its
    tokenizer change, one per setting of `norms`.
    """
    model = writer.model
    key = _CHOICE, writer.norms
    tokenizer, choice = model.remembered.get(key, (None, None))
    if choice is not None and tokenizer is model.tokenizer:
        return choice
    judged = [one for one in relations_for(model, None) if one.measurable]
    if judged:
        choice = _choose_by(writer, judged, None, progress)
        model.remembered[key] = model.tokenizer, choice
        return choice
    judged = [one for one in relations if one.measurable]
    if not judged:
        return _as_published(model, "as published: no relation to judge by")
    return _choose_by(writer, judged, k, progress)


def _choose_by(
    writer: Writer,
    judged: Sequence[RelationTokens],
    k: int | Mapping[str, int] | None,
    progress: ProgressCallback | None,
) -> SourceChoice:
    """The choice that these relations make."""
    limits = [choose_k(one, writer.model.spec.vocabulary, k) for one in judged]
    pairs = [sampled(one.single, _SAMPLE) for one in judged]
    report = head_counter(progress, "choice of source", writer.model, 1 + len(SOURCES))
    forced = text_scores(writer, pairs, limits, TEMPLATES[:1], ["forced"], report)["forced"]
    agreement: dict[str, float | None] = {}
    for kind in reversed(SOURCES):  # the published one first: it is taken where there is no difference
        try:
            found = static_scores(writer, pairs, limits, kind, report)
            agreement[kind] = _concordance(found[:, 0], forced[:, 0])
        except ModelRefusedError:  # there is no first MLP to be had
            agreement[kind] = None
    able = {kind: value for kind, value in agreement.items() if value is not None}
    best = max(able, key=lambda kind: able[kind])
    words = ", ".join(f"{kind} {'–' if r is None else format(r, '.2f')}" for kind, r in agreement.items())
    count = sum(map(len, pairs))
    if len(able) == 1:
        because = f"there are no others in this model; agreement with {count} pairs in texts {words}"
    elif able[best] < _LEAST_AGREEMENT or able[best] - min(able.values()) < _CLEARLY:
        return SourceChoice(
            SOURCES[1], f"as published: {count} pairs in texts hardly tell ({words})", agreement
        )
    else:
        because = f"agrees best with {count} pairs in texts ({words})"
    return SourceChoice(best, because, agreement)


def _as_published(model: Model, because: str) -> SourceChoice:
    try:
        model.source_vectors([0], SOURCES[1])
    except ModelRefusedError:
        return SourceChoice(SOURCES[0], "there are no others in this model", {})
    return SourceChoice(SOURCES[1], because, {})


def _concordance(one: np.ndarray, other: np.ndarray) -> float:
    there = ~np.isnan(one) & ~np.isnan(other)
    one, other = one[there], other[there]
    spread = one.var() + other.var() + (one.mean() - other.mean()) ** 2 if len(one) else 0.0
    return float(2 * np.cov(one, other, bias=True)[0, 1] / spread) if spread else 0.0


def head_counter(
    progress: ProgressCallback | None, what: str, model: Model, times: int = 1
) -> Callable[[int], None] | None:
    if progress is None:
        return None
    done, total = 0, times * len(model.spec)

    def step(number: int) -> None:
        nonlocal done
        done += number
        progress(what, done, total)

    return step
