"""`relation_scores`: all relations of a model's heads, each in the way that its tokens allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from headatlas.core import DIRECTIONS, ModelRefusedError, RequestError, UnknownNameError
from headatlas.method.relation.in_text import TEMPLATES, text_scores
from headatlas.method.relation.scorer import Writer, choose_k, relations_for, sampled, static_scores
from headatlas.model import SOURCES, Model
from headatlas.task import LEAST_PAIRS, PairTokens, Relation, RelationTokens

__all__ = [
    "KINDS_OF_SCORE",
    "SourceChoice",
    "choose_source",
    "dynamic_scores",
    "relation_scores",
    "scored_pairs",
    "scores_from_weights",
    "scores_in_texts",
]

#: how a relation was measured: from weights; in texts, as its tokens leave no other way; not at all
KINDS_OF_SCORE = ("static", "multi-token", "none")
#: pairs of a relation that the choice of source is made with, and that dynamic scores are made with
_SAMPLE, _DYNAMIC_SAMPLE = 16, 100

#: agreement with texts below which a source is not believed, and by how much the better one is to be better
_LEAST_AGREEMENT, _CLEARLY = 0.05, 0.02

Told = Callable[[str, int, int], None]
"""Told (what is being done, heads done, heads in all)."""


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """The source vectors that were used and why: `agreement` is that of each kind with dynamic scores, None
    where there is none to be had."""

    source: str
    because: str
    agreement: Mapping[str, float | None]


def relation_scores(
    model: Model,
    relations: str | Path | Relation | Sequence[str | Path | Relation] | None = None,
    *,
    k: int | Mapping[str, int] | None = None,
    source: str = "auto",
    told: Told | None = None,
) -> xr.DataArray:
    """[relation, direction, layer, head]: the share of a relation's pairs that a head implements.

    Relations are names, files or `Relation`s; all built-in ones if none is given. `k` for all or by name;
    by default 1 for copying and 10 for others, 3 and 25 in vocabularies above 100,000 tokens. `source` says
    what a token brings to heads above layer 0: "first_mlp" (as published), "embedding", or "auto": the one
    that agrees better with what the heads do in texts, on a sample.

    Coordinates along `relation`: `category`, `k`, `kind` (see `KINDS_OF_SCORE`), `pairs` (those the share is
    of), `single` (pairs of one token each), `listed`. A relation with fewer than 30 pairs of single tokens is
    measured in texts instead ("multi-token": at most 100 pairs in one text, attention forced onto the source;
    where targets are several tokens one piece stands for each, `whole` is False, and k is 1), and if that
    cannot be done its values are NaN ("none").
    """
    if source not in ("auto", *SOURCES):
        raise UnknownNameError("source", source, ("auto", *SOURCES))
    found = relations_for(model, relations)
    _require_names(k, found)
    with model.measuring():
        return scores_from_weights(Writer(model), found, k, source, told)


def scores_from_weights(
    writer: Writer,
    found: Sequence[RelationTokens],
    k: int | Mapping[str, int] | None = None,
    source: str = "auto",
    told: Told | None = None,
) -> xr.DataArray:
    """`relation_scores` where relations are in tokens and the vocabulary is made ready."""
    model = writer.model
    limits = [choose_k(one, model.spec.vocabulary, k) for one in found]
    kinds = [_kind(one) for one in found]
    layers, heads = model.spec.shape
    values = np.full((len(found), len(DIRECTIONS), layers, heads), np.nan)
    pairs = [0] * len(found)
    choice = SourceChoice(source, "asked for", {})
    static = [place for place, kind in enumerate(kinds) if kind == "static"]
    if static:
        some = [found[place] for place in static]
        chosen = [limits[place] for place in static]
        if source == "auto":
            choice = choose_source(writer, some, k, told)
        single = [scored_pairs(one) for one in some]
        values[static] = static_scores(writer, single, chosen, choice.source, _heads(told, "weights", model))
        for place, own in zip(static, single, strict=True):
            pairs[place] = len(own)
    several = [place for place, kind in enumerate(kinds) if kind == "multi-token"]
    if several:
        texts = [scored_pairs(found[place]) for place in several]
        chosen = [limits[place] for place in several]
        report = _heads(told, "multi-token relations", model)
        values[several] = text_scores(writer, texts, chosen, TEMPLATES[:1], ["forced"], report)["forced"]
        for place, own in zip(several, texts, strict=True):
            pairs[place] = len(own)
    return _labelled(model, found, values).assign_coords(
        k=("relation", limits), kind=("relation", kinds), pairs=("relation", pairs),
        whole=("relation", [all(pair.whole for pair in one.in_text) for one in found]),
    ).assign_attrs(
        model=model.spec.name, source=choice.source, source_because=choice.because, **{
            f"agreement_{name}": value for name, value in choice.agreement.items() if value is not None
        },
    )  # fmt: skip


def scored_pairs(relation: RelationTokens) -> list[PairTokens]:
    """The pairs that `relation_scores` scores."""
    kind = _kind(relation)
    if kind == "static":
        return list(relation.single)
    return sampled(relation.in_text, _DYNAMIC_SAMPLE) if kind == "multi-token" else []


def dynamic_scores(
    model: Model,
    relations: str | Path | Relation | Sequence[str | Path | Relation] | None = None,
    *,
    k: int | Mapping[str, int] | None = None,
    most: int = _DYNAMIC_SAMPLE,
    templates: Sequence[str] = TEMPLATES,
    told: Told | None = None,
) -> dict[str, xr.DataArray]:
    """ "attending" and "forced" -> [relation, direction, layer, head]: what the heads do in texts.

    At most `most` pairs of each relation, spread over its list; relations with fewer than 30 are left out.
    """
    if isinstance(templates, str) or not templates:
        raise RequestError("templates are a list of texts, at least one.")
    if most < 1:
        raise RequestError(f"most is {most}; at least one pair of a relation is needed.")
    found = relations_for(model, relations)
    _require_names(k, found)
    with model.measuring():
        return scores_in_texts(Writer(model), found, k, most, templates, told)


def scores_in_texts(
    writer: Writer,
    relations: Sequence[RelationTokens],
    k: int | Mapping[str, int] | None = None,
    most: int = _DYNAMIC_SAMPLE,
    templates: Sequence[str] = TEMPLATES,
    told: Told | None = None,
) -> dict[str, xr.DataArray]:
    """`dynamic_scores` where relations are in tokens and the vocabulary is made ready."""
    model = writer.model
    found = [one for one in relations if len(one.in_text) >= LEAST_PAIRS]
    limits = [choose_k(one, model.spec.vocabulary, k) for one in found]
    texts = [sampled(one.single if one.measurable else one.in_text, most) for one in found]
    report = _heads(told, "texts", model, 2 * len(templates))
    scores = text_scores(writer, texts, limits, templates, progress=report)
    return {
        kind: _labelled(model, found, values).assign_coords(
            k=("relation", limits), pairs=("relation", [len(some) for some in texts])
        )
        for kind, values in scores.items()
    }


def choose_source(
    writer: Writer,
    relations: Sequence[RelationTokens] = (),
    k: int | Mapping[str, int] | None = None,
    told: Told | None = None,
) -> SourceChoice:
    """The source whose static scores agree best with the forced ones, over heads and relations.

    It is a property of the model, so it is judged by all built-in relations that can be measured, whatever
    is asked for; by `relations`, with their `k`, only where there is none of those. Agreement is the
    concordance 2·cov / (var + var + (difference of means)²): as a correlation, but scores that are next
    to nothing everywhere do not agree with strong ones, whatever their pattern. Where texts hardly tell
    the two apart the published source is taken.
    """
    judged = [one for one in relations_for(writer.model, None) if one.measurable]
    k = None if judged else k
    judged = judged or [one for one in relations if one.measurable]
    if not judged:
        return _as_published(writer.model, "as published: no relation to judge by")
    limits = [choose_k(one, writer.model.spec.vocabulary, k) for one in judged]
    pairs = [sampled(one.single, _SAMPLE) for one in judged]
    report = _heads(told, "choice of source", writer.model, 1 + len(SOURCES))
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


def _require_names(k: int | Mapping[str, int] | None, relations: Sequence[RelationTokens]) -> None:
    """A k for a relation that is not there is a slip of the pen."""
    names = [one.name for one in relations]
    for name in k if isinstance(k, Mapping) else ():
        if name not in names:
            raise UnknownNameError("relation among these", name, names)


def _kind(relation: RelationTokens) -> str:
    if relation.measurable:
        return "static"
    return "multi-token" if len(relation.in_text) >= LEAST_PAIRS else "none"


def _heads(told: Told | None, what: str, model: Model, times: int = 1) -> Callable[[int], None] | None:
    if told is None:
        return None
    done, total = 0, times * len(model.spec)

    def step(number: int) -> None:
        nonlocal done
        done += number
        told(what, done, total)

    return step


def _labelled(model: Model, relations: Sequence[RelationTokens], values: np.ndarray) -> xr.DataArray:
    layers, heads = model.spec.shape
    return xr.DataArray(
        values.astype(np.float32),
        dims=["relation", "direction", "layer", "head"],
        coords={
            "relation": [one.name for one in relations],
            "direction": list(DIRECTIONS),
            "layer": np.arange(layers),
            "head": np.arange(heads),
            "category": ("relation", [one.relation.category for one in relations]),
            "single": ("relation", [len(one.single) for one in relations]),
            "listed": ("relation", [len(one.relation.pairs) for one in relations]),
        },
        name="score",
    )
