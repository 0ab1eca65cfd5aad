"""`headatlas list …`: what is built in, and the atlases of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.text import Text

from headatlas.cli.options import AsJson
from headatlas.cli.show import plain_table, show_table
from headatlas.core import escape_unprintable

__all__ = ["listing"]

#: characters of a column that is not narrower by itself
_NARROWEST = 12

listing = typer.Typer(help="What is built in or installed; the atlases of a folder.", no_args_is_help=True)


@listing.command("models")
def models(as_json: AsJson = False) -> None:
    """Models with a name of their own, and hub models that are on this machine already."""
    from headatlas import list_models

    rows = list_models()
    hint = "Any causal language model works too: a hub name, a folder, a GGUF file."
    _list(rows, ("name", "where", "about"), as_json, hint)


@listing.command("methods")
def methods(as_json: AsJson = False) -> None:
    """Ways to ask what heads do to a task, those of installed plugins too."""
    from headatlas import METHODS

    rows = [
        {
            "name": method.name,
            "aliases": list(method.aliases),
            "options": method.options.names(),
            "about": method.summary,
        }
        for method in METHODS.values()
    ]
    _list(rows, ("name", "about"), as_json, "headatlas map MODEL --task T --method NAME takes one of them.")


@listing.command("figures")
def figures(as_json: AsJson = False) -> None:
    """Kinds of figure, those of installed plugins too."""
    from headatlas.figure import FIGURES

    rows = [
        {
            "name": kind.name,
            "options": sorted("colours" if option == "palette" else option for option in kind.options),
            "about": kind.summary,
        }
        for kind in FIGURES.values()
    ]
    _list(rows, ("name", "about"), as_json, "headatlas plot DIR --kind NAME draws one of them.")


@listing.command("formats")
def formats(as_json: AsJson = False) -> None:
    """Formats in which an atlas is exported, those of installed plugins too."""
    from headatlas import FORMATS

    rows = [
        {"name": form.name, "options": form.options.names(), "about": form.summary}
        for form in FORMATS.values()
    ]
    _list(rows, ("name", "about"), as_json, "headatlas export DIR --format NAME takes one of them.")


@listing.command("tasks")
def tasks(as_json: AsJson = False) -> None:
    """Tasks with a name of their own."""
    from headatlas import builtin_tasks

    rows = [
        {"name": spec.name, "version": spec.version, "licence": spec.licence, "about": spec.about}
        for spec in builtin_tasks()
    ]
    hint = (
        "A task of your own: a .yaml file, or .jsonl, .csv or .parquet with the columns prompt and target; "
        "relation:NAME asks for the targets of a relation."
    )
    _list(rows, ("name", "about"), as_json, hint)


@listing.command("relations")
def relations(as_json: AsJson = False) -> None:
    """Relations with a name of their own, by category."""
    from headatlas import builtin_relations, load_relation

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
    hint = (
        "A relation of your own: a .csv file with the columns source and target, or a .json list of pairs. "
        "Which pairs count depends on the model's tokenizer: 'headatlas relations MODEL --left-out' names "
        "the others."
    )
    _list(rows, ("name", "category", "pairs", "about"), as_json, hint)


@listing.command("atlases")
def atlases(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A folder that holds atlases.")] = ".",
    as_json: AsJson = False,
) -> None:
    """Atlases in a folder, three levels deep: model, tasks, relations."""
    from headatlas import RequestError, atlases_in

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


def _list(rows: Sequence[dict[str, Any]], columns: Sequence[str], as_json: bool, hint: str) -> None:
    """The rows as JSON, or these columns of them as a table with a hint below."""
    if as_json:
        typer.echo(json.dumps(rows))
        return
    console = Console()
    _show(console, columns, [_escaped(row[column] for column in columns) for row in rows])
    console.print(hint, style="dim")


def _escaped(cells: Iterable[object]) -> list[str]:
    return [escape(escape_unprintable(str(cell))) for cell in cells]


def _show(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of markup with all its text. Where the terminal has not `_NARROWEST` characters for each
    column, the table is wider than the terminal."""
    table = plain_table()
    needed = 2 * (len(columns) - 1)
    for place, column in enumerate(columns):
        widest = max(cell_len(Text.from_markup(row[place]).plain) for row in [columns, *rows])
        least = min(_NARROWEST, widest)
        needed += least
        justify: JustifyMethod = "right" if column in ("pairs", "relations") else "left"
        table.add_column(column, justify=justify, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*row)
    show_table(console, table, needed)
