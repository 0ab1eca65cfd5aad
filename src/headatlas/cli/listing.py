"""`headatlas list …`: what is built in."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["listing"]

listing = typer.Typer(help="What is built in: models, tasks.", no_args_is_help=True)


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
        "A task of your own: a .yaml file, or .jsonl, .csv or .parquet with the columns prompt and target.",
        style="dim",
    )
