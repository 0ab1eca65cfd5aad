"""Scores made elsewhere -> an atlas.

A table has one line per score: `layer`, `head`, `score` (or `value`), and `relation` or `task`; if there are
such columns also `model`, `category`, `direction`, `seed`, `fit` and `method`. What `headatlas table`
writes can be read again: the values, not what is known beside them (categories of own relations, pairs, k).

- A relation's score lies in 0..1; of several seeds the mean is kept.
- A task's score lies in -1..1: above zero the head helps the task, below it hurts. It is kept as gates, the
  facilitation max(score, 0) and the interference max(-score, 0), so that roles and maps are those of a fit.
- With `fit` (retain, remove, free) a task's values are the gates themselves.
- With a `method` of `EFFECT_METHODS` they are effects in nats.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headatlas.atlas.atlas import Atlas, open_atlas
from headatlas.atlas.records import EffectMap, Fit, Run, ScoreMap
from headatlas.atlas.stability import HALVES
from headatlas.atlas.store import Store
from headatlas.core import DIRECTIONS, EFFECT_METHODS, FITS, AtlasError, ModelSpec, RequestError

__all__ = ["import_table"]

_METHODS = {
    "task": ("gating", "contrast", *HALVES, *EFFECT_METHODS),
    "relation": ("relations", "attending", "forced"),
}
#: layers and heads, and seeds: more is a mistake
_MOST, _MOST_SEEDS = 2000, 100_000
_KEYS = ("method", "task", "relation", "seed", "fit", "direction", "layer", "head")


@dataclass(frozen=True, slots=True)
class _Table:
    """Lines with all columns; the index is the number of the line in the file."""

    name: str
    lines: pd.DataFrame

    def refuse(self, where: pd.Series, what: str) -> None:
        """One sentence about the first line that is wrong, if one is."""
        if where.any():
            number = self.lines.index[where.to_numpy()][0]
            said = what
            for column, value in self.lines.loc[number].to_dict().items():
                said = said.replace(f"{{{column}}}", f"{value:g}" if isinstance(value, float) else str(value))
            raise RequestError(f"{self.name}: row {number} {said}")


def import_table(
    table: str | Path | pd.DataFrame,
    out: str | Path,
    *,
    model: str | None = None,
    layers: int | None = None,
    heads: int | None = None,
    categories: Mapping[str, str] | None = None,
    resume: bool = False,
) -> Atlas:
    """Read a table of scores (CSV, Parquet, or a data frame) into the atlas folder `out`.

    `model` picks the lines of one model, or names it if the table does not. The shape is that of the table
    unless `layers` and `heads` say it, each layer as wide as its last head; a head that no line names has no
    scores. `resume` adds to an atlas.
    `categories` are those of relations of which the table names none ("other" otherwise).
    """
    found = _sound(_read(table), model)
    name = model or next(iter(found.lines["model"].unique()))
    for word, count in (("layers", layers), ("heads", heads)):
        if count is not None and not 0 < count < _MOST:
            raise RequestError(f"{word} is {count}; a model has at least 1.")
    spec = _spec(found, str(name), layers, heads)
    root = Path(out)
    if Store.exists(root):
        if not resume:
            raise AtlasError(f"{out} holds an atlas already; --resume (resume=True) adds to it.")
        there = Store.open(root).spec
        if there.name != spec.name:
            raise AtlasError(
                f"{out} is an atlas of {there.name}, not of {spec.name}; choose another --out, or say "
                f"--model {there.name} if it is the same."
            )
        spec = there
    _require_places(found, spec)
    made = list(_runs(found, spec, categories or {}))
    with Store.writing(root, spec) as store:
        store.add(*(run for run, _ in made))
        for _, parts in made:
            for part in parts:
                if isinstance(part, Fit):
                    store.write_fit(part)
                elif isinstance(part, EffectMap):
                    store.write_effects(part)
                else:
                    store.write_scores(part)
    return open_atlas(root)


def _read(table: str | Path | pd.DataFrame) -> _Table:
    if isinstance(table, pd.DataFrame):
        return _Table("the table", table.set_axis(range(1, len(table) + 1)))
    path = Path(table)
    if not path.is_file():
        raise RequestError(f"{path} does not exist or is no file.")
    try:
        if path.suffix.lower() == ".csv":
            lines = _from_csv(path)
        elif path.suffix.lower() == ".parquet":
            lines = pd.read_parquet(path)
        else:
            raise RequestError(f"{path.name} is no table; its name ends in .csv or .parquet.")
    except RequestError:
        raise
    except UnicodeDecodeError as error:
        raise RequestError(f"{path.name} is not valid UTF-8 (byte {error.start}).") from None
    except Exception as error:  # the readers raise whatever their parsers raise
        raise RequestError(f"{path.name} cannot be read: {str(error).splitlines()[0]}") from None
    return _Table(path.name, lines.set_axis(range(2, len(lines) + 2)))  # the header is row 1


def _from_csv(path: Path) -> pd.DataFrame:
    """All fields as text. No line has more of them than the header: a decimal comma would be two numbers."""
    found = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        header = next(lines, [])
        for number, fields in enumerate(lines, 2):
            if any(field.strip() for field in fields[len(header) :]):
                raise RequestError(
                    f"{path.name}: row {number} has more fields than the header ({len(header)}); a "
                    "number with a comma in it is written with a point."
                )
            found.append([*fields, *[""] * len(header)][: len(header)])
    return pd.DataFrame(found, columns=header, dtype=str)


def _columns(table: _Table) -> pd.DataFrame:
    """The lines with the columns that have to be there, under their names."""
    lines = table.lines.rename(columns=lambda column: str(column).strip().lower())
    lines = lines[~(lines.isna() | (lines == "")).all(axis=1)]  # blank lines
    there = ", ".join(map(str, lines.columns)) or "none"
    if twice := [str(name) for name in lines.columns[lines.columns.duplicated()]]:
        raise RequestError(f"{table.name} has two columns named {twice[0]!r}.")
    if "score" in lines and "value" in lines:
        raise RequestError(f"{table.name} has a column 'score' and a column 'value'; which one is the score?")
    if "value" in lines:
        lines = lines.rename(columns={"value": "score"})
    for column in ("layer", "head", "score"):
        if column not in lines:
            raise RequestError(f"{table.name} has no column {column!r}; its columns are {there}.")
    if "relation" not in lines and "task" not in lines:
        raise RequestError(f"{table.name} has no column 'relation' or 'task'; its columns are {there}.")
    if not len(lines):
        raise RequestError(f"{table.name} has no rows.")
    return lines


def _sound(table: _Table, model: str | None) -> _Table:
    """All columns there, in their types, with every value allowed."""
    lines = _columns(table)
    given = {"model": model or Path(table.name).stem, "seed": "0"}
    named = "model" in lines
    for column in ("model", "task", "relation", "category", "direction", "seed", "fit", "method"):
        if column not in lines:
            lines[column] = given.get(column, "")
        text = lines[column].astype("string").fillna("").str.strip()
        lines[column] = text.mask(text == "", given.get(column, "")).astype(str)
    names = sorted(lines["model"].unique())
    if model is None and len(names) > 1:
        raise RequestError(
            f"{table.name} holds {len(names)} models ({', '.join(names[:5])}); choose one with --model."
        )
    if model is not None and named:
        lines = lines[lines["model"] == model]
        if not len(lines):
            raise RequestError(f"{table.name} has no model {model!r}; it holds {', '.join(names)}.")
    table = _Table(table.name, lines)
    for column in ("layer", "head", "seed", "score"):
        numbers = pd.to_numeric(lines[column], errors="coerce").astype(float)
        wrong = ~np.isfinite(numbers)
        table.refuse(wrong, f"has the {column} '{{{column}}}', which is no number.")
        if column != "score":
            table.refuse(
                (numbers < 0) | (numbers != np.floor(numbers)),
                f"has the {column} {{{column}}}; it is a whole number from 0.",
            )
            table.refuse(
                numbers >= (_MOST_SEEDS if column == "seed" else _MOST),
                f"has the {column} {{{column}}}, which is more than any model has.",
            )
            numbers = numbers.astype(int)
        lines = lines.assign(**{column: numbers})
    table = _Table(table.name, lines)
    both = (lines["task"] != "") == (lines["relation"] != "")
    table.refuse(both, "names a task and a relation, or neither; it has to name one of them.")
    of_relation = lines["relation"] != ""
    direction = lines["direction"].mask(of_relation & (lines["direction"] == ""), DIRECTIONS[0])
    fit = lines["fit"].mask(~of_relation & (lines["fit"] == ""), "score")
    method = lines["method"].mask(lines["method"] == "", np.where(of_relation, "relations", "gating"))
    table = _Table(table.name, lines.assign(direction=direction, fit=fit, method=method))
    _require_values(table)
    return table


def _require_values(table: _Table) -> None:
    lines = table.lines
    of_relation = lines["relation"] != ""
    table.refuse(
        of_relation & ~lines["direction"].isin(DIRECTIONS),
        "has the direction '{direction}'; there are promote and suppress.",
    )
    table.refuse(
        ~of_relation & ~lines["fit"].isin((*FITS, "score")),
        "has the fit '{fit}'; there are free, retain and remove.",
    )
    for kind, methods in _METHODS.items():
        mine = of_relation if kind == "relation" else ~of_relation
        table.refuse(
            mine & ~lines["method"].isin(methods),
            f"has the method '{{method}}'; for a {kind} there are {', '.join(methods)}.",
        )
    effect = lines["method"].isin(EFFECT_METHODS)
    table.refuse(effect & (lines["fit"] != "score"), "has the fit '{fit}'; an effect has none.")
    low = np.where((lines["fit"] == "score") & ~of_relation, -1.0, 0.0)
    outside = ~effect & ((lines["score"] < low) | (lines["score"] > 1))
    table.refuse(outside & of_relation, "has the score {score}; a relation's score lies between 0 and 1.")
    table.refuse(
        outside & (lines["fit"] == "score"),
        "has the score {score}; a task's score lies between -1 (hurts) and 1 (helps).",
    )
    table.refuse(outside, "has the gate {score}; a gate lies between 0 and 1.")
    double = lines.duplicated(list(_KEYS), keep=False)
    if double.any():
        later = lines.index[lines.duplicated(list(_KEYS)).to_numpy()][0]
        of = lines.loc[later]
        what = f"{of['relation'] or of['task']!s}, L{of['layer']}H{of['head']}"
        same = (lines[list(_KEYS)] == lines.loc[later, list(_KEYS)]).all(axis=1)
        raise RequestError(
            f"{table.name}: row {later} says again what row {lines.index[same.to_numpy()][0]} says ({what}); "
            "several seeds need a column 'seed'."
        )
    alone = set(lines["relation"][of_relation]) - set(lines["relation"][lines["method"] == "relations"])
    if alone:
        raise RequestError(
            f"{table.name}: {sorted(alone)[0]!r} has dynamic scores alone (attending, forced); scores of the "
            "method 'relations' are needed beside them."
        )
    mixed = (
        lines[~of_relation]
        .groupby(["method", "task"])["fit"]
        .agg(lambda fits: "score" in set(fits) and len(set(fits)) > 1)
    )
    if mixed.any():
        task = mixed.index[mixed.to_numpy()][0][1]
        raise RequestError(f"{table.name}: the task {task!r} has rows with a fit and rows without.")


def _spec(table: _Table, name: str, layers: int | None, heads: int | None) -> ModelSpec:
    there = table.lines.groupby("layer")["head"].max()
    count = int(there.index.max()) + 1 if layers is None else layers
    most = (
        tuple(int(there.get(layer, -1)) + 1 for layer in range(count)) if heads is None else (heads,) * count
    )
    return ModelSpec(
        name, "imported", "imported", count, most, most, tuple(min(one, 1) for one in most), 0, 0, 0,
        "unknown", None, None,
    )  # fmt: skip


def _require_places(table: _Table, spec: ModelSpec) -> None:
    lines = table.lines
    table.refuse(
        lines["layer"] >= spec.layers,
        f"names layer {{layer}}; {spec.name} has layers 0 to {spec.layers - 1}.",
    )
    counts = np.array(spec.heads)[lines["layer"]]
    wrong = pd.Series(lines["head"].to_numpy() >= counts, index=lines.index)
    if wrong.any():
        number = lines.index[wrong.to_numpy()][0]
        layer, head = lines.loc[number, ["layer", "head"]]
        raise RequestError(
            f"{table.name}: row {number} names L{layer}H{head}; layer {layer} of {spec.name} has "
            f"{spec.heads[layer]} heads."
        )


def _runs(
    table: _Table, spec: ModelSpec, known: Mapping[str, str]
) -> Iterator[tuple[Run, list[Fit] | list[ScoreMap] | list[EffectMap]]]:
    lines = table.lines
    for (method, task, relation), part in lines.groupby(["method", "task", "relation"], sort=False):
        content = part[[*_KEYS, "score", "category"]].to_csv(index=False)
        identity = sha256(content.encode()).hexdigest()
        categories = sorted(set(part["category"]) - {""})
        if len(categories) > 1:
            raise RequestError(
                f"{table.name}: {relation!r} has several categories ({', '.join(categories)})."
            )
        facts: dict[str, Any] = {"imported_from": table.name}
        settings = {"given": {}, "resolved": {}, "decides": {"imported": {"content": identity}}}
        run = Run(str(method), str(relation or task), identity, facts, json.loads(json.dumps(settings)))
        category = categories[0] if categories else known.get(run.task, "other")
        if relation:
            yield run, _scores(run, part, spec, category)
        elif run.method in EFFECT_METHODS:
            yield run, _effects(run, part, spec)
        else:
            yield run, _fits(run, part, spec, table.name)


def _map(part: pd.DataFrame, spec: ModelSpec) -> np.ndarray:
    """[layer, head]; where there are several seeds, their mean."""
    values = np.full(spec.shape, np.nan)
    means = part.groupby(["layer", "head"])["score"].mean()
    layers, heads = (means.index.get_level_values(name) for name in ("layer", "head"))
    values[layers, heads] = means
    return values


def _scores(run: Run, part: pd.DataFrame, spec: ModelSpec, category: str) -> list[ScoreMap]:
    values = np.stack([_map(part[part["direction"] == direction], spec) for direction in DIRECTIONS])
    facts: dict[str, Any] = {
        "seeds": int(part["seed"].nunique()), "category": category, "kind": "imported", "pairs": 0,
        "single": 0, "listed": 0, "k": 0,
    }  # fmt: skip
    return [ScoreMap(run.method, run.task, run.identity, values.astype(np.float32), facts)]


def _effects(run: Run, part: pd.DataFrame, spec: ModelSpec) -> list[EffectMap]:
    """Of every seed; their errors are not known."""
    found = []
    for seed, rows in part.groupby("seed"):
        values = _map(rows, spec).astype(np.float32)
        facts = {"imported_from": run.task_facts["imported_from"]}
        found.append(
            EffectMap(run.method, run.task, int(str(seed)), run.identity, values, values * np.nan, facts)
        )
    return found


def _fits(run: Run, part: pd.DataFrame, spec: ModelSpec, name: str) -> list[Fit]:
    """The gates of every seed; a hole is where the model has no head."""
    found = []
    wanted = [(head.layer, head.head) for head in spec]
    for seed, rows in part.groupby("seed"):
        if (rows["fit"] == "score").all():
            score = _map(rows, spec)
            gates = {"retain": 1 - np.maximum(-score, 0), "remove": np.maximum(score, 0)}
        else:
            gates = {str(fit): _map(some, spec) for fit, some in rows.groupby("fit")}
        for fit in ("retain",) if run.method == "contrast" else ("retain", "remove"):
            missing = [place for place in wanted if fit not in gates or np.isnan(gates[fit][place])]
            if missing:
                layer, head = missing[0]
                raise RequestError(
                    f"{name}: the task {run.task!r} (seed {seed}) has no value for L{layer}H{head}"
                    + (f" in the fit '{fit}'." if "score" not in set(rows["fit"]) else ".")
                )
        for fit, values in gates.items():
            with np.errstate(divide="ignore"):
                logits = np.log(values) - np.log1p(-values)
            empty = np.zeros((0, *spec.shape), np.float32)
            found.append(
                Fit(
                    run.method,
                    run.task,
                    int(seed),
                    fit,
                    run.identity,
                    logits,
                    empty,
                    np.zeros(0, np.int32),
                    np.zeros(0, np.float32),
                )
            )
    return found
