"""`headatlas list …`: what is built in, and the atlases of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from headatlas.core import escape_unprintable

__all__ = ["listing"]

#: characters of a column that is not narrower by itself
_NARROWEST = 12

listing = typer.Typer(help="Built-in models, tasks, relations; atlases of a folder.", no_args_is_help=True)


@listing.command("models")
def models(as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False) -> None:
    """Models with a name of their own, and hub models that are on this machine already."""
    from headatlas.model import EMBEDDED, cached_models

    rows = [{"name": model.name, "where": model.where(), "about": model.about} for model in EMBEDDED.values()]
    rows += [{"name": name, "where": "hub cache", "about": ""} for name in cached_models()]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    console, columns = Console(), ("name", "where", "about")
    _show(console, columns, [_escaped(row[column] for column in columns) for row in rows])
    console.print("Any causal language model works too: a hub name, a folder, a GGUF file.", style="dim")


@listing.command("tasks")
def tasks(as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False) -> None:
    """Tasks with a name of their own."""
    from headatlas.task import builtin_tasks

    rows = [
        {"name": spec.name, "version": spec.version, "licence": spec.licence, "about": spec.about}
        for spec in builtin_tasks()
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    console, columns = Console(), ("name", "about")
    _show(console, columns, [_escaped(row[column] for column in columns) for row in rows])
    console.print(
        "A task of your own: a .yaml file, or .jsonl, .csv or .parquet with the columns prompt and target; "
        "relation:NAME asks for the targets of a relation.",
        style="dim",
    )


@listing.command("relations")
def relations(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Relations with a name of their own, by category."""
    from headatlas.task import builtin_relations, load_relation

    found = [load_relation(name) for name in builtin_relations()]
    rows = [
        {
            "name": one.name,
            "category": one.category,
            "pairs": len(one.pairs),
            "published": one.published,
            "licence": one.licence,
            "about": one.about,
        }
        for one in found
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    console, columns = Console(), ("name", "category", "pairs", "about")
    _show(console, columns, [_escaped(row[column] for column in columns) for row in rows])
    console.print(
        "A relation of your own: a .csv file with the columns source and target, or a .json list of pairs. "
        "Which pairs count depends on the model's tokenizer: 'headatlas relations MODEL --left-out' names "
        "the others.",
        style="dim",
    )


@listing.command("atlases")
def atlases(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A folder that holds atlases.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Atlases in a folder, three levels deep: model, tasks, relations."""
    from headatlas import RequestError
    from headatlas.atlas import atlases_in

    if not Path(folder).is_dir():
        raise RequestError(f"{folder} is no folder.")
    rows = atlases_in(Path(folder))
    if as_json:
        typer.echo(json.dumps(rows))
        return
    console = Console(soft_wrap=True, highlight=False)
    if not rows:
        console.print(f"no atlas in {escape(folder)}; 'headatlas map' makes one")
        return
    lines = []
    for row in rows:
        tasks = f"[red]{escape(row['error'])}[/]" if row["error"] else escape(", ".join(row["tasks"]) or "–")
        others = (escape(", ".join(row[key]) or "–") for key in ("effects", "contrasts", "imported"))
        names = escape(escape_unprintable(row["path"])), escape(row["model"] or "–")
        lines.append((*names, tasks, str(row["relations"] or "–"), *others))
    _show(console, ("atlas", "model", "tasks", "relations", "effects", "contrasts", "imported"), lines)


def _escaped(cells: Iterable[object]) -> list[str]:
    return [escape(escape_unprintable(str(cell))) for cell in cells]


def _show(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of markup with all its text. Where the terminal has not `_NARROWEST` characters for each
    column, the table is wider than the terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    needed = 2 * (len(columns) - 1)
    for place, column in enumerate(columns):
        widest = max(cell_len(Text.from_markup(row[place]).plain) for row in [columns, *rows])
        least = min(_NARROWEST, widest)
        needed += least
        justify: JustifyMethod = "right" if column in ("pairs", "relations") else "left"
        table.add_column(column, justify=justify, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*row)
    width = console.width
    console.width = max(width, needed)
    try:
        console.print(table, crop=False)
    finally:
        console.width = width
