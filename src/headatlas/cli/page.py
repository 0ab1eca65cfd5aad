"""`headatlas page DIR`: one HTML file to look around in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["page"]


def page(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="FILE.html; in the folder if not given.")
    ] = None,
    other: Annotated[str | None, typer.Option("--with", help="Another atlas, to compare with.")] = None,
) -> None:
    """Maps, cards of all heads, findings and tables in one file that works without a network."""
    from headatlas.page import write_page

    typer.echo(write_page(folder, out or Path(folder) / "atlas.html", other=other))
