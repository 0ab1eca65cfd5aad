"""Scores made elsewhere -> an atlas. `score_table` reads the table.

- A task's score is kept as it is, under its own name, with the method "imported". It has no role.
- With `fit` (retain, remove, free) a task's values are gates, by gating unless `method` names another.
- With any other `method` they are effects by that method, in its unit if the method is installed.
- A relation's score lies in 0..1. Every seed is kept; maps show the mean over the seeds.
- A head that the table does not name stays unknown: NaN.

What `write_table` writes can be read again: the values, not what is known beside them (categories of
custom relations, pairs, k).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from headatlas.atlas.atlas import Atlas, open_atlas
from headatlas.atlas.method_names import is_installed, unit_of_method
from headatlas.atlas.record import EffectMap, Fit, Run, ScoreMap
from headatlas.atlas.schema import MOST_HEADS
from headatlas.atlas.score_table import GATE_METHODS, KEYS, NO_SEED, ScoreTable, read_score_table
from headatlas.atlas.store import Store
from headatlas.core import (
    DIRECTIONS,
    IMPORTED,
    AtlasError,
    ModelSpec,
    RequestError,
    is_printable,
    require_path,
    require_whole,
)
from headatlas.core.lazy import pd

__all__ = ["import_table"]


def import_table(
    table: str | Path | pd.DataFrame,
    out: str | Path,
    *,
    model: str | None = None,
    layers: int | None = None,
    heads: int | None = None,
    categories: Mapping[str, str] | None = None,
    average: Sequence[str] | str = (),
    resume: bool = False,
) -> Atlas:
    """Read a table of scores (CSV, Parquet, or a data frame) into the atlas folder `out`.

    `model` picks the lines of one model, or names it if the table does not. The shape is that of the table
    unless `layers` and `heads` say it: as many layers as it names, each as wide as the widest (with gates,
    which are given for every head, each as wide as its own last head). A head that no line names has no
    scores. `average` names columns, such as a template, over whose lines the mean is taken. `resume` adds to
    an atlas.
    `categories` are those of relations of which the table names none ("other" otherwise).
    """
    root = require_path("out", out)
    if model is not None and not isinstance(model, str):
        raise RequestError(f"model is {model!r:.60}; allowed is a name, or None.")
    if model is not None and not is_printable(model):
        raise RequestError(f"model is {model!r:.60}; a name has printable characters only.")
    layers = None if layers is None else require_whole("layers", layers, 1, MOST_HEADS)
    heads = None if heads is None else require_whole("heads", heads, 1, MOST_HEADS)
    if Store.exists(root) and not resume:
        raise AtlasError(f"{out} holds an atlas already; resume=True adds to it.")
    Store.require_writable(root)
    scores = read_score_table(table, model, [average] if isinstance(average, str) else average)
    spec = _spec(scores, str(scores.lines["model"].iloc[0]), layers, heads)
    if Store.exists(root):
        stored = Store.open(root).spec
        if stored.name != spec.name:
            raise AtlasError(
                f"{out} is an atlas of {stored.name}, not of {spec.name}; choose another out=…, or say "
                f"model={stored.name!r} if it is the same."
            )
        for word, asked, known in (("layers", layers, stored.layers), ("heads", heads, stored.shape[1])):
            if asked not in (None, known):
                raise AtlasError(
                    f"{word} is {asked}, but {out} is an atlas of {stored.layers} layers of "
                    f"{stored.shape[1]} heads; leave out layers=… and heads=…, or choose another out=…."
                )
        spec = stored
    _require_heads_in(scores, spec)
    made = list(_runs(scores, spec, categories or {}))
    with Store.writing(root, None if Store.exists(root) else spec) as store:
        store.add(*(run for run, _ in made))
        for _, records in made:
            for record in records:
                store.write(record)
    return open_atlas(root)


def _spec(table: ScoreTable, name: str, layers: int | None, heads: int | None) -> ModelSpec:
    """The shape that was asked for, or that of the table; what a table does not say is unknown."""
    last_head = table.lines.groupby("layer")["head"].max()
    count = int(last_head.index.max()) + 1 if layers is None else layers
    widest = int(last_head.max()) + 1 if heads is None else heads
    if count * widest > MOST_HEADS:
        raise RequestError(
            f"{count} layers of {widest} heads are {count * widest:,} heads; an atlas holds at most "
            f"{MOST_HEADS:,}. {table.name} names layers up to {last_head.index.max()} and heads up to "
            f"{last_head.max()}: choose layers=… and heads=… to fit the model."
        )
    widths = (widest,) * count
    if heads is None and (table.lines["fit"] != "").any():
        widths = tuple(int(last_head.get(layer, -1)) + 1 for layer in range(count))
    head_dims = tuple(min(width, 1) for width in widths)
    return ModelSpec(
        name, IMPORTED, IMPORTED, count, widths, widths, head_dims, 0, 0, None, "unknown", None, None
    )


def _require_heads_in(table: ScoreTable, spec: ModelSpec) -> None:
    lines = table.lines
    table.refuse(
        lines["layer"] >= spec.layers,
        f"names layer {{layer}}; {spec.name} has layers 0 to {spec.layers - 1}.",
    )
    counts = np.array(spec.heads)[lines["layer"]]
    outside = lines["head"].to_numpy() >= counts
    if outside.any():
        number = lines.index[outside][0]
        layer, head = lines.loc[number, ["layer", "head"]]
        raise RequestError(
            f"{table.name}: row {number} names L{layer}H{head}; layer {layer} of {spec.name} has "
            f"{spec.heads[layer]} heads."
        )


def _runs(
    table: ScoreTable, spec: ModelSpec, known: Mapping[str, str]
) -> Iterator[tuple[Run, Sequence[Fit | ScoreMap | EffectMap]]]:
    facts: dict[str, Any] = {"imported_from": table.name}
    if table.ignored:
        facts["ignored_columns"] = list(table.ignored)
    if table.averaged:
        facts |= {"averaged_over": list(table.averaged), "rows_per_score": list(table.rows_per_score)}
    for (method, task, relation), part in table.lines.groupby(["method", "task", "relation"], sort=False):
        content = part[[*KEYS, "score", "category"]].to_csv(index=False)
        identity = sha256(content.encode()).hexdigest()
        settings = {"given": {}, "resolved": {}, "decides": {"imported": {"content": identity}}}
        stored_as = "relations" if relation and method == IMPORTED else str(method)
        run = Run(stored_as, str(relation or task), identity, facts, json.loads(json.dumps(settings)))
        if relation:
            categories = sorted(set(part["category"]) - {""})
            category = categories[0] if categories else known.get(run.task, "other")
            yield run, [_scores(run, part, spec, category, str(method))]
        elif run.method in GATE_METHODS:
            yield run, _fits(run, part, spec, table.name)
        elif run.method == IMPORTED:
            yield run, _effects(run, part, spec)
        else:
            if not is_installed(run.method):
                run = replace(run, task_facts={**facts, "unknown_method": True})
            if (part["fit"] != "").all():
                yield run, _fits(run, part, spec, table.name)
                continue
            unit = unit_of_method(run.method)
            run = run if unit == run.unit else replace(run, about={"unit": unit})
            yield run, _effects(run, part, spec)


def _map(part: pd.DataFrame, spec: ModelSpec) -> np.ndarray:
    """[layer, head] of lines that name each head once; the others are NaN."""
    values = np.full(spec.shape, np.nan)
    values[part["layer"], part["head"]] = part["score"]
    return values


def _seed_facts(seed: int) -> dict[str, Any]:
    """A record needs a number; whether the table gave it is kept."""
    return {"seed_given": False} if seed == NO_SEED else {}


def _precision(method: str) -> type[np.floating[Any]]:
    """Our own methods measure in single precision; other scores are kept to the last digit."""
    return np.float64 if method == IMPORTED else np.float32


def _scores(run: Run, part: pd.DataFrame, spec: ModelSpec, category: str, method: str) -> ScoreMap:
    seeds = sorted(int(seed) for seed in part["seed"].unique())
    per_seed = np.stack(
        [
            np.stack([_map(rows[rows["direction"] == direction], spec) for direction in DIRECTIONS])
            for rows in (part[part["seed"] == seed] for seed in seeds)
        ]
    )
    counts = (~np.isnan(per_seed)).sum(axis=0)
    means = np.where(counts, np.nansum(per_seed, axis=0) / np.maximum(counts, 1), np.nan)
    facts: dict[str, Any] = {
        "seeds": [seed for seed in seeds if seed != NO_SEED], "stated_method": method, "category": category,
        "kind": IMPORTED, "pairs": 0, "single": 0, "listed": 0, "k": 0,
    }  # fmt: skip
    return ScoreMap(
        run.method, run.task, run.identity, means.astype(np.float32), facts,
        per_seed.astype(_precision(method)),
    )  # fmt: skip


def _effects(run: Run, part: pd.DataFrame, spec: ModelSpec) -> list[EffectMap]:
    """Those of every seed; their standard errors are unknown."""
    maps = []
    for seed, rows in part.groupby("seed"):
        values = _map(rows, spec).astype(_precision(run.method))
        facts = {"imported_from": run.task_facts["imported_from"], **_seed_facts(int(str(seed)))}
        number = max(int(str(seed)), 0)
        maps.append(EffectMap(run.method, run.task, number, run.identity, values, values * np.nan, facts))
    return maps


def _needed_fits(method: str, fits: Iterable[str]) -> tuple[str, ...]:
    """The fits that name every head. A plugin may fit any of them, so those of its table count."""
    if method == "contrast":
        return ("retain",)
    return ("retain", "remove") if method in GATE_METHODS else tuple(fits)


def _fits(run: Run, part: pd.DataFrame, spec: ModelSpec, name: str) -> list[Fit]:
    """The gates of every seed; a hole is where the model has no head."""
    fits = []
    heads = [(head.layer, head.head) for head in spec]
    for seed, rows in part.groupby("seed"):
        gates = {str(fit): _map(some, spec) for fit, some in rows.groupby("fit")}
        for fit in _needed_fits(run.method, gates):
            missing = [place for place in heads if fit not in gates or np.isnan(gates[fit][place])]
            if missing:
                layer, head = missing[0]
                of_seed = "" if seed == NO_SEED else f" (seed {seed})"
                raise RequestError(
                    f"{name}: the task {run.task!r}{of_seed} has no gate for L{layer}H{head} in the fit "
                    f"'{fit}'; gates are given for every head."
                )
        for fit, values in gates.items():
            with np.errstate(divide="ignore"):
                logits = np.log(values) - np.log1p(-values)
            fits.append(
                Fit(
                    run.method,
                    run.task,
                    max(int(seed), 0),
                    fit,
                    run.identity,
                    logits,
                    np.zeros((0, *spec.shape), np.float32),
                    np.zeros(0, np.int32),
                    np.zeros(0, np.float32),
                    _seed_facts(int(seed)),
                )
            )
    return fits
