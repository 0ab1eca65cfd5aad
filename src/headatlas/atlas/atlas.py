"""`Atlas`: all that is known about the heads of one model, as labelled arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headatlas.atlas.agreement import HELD_OUT, Summary, always, any_seed, summarise
from headatlas.atlas.card import HeadCard, Labeller, plain_label
from headatlas.atlas.cards import cards_of
from headatlas.atlas.categories import IMPLEMENTS, categories, in_order
from headatlas.atlas.records import EffectMap, Fit, Run, ScoreMap
from headatlas.atlas.scores import ROLE_WORDS, THRESHOLD, role_scores, roles_of
from headatlas.atlas.store import Store
from headatlas.atlas.validation import Validation, validation_name
from headatlas.core import (
    DIRECTIONS,
    EFFECT_METHODS,
    FITS,
    METHODS,
    AtlasError,
    Head,
    HeadatlasError,
    ModelSpec,
    UnknownNameError,
    method_named,
)

__all__ = ["Atlas", "atlases_in", "open_atlas"]

Note = tuple[dict[str, np.ndarray], dict[str, Any]]
COLUMNS = ["method", "task", "seed", "fit", "relation", "direction", "layer", "head", "value"]


class Atlas:
    """The atlas of a model. `open_atlas` reads one from a folder; `fits` are those of all `runs`.

    Arrays have the axes of `headatlas.core.AXES` in that order; a cell without a head is NaN.
    """

    def __init__(
        self,
        spec: ModelSpec,
        runs: Iterable[Run],
        fits: Iterable[Fit],
        path: Path | None = None,
        *,
        scores: Iterable[ScoreMap] = (),
        effects: Iterable[EffectMap] = (),
        notes: Mapping[str, Note] | None = None,
    ) -> None:
        self.spec = spec
        self.path = path
        self.runs = {(run.method, run.task): run for run in runs}
        self._fits: dict[tuple[str, str], dict[tuple[int, str], Fit]] = {key: {} for key in self.runs}
        for fit in fits:
            self._fits[fit.method, fit.task][fit.seed, fit.fit] = fit
        self._scores = {(one.method, one.relation): one for one in scores}
        self._effects: dict[tuple[str, str], dict[int, EffectMap]] = {}
        for effect in effects:
            self._effects.setdefault((effect.method, effect.task), {})[effect.seed] = effect
        self.notes = dict(notes or {})

    def __repr__(self) -> str:
        relations = f", {len(self.relations)} relations" if self.relations else ""
        return f"<Atlas of {self.spec.name}: {', '.join(self.tasks) or 'no task'}{relations}>"

    def _repr_html_(self) -> str:
        from headatlas.atlas.notebook import atlas_html

        return atlas_html(self)

    @property
    def tasks(self) -> list[str]:
        """Tasks with at least one seed that is gated to the end."""
        return [task for method, task in self.runs if method == "gating" and self.seeds(task)]

    def seeds(self, task: str, method: str = "gating") -> list[int]:
        """Seeds of which all fits are finished."""
        fits = self._fits.get((method, task), {})
        wanted = ("retain",) if method == "contrast" else ("retain", "remove")
        return sorted(
            seed for seed in {seed for seed, _ in fits} if all((seed, fit) in fits for fit in wanted)
        )

    def run(self, task: str, method: str = "gating") -> Run:
        """How a task was mapped."""
        self._require(task, method)
        return self.runs[method, task]

    def fit(self, task: str, seed: int, fit: str, method: str = "gating") -> Fit:
        """One fit with all that was kept of it."""
        self._require(task, method)
        try:
            return self._fits[method, task][seed, fit]
        except KeyError:
            raise AtlasError(f"{task!r} has no finished fit {fit!r} with seed {seed}.") from None

    def _require(self, task: str, method: str) -> None:
        known = [name for kind, name in self.runs if kind == method]
        if task not in known:
            raise UnknownNameError(f"task in this atlas ({method})", task, known or ["none yet"])

    def gates(self, task: str, method: str = "gating") -> xr.DataArray:
        """[seed, fit, layer, head] of the seeds that are finished."""
        seeds = self._finished_seeds(task, method)
        fits = [fit for fit in FITS if (seeds[0], fit) in self._fits[method, task]]
        values = np.stack([[self._fits[method, task][seed, fit].gates for fit in fits] for seed in seeds])
        return self._labelled(values, seed=seeds, fit=fits).rename("gate").assign_attrs(task=task)

    def _finished_seeds(self, task: str, method: str) -> list[int]:
        self._require(task, method)
        if seeds := self.seeds(task, method):
            return seeds
        raise AtlasError(f"no seed of {task!r} is finished; go on with 'headatlas map … --resume'.")

    def _labelled(self, values: np.ndarray, **axes: Any) -> xr.DataArray:
        layers, heads = self.spec.shape
        coords = {**axes, "layer": np.arange(layers), "head": np.arange(heads)}
        return xr.DataArray(values, dims=list(coords), coords=coords)

    def trajectory(self, task: str, fit: str, method: str = "gating") -> xr.DataArray:
        """[seed, update, layer, head]: the gates on their way, at the updates that were kept."""
        seeds = self._finished_seeds(task, method)
        imported = f"{task!r} has no trajectories: its gates were imported."
        if "imported_from" in self.runs[method, task].task_facts:
            raise AtlasError(imported)
        fits = [self.fit(task, seed, fit, method) for seed in seeds]
        updates = fits[0].path_updates
        if not len(updates):
            raise AtlasError(imported)
        values = np.stack([one.path for one in fits])
        layers, heads = self.spec.shape
        return xr.DataArray(
            values,
            dims=["seed", "update", "layer", "head"],
            coords={
                "seed": [one.seed for one in fits],
                "update": updates,
                "layer": np.arange(layers),
                "head": np.arange(heads),
            },
            name="gate",
        )

    # Effects of single heads, and the order in which a method puts the heads

    def methods(self, task: str) -> list[str]:
        """The methods by which a task was mapped, gating first."""
        known = [method for method in EFFECT_METHODS if (method, task) in self._effects]
        return (["gating"] if task in self.tasks else []) + known

    @property
    def effect_maps(self) -> list[tuple[str, str]]:
        """(task, method) of all effects that were measured."""
        tasks = dict.fromkeys(task for _, task in self.runs)
        return [(task, method) for task in tasks for method in self.methods(task) if method != "gating"]

    def effects(self, task: str, method: str) -> xr.Dataset:
        """`effect` and `error` [seed, layer, head] by one of `EFFECT_METHODS`: above zero the head helps."""
        method = method_named(method)
        found = self._effects.get((method, task))
        if not found:
            known = [name for kind, name in self._effects if kind == method]
            raise UnknownNameError(f"task in this atlas ({method})", task, known or ["none yet"])
        seeds = sorted(found)
        parts = {
            "effect": np.stack([found[seed].values for seed in seeds]),
            "error": np.stack([found[seed].errors for seed in seeds]),
        }
        return xr.Dataset({name: self._labelled(part, seed=seeds) for name, part in parts.items()})

    def effect(self, task: str, method: str, seed: int) -> EffectMap:
        """One map of effects with all that was kept of it."""
        try:
            return self._effects[method_named(method), task][seed]
        except KeyError:
            raise AtlasError(f"{task!r} has no effects by {method} with seed {seed}.") from None

    def importance(self, task: str, method: str = "gating") -> xr.DataArray:
        """[layer, head]: how much a task wants each head, by one of `METHODS`, the mean over the seeds.

        For gating facilitation less interference, -1 to 1, which is G+ + G- - 1; for the others the effect in
        nats. Above zero the head helps, below it hurts.
        """
        if method_named(method) != "gating":
            return self.effects(task, method)["effect"].mean("seed").rename("importance")
        scores = self.scores(task)
        return (scores["facilitation"] - scores["interference"]).mean("seed").rename("importance")

    # Statements

    def scores(self, task: str, method: str = "gating") -> xr.Dataset:
        """Facilitation, interference, irrelevance: [seed, layer, head]. `method` "retest-a" or "retest-b":
        from fits on one half of the items."""
        return role_scores(self.gates(task, method))

    def roles(self, task: str, threshold: float = THRESHOLD) -> xr.DataArray:
        """[seed, layer, head]: facilitating, interfering, irrelevant, anomaly, unclear."""
        return roles_of(self.scores(task), threshold)

    def always(self, task: str) -> xr.Dataset:
        """[layer, head]: the smallest score over the seeds."""
        return always(self.scores(task))

    def any(self, task: str) -> xr.Dataset:
        """[layer, head]: the largest score over the seeds."""
        return any_seed(self.scores(task))

    def distribution(self, task: str, threshold: float = THRESHOLD) -> pd.DataFrame:
        """One line per seed: the share of heads in each role."""
        roles = self.roles(task, threshold)
        lines = {}
        for seed in roles.seed.values:
            words = roles.sel(seed=seed).values
            there = words[words != ""]
            lines[int(seed)] = {word: float((there == word).mean()) for word in ROLE_WORDS if word}
        return pd.DataFrame.from_dict(lines, orient="index").rename_axis("seed")

    def summary(self, task: str, threshold: float = THRESHOLD) -> Summary:
        """The task in numbers, with held-out figures where they were measured."""
        run = self.run(task)
        held_out: dict[str, dict[str, float]] = {name: {} for name in HELD_OUT}
        facts = {
            fit: [self.fit(task, seed, fit).facts for seed in self.seeds(task)]
            for fit in ("retain", "remove")
        }
        for name, figures in held_out.items():
            for fit, found in {"baseline": [run.baseline], **facts}.items():
                if found and all(name in one for one in found):
                    figures[fit] = float(np.mean([one[name] for one in found]))
        rows = int(run.baseline["rows"]) if "rows" in run.baseline else None
        return summarise(task, self.scores(task), threshold=threshold, held_out=held_out, rows=rows)

    # How far it can be believed

    @property
    def validated(self) -> list[str]:
        """Tasks that `headatlas validate` has looked at."""
        return [task for task in self.tasks if validation_name(task) in self.notes]

    def validation(self, task: str) -> Validation:
        """What was measured with heads kept, taken away and switched off."""
        if validation_name(task) not in self.notes:
            raise AtlasError(f"{task!r} was not validated yet; 'headatlas validate' does it.")
        return Validation.from_note(*self.notes[validation_name(task)])

    # Relations

    @property
    def relations(self) -> list[str]:
        """Relations that were looked for, category by category; also those that cannot be measured here."""
        names = [name for method, name in self._scores if method == "relations"]
        order = in_order(self._scores["relations", name].facts["category"] for name in names)
        return sorted(names, key=lambda name: order.index(self._scores["relations", name].facts["category"]))

    def relation_scores(self, method: str = "relations") -> xr.DataArray:
        """[relation, direction, layer, head]: shares of pairs; along `relation` also `category`, `kind`,
        `pairs`, `single`, `listed`, `k` and `source` (the source vectors). `method` "attending" or
        "forced": the dynamic scores."""
        names = [name for name in self.relations if (method, name) in self._scores]
        if not names:
            raise AtlasError(
                "this atlas has no relation scores"
                + (f" from texts ({method})" if self.relations else "")
                + "; 'headatlas relations' makes them"
                + (" with --dynamic." if self.relations else ".")
            )
        maps = [self._scores[method, name] for name in names]
        values = np.stack([one.values for one in maps])
        found = self._labelled(values, relation=names, direction=list(DIRECTIONS)).rename("score")
        extra = {
            key: ("relation", [one.facts.get(key, missing) for one in maps])
            for key, missing in (
                ("category", "other"),
                ("kind", ""),
                ("pairs", 0),
                ("single", 0),
                ("listed", 0),
                ("k", 0),
                ("whole", True),
                ("source", ""),
            )
        }
        return found.assign_coords(extra)

    def asks_for(self, task: str) -> str | None:
        """The relation that a gated task asks for."""
        spec = self.run(task).task_facts.get("spec") or {}
        asked = (spec.get("source") or {}).get("relation")
        return None if asked is None else Path(str(asked)).stem

    def relation_of(self, task: str) -> str | None:
        """The same, if the atlas has its scores."""
        name = self.asks_for(task)
        return name if name in self.relations else None

    def categories(self, threshold: float = IMPLEMENTS) -> xr.DataArray:
        """[category, direction, layer, head]: does the head implement a relation of the category?"""
        return categories(self.relation_scores(), threshold)

    def causal_checks(self) -> list[dict[str, Any]]:
        """What `causal_check` found: the accuracy on a relation with its top heads switched off, with random
        heads off, and on other relations."""
        return list(self.notes["causal"][1]["checks"]) if "causal" in self.notes else []

    def card(self, head: str | tuple[int, int] | Head, labeller: Labeller = plain_label) -> HeadCard:
        """All that is known about a head. `labeller` makes the label of a card: yours, if you have a better
        one."""
        return next(cards_of(self, [self.spec.require(head)], labeller))

    def cards(self, labeller: Labeller = plain_label) -> Iterator[HeadCard]:
        """The cards of all heads."""
        return cards_of(self, self.spec, labeller)

    def to_table(self) -> pd.DataFrame:
        """Tidy: one line per method, task, seed, fit and head, and per relation, direction and head; also of
        seeds that are not finished yet."""
        parts = []
        places = [(head.layer, head.head) for head in self.spec]
        layers, heads = (np.array(column, dtype=np.int32) for column in zip(*places, strict=True))
        for (method, task), fits in self._fits.items():
            for (seed, fit), one in sorted(fits.items()):
                part = pd.DataFrame({"layer": layers, "head": heads, "value": one.gates[layers, heads]})
                parts.append(
                    part.assign(method=method, task=task, seed=seed, fit=fit, relation="", direction="")
                )
        order = {method: place for place, method in enumerate(METHODS)}
        for (method, task), effects in sorted(self._effects.items(), key=lambda one: order[one[0][0]]):
            for seed, effect in sorted(effects.items()):
                part = pd.DataFrame({"layer": layers, "head": heads, "value": effect.values[layers, heads]})
                parts.append(
                    part.assign(method=method, task=task, seed=seed, fit="", relation="", direction="")
                )
        for (method, relation), scores in sorted(self._scores.items()):
            for direction, values in zip(DIRECTIONS, scores.values, strict=True):
                part = pd.DataFrame({"layer": layers, "head": heads, "value": values[layers, heads]})
                part = part[part["value"].notna()]  # what was not measured is no number
                parts.append(
                    part.assign(
                        method=method, task="", seed=pd.NA, fit="", relation=relation, direction=direction
                    )
                )
        if not parts:
            return pd.DataFrame(columns=COLUMNS)
        return pd.concat(parts, ignore_index=True)[COLUMNS].astype({"seed": "Int64"})


def atlases_in(folder: Path, levels: int = 3) -> list[dict[str, Any]]:
    """The atlases of a folder, so many levels deep (links are not followed), with what is in them; one that
    cannot be read has an `error`."""
    found: list[dict[str, Any]] = []
    if Store.exists(folder):
        try:
            atlas = open_atlas(folder)
        except HeadatlasError as error:
            nothing: dict[str, Any] = {"model": None, "tasks": [], "relations": 0}
            return [{"path": str(folder), **nothing, "error": str(error)}]
        about = {"model": atlas.spec.name, "tasks": atlas.tasks, "relations": len(atlas.relations)}
        return [{"path": str(folder), **about, "error": None}]
    if levels:
        try:
            below = sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())
        except OSError:
            return found
        for one in below:
            found += atlases_in(one, levels - 1)
    return found


def open_atlas(folder: str | Path) -> Atlas:
    """Read an atlas folder. Needs no torch."""
    store = Store.open(folder)
    fits = [fit for run in store.runs.values() for fit in store.fits(run)]
    scores = [found for run in store.runs.values() if (found := store.read_scores(run)) is not None]
    effects = [found for run in store.runs.values() for found in store.read_effects(run)]
    return Atlas(
        store.spec,
        store.runs.values(),
        fits,
        Path(folder),
        scores=scores,
        effects=effects,
        notes=store.notes(),
    )
