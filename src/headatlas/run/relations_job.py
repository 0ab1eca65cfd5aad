"""Carries out a `RelationsRequest`: relations read off the weights of the heads (MAPS)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from headatlas.atlas import Run, ScoreMap, Store, open_atlas
from headatlas.core import AtlasError, Note, Progress, Update, identity_of
from headatlas.core.lazy import xr
from headatlas.method.relation.causal_check import causal_check, questions
from headatlas.method.relation.in_text import TEMPLATES
from headatlas.method.relation.salient import salient_operations
from headatlas.method.relation.scorer import Writer, choose_k, relations_for
from headatlas.method.relation.scores import scored_pairs, scores_from_weights, scores_in_texts
from headatlas.method.relation.source_choice import ProgressCallback, SourceChoice, choose_source
from headatlas.model import Model
from headatlas.request.plan import Step
from headatlas.request.relations_request import DYNAMIC, RelationsRequest
from headatlas.run.prepare import made_with
from headatlas.task import LEAST_PAIRS, RelationTokens, tokens_of

__all__ = ["RelationsJob"]

#: raised when the same settings would give other numbers than before
_ALGORITHM = 2


class RelationsJob:
    """Finds the tokens of all relations when it is made."""

    def __init__(self, request: RelationsRequest, model: Model, progress: Progress) -> None:
        self.request, self.model, self.progress = request, model, progress
        self.ready = relations_for(model, request.relations, request.min_pairs)
        self.limits = {
            relation.name: choose_k(relation, model.spec.vocabulary, request.k) for relation in self.ready
        }
        for relation in self.ready:
            if relation.name in request.causal:
                questions(model, relation, 1)  # refused now if it cannot be asked
        self.choice = SourceChoice(request.source, "asked for", {})

    @cached_property
    def writer(self) -> Writer:
        """Made when it is first needed: it holds the vocabulary anew."""
        return Writer(self.model, self.request.norms)

    def _heads_done(self, what: str, done: int, total: int) -> None:
        self.progress(Update(what, done, total))

    def enter(self, store: Store) -> None:
        model, request = self.model, self.request
        if request.source == "auto":
            self.choice = self._automatic_choice(store)
        _require_one_source(store, self.choice.source)
        _require_one_norms(store, request.norms)
        store.add(*(self._run_of("relations", relation, self.choice.source) for relation in self.ready))
        _keep_choice(store, _choice_note(model, self.choice, request.norms))
        salient = store.read_note("salient")
        if salient is not None and not _is_of(
            salient, _salient_decides(model, self.choice.source, request.norms)
        ):
            store.drop_note("salient")

    def _automatic_choice(self, store: Store) -> SourceChoice:
        """The same in the whole atlas, and looked for once."""
        note = store.read_note("source")
        if (
            note is not None
            and _is_of(note, _source_decides(self.model, self.request.norms))
            and note[1]["agreement"]
        ):
            return SourceChoice(note[1]["source"], note[1]["because"], note[1]["agreement"])
        return choose_source(self.writer, self.ready, self.request.k, self._heads_done)

    def run(self, store: Store, steps: Sequence[Step]) -> None:
        """All relations of these steps at once: one pass over the vocabulary serves them all."""
        names = {name for step in steps for name in step.subjects}
        chosen = [relation for relation in self.ready if relation.name in names]
        if chosen:
            self._score(store, chosen)
        parts = {step.part for step in steps}
        if "salient" in parts:
            _note_salient(self.writer, store, self.choice.source, self._heads_done)
        if "causal" in parts:
            self._note_causal(store)

    def _score(self, store: Store, chosen: Sequence[RelationTokens]) -> None:
        missing = [
            relation
            for relation in chosen
            if store.read(ScoreMap, store.runs["relations", relation.name]) is None
        ]
        if missing:
            self.progress(Note(f"source vectors: {self.choice.source} ({self.choice.because})", "fact"))
            _score(self.writer, store, missing, self.request.k, self.choice, self._heads_done)
        for relation in chosen:
            if not relation.measurable:
                self.progress(Note(_how_measured(relation), "caveat" if relation.has_enough else "early"))
            if few := _few_targets(relation, self.limits[relation.name]):
                self.progress(Note(few))
        if self.request.dynamic:
            self._score_in_texts(store, chosen)

    def _score_in_texts(self, store: Store, chosen: Sequence[RelationTokens]) -> None:
        able = [relation for relation in self.ready if relation.has_enough]
        runs = store.add(*(self._run_of(method, relation) for method in DYNAMIC for relation in able))
        missing = {run.task for run in runs if store.read(ScoreMap, run) is None}
        wanted = [relation for relation in able if relation in chosen and relation.name in missing]
        if wanted:
            by_method = scores_in_texts(self.writer, wanted, self.request.k, progress=self._heads_done)
            for method, scores in by_method.items():
                for relation in wanted:
                    _write(store, method, scores.sel(relation=relation.name), {"kind": "dynamic"})

    def _note_causal(self, store: Store) -> None:
        """The named relations; controls are the others that were scored."""
        atlas = open_atlas(store.root)
        scores = atlas.relation_scores()
        known = {check["relation"]: check for check in atlas.causal_checks()}
        made_from = {relation.name: atlas.run(relation.name, "relations").identity for relation in self.ready}
        for asked in self.ready:
            decides = {
                **_source_decides(self.model, self.request.norms),
                "relations": made_from,
                "asked": asked.name,
            }
            if asked.name not in self.request.causal:
                continue
            if known.get(asked.name, {}).get("identity") == identity_of(decides):
                continue
            done = 0

            def step(number: int, name: str = asked.name) -> None:
                nonlocal done
                done += number
                self._heads_done(f"{name}, heads off", done, 0)

            others = [relation.relation for relation in self.ready if relation is not asked]
            check = causal_check(self.model, scores, asked.relation, controls=others, progress=step)
            known[asked.name] = {**check.to_json(), "identity": identity_of(decides)}
            about = {"checks": list(known.values())}
            store.write_note("causal", {"questions": np.array([check.questions])}, about)

    def _run_of(self, method: str, relation: RelationTokens, source: str = "") -> Run:
        """The entry of a run, with the hash of everything that its numbers depend on."""
        tokens = [[pair.source, pair.target, pair.whole] for pair in relation.pairs]
        static = method == "relations" and relation.measurable
        k, about = self.limits[relation.name], relation.relation
        decides = {
            "method": method,
            **_basis(self.model),
            "relations": {
                relation.name: {
                    "content": about.content_hash,
                    "tokens": identity_of(tokens),
                }
            },
            "k": k,
            "category": about.category,
            **({"source": source} if static else _in_texts(self.model)),
            **_pair_decides(relation),
            **_norms_decide(self.request.norms),
        }
        facts = {
            "category": about.category,
            "content_hash": about.content_hash,
            "licence": about.licence,
            "listed": len(about.pairs),
        }
        decides = json.loads(json.dumps(decides))  # as it will be read again
        given = {
            "k": k,
            "source": self.request.source if method == "relations" else "",
            **_norms_decide(self.request.norms),
        }
        settings = {"given": given, "resolved": {"k": k, "source": source}, "decides": decides}
        request = replace(self.request, relations=(about,), causal=()).to_json()
        return Run(
            method, relation.name, identity_of(decides), facts, settings, {}, made_with(self.model),
            request=request,
        )  # fmt: skip


def _how_measured(relation: RelationTokens) -> str:
    count, listed = len(relation.single), len(relation.relation.pairs)
    least = relation.min_pairs
    if listed < least:
        return f"{relation.name}: not measurable: its list has {listed} pairs, {least} are needed"
    said = (
        f"{relation.name}: not measurable with this tokenizer (n = {count}): {count} of its {listed} "
        f"pairs are single tokens, {least} are needed"
    )
    if not relation.has_enough:
        return said
    pieces = not all(pair.whole for pair in relation.in_text)
    how = "one piece of each target stands for it" if pieces else "sources of several tokens"
    return f"{said}; scored in texts instead (multi-token: {how})"


def _few_targets(relation: RelationTokens, k: int) -> str | None:
    """A sentence if the targets are so few that a head that likes them all would seem to know the
    relation."""
    pairs = relation.single if relation.measurable else relation.in_text
    targets = len({pair.target for pair in pairs})
    if len(pairs) < relation.min_pairs or targets > 2 * k:
        return None
    return (
        f"{relation.name}: its pairs have {targets} different targets, and k is {k}: a head that "
        "promotes them all, whatever the source, scores high too"
    )


def _pair_decides(relation: RelationTokens) -> dict[str, int]:
    """The least number of pairs, where it decides how the relation is measured."""
    usual = replace(relation, min_pairs=LEAST_PAIRS)
    ways = [(each.measurable, each.has_enough, each.in_text) for each in (relation, usual)]
    return {} if ways[0] == ways[1] else {"min_pairs": relation.min_pairs}


def _norms_decide(norms: str) -> dict[str, str]:
    """The treatment of the final norm, where it is not the published one."""
    return {} if norms == "published" else {"norms": norms}


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


def _source_decides(model: Model, norms: str) -> dict[str, Any]:
    return {**_basis(model), **_in_texts(model), **_norms_decide(norms)}


def _choice_note(model: Model, choice: SourceChoice, norms: str) -> dict[str, Any]:
    said = {"source": choice.source, "because": choice.because, "agreement": dict(choice.agreement)}
    return {**said, "identity": identity_of(_source_decides(model, norms))}


def _keep_choice(store: Store, said: Mapping[str, Any]) -> None:
    known = store.read_note("source")
    if known is None or any(known[1].get(key) != value for key, value in said.items()):
        store.write_note("source", {}, said)


def _require_one_source(store: Store, source: str) -> None:
    """Scores of two sources in one atlas could not be compared."""
    for run in store.runs.values():
        other = run.decides.get("source")
        if (
            run.method == "relations"
            and other not in (None, source)
            and store.read(ScoreMap, run) is not None
        ):
            raise AtlasError(
                f"{store.root} has scores with the source vectors {other!r}, and these would be with "
                f"{source!r}; choose another out=…, or source={other!r}."
            )


def _require_one_norms(store: Store, norms: str) -> None:
    """Scores with and without the final norm in one atlas could not be compared."""
    for run in store.runs.values():
        other = run.decides.get("norms", "published")
        if (
            run.method in ("relations", *DYNAMIC)
            and other != norms
            and "imported" not in run.decides
            and store.read(ScoreMap, run) is not None
        ):
            raise AtlasError(
                f"{store.root} has scores with norms={other!r}, and these would be with norms={norms!r}; "
                f"choose another out=…, or norms={other!r}."
            )


def _score(
    writer: Writer,
    store: Store,
    relations: Sequence[RelationTokens],
    k: int | None,
    choice: SourceChoice,
    progress: ProgressCallback,
) -> None:
    agreement = {f"agreement_{name}": value for name, value in choice.agreement.items() if value is not None}
    for measurable in (True, False):  # kept as soon as they are there
        some = [one for one in relations if one.measurable is measurable]
        facts = {"source": choice.source, "source_because": choice.because, **agreement} if measurable else {}
        if some:
            scores = scores_from_weights(writer, some, k, choice.source, progress)
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


def _note_salient(writer: Writer, store: Store, source: str, progress: ProgressCallback) -> None:
    model = writer.model
    done = 0

    def step(number: int) -> None:
        nonlocal done
        done += number
        progress("salient tokens", done, len(model.spec))

    found = salient_operations(writer, source, step)
    different = np.unique(np.concatenate([found.tokens.ravel(), found.mapped.ravel()]))
    texts = {str(token): model.tokenizer.decode([int(token)]) for token in different if token >= 0}
    arrays = {"tokens": found.tokens, "strength": found.strength, "mapped": found.mapped}
    about = {
        "source": source,
        "texts": texts,
        "identity": identity_of(_salient_decides(model, source, writer.norms)),
    }
    store.write_note("salient", arrays, about)


def _salient_decides(model: Model, source: str, norms: str) -> dict[str, Any]:
    return {**_basis(model), "source": source, **_norms_decide(norms)}
