"""`relation_scores`: all relations of a model's heads, each in the way that its tokens allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.core import (
    DIRECTIONS,
    Progress,
    UnknownNameError,
    Update,
    check_tokenizer,
    given_load_options,
    progress_of,
    require_whole,
    warn_user,
)
from headatlas.core.lazy import xr
from headatlas.method.relation.in_text import TEMPLATES, text_scores
from headatlas.method.relation.scorer import Writer, choose_k, relations_for, sampled, static_scores
from headatlas.method.relation.source_choice import (
    ProgressCallback,
    SourceChoice,
    choose_source,
    head_counter,
)
from headatlas.model import SOURCES, Model, as_model
from headatlas.model.idle_model import borrowed_model
from headatlas.task import LEAST_PAIRS, PairTokens, Relations, RelationTokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = [
    "KINDS_OF_SCORE",
    "relation_scores",
    "scored_pairs",
    "scores_from_weights",
    "scores_in_texts",
]

#: how a relation was measured: from weights; in texts, as its tokens leave no other way; not at all
KINDS_OF_SCORE = ("static", "multi-token", "none")
#: pairs of a relation that dynamic scores are made with
_DYNAMIC_SAMPLE = 100


def relation_scores(
    model: Model | PreTrainedModel | str | Path,
    relations: Relations | None = None,
    *,
    k: int | Mapping[str, int] | None = None,
    source: str = "auto",
    norms: str = "published",
    min_pairs: int = LEAST_PAIRS,
    tokenizer: Any = None,
    progress: bool | Progress = True,
    dtype: Any = None,
    device: Any = None,
    device_map: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> xr.DataArray:
    """[relation, direction, layer, head]: the share of a relation's pairs that a head implements.

    `model` is a `Model`, or a transformers model with its `tokenizer`. Relations are names, files,
    `Relation`s, lists of pairs or {name: pairs}; all built-in ones if none is given. `k` for all or by name;
    by default 1 for copying and 10 for others, 3 and 25 in vocabularies above 100,000 tokens. `source` says
    what a token brings to heads above layer 0: "first_mlp" (as published), "embedding", or "auto": the one
    that agrees better with what the heads do in texts, on a sample. `norms="published"` ignores the final
    norm, as MAPS does; "folded" multiplies by its weights, which is nearer to what the model computes.

    Coordinates along `relation`: `category`, `k`, `kind` (see `KINDS_OF_SCORE`), `pairs` (those the share is
    of), `single` (pairs of one token each), `listed`. A relation with fewer than `min_pairs` pairs of single
    tokens is measured in texts instead ("multi-token": at most 100 pairs in one text, attention forced onto
    the source; where targets are several tokens one piece stands for each, `whole` is False, and k is 1), and
    if that cannot be done its values are NaN ("none"), with a `HeadatlasWarning`.

    A model given by name is loaded in the dtype of its weights unless `dtype` says otherwise; `dtype`,
    `device`, `device_map`, `revision` and `trust_remote_code` are those of `load_model`. `progress` as in
    `map_heads`.
    """
    if source not in ("auto", *SOURCES):
        raise UnknownNameError("source", source, ("auto", *SOURCES))
    least = require_whole("min_pairs", min_pairs, 1, 1_000_000)
    options = given_load_options(
        model, dtype=dtype, device=device, device_map=device_map, revision=revision,
        trust_remote_code=trust_remote_code,
    )  # fmt: skip
    with _loaded(model, tokenizer, options) as loaded, progress_of(progress) as report:

        def report_heads(what: str, done: int, total: int) -> None:
            report(Update(what, done, total))

        chosen = relations_for(loaded, relations, least)
        _require_names(k, chosen)
        if unmeasured := [relation.why_unmeasured for relation in chosen if not relation.has_enough]:
            warn_user(" ".join(unmeasured))
        with loaded.measuring():
            scores = scores_from_weights(Writer(loaded, norms), chosen, k, source, report_heads)
    return scores.assign_attrs(norms=norms)


def _loaded(model: Any, tokenizer: Any, options: Mapping[str, Any]) -> AbstractContextManager[Model]:
    if isinstance(model, str | Path):
        check_tokenizer(model, tokenizer)
        return borrowed_model(model, **options)
    return nullcontext(as_model(model, tokenizer))


def scores_from_weights(
    writer: Writer,
    found: Sequence[RelationTokens],
    k: int | Mapping[str, int] | None = None,
    source: str = "auto",
    progress: ProgressCallback | None = None,
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
            choice = choose_source(writer, some, k, progress)
        single = [scored_pairs(one) for one in some]
        values[static] = static_scores(
            writer, single, chosen, choice.source, head_counter(progress, "weights", model)
        )
        for place, own in zip(static, single, strict=True):
            pairs[place] = len(own)
    several = [place for place, kind in enumerate(kinds) if kind == "multi-token"]
    if several:
        texts = [scored_pairs(found[place]) for place in several]
        chosen = [limits[place] for place in several]
        report = head_counter(progress, "multi-token relations", model)
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


def scores_in_texts(
    writer: Writer,
    relations: Sequence[RelationTokens],
    k: int | Mapping[str, int] | None = None,
    most: int = _DYNAMIC_SAMPLE,
    templates: Sequence[str] = TEMPLATES,
    progress: ProgressCallback | None = None,
) -> dict[str, xr.DataArray]:
    """ "attending" and "forced" -> [relation, direction, layer, head]: what the heads do in texts.

    At most `most` pairs of each relation, spread over its list; relations with too few are left out.
    """
    model = writer.model
    found = [one for one in relations if one.has_enough]
    limits = [choose_k(one, model.spec.vocabulary, k) for one in found]
    texts = [sampled(one.single if one.measurable else one.in_text, most) for one in found]
    report = head_counter(progress, "texts", model, 2 * len(templates))
    scores = text_scores(writer, texts, limits, templates, progress=report)
    return {
        kind: _labelled(model, found, values).assign_coords(
            k=("relation", limits), pairs=("relation", [len(some) for some in texts])
        )
        for kind, values in scores.items()
    }


def _require_names(k: int | Mapping[str, int] | None, relations: Sequence[RelationTokens]) -> None:
    """A k for a relation that is not there is a slip of the pen."""
    names = [one.name for one in relations]
    for name in k if isinstance(k, Mapping) else ():
        if name not in names:
            raise UnknownNameError("relation among these", name, names)


def _kind(relation: RelationTokens) -> str:
    if relation.measurable:
        return "static"
    return "multi-token" if relation.has_enough else "none"


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
