"""`headatlas import TABLE --out DIR`: scores made elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.options import Resume
from headatlas.core import EFFECT_METHODS, IMPORTED, NOT_IMPORTED, plural

if TYPE_CHECKING:
    from headatlas import Atlas
    from headatlas.atlas import Run

__all__ = ["import_"]

#: names that are listed before the rest is counted
_LISTED = 8


def import_(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="FILE.csv or FILE.parquet.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder of the atlas.")],
    model: Annotated[str | None, typer.Option(help="The model whose rows are taken, or its name.")] = None,
    layers: Annotated[
        int | None, typer.Option(help="Layers of the model (default: as in the table).")
    ] = None,
    heads: Annotated[int | None, typer.Option(help="Heads of a layer (default: as in the table).")] = None,
    average: Annotated[
        list[str] | None,
        typer.Option(help="Take the mean over the rows that differ in this column, such as a template."),
    ] = None,
    resume: Resume = False,
) -> None:
    """Read a table with the columns layer, head, score and task or relation (also: model, seed, direction,
    category, fit, method). A relation's score lies in 0..1. A task's score is kept as it is; with a fit
    (retain, remove) it is a gate."""
    from headatlas.atlas import import_table, reading_words
    from headatlas.task import builtin_relations, load_relation

    known = {name: load_relation(name).category for name in builtin_relations()}
    atlas = import_table(
        table,
        out,
        model=model,
        layers=layers,
        heads=heads,
        categories=known,
        average=average or (),
        resume=resume,
    )
    runs = [run for run in atlas.runs.values() if run.task_facts.get("imported_from") == Path(table).name]
    console = Console(soft_wrap=True, highlight=False)
    console.print(
        f"{escape(atlas.spec.name)}, {plural(atlas.spec.layers, 'layer')} of "
        f"{plural(max(atlas.spec.heads), 'head')}, in {escape(out)}"
    )
    for line in _contents(atlas, runs):
        console.print(f"  {escape(line)}")
    for text in dict.fromkeys(text for run in runs for text in reading_words(run.task_facts)):
        console.print(f"[yellow]note:[/] {escape(text)}")
    for text in _notes(atlas, runs, layers is None or heads is None):
        console.print(f"[yellow]note:[/] {escape(text)}")
    console.print(f"[dim]to see it: headatlas {escape(_advice(atlas, runs, out))}[/]")


def _contents(atlas: Atlas, runs: list[Run]) -> Iterator[str]:
    """What was imported, a line for each kind."""
    from headatlas.atlas import seeds_given

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
    from headatlas.atlas import uneven_seeds

    names = {
        run.task if run.method in (IMPORTED, "relations") else f"{run.method} of {run.task}" for run in runs
    }
    missing = sum(bool(names & set(card.missing)) for card in atlas.cards())
    if missing:
        shape = "; --layers and --heads say the model's shape" if shape_from_table else ""
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
            yield "maps show the mean over seeds; 'headatlas table' has every seed"


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
    if methods & set(EFFECT_METHODS):
        return f"plot {folder} --kind effects"
    return f"plot {folder} --kind contrast" if "contrast" in methods else f"table {folder}"
