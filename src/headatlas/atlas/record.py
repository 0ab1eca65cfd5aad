"""What an atlas holds: runs (a method on a task) and the fits in them. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

__all__ = ["EffectMap", "Fit", "ItemEffects", "Run", "ScoreMap"]


@dataclass(frozen=True, slots=True)
class Run:
    """A method applied to a task (or to a relation): all that is needed to know what its numbers mean.

    `task_facts` says what was asked (version, content hash, licence, rows, first tokens, …), `settings` how
    (`given` as the user wrote it, `resolved` in full, `decides` what the numbers depend on), `baseline` how
    the ungated model does on the held-out items; `identity` is a hash of `decides`.
    """

    method: str
    task: str
    identity: str
    task_facts: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)
    made_with: Mapping[str, str] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        for name in ("request", "about"):
            if not data[name]:
                del data[name]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        return cls(**{key: data[key] for key in cls.__slots__ if key in data})


@dataclass(frozen=True, slots=True)
class Fit:
    """One gate set, finished. Arrays are [layer, head], `path` [snapshot, layer, head]; NaN: no head there.

    `logits` are what was fitted; the gates are their sigmoid. `facts` has the held-out figures, seconds
    and tokens of the fit.
    """

    method: str
    task: str
    seed: int
    fit: str
    identity: str
    logits: np.ndarray
    path: np.ndarray
    path_updates: np.ndarray
    losses: np.ndarray
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gates(self) -> np.ndarray:
        with np.errstate(over="ignore"):
            return (1 / (1 + np.exp(-self.logits.astype(np.float64)))).astype(np.float32)


@dataclass(frozen=True, slots=True)
class ItemEffects:
    """Effects of heads on single items: `values` [item, layer, head]; `items`, their places among the task's
    training rows; `groups`, equal for items that are not independent of each other."""

    values: np.ndarray
    items: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True, slots=True)
class EffectMap:
    """What every head does to a task by one of `EFFECT_METHODS`, on the items that `seed` draws; or, with the
    method "imported", a score of that name that was made elsewhere, in a unit that the atlas does not know.

    `values` [layer, head] in nats, above zero where the head helps, and `errors`, their standard errors; NaN:
    no head there. `facts` has the number of items, the loss without any change and the like. `per_item` are
    the effects on each item, which an imported map lacks.
    """

    method: str
    task: str
    seed: int
    identity: str
    values: np.ndarray
    errors: np.ndarray
    facts: Mapping[str, Any] = field(default_factory=dict)
    per_item: ItemEffects | None = None


@dataclass(frozen=True, slots=True)
class ScoreMap:
    """Scores of one relation: `values` [direction, layer, head] in 0..1; NaN: no head there, or not measured.

    `method` is "relations" (what the weights say) or "attending" or "forced" (what the heads do in texts);
    `facts` has the number of pairs, how they were measured, and the like. Imported scores also have
    `per_seed` [seed, direction, layer, head], as the table gives them: `facts["seeds"]` names the seeds (none
    if the table has none), and `values` is the mean over those that name a head.
    """

    method: str
    relation: str
    identity: str
    values: np.ndarray
    facts: Mapping[str, Any] = field(default_factory=dict)
    per_seed: np.ndarray | None = None
