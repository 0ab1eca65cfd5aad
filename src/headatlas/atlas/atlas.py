"""`Atlas`: all that is known about the heads of one model, as labelled arrays."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headatlas.atlas.agreement import HELD_OUT, Summary, always, any_seed, summarise
from headatlas.atlas.records import Fit, Run
from headatlas.atlas.scores import ROLE_WORDS, THRESHOLD, role_scores, roles_of
from headatlas.atlas.store import Store
from headatlas.core import FITS, AtlasError, ModelSpec, UnknownNameError

__all__ = ["Atlas", "open_atlas"]

COLUMNS = ["method", "task", "seed", "fit", "relation", "direction", "layer", "head", "value"]


class Atlas:
    """The atlas of a model. `open_atlas` reads one from a folder; `fits` are those of all `runs`.

    Arrays have the axes of `headatlas.core.AXES` in that order; a cell without a head is NaN.
    """

    def __init__(
        self, spec: ModelSpec, runs: Iterable[Run], fits: Iterable[Fit], path: Path | None = None
    ) -> None:
        self.spec = spec
        self.path = path
        self.runs = {(run.method, run.task): run for run in runs}
        self._fits: dict[tuple[str, str], dict[tuple[int, str], Fit]] = {key: {} for key in self.runs}
        for fit in fits:
            self._fits[fit.method, fit.task][fit.seed, fit.fit] = fit

    def __repr__(self) -> str:
        return f"<Atlas of {self.spec.name}: {', '.join(self.tasks) or 'no task'}>"

    @property
    def tasks(self) -> list[str]:
        """Tasks with at least one seed that is gated to the end."""
        return [task for method, task in self.runs if method == "gating" and self.seeds(task)]

    def seeds(self, task: str, method: str = "gating") -> list[int]:
        """Seeds of which all fits are finished."""
        fits = self._fits.get((method, task), {})
        wanted = FITS if method == "gating" else ("retain",)
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
        fits = [self.fit(task, seed, fit, method) for seed in self._finished_seeds(task, method)]
        updates = fits[0].path_updates
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

    # Statements

    def scores(self, task: str) -> xr.Dataset:
        """Facilitation, interference, irrelevance: [seed, layer, head]."""
        return role_scores(self.gates(task))

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

    def to_table(self) -> pd.DataFrame:
        """Tidy: one line per method, task, seed, fit and head; also of seeds that are not finished yet."""
        parts = []
        places = [(head.layer, head.head) for head in self.spec]
        layers, heads = (np.array(column, dtype=np.int32) for column in zip(*places, strict=True))
        for (method, task), fits in self._fits.items():
            for (seed, fit), one in sorted(fits.items()):
                part = pd.DataFrame({"layer": layers, "head": heads, "value": one.gates[layers, heads]})
                parts.append(
                    part.assign(method=method, task=task, seed=seed, fit=fit, relation="", direction="")
                )
        if not parts:
            return pd.DataFrame(columns=COLUMNS)
        return pd.concat(parts, ignore_index=True)[COLUMNS]


def open_atlas(folder: str | Path) -> Atlas:
    """Read an atlas folder. Needs no torch."""
    store = Store.open(folder)
    fits = [fit for run in store.runs.values() for fit in store.fits(run)]
    return Atlas(store.spec, store.runs.values(), fits, Path(folder))
