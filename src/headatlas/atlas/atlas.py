"""`Atlas`: all that is known about the heads of one model, as labelled arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, overload

import numpy as np

from headatlas.atlas.agreement import Summary, always, any_seed, held_out_summary, summarise
from headatlas.atlas.category import categories, in_order
from headatlas.atlas.combine import merge_notes, merge_records, merge_runs, warn_of_dtypes
from headatlas.atlas.contents import Contents, contents_of
from headatlas.atlas.contrasts import ContrastSeeds, contrast_by_seed, contrasts_of
from headatlas.atlas.effect_summary import EffectSummary, completeness_error, pool_effects, summarize_effects
from headatlas.atlas.finding import Finding, find
from headatlas.atlas.finding.doubts import Doubt, contrast_doubts, doubts, effect_doubts, validation_doubts
from headatlas.atlas.folder import save_atlas
from headatlas.atlas.head_card import HeadCard, Labeller, cards_of, plain_label
from headatlas.atlas.head_table import head_table
from headatlas.atlas.imported import uneven_heads
from headatlas.atlas.method_agreement import MethodAgreement, compare_methods
from headatlas.atlas.method_names import method_named
from headatlas.atlas.plots import Plots
from headatlas.atlas.record import EffectMap, Fit, Record, Run, ScoreMap
from headatlas.atlas.relation_summary import RelationSummary, count_categories, summarize_relations
from headatlas.atlas.report import Report, report_of
from headatlas.atlas.roles import ROLE_WORDS, role_scores, roles_of
from headatlas.atlas.stability import HALVES, Stability, stability_of
from headatlas.atlas.store import Store
from headatlas.atlas.table import tidy_table
from headatlas.atlas.validation import Validation, is_validation, validation_name
from headatlas.core import (
    DIRECTIONS,
    FITS,
    IMPLEMENTS,
    IMPORTED,
    THRESHOLD,
    AtlasError,
    Head,
    HeadatlasError,
    ModelSpec,
    RequestError,
    UnknownNameError,
    in_method_order,
    require_share,
)
from headatlas.core.lazy import pd, xr

__all__ = ["Atlas", "atlases_in", "open_atlas", "require_atlas"]

Note = tuple[dict[str, np.ndarray], dict[str, Any]]


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
        self._fitted: dict[str, list[str]] = {}
        for method, task in self.runs:
            if method not in ("contrast", *HALVES) and self.seeds(task, method):
                self._fitted.setdefault(task, []).append(method)
        for methods in self._fitted.values():
            methods.sort(key=lambda method: method != "gating")

    def __repr__(self) -> str:
        return f"<Atlas of {self.spec.name}: {self.contents}>"

    def _repr_html_(self) -> str:
        from headatlas.page.notebook import atlas_html

        return atlas_html(self)

    @property
    def contents(self) -> Contents:
        """All that the atlas holds: gated tasks, effects, contrasts, relations, imported scores."""
        return contents_of(self)

    @property
    def contrasts(self) -> list[str]:
        """Contrasts with at least one finished seed."""
        return contrasts_of(self)

    @property
    def plot(self) -> Plots:
        """The figures of the atlas: `atlas.plot.agreement("math")`. `dir(atlas.plot)` lists the kinds."""
        return Plots(self)

    def records(self) -> Iterator[Record]:
        """All results, one by one: fits, effects and relation scores."""
        for fits in self._fits.values():
            yield from (fits[key] for key in sorted(fits))
        for effects in self._effects.values():
            yield from (effects[seed] for seed in sorted(effects))
        yield from self._scores.values()

    def save(self, folder: str | Path) -> Path:
        """Write the atlas into a new folder, which `open_atlas` reads, and return its path. A folder that
        holds these results already stays as it is; any other existing folder is refused."""
        return save_atlas(self, folder)

    def merge(self, other: Atlas | str | Path) -> Atlas:
        """A new atlas with the results of both, which must be of the same weights.

        Where one method mapped the same task in both with the same settings, seeds are joined; with other
        settings they are refused. What both have is taken from this atlas. Warns if the two have results in
        different dtypes.
        """
        other = require_atlas(other)
        runs = merge_runs(self, other)
        warn_of_dtypes(self, other)
        records = merge_records(self, other, runs)
        return Atlas(
            self.spec,
            runs,
            [record for record in records if isinstance(record, Fit)],
            scores=[record for record in records if isinstance(record, ScoreMap)],
            effects=[record for record in records if isinstance(record, EffectMap)],
            notes=merge_notes(self.notes, other.notes),
        )

    @property
    def tasks(self) -> list[str]:
        """Tasks with at least one seed that is gated to the end, by gating or by a method of a plugin that
        fits G+ and G-."""
        return [task for method, task in self.runs if method in self.fitted_methods(task)[:1]]

    def fitted_methods(self, task: str) -> list[str]:
        """The methods that have fitted G+ and G- of a task, gating first. The gates of a task, and all that
        is derived from them, are those of the first; `fitted_by` chooses another."""
        return list(self._fitted.get(task, ()))

    def fitted_by(self, method: str) -> Atlas:
        """Return this atlas with only the gates fitted by `method`."""
        method = self._method_named(method)
        known = sorted({name for methods in self._fitted.values() for name in methods})
        if method not in known:
            raise UnknownNameError("method that has fitted gates in this atlas", method, known)
        chosen = copy(self)
        chosen._fitted = {task: [method] for task, methods in self._fitted.items() if method in methods}
        if method != "gating":  # halves and validations are of gating
            chosen._fits = {key: fits for key, fits in self._fits.items() if key[0] not in HALVES}
            chosen.notes = {name: note for name, note in self.notes.items() if not is_validation(name)}
        return chosen

    def _gates_by(self, task: str, method: str | None) -> str:
        """The method, by default the one whose gates are those of the task; "contrast" for a contrast."""
        is_contrast = ("contrast", task) in self.runs and ("gating", task) not in self.runs
        return method or next(iter(self.fitted_methods(task)), "contrast" if is_contrast else "gating")

    def seeds(self, task: str, method: str | None = None) -> list[int]:
        """Seeds of which all fits are finished."""
        if method is None:
            method = self._gates_by(task, method)
        fits = self._fits.get((method, task), {})
        wanted = ("retain",) if method == "contrast" else ("retain", "remove")
        return sorted(
            seed for seed in {seed for seed, _ in fits} if all((seed, fit) in fits for fit in wanted)
        )

    def run(self, task: str, method: str | None = None) -> Run:
        """How a task was mapped; without a method, how its gates were fitted."""
        method = self._require(task, method)
        return self.runs[method, task]

    def fit(self, task: str, seed: int, fit: str, method: str | None = None) -> Fit:
        """One fit with all that was kept of it."""
        method = self._require(task, method)
        try:
            return self._fits[method, task][seed, fit]
        except KeyError:
            raise AtlasError(f"{task!r} has no finished fit {fit!r} with seed {seed}.") from None

    def _require(self, task: str, method: str | None) -> str:
        """Return the method to use; refuse a task that it has no run for."""
        chosen = self._method_named(self._gates_by(task, method))
        if (chosen, task) not in self.runs:
            known = {name for kind, name in self.runs if kind == chosen}
            known |= set(self.tasks if method is None else ())
            raise UnknownNameError(f"task in this atlas ({chosen})", task, known)
        return chosen

    def gates(self, task: str | None = None, method: str | None = None) -> xr.DataArray:
        """[seed, fit, layer, head] of the seeds that are finished, of a task or a contrast. Without `task`,
        of the only one."""
        if task is None:
            names = self.contrasts if method == "contrast" else self.tasks or self.contrasts
            task = self._only(names, "task or contrast with gates", "headatlas.map_heads fits some")
        method = self._require(task, method)
        seeds = self._finished_seeds(task, method)
        fits = [fit for fit in FITS if (seeds[0], fit) in self._fits[method, task]]
        values = np.stack([[self._fits[method, task][seed, fit].gates for fit in fits] for seed in seeds])
        return self._labelled(values, seed=seeds, fit=fits).rename("gate").assign_attrs(task=task)

    def _only(self, names: Sequence[str], what: str, repair: str) -> str:
        """The only name, for a caller that gives none."""
        if not names:
            raise RequestError(f"this atlas has no {what}; {repair}.")
        if len(names) > 1:
            raise RequestError(f"this atlas has {len(names)}: {', '.join(names)}; name one {what}.")
        return names[0]

    def _finished_seeds(self, task: str, method: str) -> list[int]:
        self._require(task, method)
        if seeds := self.seeds(task, method):
            return seeds
        raise AtlasError(f"no seed of {task!r} is finished; go on with resume=True.")

    def _labelled(self, values: np.ndarray, **axes: Any) -> xr.DataArray:
        layers, heads = self.spec.shape
        coords = {**axes, "layer": np.arange(layers), "head": np.arange(heads)}
        return xr.DataArray(values, dims=list(coords), coords=coords)

    def _head_names(self) -> xr.DataArray:
        """[layer, head]: "L5H3"; empty where the model has no head."""
        names = np.full(self.spec.shape, "", dtype=object)
        for head in self.spec:
            names[head] = str(head)
        return self._labelled(names.astype(str))

    def trajectory(self, task: str, fit: str, method: str | None = None) -> xr.DataArray:
        """[seed, update, layer, head]: the gates on their way, at the updates that were kept."""
        method = self._require(task, method)
        seeds = self._finished_seeds(task, method)
        imported = f"{task!r} has no trajectories: its gates were imported."
        if "imported_from" in self.runs[method, task].task_facts:
            raise AtlasError(imported)
        fits = [self.fit(task, seed, fit, method) for seed in seeds]
        updates = fits[0].path_updates
        if not len(updates):
            raise AtlasError(imported)
        values = np.stack([one.path for one in fits])
        return self._labelled(values, seed=seeds, update=updates).rename("gate")

    # Effects of single heads, and the order in which a method puts the heads

    def methods(self, task: str) -> list[str]:
        """The methods by which a task was mapped, those that fitted gates first."""
        measured = [method for method, name in self._effects if name == task and method != IMPORTED]
        return [*self.fitted_methods(task), *in_method_order(measured)]

    @property
    def effect_maps(self) -> list[tuple[str, str]]:
        """(task, method) of all effects that were measured."""
        tasks = dict.fromkeys(task for _, task in self.runs)
        return [
            (task, method)
            for task in tasks
            for method in self.methods(task)
            if method not in self.fitted_methods(task)
        ]

    def effects(self, task: str | None = None, method: str | None = None) -> xr.Dataset:
        """`effect` and `error` [seed, layer, head] by a method that measures effects: above zero the head
        helps. The coordinate `name` holds the names of heads. Without `task` or `method`, the only one."""
        task, method = self._only_effects(task, method)
        maps = self._maps(task, method)
        seeds = [one.seed for one in maps]
        parts = {
            "effect": np.stack([one.values for one in maps]),
            "error": np.stack([one.errors for one in maps]),
        }
        effects = xr.Dataset({name: self._labelled(part, seed=seeds) for name, part in parts.items()})
        return effects.assign_coords(name=self._head_names())

    def _only_effects(self, task: str | None, method: str | None) -> tuple[str, str]:
        """The task and the method of effects, of which either may be left out where there is only one."""
        if task is not None and method is not None:
            return task, method
        pairs = self.effect_maps
        if task is None:
            named = None if method is None else self._method_named(method)
            tasks = dict.fromkeys(name for name, kind in pairs if named in (None, kind))
            repair = "headatlas.map_heads(…, method='ablate-mean') measures them"
            task = self._only(list(tasks), "task with effects", repair)
        elif task not in {name for name, _ in pairs}:
            raise UnknownNameError("task with effects in this atlas", task, {name for name, _ in pairs})
        methods = [kind for name, kind in pairs if name == task]
        if method is None and len(methods) > 1:
            raise RequestError(f"{task!r} was measured by {', '.join(methods)}; choose one with method=….")
        return task, method or methods[0]

    @property
    def imported(self) -> list[str]:
        """Names of the task scores that were imported."""
        return [name for method, name in self._effects if method == IMPORTED]

    def imported_scores(self, name: str) -> xr.DataArray:
        """[seed, layer, head]: a task score as it was imported; NaN: not in the imported table. `attrs` names
        the `seeds` of the table; if it has none, the axis has one entry."""
        maps = self._effects.get((IMPORTED, name))
        if not maps:
            raise UnknownNameError("imported score in this atlas", name, self.imported)
        seeds = sorted(maps)
        values = np.stack([maps[seed].values for seed in seeds])
        given = [seed for seed in seeds if maps[seed].facts.get("seed_given", True)]
        return self._labelled(values, seed=seeds).rename("score").assign_attrs(task=name, seeds=given)

    def pooled_effects(self, task: str, method: str) -> xr.Dataset:
        """`effect` and `error` [layer, head] over all items that the seeds measured, each counted once; the
        attribute `items` is their number, or None where the atlas does not know it (imported effects)."""
        effect, error, items = pool_effects(self._maps(task, method))
        parts = {"effect": self._labelled(effect), "error": self._labelled(error)}
        return xr.Dataset(parts, attrs={"items": items})

    def completeness_error(self, task: str, method: str = "attribute-integrated") -> float | None:
        """How far integrated gradients are from summing to the effect of closing all heads, as a share of
        that effect: above 0.05 they are not converged. None for other methods."""
        return completeness_error(self._maps(task, method))

    def _maps(self, task: str, method: str) -> list[EffectMap]:
        """The effect maps of all seeds."""
        method = self._method_named(method)
        by_seed = self._effects.get((method, task))
        if not by_seed:
            methods = {kind for kind, _ in self._effects}
            if methods and method not in methods:
                raise UnknownNameError("method with effects in this atlas", method, methods)
            known = [name for kind, name in self._effects if kind == method]
            raise UnknownNameError(f"task in this atlas ({method})", task, known)
        return [by_seed[seed] for seed in sorted(by_seed)]

    def _method_named(self, method: str) -> str:
        """The full name of a method; the registry resolves what this atlas does not have."""
        return method if any(method == known for known, _ in self.runs) else method_named(method)

    def effect(self, task: str, method: str, seed: int) -> EffectMap:
        """One map of effects with all that was kept of it."""
        try:
            return self._effects[self._method_named(method), task][seed]
        except KeyError:
            raise AtlasError(f"{task!r} has no effects by {method} with seed {seed}.") from None

    def importance(self, task: str, method: str | None = None) -> xr.DataArray:
        """[layer, head]: how much a task wants each head by a method, the mean over the seeds
        (of effects over the items that they measured).

        For gates facilitation less interference, -1 to 1, which is G+ + G- - 1; for the others the effect,
        in the unit of the run. Above zero the head helps, below it hurts.
        """
        gated = ("gating", *self.fitted_methods(task))
        if method is not None and self._method_named(method) not in gated:
            return self.pooled_effects(task, method)["effect"].rename("importance")
        scores = self.scores(task, method)
        return (scores["facilitation"] - scores["interference"]).mean("seed").rename("importance")

    # Statements

    def contrast_by_seed(self, name: str) -> ContrastSeeds:
        """The held-out figures of a contrast without gates and with those of each seed."""
        return contrast_by_seed(self, name)

    def relation_summaries(self, relations: Sequence[str]) -> list[RelationSummary]:
        """How each of these relations was measured, and its best heads."""
        return summarize_relations(self, relations)

    def category_counts(self) -> dict[str, dict[str, int]]:
        """direction -> category (or "2 categories", …) -> how many heads."""
        return count_categories(self)

    def scores(self, task: str | None = None, method: str | None = None) -> xr.Dataset:
        """Facilitation, interference, irrelevance: [seed, layer, head]. `method` "retest-a" or "retest-b":
        from fits on one half of the items.

        Without `task`, those of all gated tasks: [task, seed, layer, head]; NaN for a seed that a task lacks.
        The coordinate `name` holds the names of heads.
        """
        if task is not None:
            return role_scores(self.gates(task, method)).assign_coords(name=self._head_names())
        names = [name for name in self.tasks if method is None or self.seeds(name, method)]
        if not names:
            raise RequestError("this atlas has no gated task; headatlas.map_heads gates some.")
        parts = [role_scores(self.gates(name, method)).drop_attrs() for name in names]
        scores = xr.concat(parts, dim=xr.DataArray(names, dims="task", name="task"), join="outer")
        return scores.assign_coords(name=self._head_names())

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
        threshold = require_share("threshold", threshold)
        run = self.run(task)
        facts = {
            fit: [self.fit(task, seed, fit).facts for seed in self.seeds(task)]
            for fit in ("retain", "remove")
        }
        held_out = held_out_summary(run.baseline, facts)
        held_out["metric_label"] = run.about.get("metric", "")
        if run.task_facts.get("test_rows") == 0:
            held_out["held_out"] = 0
        return summarise(task, self.scores(task), threshold=threshold, held_out=held_out)

    def effect_summary(self, task: str, method: str) -> EffectSummary:
        """What single heads do to a task by a method that measures effects, in numbers."""
        return summarize_effects(self, task, self._method_named(method))

    def findings(self, threshold: float = THRESHOLD) -> list[Finding]:
        """All statements that the atlas has evidence for, as data; `Finding.text` is the sentence."""
        return find(self, threshold)

    def report(self) -> Report:
        """The findings with what they rest on: `markdown()` or `to_json()`."""
        return report_of(self)

    # How far it can be believed

    @overload
    def doubts(self) -> dict[str, list[Doubt]]: ...

    @overload
    def doubts(self, task: str, method: str | None = None) -> list[Doubt]: ...

    def doubts(
        self, task: str | None = None, method: str | None = None
    ) -> list[Doubt] | dict[str, list[Doubt]]:
        """Reasons to doubt a result, the most serious first: the gates of a task and their validation. With
        `method` its effects by that method, "contrast" the gates of a contrast, "validation" also the methods
        that its validation compares. Without a task: subject -> doubts, of all results."""
        if task is None:
            results: dict[str, tuple[str, str | None]] = {name: (name, None) for name in self.tasks}
            results |= {f"{name}, {effects}": (name, effects) for name, effects in self.effect_maps}
            results |= {name: (name, "contrast") for name in contrasts_of(self)}
            return {subject: self.doubts(*result) for subject, result in results.items()}
        if method == "contrast":
            return contrast_doubts(self, task)
        if method == "validation":
            return validation_doubts(self, task)
        if method is None:
            return doubts(self, task)
        name = self._method_named(method)
        if name == "gating" or name in self.fitted_methods(task):
            self._finished_seeds(task, name)
            return doubts(self.fitted_by(name), task)
        return effect_doubts(self, task, name)

    def method_agreement(self, task: str) -> list[MethodAgreement]:
        """How alike each two methods rank the heads of a task: rank correlation and shared top heads."""
        return compare_methods(self, task)

    def stability(self, task: str, threshold: float = THRESHOLD) -> Stability:
        """How far the map of a task stays the same with fewer seeds, other seeds and other items."""
        return stability_of(self, task, threshold)

    @property
    def validated(self) -> list[str]:
        """Tasks that `validate_atlas` has looked at."""
        return [task for task in self.tasks if validation_name(task) in self.notes]

    def validation(self, task: str) -> Validation:
        """What was measured with heads kept, taken away and switched off."""
        if validation_name(task) not in self.notes:
            raise AtlasError(f"{task!r} was not validated yet; validate_atlas does it.")
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
        `pairs`, `single`, `listed`, `k`, `source` (the source vectors), and of imported scores `seeds` (how
        many this is the mean of; 0: the table names none), `seeds_kept` (False: an older version kept only
        the mean) and `uneven` (heads that have fewer than all of the seeds). `method` "attending" or
        "forced": the dynamic scores."""
        names = [name for name in self.relations if (method, name) in self._scores]
        if not names:
            raise AtlasError(
                "this atlas has no relation scores"
                + (f" from texts ({method})" if self.relations else "")
                + "; relate_heads makes them"
                + (" with dynamic=True." if self.relations else ".")
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
        averaged = [int(one.facts.get("averaged_seeds", 0)) for one in maps]
        named = [len(one.facts.get("seeds", ())) for one in maps]
        extra |= {
            "seeds": ("relation", [max(counts) for counts in zip(named, averaged, strict=True)]),
            "seeds_kept": ("relation", [count < 2 for count in averaged]),
            "uneven": (
                "relation",
                [0 if one.per_seed is None else uneven_heads(one.per_seed) for one in maps],
            ),
        }
        return found.assign_coords(extra)

    def left_out_pairs(self, relation: str) -> dict[str, list[tuple[str, str]]]:
        """reason -> (source, target) pairs of a relation's list that its score is not made from."""
        if relation not in self.relations:
            raise UnknownNameError("relation in this atlas", relation, self.relations)
        left_out = self._scores["relations", relation].facts.get("left_out", {})
        return {reason: [(source, target) for source, target in pairs] for reason, pairs in left_out.items()}

    def asks_for(self, task: str) -> str | None:
        """The relation that a gated task asks for."""
        spec = self.run(task).task_facts.get("spec") or {}
        asked = (spec.get("source") or {}).get("relation")
        return None if asked is None else Path(str(asked)).stem

    def relation_of(self, task: str) -> str | None:
        """The same, if the atlas has its scores. An imported score does not count: it need not be one of the
        weights."""
        name = self.asks_for(task)
        if name is None or name not in self.relations:
            return None
        return None if self._scores["relations", name].facts.get("kind") == IMPORTED else name

    def categories(self, threshold: float = IMPLEMENTS) -> xr.DataArray:
        """[category, direction, layer, head]: does the head implement a relation of the category?"""
        return categories(self.relation_scores(), threshold)

    def causal_checks(self) -> list[dict[str, Any]]:
        """What `causal_check` found: the accuracy on a relation with its top heads switched off, with random
        heads off, and on other relations."""
        return list(self.notes["causal"][1]["checks"]) if "causal" in self.notes else []

    def random_accuracy(self, relation: str) -> list[float]:
        """The accuracy on a relation with random heads switched off, at each step of its causal check: the
        mean over the draws."""
        checks = {check["relation"]: check for check in self.causal_checks()}
        if relation not in checks:
            raise UnknownNameError("relation with a causal check in this atlas", relation, checks)
        return [float(value) for value in np.mean(checks[relation]["random"], axis=0)]

    def card(self, head: str | tuple[int, int] | Head, labeller: Labeller = plain_label) -> HeadCard:
        """All that is known about a head. `labeller` makes the label of a card: yours, if you have a better
        one."""
        return next(cards_of(self, [self.spec.require(head)], labeller))

    def cards(self, labeller: Labeller = plain_label) -> Iterator[HeadCard]:
        """The cards of all heads."""
        return cards_of(self, self.spec, labeller)

    def to_dataframe(self, level: str = "head", threshold: float = THRESHOLD) -> pd.DataFrame:
        """A row per task and head, or with `level="seed"` per task, seed and head.

        Columns: task, seed, layer, head, name, facilitation, interference, irrelevance, role, and for each
        method that measured effects effect_METHOD and its standard error stderr_METHOD. With level "head",
        scores are means over seeds, the role is that of the means, and effects are pooled over items. What
        was not measured is missing.
        """
        return head_table(self, level, require_share("threshold", threshold))

    def to_table(self) -> pd.DataFrame:
        """Tidy: one line per method, task, seed, fit and head, and per relation, direction and head; also of
        seeds that are not finished yet. A head without a value has no line."""
        return tidy_table(
            self.spec,
            [fit for fits in self._fits.values() for _, fit in sorted(fits.items())],
            [effect for effects in self._effects.values() for _, effect in sorted(effects.items())],
            self._scores.values(),
        )


def atlases_in(folder: Path, levels: int = 3) -> list[dict[str, Any]]:
    """The atlases of a folder, so many levels deep (links are not followed), with what is in them; one that
    cannot be read has an `error`."""
    found: list[dict[str, Any]] = []
    if Store.exists(folder):
        try:
            atlas = open_atlas(folder)
        except HeadatlasError as error:
            nothing: dict[str, Any] = {"model": None, "tasks": [], "relations": 0, "effects": []}
            nothing |= {"contrasts": [], "imported": []}
            return [{"path": str(folder), **nothing, "error": str(error)}]
        about = {"model": atlas.spec.name, "tasks": atlas.tasks, "relations": len(atlas.relations)}
        about["effects"] = [f"{method} of {task}" for task, method in atlas.effect_maps]
        about |= {"contrasts": contrasts_of(atlas), "imported": atlas.imported}
        return [{"path": str(folder), **about, "error": None}]
    if levels:
        try:
            below = sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())
        except OSError:
            return found
        for one in below:
            found += atlases_in(one, levels - 1)
    return found


def require_atlas(atlas: Atlas | str | Path) -> Atlas:
    """The atlas itself, or the one in a folder."""
    return atlas if isinstance(atlas, Atlas) else open_atlas(atlas)


def open_atlas(folder: str | Path) -> Atlas:
    """Read an atlas folder. Needs no torch."""
    store = Store.open(folder)
    runs = store.runs.values()
    return Atlas(
        store.spec,
        runs,
        [fit for run in runs for fit in store.read_all(Fit, run)],
        Path(folder),
        scores=[scores for run in runs for scores in store.read_all(ScoreMap, run)],
        effects=[effects for run in runs for effects in store.read_all(EffectMap, run)],
        notes=store.notes(),
    )
