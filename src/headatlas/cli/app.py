"""The command `headatlas`: puts the commands together and turns errors into exit codes.

Exit codes: 0 done, 1 the work failed, 2 the request was wrong. An error is one or two sentences on
standard error; a traceback only with `--debug`.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from io import TextIOWrapper
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from headatlas import ExtensionError, HeadatlasError, HeadatlasWarning, __version__
from headatlas.cli.check import check
from headatlas.cli.compare import compare
from headatlas.cli.contrast import contrast
from headatlas.cli.demo import demo
from headatlas.cli.export import export
from headatlas.cli.head import head
from headatlas.cli.import_ import import_
from headatlas.cli.list_ import listing
from headatlas.cli.map import map_
from headatlas.cli.page import page
from headatlas.cli.plot import PlotCommand, plot
from headatlas.cli.relations import relations
from headatlas.cli.report import report
from headatlas.cli.share import share
from headatlas.cli.table import table
from headatlas.cli.validate import validate
from headatlas.cli.wording import command_text
from headatlas.core import escape_unprintable

__all__ = ["app", "main"]

_HELP = """\bAn atlas of what every attention head of a language model does.
headatlas demo                      all of it on the embedded model
headatlas map MODEL --task T        which heads help a task, which hurt it?
headatlas page DIR                  the atlas in one file to look around in
"""


class _Commands(TyperGroup):
    """Completion is there, and so is the help that one is reading; they need not fill it."""

    def get_params(self, ctx: Any) -> Any:
        found = super().get_params(ctx)
        for one in found:
            if one.name in ("install_completion", "show_completion", "help"):
                one.hidden = True  # type: ignore[attr-defined]
        return found


app = typer.Typer(
    name="headatlas",
    cls=_Commands,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", short_help="The main job on the embedded model: maps, figures, report, page.")(demo)
app.command("map", short_help="Which heads help a task, which hurt it, which do not matter?")(map_)
app.command("relations", short_help="Which relations do the heads implement, by their weights?")(relations)
app.command("contrast", short_help="Gates that keep one task and destroy another.")(contrast)
app.command("validate", short_help="How far can the maps be believed? Curves, methods, stability.")(validate)
app.command("report", short_help="The findings in words and numbers.")(report)
app.command("plot", cls=PlotCommand, short_help="A figure: by default the Always/Any maps.")(plot)
app.command("page", short_help="One HTML file: maps, cards, findings, tables.")(page)
app.command("head", short_help="One head's card.")(head)
app.command("table", short_help="All numbers as a tidy table.")(table)
app.command("import", short_help="Scores made elsewhere become an atlas.")(import_)
app.command("compare", short_help="Two atlases, or two tasks, side by side.")(compare)
app.command("export", short_help="The gates of a task folded into an ordinary checkpoint.")(export)
app.command("check", short_help="Can this model be mapped? The self-check, layer by layer.")(check)
app.add_typer(share, name="share")
app.add_typer(listing, name="list")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"headatlas {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
    debug: bool = typer.Option(False, "--debug", hidden=True, help="Show a traceback on errors."),
) -> None:
    pass


def main() -> None:
    """Entry point of the command `headatlas`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # "→" is not in every encoding
            stream.reconfigure(errors="backslashreplace")
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    warnings.simplefilter("ignore", HeadatlasWarning)  # commands show the same in their own way
    debug = len(arguments) < len(sys.argv[1:])  # allowed anywhere on the line
    try:
        app(arguments, prog_name="headatlas")
    except Exception as error:
        if debug:
            traceback.print_exc()
            sys.exit(error.exit_code if isinstance(error, HeadatlasError) else 1)
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        if isinstance(error, HeadatlasError):
            where = " --debug shows where." if isinstance(error, ExtensionError) and error.__cause__ else ""
            console.print("[bold red]error:[/]", escape(command_text(str(error)) + where))
            sys.exit(error.exit_code)
        if isinstance(error, OSError):  # a full disk, a closed pipe
            console.print("[bold red]error:[/]", escape(escape_unprintable(str(error))))
            sys.exit(1)
        reason = escape_unprintable(f"{type(error).__name__}: {error}")
        console.print("[bold red]error:[/]", escape(reason), "(this is a defect; --debug shows where)")
        sys.exit(1)
