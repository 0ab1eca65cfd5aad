"""`headatlas page DIR`: one HTML file to look around in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["page"]

#: heads × tasks from which on the permutation tests of the findings take a while
_MANY = 700


def page(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="FILE.html; in the folder if not given.")
    ] = None,
    other: Annotated[str | None, typer.Option("--with", help="Another atlas, to compare with.")] = None,
) -> None:
    """Maps, cards of all heads, findings and tables in one file that works without a network."""
    from headatlas import open_atlas
    from headatlas.page import write_page

    both = [open_atlas(one) for one in (folder, other) if one]
    if sum(len(one.spec) * len(one.tasks) for one in both) > _MANY:
        typer.echo("working out the findings …", err=True)
    path = write_page(both[0], out or Path(folder) / "atlas.html", other=both[1] if other else None)
    typer.echo(path)
