"""Headers: the gray bars on top of panels, with texts that fit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath

from headatlas.figure.palette import HEADER_COLOUR
from headatlas.figure.style import FONT_SIZES, LINE_WIDTH

__all__ = ["Headers", "add_header", "fit_headers", "size_of", "title_of"]

#: letters on a screen are up to this much wider than on paper
_WIDER = 1.06


@dataclass(frozen=True, slots=True)
class Headers:
    """Header texts that fit their panels, all in one size, in `lines` lines."""

    texts: tuple[str, ...]
    size: float
    lines: int = 1

    @property
    def height(self) -> float:
        """Inches."""
        return 0.05 + self.lines * self.size * 1.2 / 72


def title_of(task: str) -> str:
    """A task's name as it stands in a header: `math` -> `Math`, `paper/math` -> `Paper/math`."""
    return task[:1].upper() + task[1:]


@lru_cache(maxsize=1024)
def _width_of(text: str) -> float:
    """In units of the font size."""
    path = TextPath((0, 0), text, prop=FontProperties(family="DejaVu Sans", size=10))
    return float(path.get_extents().width) / 10


def _text_inches(text: str, size: float) -> float:
    return _width_of(text) * size / 72 * _WIDER


def fit_headers(texts: Sequence[str], panel_width: float) -> Headers:
    """All headers in one size that fits; else in two lines, "(Always)" below; else cut short with "…"."""
    usual, smallest = FONT_SIZES["header"], FONT_SIZES["tick"]
    room = panel_width - 0.05
    forms = [list(texts), [_in_two_lines(text) for text in texts]]
    for lines, form in enumerate(forms, start=1):
        for size in (usual, (usual + smallest) / 2, smallest):
            if all(_text_inches(line, size) <= room for text in form for line in text.split("\n")):
                return Headers(tuple(form), size, lines)
    short = tuple(
        "\n".join(_shortened(line, smallest, room) for line in text.split("\n")) for text in forms[-1]
    )
    return Headers(short, smallest, 2)


def _in_two_lines(text: str) -> str:
    """Broken before the last bracket, or else at the first space."""
    return "\n(".join(text.rsplit(" (", 1)) if " (" in text else text.replace(" ", "\n", 1)


def _shortened(text: str, size: float, room: float) -> str:
    width = _text_inches(text, size)
    if width <= room:
        return text
    kept = int(len(text) * room / width)
    while kept > 1 and _text_inches(text[:kept] + "…", size) > room:
        kept -= 1
    return text[:kept] + "…"


def add_header(ax: Axes, text: str, headers: Headers) -> None:
    """A gray bar as wide as the panel, on top of it."""
    height = headers.height / size_of(ax)[1]
    bar = Rectangle(
        (0, 1), 1, height, transform=ax.transAxes, clip_on=False, facecolor=HEADER_COLOUR,
        edgecolor="black", linewidth=LINE_WIDTH, gid="header",
    )  # fmt: skip
    ax.add_patch(bar)
    middle = 0.46 if headers.lines == 1 else 0.48  # by eye: brackets reach below the line
    ax.text(
        0.5, 1 + height * middle, text, transform=ax.transAxes, ha="center", va="center",
        fontsize=headers.size, linespacing=1.0, gid="header",
    )  # fmt: skip


def size_of(ax: Axes) -> tuple[float, float]:
    """Width and height of a panel in inches."""
    sheet: Any = ax.get_figure(root=True)
    box, (width, height) = ax.get_position(), sheet.get_size_inches()
    return float(box.width * width), float(box.height * height)
