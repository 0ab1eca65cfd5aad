"""`headatlas import TABLE --out DIR`: scores made elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.options import Resume
from headatlas.cli.progress import counted

__all__ = ["import_"]


def import_(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="FILE.csv or FILE.parquet.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder of the atlas.")],
    model: Annotated[str | None, typer.Option(help="The model whose rows are taken, or its name.")] = None,
    layers: Annotated[
        int | None, typer.Option(help="Layers of the model (default: as in the table).")
    ] = None,
    heads: Annotated[int | None, typer.Option(help="Heads of a layer (default: as in the table).")] = None,
    resume: Resume = False,
) -> None:
    """Read a table with the columns layer, head, score and task or relation (also: model, seed, direction,
    category, fit). A relation's score lies in 0..1, a task's in -1 (hurts) .. 1 (helps)."""
    from headatlas.atlas import import_table
    from headatlas.task import builtin_relations, load_relation

    known = {name: load_relation(name).category for name in builtin_relations()}
    options = {"model": model, "layers": layers, "heads": heads}
    atlas = import_table(table, out, categories=known, resume=resume, **options)  # type: ignore[arg-type]
    console = Console(soft_wrap=True, highlight=False)
    console.print(
        f"{escape(atlas.spec.name)}, {counted(len(atlas.spec), 'head')}: "
        f"{counted(len(atlas.tasks), 'task')}, {counted(len(atlas.relations), 'relation')} in {escape(out)}"
    )
    widths = set(atlas.spec.heads)
    if len(widths) > 1:
        console.print(
            f"[yellow]note:[/] layers have {min(widths)} to {max(widths)} heads in this table; if that "
            "is a slip, --heads says how many there are"
        )
    kind = "agreement" if atlas.tasks else "categories"
    console.print(f"[dim]'headatlas plot {escape(out)} --kind {kind}' draws it[/]")
