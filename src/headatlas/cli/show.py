"""How results are printed."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

__all__ = ["show_table"]

_ANY_WIDTH = 10_000


def show_table(console: Console, table: Table) -> None:
    """Print a table with all its text, also where the terminal is narrower: a number must not be cut."""
    width = console.width
    needed = Measurement.get(console, console.options.update(width=_ANY_WIDTH), table).maximum
    console.width = max(width, needed)
    try:
        console.print(table, crop=False)
    finally:
        console.width = width
