"""What became of a table that was imported: its contents, what it left open, and where to look next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headatlas.atlas.imported import reading_words, seeds_given, uneven_seeds
from headatlas.atlas.record import Run
from headatlas.atlas.score_table import GATE_METHODS
from headatlas.core import IMPORTED, NOT_IMPORTED, plural

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["ImportSummary", "summarize_import"]

#: names that are listed before "and N more"
_LISTED = 8


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """`contents` has a line for each kind of score, `notes` say what the table left open and what was assumed
    instead; `command` shows what was imported."""

    contents: list[str]
    notes: list[str]
    command: str


def summarize_import(atlas: Atlas, table: str | Path, out: str | Path, *, has_shape: bool) -> ImportSummary:
    """What `table` brought into the atlas in the folder `out`; `has_shape` if the user said how many layers
    and heads the model has."""
    runs = [run for run in atlas.runs.values() if run.task_facts.get("imported_from") == Path(table).name]
    read = dict.fromkeys(text for run in runs for text in reading_words(run.task_facts))
    notes = [*read, *_notes(atlas, runs, not has_shape)]
    return ImportSummary(list(_contents(atlas, runs)), notes, _advice(atlas, runs, str(out)))


def _contents(atlas: Atlas, runs: list[Run]) -> Iterator[str]:
    """What was imported, a line for each kind."""
    scores = [run.task for run in runs if run.method == IMPORTED]
    if scores:
        yield f"scores: {_listed([_with_seeds(name, len(seeds_given(atlas, name))) for name in scores])}"
    relations = [run.task for run in runs if run.method == "relations"]
    if relations:
        counts = atlas.relation_scores().sel(relation=relations)["seeds"].values.tolist()
        yield f"relations: {_listed(list(map(_with_seeds, relations, counts)))}"
    gated = [_with_seeds(run.task, _seeds_of_gates(atlas, run)) for run in runs if run.method == "gating"]
    if gated:
        yield f"gates: {_listed(gated)}"
    others = [run for run in runs if run.method not in (IMPORTED, "relations", "gating")]
    for method in dict.fromkeys(run.method for run in others):
        yield f"{method}: {_listed([run.task for run in others if run.method == method])}"


def _seeds_of_gates(atlas: Atlas, run: Run) -> int:
    """How many seeds the table names."""
    facts = [atlas.fit(run.task, seed, "retain").facts for seed in atlas.seeds(run.task)]
    return sum(bool(one.get("seed_given", True)) for one in facts)


def _notes(atlas: Atlas, runs: list[Run], shape_from_table: bool) -> Iterator[str]:
    """What the table left open, and what was assumed instead."""
    names = {
        run.task if run.method in (IMPORTED, "relations") else f"{run.method} of {run.task}" for run in runs
    }
    unknown = dict.fromkeys(run.method for run in runs if run.task_facts.get("unknown_method"))
    if unknown:
        yield f"no installed method has this name, check its spelling: {_listed(list(unknown))}"
    missing = sum(bool(names & set(card.missing)) for card in atlas.cards())
    if missing:
        shape = "; layers=… and heads=… say the model's shape" if shape_from_table else ""
        verb = "is" if missing == 1 else "are"
        yield (
            f"{missing} of {plural(len(atlas.spec), 'head')} {verb} {NOT_IMPORTED}, or not for every "
            f"score: unknown there{shape}"
        )
    uneven = uneven_seeds(atlas)
    for run in runs:
        if text := uneven.get((run.method, run.task)):
            yield f"{run.task}: {text}"
    relations = [run.task for run in runs if run.method == "relations"]
    if relations:
        scores = atlas.relation_scores().sel(relation=relations)
        other = [str(name) for name in scores["relation"].values[scores["category"].values == "other"]]
        if other:
            yield f"category other, unless a column 'category' says another: {_listed(other)}"
        if not scores["seeds_kept"].values.all():
            yield "an older version imported some relations: of these only the mean over seeds was kept"
        if (scores["seeds_kept"].values & (scores["seeds"].values > 1)).any():
            yield "maps show the mean over seeds; write_table has every seed"


def _with_seeds(name: str, seeds: int) -> str:
    return f"{name} ({plural(seeds, 'seed')})" if seeds else name


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _advice(atlas: Atlas, runs: list[Run], out: str) -> str:
    """The command that shows what was imported."""
    folder = shlex.quote(out)
    methods = {run.method for run in runs}
    relations = [run.task for run in runs if run.method == "relations"]
    if "gating" in methods:
        return f"plot {folder} --kind agreement"
    if relations:
        scores = atlas.relation_scores().sel(direction="promote")
        only_suppress = bool(scores.isnull().all())
        return f"plot {folder} --kind categories{' --direction suppress' if only_suppress else ''}"
    if IMPORTED in methods:
        return f"plot {folder} --kind imported"
    if methods - {*GATE_METHODS, "relations"}:
        return f"plot {folder} --kind effects"
    return f"plot {folder} --kind contrast" if "contrast" in methods else f"table {folder}"
