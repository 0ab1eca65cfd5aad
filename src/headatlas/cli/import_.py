"""`headatlas import TABLE --out DIR`: scores made elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.options import Resume
from headatlas.cli.wording import command_text
from headatlas.core import plural

__all__ = ["import_"]


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
    from headatlas import builtin_relations, import_table, load_relation, summarize_import

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
    found = summarize_import(atlas, table, out, has_shape=layers is not None and heads is not None)
    console = Console(soft_wrap=True, highlight=False)
    console.print(
        f"{escape(atlas.spec.name)}, {plural(atlas.spec.layers, 'layer')} of "
        f"{plural(max(atlas.spec.heads), 'head')}, in {escape(out)}"
    )
    for line in found.contents:
        console.print(f"  {escape(line)}")
    for text in found.notes:
        console.print(f"[yellow]note:[/] {escape(command_text(text))}")
    console.print(f"[dim]to see it: headatlas {escape(found.command)}[/]")
