"""How results are printed."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

__all__ = ["plain_table", "show_table"]

_ANY_WIDTH = 10_000


def plain_table(*columns: str) -> Table:
    """A table without lines, with bold headers; text in `columns` is not wrapped."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def show_table(console: Console, table: Table, needed: int | None = None) -> None:
    """Print a table with all its text, also where the terminal is narrower: a number must not be cut.

    `needed`: characters that are enough, where cells may be broken into lines.
    """
    width = console.width
    if needed is None:
        needed = Measurement.get(console, console.options.update(width=_ANY_WIDTH), table).maximum
    console.width = max(width, needed)
    try:
        console.print(table, crop=False)
    finally:
        console.width = width
