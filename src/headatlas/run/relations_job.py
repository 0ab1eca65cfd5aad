"""`relate_heads`: relations -> atlas, from the weights of the heads (MAPS)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from transformers import PreTrainedModel

from headatlas.atlas import Atlas, Run, ScoreMap, Store, note_path, open_atlas, record_path
from headatlas.core import AtlasError, UnknownNameError, identity_of, require_whole
from headatlas.method import (
    TEMPLATES,
    SourceChoice,
    Writer,
    causal_check,
    choose_k,
    choose_source,
    questions,
    relations_for,
    salient_operations,
    scored_pairs,
    scores_from_weights,
    scores_in_texts,
)
from headatlas.model import SOURCES, Model
from headatlas.run.executing import Executor, executed
from headatlas.run.fitter import Progress, Silence
from headatlas.run.loading import load_for_run
from headatlas.run.prepare import made_with
from headatlas.run.requests import opened, require_place
from headatlas.run.steps import Only, Plan, Unit, is_asked
from headatlas.task import LEAST_PAIRS, Relation, RelationTokens, distinct_relations, tokens_of

__all__ = ["plan_relations", "relate_heads", "relate_steps", "require_request"]

#: raised when the same settings would give other numbers than before
_ALGORITHM = 2
_DYNAMIC = ("attending", "forced")
#: relations that one worker scores
_TOGETHER = 5


def relate_heads(
    model: Model | str | Path | PreTrainedModel,
    relations: str | Path | Relation | Sequence[str | Path | Relation] | None = None,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    k: int | None = None,
    source: str = "auto",
    salient: bool = True,
    dynamic: bool = False,
    causal: Sequence[str] = (),
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Atlas:
    """Score relations (all built-in ones if none is given) on all heads and give the atlas.

    `source` as in `relation_scores`, `k` for all relations; `salient` adds the tokens that each head
    amplifies, `dynamic` the scores in texts (at most 100 pairs of a relation in three texts), `causal` the
    named relations with their top heads switched off. With `out` all of it is kept in that folder, next to
    what is there, which is not made again; that takes `resume`. A name is loaded in the dtype of its weights.
    `executor` as in `map_heads`.
    """
    wanted = distinct_relations(relations)
    require_place(out, resume)
    require_request(source, k, causal, wanted)
    asked: dict[str, Any] = {"wanted": wanted, "k": k, "source": source, "salient": salient}
    asked |= {"dynamic": dynamic, "causal": causal}
    if executor is not None:
        plan = plan_relations([one.name for one in wanted], salient, dynamic, causal)
        return executed(executor, "relations", model, {"dtype": "auto"}, asked, plan, out, progress)
    return relate_steps(model, out=out, resume=resume, progress=progress, **asked)


def relate_steps(
    model: Model | str | Path | PreTrainedModel,
    wanted: Sequence[Relation],
    *,
    out: str | Path | None,
    resume: bool,
    k: int | None,
    source: str,
    salient: bool,
    dynamic: bool,
    causal: Sequence[str],
    progress: Progress | None,
    only: Only = None,
) -> Atlas:
    """See `relate_heads`."""
    loaded = load_for_run(model)
    progress = progress or Silence()
    ready = relations_for(loaded, wanted)
    limits = {one.name: choose_k(one, loaded.spec.vocabulary, k) for one in ready}
    for one in ready:
        if one.name in causal:
            questions(loaded, one, 1)  # refused now if it cannot be asked
    writer = cache(partial(Writer, loaded))  # made when it is first needed: it holds the vocabulary anew
    with opened(loaded, out, resume) as store:
        choice = _chosen_source(loaded, writer, store, source, k, ready, progress)
        _require_one_source(store, choice.source)
        runs = store.add(
            *(_describe(loaded, "relations", one, limits[one.name], source, choice.source) for one in ready)
        )
        _keep_choice(store, _choice_note(loaded, choice))
        asked = [one.name for one in ready if is_asked(f"relation {one.name}", only)]
        missing = [run.task for run in runs if run.task in asked and store.read(ScoreMap, run) is None]
        if missing:
            _score(writer(), store, [one for one in ready if one.name in missing], k, choice, progress)
        for one in (one for one in ready if one.name in asked):
            if not one.measurable:
                progress.note(_how_measured(one))
            if few := _few_targets(one, limits[one.name]):
                progress.note(few)
        if dynamic:
            _score_in_texts(loaded, writer, store, ready, asked, limits, k, progress)
        atlas = open_atlas(store.root)
        if salient and is_asked("salient", only):
            if not _is_of(atlas.notes.get("salient"), _salient_decides(loaded, choice.source)):
                _note_salient(writer(), store, choice.source, progress)
        if causal and is_asked("causal", only):
            _note_causal(loaded, store, atlas, ready, causal, progress)
        atlas = open_atlas(store.root)
    atlas.path = None if out is None else Path(out)
    return atlas


def plan_relations(names: Sequence[str], salient: bool, dynamic: bool, causal: Sequence[str]) -> Plan:
    """The source vectors are chosen from all relations; then some relations each, and what needs them all."""
    blocks = [names[start : start + _TOGETHER] for start in range(0, len(names), _TOGETHER)]
    units = [
        Unit(
            f"relations {start + 1} to {start + len(block)}",
            tuple(f"relation {name}" for name in block),
            # which relations can be scored in texts shows when their tokens are known
            () if dynamic else tuple(record_path(ScoreMap, "relations", name) for name in block),
        )
        for start, block in zip(range(0, len(names), _TOGETHER), blocks, strict=True)
    ]
    if salient:
        units.append(Unit("salient tokens", ("salient",), (note_path("salient"),)))
    first = [Unit("source vectors", ("source",), (note_path("source"),))]
    last = [[Unit("heads off", ("causal",), ())]] if causal else []
    methods = ["relations", *(_DYNAMIC if dynamic else ())]
    return Plan([first, units, *last], [(method, name) for method in methods for name in names])


def require_request(source: str, k: int | None, causal: Sequence[str], wanted: Sequence[Relation]) -> None:
    """What can be said before a model is loaded."""
    if source not in ("auto", *SOURCES):
        raise UnknownNameError("source", source, ("auto", *SOURCES))
    if k is not None:
        require_whole("k", k, 1, 1_000_000)  # what the vocabulary allows shows when it is loaded
    names = [one.name for one in wanted]
    for name in causal:
        if name not in names:
            raise UnknownNameError("relation among those that are scored", name, names)


def _how_measured(relation: RelationTokens) -> str:
    count, listed = len(relation.single), len(relation.relation.pairs)
    if listed < LEAST_PAIRS:
        return f"{relation.name}: not measurable: its list has {listed} pairs, {LEAST_PAIRS} are needed"
    said = (
        f"{relation.name}: not measurable with this tokenizer (n = {count}): {count} of its {listed} "
        f"pairs are single tokens, {LEAST_PAIRS} are needed"
    )
    if len(relation.in_text) < LEAST_PAIRS:
        return said
    pieces = not all(pair.whole for pair in relation.in_text)
    how = "one piece of each target stands for it" if pieces else "sources of several tokens"
    return f"{said}; scored in texts instead (multi-token: {how})"


def _few_targets(relation: RelationTokens, k: int) -> str | None:
    """A sentence if the targets are so few that a head that likes them all would seem to know the
    relation."""
    pairs = relation.single if relation.measurable else relation.in_text
    targets = len({pair.target for pair in pairs})
    if len(pairs) < LEAST_PAIRS or targets > 2 * k:
        return None
    return (
        f"{relation.name}: its pairs have {targets} different targets, and k is {k}: a head that "
        "promotes them all, whatever the source, scores high too"
    )


def _basis(model: Model) -> dict[str, Any]:
    """What all numbers about a model depend on."""
    return {"algorithm": _ALGORITHM, "weights": model.weights_identity, "dtype": model.spec.dtype}


def _in_texts(model: Model) -> dict[str, Any]:
    """What numbers that come from texts depend on as well."""
    first, _ = model.first_tokens()
    return {"templates": tokens_of(model.tokenizer, list(TEMPLATES)), "first_tokens": list(first)}


def _is_of(note: tuple[Any, Mapping[str, Any]] | None, decides: Mapping[str, Any]) -> bool:
    """Was the note made from this?"""
    return note is not None and note[1].get("identity") == identity_of(decides)


def _describe(
    model: Model, method: str, relation: RelationTokens, k: int, asked: str = "", source: str = ""
) -> Run:
    """The entry of a run, with the hash of everything that its numbers depend on."""
    tokens = [[pair.source, pair.target, pair.whole] for pair in relation.pairs]
    static = method == "relations" and relation.measurable
    decides = {
        "method": method,
        **_basis(model),
        "relations": {
            relation.name: {
                "content": relation.relation.content_hash,
                "tokens": identity_of(tokens),
            }
        },
        "k": k,
        "category": relation.relation.category,
        **({"source": source} if static else _in_texts(model)),
    }
    about = relation.relation
    facts = {
        "category": about.category,
        "content_hash": about.content_hash,
        "licence": about.licence,
        "listed": len(about.pairs),
    }
    decides = json.loads(json.dumps(decides))  # as it will be read again
    settings = {
        "given": {"k": k, "source": asked},
        "resolved": {"k": k, "source": source},
        "decides": decides,
    }
    return Run(method, relation.name, identity_of(decides), facts, settings, {}, made_with(model))


def _chosen_source(
    model: Model,
    writer: Callable[[], Writer],
    store: Store,
    asked: str,
    k: int | None,
    relations: Sequence[RelationTokens],
    progress: Progress,
) -> SourceChoice:
    """What was asked for, or what "auto" comes to: the same in the whole atlas, and looked for once."""
    if asked != "auto":
        return SourceChoice(asked, "asked for", {})
    note = store.read_note("source")
    if note is not None and _is_of(note, _source_decides(model)) and note[1]["agreement"]:
        return SourceChoice(note[1]["source"], note[1]["because"], note[1]["agreement"])
    return choose_source(writer(), relations, k, progress.heads)


def _source_decides(model: Model) -> dict[str, Any]:
    return {**_basis(model), **_in_texts(model)}


def _choice_note(model: Model, choice: SourceChoice) -> dict[str, Any]:
    said = {"source": choice.source, "because": choice.because, "agreement": dict(choice.agreement)}
    return {**said, "identity": identity_of(_source_decides(model))}


def _keep_choice(store: Store, said: Mapping[str, Any]) -> None:
    known = store.read_note("source")
    if known is None or any(known[1].get(key) != value for key, value in said.items()):
        store.write_note("source", {}, said)


def _require_one_source(store: Store, source: str) -> None:
    """Scores of two sources in one atlas could not be compared."""
    for run in store.runs.values():
        other = run.settings.get("decides", {}).get("source")
        if (
            run.method == "relations"
            and other not in (None, source)
            and store.read(ScoreMap, run) is not None
        ):
            raise AtlasError(
                f"{store.root} has scores with the source vectors {other!r}, and these would be with "
                f"{source!r}; choose another --out, or --source {other}."
            )


def _score(
    writer: Writer,
    store: Store,
    relations: Sequence[RelationTokens],
    k: int | None,
    choice: SourceChoice,
    progress: Progress,
) -> None:
    progress.note(f"source vectors: {choice.source} ({choice.because})")
    agreement = {f"agreement_{name}": value for name, value in choice.agreement.items() if value is not None}
    for measurable in (True, False):  # kept as soon as they are there
        some = [one for one in relations if one.measurable is measurable]
        facts = {"source": choice.source, "source_because": choice.because, **agreement} if measurable else {}
        if some:
            scores = scores_from_weights(writer, some, k, choice.source, progress.heads)
            for one in some:
                left_out = one.left_out(scored_pairs(one))
                _write(store, "relations", scores.sel(relation=one.name), {**facts, "left_out": left_out})


def _write(store: Store, method: str, scores: xr.DataArray, facts: Mapping[str, Any]) -> None:
    name = str(scores.relation.item())
    along = {
        key: scores[key].item()
        for key in ("category", "kind", "pairs", "single", "listed", "k", "whole")
        if key in scores.coords
    }
    values = scores.transpose("direction", "layer", "head").values
    run = store.runs[method, name]
    store.write(ScoreMap(method, name, run.identity, values, {**along, **facts}))


def _score_in_texts(
    model: Model,
    writer: Callable[[], Writer],
    store: Store,
    relations: Sequence[RelationTokens],
    asked: Sequence[str],
    limits: Mapping[str, int],
    k: int | None,
    progress: Progress,
) -> None:
    able = [one for one in relations if len(one.in_text) >= LEAST_PAIRS]
    runs = store.add(
        *(_describe(model, method, one, limits[one.name]) for method in _DYNAMIC for one in able)
    )
    missing = {run.task for run in runs if store.read(ScoreMap, run) is None}
    wanted = [one for one in able if one.name in missing and one.name in asked]
    if wanted:
        found = scores_in_texts(writer(), wanted, k, told=progress.heads)
        for method, scores in found.items():
            for relation in wanted:
                _write(store, method, scores.sel(relation=relation.name), {"kind": "dynamic"})


def _note_salient(writer: Writer, store: Store, source: str, progress: Progress) -> None:
    model = writer.model
    done = 0

    def step(number: int) -> None:
        nonlocal done
        done += number
        progress.heads("salient tokens", done, len(model.spec))

    found = salient_operations(writer, source, step)
    different = np.unique(np.concatenate([found.tokens.ravel(), found.mapped.ravel()]))
    texts = {str(token): model.tokenizer.decode([int(token)]) for token in different if token >= 0}
    arrays = {"tokens": found.tokens, "strength": found.strength, "mapped": found.mapped}
    about = {"source": source, "texts": texts, "identity": identity_of(_salient_decides(model, source))}
    store.write_note("salient", arrays, about)


def _salient_decides(model: Model, source: str) -> dict[str, Any]:
    return {**_basis(model), "source": source}


def _note_causal(
    model: Model,
    store: Store,
    atlas: Atlas,
    relations: Sequence[RelationTokens],
    names: Sequence[str],
    progress: Progress,
) -> None:
    """The named relations; controls are the others that were scored."""
    scores = atlas.relation_scores()
    known = {one["relation"]: one for one in atlas.causal_checks()}
    made_from = {one.name: atlas.run(one.name, "relations").identity for one in relations}
    for asked in relations:
        decides = {**_source_decides(model), "relations": made_from, "asked": asked.name}
        if asked.name not in names or known.get(asked.name, {}).get("identity") == identity_of(decides):
            continue
        done = 0

        def step(number: int, name: str = asked.name) -> None:
            nonlocal done
            done += number
            progress.heads(f"{name}, heads off", done, 0)

        others = [one.relation for one in relations if one is not asked]
        found = causal_check(model, scores, asked.relation, controls=others, progress=step)
        known[asked.name] = {**found.to_json(), "identity": identity_of(decides)}
        about = {"checks": list(known.values())}
        store.write_note("causal", {"questions": np.array([found.questions])}, about)
