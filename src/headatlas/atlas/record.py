"""What an atlas holds: runs (a method on a task) and records, the files of their results. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from headatlas.core import NLL, AtlasError, seed_numbers, slug

__all__ = [
    "RECORDS",
    "EffectMap",
    "Fit",
    "ItemEffects",
    "Record",
    "Run",
    "ScoreMap",
    "record_folder",
    "record_path",
]


@dataclass(frozen=True, slots=True)
class Run:
    """A method applied to a task (or to a relation): all that is needed to know what its numbers mean.

    `task_facts` says what was asked (version, content hash, licence, rows, first tokens, …), `settings` how
    (`given` as the user wrote it, `resolved` in full, `decides` what the numbers depend on), `baseline` how
    the ungated model does on the held-out items; `identity` is a hash of `decides`. `request` is the JSON of
    the request that made it, `about` the label, unit and summary of its method; an atlas may lack both.
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

    @property
    def decides(self) -> Mapping[str, Any]:
        """What the numbers depend on; empty if they were imported."""
        decides: Mapping[str, Any] = self.settings.get("decides", {})
        return decides

    @property
    def requested_seeds(self) -> set[int]:
        """The seeds that were asked for; empty if they were imported."""
        seeds = self.settings.get("resolved", {}).get("seeds", 0)
        return set(seed_numbers(seeds if isinstance(seeds, list | tuple) else int(seeds)))

    def with_seeds(self, seeds: set[int]) -> Run:
        """The run with these seeds in its settings: their number, if they are the first ones."""
        is_first = seeds == set(range(len(seeds)))
        value = len(seeds) if is_first else sorted(seeds)
        settings = {**self.settings, "resolved": {**self.settings.get("resolved", {}), "seeds": value}}
        if "seeds" in self.settings.get("given", {}):
            settings["given"] = {**self.settings["given"], "seeds": value}
        return replace(self, settings=settings)

    @property
    def metric(self) -> Any:
        """The metric of its numbers, as `metric_to_json` writes it; it is not stored for the default one."""
        return self.settings.get("resolved", {}).get("metric", NLL)

    def has_other_weights(self, dtype: str, weights: str) -> bool:
        """True if the run was made with other exact weights. In another dtype the exact hashes cannot be
        compared; `ModelSpec.has_same_weights` still can."""
        return self.decides.get("dtype") == dtype and self.decides.get("weights", weights) != weights

    def require_weights(self, dtype: str, weights: str) -> None:
        """Refuse a model whose exact weights are not those of the run."""
        if self.has_other_weights(dtype, weights):
            raise AtlasError(
                f"{self.task!r} was mapped ({self.method}) with other weights than the model has now; load "
                "the weights that were mapped, or start a new atlas."
            )

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        return {key: value for key, value in data.items() if value or key not in ("request", "about")}

    @property
    def unit(self) -> str:
        """The unit of its effects: nats of loss, unless the method says otherwise."""
        return str(self.about.get("unit") or "nats")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        return cls(**{key: data[key] for key in cls.__slots__ if key in data})


class Record:
    """One file of results of a run.

    A class states the `FOLDER` of its files, its `SUBJECT` (the field that holds the task of the run), the
    fields in the name of a file (`KEY`), its arrays, and the `REPAIR` of a damaged file. Arrays are stated as
    "kind axis axis …": kind f (floats) or i (integers); the axes layer, head and direction have the sizes
    that the model gives them, others one size per file. Of the `OPTIONAL` arrays a file has all or none.
    """

    __slots__ = ()
    FOLDER: ClassVar[str]
    SUBJECT: ClassVar[str] = "task"
    KEY: ClassVar[tuple[str, ...]] = ()
    ARRAYS: ClassVar[Mapping[str, str]]
    OPTIONAL: ClassVar[Mapping[str, str]] = {}
    REPAIR: ClassVar[str] = "delete it and run the map again with resume=True: only it is made anew"

    method: str
    identity: str
    facts: Mapping[str, Any]

    @classmethod
    def current_facts(cls, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts of a file that an older version may have written, as this one writes them."""
        return facts

    def damage(self) -> str | None:
        """What is wrong with a record whose facts and arrays have the right form."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Fit(Record):
    """One gate set, finished. Arrays are [layer, head], `path` [snapshot, layer, head]; NaN: no head there.

    `logits` are what was fitted; the gates are their sigmoid. `facts` has the held-out figures, seconds
    and tokens of the fit.
    """

    FOLDER: ClassVar = "fits"
    KEY: ClassVar = ("seed", "fit")
    ARRAYS: ClassVar = {
        "logits": "f layer head",
        "path": "f snapshot layer head",
        "path_updates": "i snapshot",
        "losses": "f update",
    }

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


class ItemEffects(NamedTuple):
    """Effects of heads on single items: `values` [item, layer, head]; `items`, their places among the task's
    training rows; `groups`, equal for items that are not independent of each other."""

    values: np.ndarray
    items: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class EffectMap(Record):
    """What every head does to a task by a method that measures, on the items that `seed` draws; or, with the
    method "imported", a score of that name that was made elsewhere, in a unit that the atlas does not know.

    `values` [layer, head] in the unit of the run, above zero where the head helps, and `errors`, their
    standard errors; NaN: no head there. `facts` has the number of items, the loss without any change and the
    like. The last three are the parts of `per_item`, the effects on each item, which an imported map lacks.
    """

    FOLDER: ClassVar = "effects"
    KEY: ClassVar = ("seed",)
    ARRAYS: ClassVar = {"values": "f layer head", "errors": "f layer head"}
    OPTIONAL: ClassVar = {"item_values": "f item layer head", "items": "i item", "item_groups": "i item"}

    method: str
    task: str
    seed: int
    identity: str
    values: np.ndarray
    errors: np.ndarray
    facts: Mapping[str, Any] = field(default_factory=dict)
    item_values: np.ndarray | None = None
    items: np.ndarray | None = None
    item_groups: np.ndarray | None = None

    @property
    def per_item(self) -> ItemEffects | None:
        if self.item_values is None or self.items is None or self.item_groups is None:
            return None
        return ItemEffects(self.item_values, self.items, self.item_groups)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMap(Record):
    """Scores of one relation: `values` [direction, layer, head] in 0..1; NaN: no head there, or not measured.

    `method` is "relations" (what the weights say) or "attending" or "forced" (what the heads do in texts);
    `facts` has the number of pairs, how they were measured, and the like. Imported scores also have
    `per_seed` [seed, direction, layer, head], as the table gives them: `facts["seeds"]` names the seeds (none
    if the table has none), and `values` is the mean over those that name a head.
    """

    FOLDER: ClassVar = "scores"
    SUBJECT: ClassVar = "relation"
    ARRAYS: ClassVar = {"values": "f direction layer head"}
    OPTIONAL: ClassVar = {"per_seed": "f seed direction layer head"}
    REPAIR: ClassVar = "delete it and run relate_heads again with resume=True"

    method: str
    relation: str
    identity: str
    values: np.ndarray
    facts: Mapping[str, Any] = field(default_factory=dict)
    per_seed: np.ndarray | None = None

    @classmethod
    def current_facts(cls, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Older versions kept the number of seeds, and the mean."""
        if isinstance(facts.get("seeds"), int):
            return {**facts, "seeds": [], "averaged_seeds": facts["seeds"]}
        return facts

    def damage(self) -> str | None:
        if self.per_seed is not None and len(self.per_seed) != max(1, len(self.facts.get("seeds", ()))):
            return "it does not name the seeds of its scores"
        return None


RECORDS: tuple[type[Record], ...] = (Fit, EffectMap, ScoreMap)


def record_folder(kind: type[Record], method: str, subject: str) -> Path:
    """The folder, in an atlas, of a run's records of a kind."""
    folder = Path(kind.FOLDER, method)
    return folder / slug(subject) if kind.KEY else folder


def record_path(kind: type[Record], method: str, subject: str, **key: Any) -> Path:
    """The file, in an atlas, of a record: `record_path(Fit, "gating", "math", seed=0, fit="free")`."""
    if key.keys() != set(kind.KEY):
        raise TypeError(f"a {kind.__name__} is named by {kind.KEY}, not by {tuple(key)}")
    name = "-".join(str(key[part]) for part in kind.KEY) or slug(subject)
    return record_folder(kind, method, subject) / f"{name}.safetensors"
