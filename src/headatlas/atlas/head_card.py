"""The card of a head: all that an atlas knows about it, and a label in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.contrasts import contrasts_of
from headatlas.atlas.finding.doubts import effect_doubts
from headatlas.atlas.imported import imported_effects, mean_of_seeds, seeds_given
from headatlas.core import (
    DIRECTIONS,
    IMPLEMENTS,
    IMPORTED,
    NOT_IMPORTED,
    THRESHOLD,
    Head,
    is_printable,
    relation_words,
)

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = [
    "ContrastOfHead",
    "EffectOfHead",
    "HeadCard",
    "ImportedOfHead",
    "Labeller",
    "RelationOfHead",
    "SalientToken",
    "TaskOfHead",
    "cards_of",
    "plain_label",
]

#: so many of the relations that a head implements are named in its label
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class TaskOfHead:
    """A head in one task: its role in each seed, and its scores over the seeds as (always, mean, any)."""

    task: str
    roles: tuple[str, ...]
    facilitation: tuple[float, float, float]
    interference: tuple[float, float, float]
    retain: float
    remove: float


@dataclass(frozen=True, slots=True)
class RelationOfHead:
    """A head's score for a relation; `kind` says how it was measured, on how many `pairs`."""

    relation: str
    category: str
    direction: str
    score: float
    kind: str
    pairs: int


@dataclass(frozen=True, slots=True)
class EffectOfHead:
    """What the head alone does to a task by a method, in the `unit` of the method; above zero it helps.
    `rank`: how many heads help as much or more, itself included. `doubt`: why the method's effects on this
    task are doubtful. `imported`: they come from a table."""

    task: str
    method: str
    effect: float
    rank: int
    doubt: str = ""
    imported: bool = False
    unit: str = "nats"


@dataclass(frozen=True, slots=True)
class ImportedOfHead:
    """A score that was imported under this name: the mean over the `seeds` that name the head (0: the table
    names no seeds). `rank`: how many heads have as high a score, itself included."""

    name: str
    score: float
    seeds: int
    rank: int


@dataclass(frozen=True, slots=True)
class ContrastOfHead:
    """A head in one contrast: the mean of its gate over seeds, and in how many seeds the gate is open."""

    contrast: str
    gate: float
    open_in: int
    seeds: int


@dataclass(frozen=True, slots=True)
class SalientToken:
    """A token that the head amplifies, and the tokens that it makes of it."""

    token: str
    strength: float
    mapped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeadCard:
    """All that an atlas knows about one head; `relations` by falling score. `missing`: imported scores and
    relations whose table does not name the head."""

    head: Head
    model: str
    tasks: tuple[TaskOfHead, ...] = ()
    relations: tuple[RelationOfHead, ...] = ()
    salient: tuple[SalientToken, ...] = ()
    effects: tuple[EffectOfHead, ...] = ()
    contrasts: tuple[ContrastOfHead, ...] = ()
    imported: tuple[ImportedOfHead, ...] = ()
    missing: tuple[str, ...] = ()
    label: str = ""

    @property
    def has_effects_in_nats_only(self) -> bool:
        """True if no effect needs a unit beside it."""
        return all(effect.unit == "nats" for effect in self.effects)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "head": str(self.head)}

    def _repr_html_(self) -> str:
        from headatlas.page.notebook import card_html

        return card_html(self)


#: what makes a label of a card: `plain_label`, or a function of the user's
Labeller = Callable[[HeadCard], str]


def plain_label(card: HeadCard) -> str:
    """What the evidence says, in a few words; nothing is guessed.

    First the relations that the head implements, then the tokens that it amplifies, if they are words, then
    its roles that all seeds agree on.
    """
    parts = []
    strong = [one for one in card.relations if one.score >= IMPLEMENTS][:_MOST_NAMED]
    for one in strong:
        verb = "suppresses " if one.direction == "suppress" else ""
        where = {"multi-token": ", in texts", IMPORTED: ", imported"}.get(one.kind, "")
        parts.append(f"{verb}{relation_words(one.relation)} ({one.score:.2f}{where})")
    if not strong and card.salient:
        sources, targets = _most_common(card.salient)
        if sources and targets:
            parts.append(f"top tokens: {sources} → {targets}")
    for one_task in card.tasks:
        roles = set(one_task.roles)
        if len(roles) == 1 and roles <= {"facilitating", "interfering"}:
            verb = "facilitates" if roles == {"facilitating"} else "interferes with"
            parts.append(f"{verb} {one_task.task}")
    if parts:
        return "; ".join(parts)
    is_unknown = not (card.tasks or card.relations or card.salient or card.effects or card.imported)
    return NOT_IMPORTED if is_unknown and card.missing else "nothing stands out"


def _most_common(salient: Sequence[SalientToken]) -> tuple[str, str]:
    sources = [_word(one.token) for one in salient]
    targets = [_word(one.mapped[0]) for one in salient if one.mapped]
    sources, targets = ([word for word in words if word] for words in (sources, targets))
    return ", ".join(dict.fromkeys(sources[:6])), ", ".join(list(dict.fromkeys(targets))[:6])


def _word(token: str) -> str:
    word = token.strip()
    return word if is_printable(word) else ""


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
            atlas.importance(task, method).values,
            EffectOfHead(
                task,
                method,
                effect=0,
                rank=0,
                doubt="; ".join(doubt.brief for doubt in effect_doubts(atlas, task, method)),
                imported=(task, method) in imported,
                unit=atlas.run(task, method).unit,
            ),
        )
        for task, method in atlas.effect_maps
    ]

    def of(head: Head) -> tuple[EffectOfHead, ...]:
        here = head.layer, head.head
        return tuple(
            replace(entry, effect=float(values[here]), rank=int((values >= values[here]).sum()))
            for values, entry in maps
            if not np.isnan(values[here])
        )

    return of


def _contrasts_of(atlas: Atlas) -> Callable[[Head], tuple[ContrastOfHead, ...]]:
    gates = {name: atlas.gates(name, "contrast").sel(fit="retain").values for name in contrasts_of(atlas)}

    def of(head: Head) -> tuple[ContrastOfHead, ...]:
        here = (slice(None), head.layer, head.head)
        return tuple(
            ContrastOfHead(name, float(some[here].mean()), int((some[here] >= THRESHOLD).sum()), len(some))
            for name, some in gates.items()
        )

    return of


def _imported_of(atlas: Atlas) -> Callable[[Head], tuple[ImportedOfHead, ...]]:
    maps = {name: mean_of_seeds(atlas, name).values for name in atlas.imported}
    seed_counts = {name: _seed_counts(atlas, name) for name in maps}

    def of(head: Head) -> tuple[ImportedOfHead, ...]:
        here = head.layer, head.head
        return tuple(
            ImportedOfHead(
                name, float(values[here]), int(seed_counts[name][here]), int((values >= values[here]).sum())
            )
            for name, values in maps.items()
            if not np.isnan(values[here])
        )

    return of


def _seed_counts(atlas: Atlas, name: str) -> np.ndarray:
    """[layer, head]: how many seeds of an imported score name the head; 0 if the table names no seeds."""
    counts = atlas.imported_scores(name).notnull().sum("seed").values
    return counts if seeds_given(atlas, name) else np.zeros_like(counts)


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
