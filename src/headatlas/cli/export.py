"""`headatlas export DIR --task T --out CHECKPOINT`: the gates of a task as an ordinary checkpoint."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headatlas.cli.loading import load_mapped, task_or_name
from headatlas.cli.options import AsJson, Device, Revision, TrustRemoteCode, TrustTaskCode
from headatlas.core import THRESHOLD

__all__ = ["export"]


def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    task: Annotated[str, typer.Option("--task", "-t", help="One that was gated; an own one as its file.")],
    out: Annotated[str, typer.Option("--out", "-o", help="The folder to be made.")],
    gates: Annotated[
        str,
        typer.Option(
            help="always: heads that interfere in every seed go off; retain, remove: the gates of G+ or G-."
        ),
    ] = "always",
    hard: Annotated[
        float | None, typer.Option(help="Gates of retain or remove become 0 below this and 1 from it on.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The gates of this seed (default: the mean over the seeds).")
    ] = None,
    threshold: Annotated[float, typer.Option(help="From which score on a head interferes.")] = THRESHOLD,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove key/value groups of which all heads are off.")
    ] = False,
    items: Annotated[int, typer.Option(help="Held-out items that the checkpoint is measured on.")] = 64,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write the checkpoint even if it harms its task; its card says so."),
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="Where the model is, if its name in the atlas does not say it.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="Of the checkpoint; auto: as the model is stored.")] = "auto",
    device: Device = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    trust_task_code: TrustTaskCode = False,
    as_json: AsJson = False,
) -> None:
    """Fold the gates of a task into the weights and write a checkpoint that plain transformers loads. It is
    refused if it harms the task on held-out items."""
    from headatlas import open_atlas

    atlas = open_atlas(folder)
    own = task in atlas.tasks and "imported_from" in atlas.run(task).task_facts
    chosen = task if own else task_or_name(task, trust_task_code)
    from headatlas.atlas import choose_gates
    from headatlas.export import export_model, require_export  # brings torch
    from headatlas.run import mapped_revision

    ready = require_export(atlas, chosen, out, gates, hard, seed, items, threshold)
    choose_gates(atlas, ready.name, gates, hard, seed, threshold)
    revision = revision or mapped_revision(atlas, model)
    loaded = load_mapped(atlas, model, dtype, device, None, revision, trust_remote_code)
    made = export_model(
        folder,
        ready,
        out,
        gates=gates,
        hard=hard,
        seed=seed,
        prune=prune,
        threshold=threshold,
        model=loaded,
        items=items,
        force=force,
    )
    if as_json:
        typer.echo(json.dumps(made.to_json()))
        return
    console = Console(soft_wrap=True, highlight=False)
    shown = Table(box=None, pad_edge=False)
    for title in (f"{made.task}, {made.items} held-out items", "before", "after"):
        shown.add_column(title, justify="left" if title not in ("before", "after") else "right")
    for name, key in (("NLL, nats per token", "nll"), ("accuracy", "accuracy")):
        shown.add_row(name, f"{made.before[key]:.3f}", f"{made.after[key]:.3f}")
    if made.parameters[0] != made.parameters[1]:
        shown.add_row("parameters", *(f"{count:,}" for count in made.parameters))
    console.print(shown)
    off = ", ".join(made.off[:12]) + (f" and {len(made.off) - 12} more" if len(made.off) > 12 else "")
    console.print(f"off: {len(made.off)} of {len(atlas.spec)} heads{': ' + off if off else ''}")
    if made.scaled:
        console.print(f"scaled: {made.scaled} others, by gates between 0 and 1")
    if made.pruned:
        speed = f"; a forward pass is {made.speed:.2f} times as quick" if made.speed else ""
        console.print(escape(made.pruned + speed))
    console.print(f"{escape(out)}: an ordinary checkpoint that reproduces the gated model: {made.faithful}")
    console.print(f"task {escape(made.task)}: {escape(made.effect)}")
    if made.harms:
        console.print("[yellow]warning:[/] the checkpoint harms its task; written because of --force")
