"""`headatlas list …`: what is built in."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["listing"]

listing = typer.Typer(help="What is built in: models, tasks, relations.", no_args_is_help=True)


@listing.command("models")
def models(as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False) -> None:
    """Models with a name of their own, and hub models that are on this machine already."""
    from headatlas.model import EMBEDDED, cached_models

    rows = [{"name": model.name, "where": model.where(), "about": model.about} for model in EMBEDDED.values()]
    rows += [{"name": name, "where": "hub cache", "about": ""} for name in cached_models()]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for column in ("name", "where", "about"):
        table.add_column(column)
    for row in rows:
        table.add_row(row["name"], row["where"], row["about"])
    console = Console()
    console.print(table)
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
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("name", no_wrap=True)
    table.add_column("about")
    for row in rows:
        table.add_row(str(row["name"]), str(row["about"]))
    console = Console()
    console.print(table)
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
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for column in ("name", "category"):
        table.add_column(column, no_wrap=True)
    table.add_column("pairs", justify="right")
    table.add_column("about")
    for row in rows:
        table.add_row(str(row["name"]), str(row["category"]), str(row["pairs"]), str(row["about"]))
    console = Console()
    console.print(table)
    console.print(
        "A relation of your own: a .csv file with the columns source and target, or a .json list of pairs.",
        style="dim",
    )
