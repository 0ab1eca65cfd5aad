"""Cards of many heads: what is the same for all of them is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headatlas.atlas.card import (
    ContrastOfHead,
    EffectOfHead,
    HeadCard,
    ImportedOfHead,
    Labeller,
    RelationOfHead,
    SalientToken,
    TaskOfHead,
)
from headatlas.atlas.contrasts import OPEN, contrasts_of
from headatlas.atlas.finding.doubts import effect_doubts
from headatlas.atlas.imported import imported_effects, mean_of_seeds, seeds_given
from headatlas.core import DIRECTIONS, IMPORTED, Head

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["cards_of"]


def cards_of(atlas: Atlas, heads: Iterable[Head], labeller: Labeller) -> Iterator[HeadCard]:
    """The card of each head, with its label."""
    tasks = [_task_of(atlas, task) for task in atlas.tasks]
    relations, salient, effects = _relations_of(atlas), _salient_of(atlas), _effects_of(atlas)
    contrasts = _contrasts_of(atlas)
    imported, missing = _imported_of(atlas), _missing_of(atlas)
    for head in heads:
        card = HeadCard(
            head,
            atlas.spec.name,
            tuple(task(head) for task in tasks),
            tuple(relations(head)),
            salient(head),
            effects(head),
            contrasts(head),
            imported(head),
            missing(head),
        )
        yield replace(card, label=labeller(card))


def _task_of(atlas: Atlas, task: str) -> Callable[[Head], TaskOfHead]:
    scores, gates, roles = atlas.scores(task), atlas.gates(task), atlas.roles(task).values
    values = {name: scores[name].values for name in ("facilitation", "interference")}
    means = {fit: gates.sel(fit=fit).values.mean(axis=0) for fit in ("retain", "remove")}

    def of(head: Head) -> TaskOfHead:
        here = (slice(None), head.layer, head.head)
        three = {
            name: (float(some[here].min()), float(some[here].mean()), float(some[here].max()))
            for name, some in values.items()
        }
        both = [float(means[fit][head.layer, head.head]) for fit in ("retain", "remove")]
        words = tuple(str(word) for word in roles[here])
        return TaskOfHead(task, words, three["facilitation"], three["interference"], *both)

    return of


def _relations_of(atlas: Atlas) -> Callable[[Head], list[RelationOfHead]]:
    if not atlas.relations:
        return lambda _: []
    scores = atlas.relation_scores()
    about = [
        (str(name), str(category), str(kind), int(pairs))
        for name, category, kind, pairs in zip(
            *(scores[key].values for key in ("relation", "category", "kind", "pairs")), strict=True
        )
    ]
    values = scores.values

    def of(head: Head) -> list[RelationOfHead]:
        found = [
            RelationOfHead(name, category, direction, float(value), kind, pairs)
            for (name, category, kind, pairs), both in zip(
                about, values[:, :, head.layer, head.head], strict=True
            )
            for direction, value in zip(DIRECTIONS, both, strict=True)
            if not np.isnan(value)
        ]
        return sorted(found, key=lambda one: -one.score)

    return of


def _salient_of(atlas: Atlas) -> Callable[[Head], tuple[SalientToken, ...]]:
    if "salient" not in atlas.notes:
        return lambda _: ()
    arrays, about = atlas.notes["salient"]
    texts = about["texts"]

    def text_of(token: int) -> str:
        return str(texts.get(str(token), ""))  # as on the page: a foreign atlas may lack some

    def of(head: Head) -> tuple[SalientToken, ...]:
        here = head.layer, head.head
        rows = zip(arrays["tokens"][here], arrays["strength"][here], arrays["mapped"][here], strict=True)
        return tuple(
            SalientToken(text_of(token), float(strength), tuple(map(text_of, mapped)))
            for token, strength, mapped in rows
            if strength > 0  # a head that writes nothing amplifies nothing
        )

    return of


def _effects_of(atlas: Atlas) -> Callable[[Head], tuple[EffectOfHead, ...]]:
    imported = imported_effects(atlas)
    maps = [
        (
            task,
            method,
            atlas.importance(task, method).values,
            "; ".join(doubt.brief for doubt in effect_doubts(atlas, task, method)),
            (task, method) in imported,
        )
        for task, method in atlas.effect_maps
    ]

    def of(head: Head) -> tuple[EffectOfHead, ...]:
        here = head.layer, head.head
        return tuple(
            EffectOfHead(
                task, method, float(values[here]), int((values >= values[here]).sum()), doubt, is_imported
            )
            for task, method, values, doubt, is_imported in maps
            if not np.isnan(values[here])
        )

    return of


def _contrasts_of(atlas: Atlas) -> Callable[[Head], tuple[ContrastOfHead, ...]]:
    gates = {name: atlas.gates(name, "contrast").sel(fit="retain").values for name in contrasts_of(atlas)}

    def of(head: Head) -> tuple[ContrastOfHead, ...]:
        here = (slice(None), head.layer, head.head)
        return tuple(
            ContrastOfHead(name, float(some[here].mean()), int((some[here] >= OPEN).sum()), len(some))
            for name, some in gates.items()
        )

    return of


def _imported_of(atlas: Atlas) -> Callable[[Head], tuple[ImportedOfHead, ...]]:
    maps = {name: mean_of_seeds(atlas, name).values for name in atlas.imported}
    seeds = {name: len(seeds_given(atlas, name)) for name in maps}

    def of(head: Head) -> tuple[ImportedOfHead, ...]:
        here = head.layer, head.head
        return tuple(
            ImportedOfHead(name, float(values[here]), seeds[name], int((values >= values[here]).sum()))
            for name, values in maps.items()
            if not np.isnan(values[here])
        )

    return of


def _missing_of(atlas: Atlas) -> Callable[[Head], tuple[str, ...]]:
    maps = {name: mean_of_seeds(atlas, name).values for name in atlas.imported}
    for task, method in imported_effects(atlas):
        maps[f"{method} of {task}"] = atlas.importance(task, method).values
    if atlas.relations:
        scores = atlas.relation_scores()
        scores = scores.isel(relation=scores["kind"].values == IMPORTED)
        both = scores.max("direction").values  # NaN where neither direction has a score
        maps |= dict(zip(map(str, scores["relation"].values), both, strict=True))

    def of(head: Head) -> tuple[str, ...]:
        return tuple(name for name, values in maps.items() if np.isnan(values[head.layer, head.head]))

    return of
