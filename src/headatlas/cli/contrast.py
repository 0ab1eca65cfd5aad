"""`headatlas contrast MODEL --retain T --forget T`: keep one task, destroy another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.map import show_doubts
from headatlas.cli.options import (
    AsJson,
    LoadFlags,
    MappedModel,
    Out,
    Resume,
    TrustTaskCode,
    recalling_model,
    with_flags,
)
from headatlas.cli.progress import ShownProgress
from headatlas.cli.show import plain_table, show_table
from headatlas.core import RequestError

if TYPE_CHECKING:
    from headatlas import ContrastSeeds

__all__ = ["contrast"]


@with_flags
def contrast(
    model: MappedModel = None,
    retain: Annotated[
        str | None,
        typer.Option(help="The task to keep; with --resume default: that of the atlas's only contrast."),
    ] = None,
    forget: Annotated[str | None, typer.Option(help="The task to destroy; as --retain.")] = None,
    preset: Annotated[str | None, typer.Option(help="quick (default) or paper.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Random starts; the preset's if not given.")] = None,
    updates: Annotated[int | None, typer.Option(help="Updates.")] = None,
    batch: Annotated[int | None, typer.Option(help="Pairs of rows per update and gate set.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longer rows are left out (default 512).")] = None,
    out: Out = "atlas",
    resume: Resume = False,
    *,
    load: LoadFlags,
    trust_task_code: TrustTaskCode = False,
    as_json: AsJson = False,
) -> None:
    """Learn gates that keep one task and destroy another; both are measured on held-out items."""
    from headatlas import ContrastRequest, execute

    given: dict[str, Any] = {
        "max_tokens": max_tokens, "trust_code": trust_task_code, "load": load.given(), "preset": preset,
        "seeds": seeds, "updates": updates, "batch": batch,
    }  # fmt: skip
    if model is not None and retain is not None and forget is not None:
        request = ContrastRequest.of(model, retain, forget, **given)
    elif resume:
        request = ContrastRequest.resumed(out, model, retain, forget, **given)
    else:
        raise RequestError(
            "give a model, --retain and --forget; only an atlas that is continued (--resume) remembers them."
        )
    source = request.model.source
    progress = ShownProgress(quiet=as_json, out=out, model=source)
    with recalling_model(model, source, "the argument MODEL"), progress:
        atlas = execute(request, out, resume=resume, progress=progress)
    name, tasks = request.name, (request.retain, request.forget)
    by_seed = atlas.contrast_by_seed(name)
    if as_json:
        typer.echo(json.dumps(by_seed.to_json()))
        return
    _show(by_seed, {"retain": tasks[0].name, "forget": tasks[1].name}, out)
    show_doubts(Console(soft_wrap=True, highlight=False), {name: by_seed.doubts})


_KEYS = ("retain_nll", "retain_accuracy", "forget_nll", "forget_accuracy")


def _show(by_seed: ContrastSeeds, names: dict[str, str], out: str) -> None:
    table = plain_table()
    table.add_column("held-out items")
    for side, name in names.items():
        table.add_column(f"{side} {escape(name)}: NLL", justify="right")
        table.add_column("accuracy", justify="right")
    table.add_column("heads shut", justify="right")
    table.add_row("ungated", *(f"{by_seed.ungated[key]:.2f}" for key in _KEYS), "0")
    for seed, figures in by_seed.gated.items():
        table.add_row(
            f"seed {seed}", *(f"{figures[key]:.2f}" for key in _KEYS), str(by_seed.heads_shut[seed])
        )
    console = Console(soft_wrap=True, highlight=False)
    show_table(console, table)
    rows = [by_seed.ungated.get(f"{side}_rows") for side in names]
    if all(rows):
        console.print(f"[dim]measured on {rows[0]} and {rows[1]} held-out items[/]")
    console.print(
        f"[dim]atlas in {escape(out)}; 'headatlas plot {escape(out)} --kind contrast' draws the gates[/]"
    )
