"""`headatlas export DIR --task T --out PATH`: the gates of a task as a checkpoint, or in another format."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.options import (
    AsJson,
    ExtensionOption,
    LoadFlags,
    TrustTaskCode,
    options_of,
    recalling_model,
    with_flags,
)
from headatlas.cli.progress import spinner
from headatlas.core import THRESHOLD

__all__ = ["export"]


@with_flags
def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder or file to write.")],
    task: Annotated[
        str | None,
        typer.Option("--task", "-t", help="A gated task (default: the only one there is)."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="checkpoint, or the name of a plugin's format.")
    ] = "checkpoint",
    gates: Annotated[
        str | None,
        typer.Option(
            help="always (default): heads that interfere in every seed go off; retain, remove: the gates of "
            "G+ or G-."
        ),
    ] = None,
    hard: Annotated[
        float | None, typer.Option(help="Gates of retain or remove become 0 below this and 1 from it on.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The gates of this seed (default: the mean over the seeds).")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help=f"From which score on a head interferes ({THRESHOLD:g}).")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove key/value groups of which all heads are off.")
    ] = False,
    items: Annotated[
        int | None, typer.Option(help="Held-out items that the checkpoint is measured on (64).")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write the checkpoint even if it harms its task; its card says so."),
    ] = False,
    model: Annotated[str | None, typer.Option(help="Where the model is, if it has moved.")] = None,
    *,
    load: LoadFlags,
    trust_task_code: TrustTaskCode = False,
    option: ExtensionOption = None,
    as_json: AsJson = False,
) -> None:
    """Fold the gates of a task into the weights and write a checkpoint that plain transformers loads. It is
    refused if it harms the task on held-out items. The atlas remembers its model and its task files."""
    from headatlas import FORMATS, ExportRequest

    given: dict[str, Any] = {
        "gates": gates, "hard": hard, "seed": seed, "threshold": threshold, "items": items,
        **options_of(option),
    }  # fmt: skip
    given |= {name: True for name, value in (("prune", prune), ("force", force)) if value}
    request = ExportRequest.of(
        folder, task, out, format=form, model=model, trust_code=trust_task_code, load=load.given(),
        **given,
    )  # fmt: skip
    source = request.model.source
    work = f"loading {source} …" if FORMATS[form].needs_model else f"writing {out} …"
    with recalling_model(model, source, "--model"), spinner(work):
        exported = request.write()
    if as_json:
        typer.echo(json.dumps(exported.to_json()))
        return
    console = Console(soft_wrap=True, highlight=False)
    for line in exported.lines():
        console.print(escape(line).replace("warning:", "[yellow]warning:[/]"))
