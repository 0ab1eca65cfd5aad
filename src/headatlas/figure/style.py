"""How all figures look, whatever the reader's own matplotlib settings are.

Settings hold inside `with house_style()` only; nothing is changed for the rest of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl

__all__ = ["COLUMN_WIDTH", "FONT_SIZES", "LINE_WIDTH", "TEXT_WIDTH", "house_style"]

#: inches: one column of a two-column paper, the text of a one-column paper
COLUMN_WIDTH, TEXT_WIDTH = 3.3, 5.5
#: points; nothing is set smaller than the ticks
FONT_SIZES = {"tick": 6.0, "axis": 7.0, "header": 7.0, "label": 9.0}
LINE_WIDTH = 0.5

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine draws the same
    "font.size": FONT_SIZES["axis"],
    "axes.linewidth": LINE_WIDTH,
    "axes.labelsize": FONT_SIZES["axis"],
    "axes.labelpad": 2.0,
    "axes.unicode_minus": True,
    "figure.dpi": 150,
    "legend.fontsize": FONT_SIZES["tick"],
    "legend.frameon": False,
    "text.parse_math": False,  # a task's name may hold a dollar sign
    # text stays text: it can be searched, and journals ask for it
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "headatlas",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's own defaults and our settings, until the end of the block or the decorated function."""
    with mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = mpl.rcParams
        settings.update(_SETTINGS)
        yield
