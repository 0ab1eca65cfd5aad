"""One head's card: all that the atlas knows about it, and a label in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headatlas.core import IMPORTED, NOT_IMPORTED, Head, relation_words

__all__ = [
    "ContrastOfHead",
    "EffectOfHead",
    "HeadCard",
    "ImportedOfHead",
    "Labeller",
    "RelationOfHead",
    "SalientToken",
    "TaskOfHead",
    "plain_label",
]

#: a score that is worth a word in a label; the strongest of them are named
_NAMED, _MOST_NAMED = 0.15, 3


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
    """What the head alone does to a task by a method, in nats; above zero it helps. `rank`: how many heads
    help as much or more, itself included. `doubt`: why the method's effects on this task are doubtful.
    `imported`: they come from a table."""

    task: str
    method: str
    effect: float
    rank: int
    doubt: str = ""
    imported: bool = False


@dataclass(frozen=True, slots=True)
class ImportedOfHead:
    """A score that was imported under this name: the mean over its `seeds` (0: the table names none). `rank`:
    how many heads have as high a score, itself included."""

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
    strong = [one for one in card.relations if one.score >= _NAMED][:_MOST_NAMED]
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
    return word if word.isprintable() else ""
