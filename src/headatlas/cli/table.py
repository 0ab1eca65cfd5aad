"""`headatlas table DIR`: the atlas as one tidy table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headatlas.cli.options import AsJson

__all__ = ["table"]


def table(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="FILE.csv or FILE.parquet; without it CSV is printed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """All numbers as a tidy table: method, task, seed, fit, relation, direction, layer, head, value."""
    from headatlas import RequestError, open_atlas, write_table

    if out is not None and Path(out).suffix.lower() not in (".csv", ".parquet"):
        raise RequestError(f"{out!r} is no table; its name ends in .csv or .parquet.")
    if out is not None and as_json:
        raise RequestError("--json prints the table and --out writes it to a file: give one of them.")
    frame = open_atlas(folder).to_table()
    if as_json:
        typer.echo(frame.to_json(orient="records", double_precision=15))
    elif out is None:
        typer.echo(frame.to_csv(index=False), nl=False)
    else:
        write_table(frame, Path(out))
        typer.echo(f"{len(frame):,} lines in {out}")
