"""A table of scores made elsewhere, read and checked: one line per score.

Columns: `layer`, `head`, `score` (or `value`), and `relation` or `task`; optional `model`, `category`,
`direction`, `seed`, `fit` and `method`. Other columns are ignored, and `ScoreTable.ignored` names them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from headatlas.atlas.stability import HALVES
from headatlas.core import (
    DIRECTIONS,
    FITS,
    IMPORTED,
    METHOD_ORDER,
    RequestError,
    first_line,
    is_printable,
    method_name_problem,
)
from headatlas.core.lazy import pd

__all__ = ["GATE_METHODS", "KEYS", "NO_SEED", "ScoreTable", "read_score_table"]

#: the method of a relation's score that the table does not name is `IMPORTED`, and so is that of a task's
GATE_METHODS = ("gating", "contrast", *HALVES)
_STATIC = ("relations", IMPORTED)
_RELATION_METHODS = (*_STATIC, "attending", "forced")
#: layers and heads, and seeds: more is a mistake
_MOST, _MOST_SEEDS = 2000, 100_000
_LONGEST_NAME = 200
#: scores are drawn and shown in single precision
_LARGEST = 1e38
#: the seed of a line that names none
NO_SEED = -1
KEYS = ("method", "task", "relation", "seed", "fit", "direction", "layer", "head")
_TEXTS = ("model", "task", "relation", "category", "direction", "seed", "fit", "method")
_KNOWN = (*_TEXTS, "layer", "head", "score")


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Lines with all columns of `_KNOWN`; the index is the number of the line in the file.

    `ignored`: columns that are not read. `averaged`: columns whose lines were averaged; `rows_per_score`: the
    fewest and the most lines of one score.
    """

    name: str
    lines: pd.DataFrame
    ignored: tuple[str, ...] = ()
    averaged: tuple[str, ...] = ()
    rows_per_score: tuple[int, int] = field(default=(1, 1))

    def refuse(self, where: pd.Series, problem: str) -> None:
        """Raise an error about the first line in `where`; {column} in `problem` stands for its value."""
        if where.any():
            number = self.lines.index[where.to_numpy()][0]
            for column, value in self.lines.loc[number].to_dict().items():
                text = f"{value:g}" if isinstance(value, float) else str(value)
                problem = problem.replace(f"{{{column}}}", text)
            raise RequestError(f"{self.name}: row {number} {problem}")


def read_score_table(
    source: str | Path | pd.DataFrame, model: str | None, average: Sequence[str] = ()
) -> ScoreTable:
    """The lines of one model, in their types, with every value allowed and no score given twice."""
    table = _name_columns(_read(source))
    table = _fill_texts(table, model)
    table = _parse_numbers(table)
    table = _fill_methods(table)
    _require_values(table)
    _require_consistency(table)
    return _average(table, average)


def _read(source: str | Path | pd.DataFrame) -> ScoreTable:
    if not isinstance(source, str | Path):  # asked first: a path needs no pandas to be refused
        if isinstance(source, pd.DataFrame):
            return ScoreTable("the table", source.set_axis(range(1, len(source) + 1)))
        raise RequestError(f"table is {source!r:.60}; allowed are a path and a pandas DataFrame.")
    path = Path(source)
    if not is_printable(path.name):
        raise RequestError(
            f"the file name {path.name!r} holds control or invisible characters; rename the table."
        )
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
        raise RequestError(f"{path.name} cannot be read: {first_line(error)}") from None
    return ScoreTable(path.name, lines.set_axis(range(2, len(lines) + 2)))  # the header is row 1


def _from_csv(path: Path) -> pd.DataFrame:
    """All fields as text. No line has more of them than the header: a decimal comma would be two numbers."""
    rows = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        header = next(reader, [])
        for number, fields in enumerate(reader, 2):
            if any(text.strip() for text in fields[len(header) :]):
                raise RequestError(
                    f"{path.name}: row {number} has more fields than the header ({len(header)}); a "
                    "number with a comma in it is written with a point."
                )
            rows.append([*fields, *[""] * len(header)][: len(header)])
    return pd.DataFrame(rows, columns=header, dtype=str)


def _name_columns(table: ScoreTable) -> ScoreTable:
    """Column names in lower case, required columns present, blank lines dropped."""
    lines = table.lines.rename(columns=lambda column: str(column).strip().lower())
    is_blank = lines.isna() | (lines == "")
    lines = lines[~is_blank.all(axis=1)]
    is_unnamed = np.array([not name for name in lines.columns], dtype=bool)
    has_unnamed_values = bool((~is_blank.loc[:, is_unnamed]).any(axis=None))
    lines = lines.loc[:, ~is_unnamed]
    columns = ", ".join(map(str, lines.columns)) or "none"
    if repeated := [str(name) for name in lines.columns[lines.columns.duplicated()]]:
        raise RequestError(f"{table.name} has two columns named {repeated[0]!r}.")
    if "score" in lines and "value" in lines:
        raise RequestError(f"{table.name} has a column 'score' and a column 'value'; which one is the score?")
    lines = lines.rename(columns={"value": "score"})
    for column in ("layer", "head", "score"):
        if column not in lines:
            raise RequestError(f"{table.name} has no column {column!r}; its columns are {columns}.")
    if "relation" not in lines and "task" not in lines:
        raise RequestError(f"{table.name} has no column 'relation' or 'task'; its columns are {columns}.")
    if not len(lines):
        raise RequestError(f"{table.name} has no rows.")
    ignored = tuple(column for column in lines.columns if column not in _KNOWN)
    if has_unnamed_values:  # such as the index that DataFrame.to_csv writes
        ignored = ("(no name)", *ignored)
    return replace(table, lines=lines, ignored=ignored)


def _fill_texts(table: ScoreTable, model: str | None) -> ScoreTable:
    """All text columns, stripped; of several models the one that was chosen."""
    lines = table.lines.copy()
    default_model = model or Path(table.name).stem
    names_model = "model" in lines
    for column in _TEXTS:
        if column not in lines:
            lines[column] = ""
        lines[column] = lines[column].astype("string").fillna("").str.strip().astype(str)
    lines["model"] = lines["model"].mask(lines["model"] == "", default_model)
    names = sorted(lines["model"].unique())
    if model is None and len(names) > 1:
        raise RequestError(
            f"{table.name} holds {len(names)} models ({', '.join(names[:5])}); choose one with model=…."
        )
    if model is not None and names_model:
        lines = lines[lines["model"] == model]
        if not len(lines):
            raise RequestError(f"{table.name} has no model {model!r}; it holds {', '.join(names)}.")
    for column in ("model", "task", "relation", "category"):
        for number, name in lines[column].drop_duplicates().items():
            if not is_printable(name) or len(name) > _LONGEST_NAME:
                raise RequestError(
                    f"{table.name}: row {number} has the {column} {name[:40]!r}; a name has printable "
                    f"characters only, at most {_LONGEST_NAME}."
                )
    ignored = table.ignored
    if ((lines["task"] != "") & (lines["category"] != "")).any():
        ignored = (*ignored, "category (of tasks)")
    return replace(table, lines=lines, ignored=ignored)


def _parse_numbers(table: ScoreTable) -> ScoreTable:
    for column in ("layer", "head", "seed", "score"):
        texts = table.lines[column]
        if column == "seed":
            texts = texts.mask(texts.astype(str) == "", str(NO_SEED))
        numbers = texts.map(_number).astype(float)
        table.refuse(~np.isfinite(numbers), f"has the {column} '{{{column}}}', which is no number.")
        table.refuse(
            numbers.abs() > _LARGEST,
            f"has the {column} '{{{column}}}'; allowed are numbers from -{_LARGEST:g} to {_LARGEST:g}.",
        )
        if column != "score":
            is_blank_seed = (numbers == NO_SEED) & (table.lines[column].astype(str) == "")
            table.refuse(
                ~is_blank_seed & ((numbers < 0) | (numbers != np.floor(numbers))),
                f"has the {column} {{{column}}}; it is a whole number from 0.",
            )
            table.refuse(
                numbers >= (_MOST_SEEDS if column == "seed" else _MOST),
                f"has the {column} {{{column}}}, which is more than any model has.",
            )
            numbers = numbers.astype(int)
        table = replace(table, lines=table.lines.assign(**{column: numbers}))
    return table


def _number(text: object) -> float:
    """Python's parser: pandas rounds the last digit of some numbers differently."""
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _fill_methods(table: ScoreTable) -> ScoreTable:
    lines = table.lines
    names_both_or_none = (lines["task"] != "") == (lines["relation"] != "")
    table.refuse(names_both_or_none, "names a task and a relation, or neither; it has to name one of them.")
    of_relation = lines["relation"] != ""
    direction = lines["direction"].mask(of_relation & (lines["direction"] == ""), DIRECTIONS[0])
    is_gate = ~of_relation & (lines["fit"] != "")
    method = lines["method"].mask(lines["method"] == "", np.where(is_gate, "gating", IMPORTED))
    return replace(table, lines=lines.assign(direction=direction, method=method))


def _require_values(table: ScoreTable) -> None:
    lines = table.lines
    of_relation = lines["relation"] != ""
    table.refuse(
        of_relation & ~lines["direction"].isin(DIRECTIONS),
        "has the direction '{direction}'; there are promote and suppress.",
    )
    table.refuse(
        ~of_relation & (lines["direction"] != ""), "has the direction '{direction}'; a task has none."
    )
    table.refuse(of_relation & (lines["fit"] != ""), "has the fit '{fit}'; a relation has none.")
    table.refuse(
        of_relation & ~lines["method"].isin(_RELATION_METHODS),
        f"has the method '{{method}}'; for a relation there are {', '.join(_RELATION_METHODS)}.",
    )
    for method in lines["method"][~of_relation].unique():  # any other method of a task measures effects
        if method not in (*GATE_METHODS, IMPORTED) and (problem := method_name_problem(method)):
            table.refuse(
                ~of_relation & (lines["method"] == method),
                f"has the method '{{method}}' for a task; {problem}.",
            )
    measures = lines["method"].isin([method for method in (*METHOD_ORDER, IMPORTED) if method != "gating"])
    table.refuse(measures & (lines["fit"] != ""), "has the fit '{fit}'; the method '{method}' has none.")
    has_fit = lines["fit"] != ""
    is_gate = ~of_relation & (has_fit | lines["method"].isin(GATE_METHODS))
    table.refuse(
        is_gate & ~lines["fit"].isin(FITS),
        "has the method '{method}' and the fit '{fit}'; gates have the fit free, retain or remove. A score "
        "that is not a gate has neither method nor fit.",
    )
    outside = (lines["score"] < 0) | (lines["score"] > 1)
    table.refuse(outside & of_relation, "has the score {score}; a relation's score lies between 0 and 1.")
    table.refuse(outside & is_gate, "has the gate {score}; a gate lies between 0 and 1.")


def _require_consistency(table: ScoreTable) -> None:
    """What all lines of a relation or a task share."""
    lines = table.lines[table.lines["relation"] != ""]
    for relation, part in lines.groupby("relation"):
        categories = sorted(set(part["category"]) - {""})
        if len(categories) > 1:
            raise RequestError(
                f"{table.name}: {relation!r} has several categories ({', '.join(categories)})."
            )
        static = [method for method in _STATIC if method in set(part["method"])]
        if not static:
            raise RequestError(
                f"{table.name}: {relation!r} has dynamic scores alone (attending, forced); scores of the "
                "method 'relations' are needed beside them."
            )
        if len(static) > 1:
            raise RequestError(
                f"{table.name}: {relation!r} has rows of the method 'relations' and rows of the method "
                f"'{IMPORTED}' or of none; give one of the two another name."
            )
    for (method, task, relation), part in table.lines.groupby(["method", "task", "relation"], sort=False):
        has_fit = (part["fit"] != "").to_numpy()
        if has_fit.any() and not has_fit.all():
            raise RequestError(
                f"{table.name}: row {part.index[~has_fit][0]} has no fit, but other rows of {task!r} by "
                f"{method!r} have one; a method gives gates or effects."
            )
        without_seed = (part["seed"] == NO_SEED).to_numpy()
        if without_seed.any() and not without_seed.all():
            raise RequestError(
                f"{table.name}: row {part.index[without_seed][0]} has no seed, but other rows of "
                f"{relation or task!r} have one."
            )


def _average(table: ScoreTable, columns: Sequence[str]) -> ScoreTable:
    """One line per score: the mean over the lines that differ in `columns`."""
    wanted = tuple(dict.fromkeys(str(column).strip().lower() for column in columns))
    extra = [column for column in table.ignored if column in table.lines]
    for column in wanted:
        if column not in extra:
            raise RequestError(
                f"{table.name} has no column {column!r} to average over; there are "
                f"{', '.join(extra) or 'none'} beside those that headatlas reads."
            )
    lines = table.lines
    repeated = lines.duplicated([*KEYS, *wanted]).to_numpy()
    if repeated.any():
        _refuse_repeated(table, int(lines.index[repeated][0]), [one for one in extra if one not in wanted])
    if not wanted:
        return table
    counts = lines.groupby(list(KEYS), sort=False).size()
    means = lines.groupby(list(KEYS), sort=False)["score"].mean()
    first = lines[~lines.duplicated(list(KEYS)).to_numpy()]
    return replace(
        table,
        lines=first.assign(score=means.to_numpy()),
        ignored=tuple(column for column in table.ignored if column not in wanted),
        averaged=wanted,
        rows_per_score=(int(counts.min()), int(counts.max())),
    )


def _refuse_repeated(table: ScoreTable, later: int, extra: Sequence[str]) -> None:
    lines = table.lines
    same = (lines[list(KEYS)] == lines.loc[later, list(KEYS)]).all(axis=1).to_numpy()
    first = lines.index[same][0]
    row = lines.loc[later]
    differing = [column for column in extra if str(lines.loc[first, column]) != str(row[column])]
    repair = "several seeds need a column 'seed'"
    if differing:
        options = " ".join(f"average={column!r}" for column in differing)
        repair = f"they differ in {', '.join(differing)}: {options} takes the mean; {repair}"
    raise RequestError(
        f"{table.name}: row {later} repeats row {first} ({row['relation'] or row['task']}, "
        f"L{row['layer']}H{row['head']}); {repair}."
    )
