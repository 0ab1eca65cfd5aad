"""`headatlas report DIR`: the findings in words and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from headatlas.cli.options import AsJson

__all__ = ["report"]


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="FILE.md or FILE.json instead of the terminal.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What the atlas shows, as numbers with intervals and tests: density, depth, overlap, stability and,
    after 'headatlas validate', sufficiency. Markdown, or JSON."""
    from headatlas import RequestError, open_atlas
    from headatlas.cli.wording import command_text
    from headatlas.core import write_whole

    ending = Path(out).suffix.lower() if out else ""
    if out and ending not in (".md", ".json"):
        raise RequestError(f"--out {out} is no report; its name ends in .md or .json.")
    if as_json and ending == ".md":
        raise RequestError(f"--json and --out {out} are two formats; give one of them.")
    made = open_atlas(folder).report()
    if as_json or ending == ".json":
        text = command_text(json.dumps(made.to_json(), indent=1, ensure_ascii=False)) + "\n"
    else:
        text = command_text(made.markdown())
    if out:
        write_whole(Path(out), text)
        typer.echo(out)
    else:
        typer.echo(text, nl=False)
