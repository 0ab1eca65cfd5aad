"""`headatlas plot DIR`: a figure of an atlas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from headatlas.cli.options import ExtensionOption, options_of
from headatlas.core import IMPLEMENTS

__all__ = ["PlotCommand", "plot"]

#: option of a figure -> flag, where it is another word
_FLAGS = {"tasks": "task", "heads": "head", "relations": "relation", "palette": "colours"}


class PlotCommand(TyperCommand):
    """Fills in the figure kinds on demand: loading them takes a second."""

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        if ctx.resilient_parsing:
            return parameters
        from headatlas.figure import FIGURES

        for parameter in parameters:
            if parameter.name == "kind":
                parameter.help = f"{', '.join(FIGURES)}."  # type: ignore[attr-defined]
        return parameters


def plot(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    kind: Annotated[str, typer.Option(help="'headatlas list figures' has them all.")] = "agreement",
    task: Annotated[list[str] | None, typer.Option("--task", "-t", help="Only these tasks.")] = None,
    method: Annotated[str | None, typer.Option(help="Use the gates fitted by this method.")] = None,
    score: Annotated[
        str | None,
        typer.Option(help="For --kind score: facilitation, interference, irrelevance, retain, remove."),
    ] = None,
    over: Annotated[
        str | None, typer.Option(help="For --kind score: always, any or mean over the seeds.")
    ] = None,
    head: Annotated[
        list[str] | None, typer.Option(help="For --kind trajectories: these heads, e.g. L5H3.")
    ] = None,
    relation: Annotated[
        list[str] | None, typer.Option("--relation", "-r", help="For relations, dynamic: only these.")
    ] = None,
    direction: Annotated[
        str | None, typer.Option(help="For categories, relations, dynamic: promote, suppress or both.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help=f"For categories ({IMPLEMENTS:g}), agreement, stability: the score that counts."),
    ] = None,
    option: ExtensionOption = None,
    label: Annotated[str | None, typer.Option(help="A panel label such as '(b)'.")] = None,
    colours: Annotated[
        str | None, typer.Option(help="paper (default), or safe for colour-blind readers.")
    ] = None,
    form: Annotated[str | None, typer.Option("--format", help="png (default), pdf or svg.")] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="FILE.png, .pdf or .svg (default DIR/KIND.FORMAT, named after what was asked for).",
        ),
    ] = None,
) -> None:
    """Draw a figure: by default the Always/Any maps of all tasks."""
    from headatlas import RequestError, open_atlas
    from headatlas.core import slug
    from headatlas.figure import FIGURES, draw_figure, save_figure

    given = {
        "tasks": task,
        "score": score,
        "over": over,
        "heads": head,
        "relations": relation,
        "direction": direction,
        "threshold": threshold,
        "label": label,
        "palette": colours,
    }
    options = {name: value for name, value in given.items() if value not in (None, [])}
    for name in options:
        if name not in FIGURES[kind].options:
            kinds = ", ".join(other.name for other in FIGURES.values() if name in other.options)
            raise RequestError(f"--{_FLAGS.get(name, name)} is for --kind {kinds}; {kind} has no use for it.")
    if method is not None and not FIGURES[kind].draws_gates:
        kinds = ", ".join(other.name for other in FIGURES.values() if other.draws_gates)
        raise RequestError(f"--method is for --kind {kinds}; {kind} has no use for it.")
    extra = options_of(option)
    for name in extra:
        if name in given:
            raise RequestError(f"--option {name} has a flag of its own; use --{_FLAGS.get(name, name)}.")
        if name not in FIGURES[kind].options:
            allowed = ", ".join(sorted(FIGURES[kind].options - given.keys())) or "none"
            raise RequestError(f"{name!r} is not an option of the figure {kind}; it has {allowed}.")
    if out and form and Path(out).suffix.lower() != f".{form}":
        raise RequestError(f"--format {form} does not fit --out {out}; the file's ending says the format.")
    asked = [kind, *(word for word in (method, score, over, direction) if word)]
    asked += [f"{threshold:g}"] if threshold is not None else []
    asked += [slug(name) for name in (*(task or ()), *(relation or ()))]
    asked += [slug(f"{name}-{value}") for name, value in extra.items()]
    path = Path(out) if out else Path(folder) / f"{'-'.join(asked)}.{form or 'png'}"
    atlas = open_atlas(folder) if method is None else open_atlas(folder).fitted_by(method)
    figure = draw_figure(atlas, kind, **{**options, **extra})
    typer.echo(str(save_figure(figure, path)))
