"""`headatlas plot DIR`: a figure of an atlas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["plot"]


def plot(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    kind: Annotated[
        str, typer.Option(help="agreement, score, trajectories, distributions or profile.")
    ] = "agreement",
    task: Annotated[list[str] | None, typer.Option("--task", "-t", help="Only these tasks.")] = None,
    score: Annotated[
        str, typer.Option(help="For --kind score: facilitation, interference, irrelevance, retain, remove.")
    ] = "facilitation",
    over: Annotated[str, typer.Option(help="For --kind score: always, any or mean over the seeds.")] = "mean",
    head: Annotated[
        list[str] | None, typer.Option(help="For --kind trajectories: these heads, e.g. L5H3.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="A panel label such as '(b)'.")] = None,
    colours: Annotated[str, typer.Option(help="paper, or safe for colour-blind readers.")] = "paper",
    form: Annotated[str, typer.Option("--format", help="png, pdf or svg.")] = "png",
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="FILE.png, .pdf or .svg (default DIR/KIND.FORMAT).")
    ] = None,
) -> None:
    """Draw a figure: by default the Always/Any maps of all tasks."""
    from headatlas import open_atlas
    from headatlas.figure import FigureOptions, draw_figure, save_figure

    options = FigureOptions(
        tasks=tuple(task) if task else None,
        score=score,
        over=over,
        label=label,
        colours=colours,
        heads=tuple(head) if head else None,
    )
    path = Path(out) if out else Path(folder) / f"{kind}.{form}"
    figure = draw_figure(open_atlas(folder), kind, options)
    typer.echo(str(save_figure(figure, path)))
