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

__all__ = ["Headers", "add_header", "fit_headers", "shortened", "size_of", "text_inches"]

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


@lru_cache(maxsize=1024)
def _width_of(text: str) -> float:
    """In units of the font size."""
    path = TextPath((0, 0), text, prop=FontProperties(family="DejaVu Sans", size=10))
    return float(path.get_extents().width) / 10


def text_inches(text: str, size: float) -> float:
    """How wide a line is in the house's font."""
    return _width_of(text) * size / 72 * _WIDER


def fit_headers(texts: Sequence[str], panel_width: float, most_lines: int = 2) -> Headers:
    """All headers in one size that fits; else in two lines, "(Always)" below; else cut short with "…".

    With `most_lines` 3 a long name before the bracket is broken as well.
    """
    usual, smallest = FONT_SIZES["header"], FONT_SIZES["tick"]
    room = panel_width - 0.05
    forms = [list(texts), [_in_two_lines(text) for text in texts]]
    if most_lines > 2:
        forms.append([_in_three_lines(text, smallest, room) for text in texts])
    for lines, form in enumerate(forms, start=1):
        for size in (usual, (usual + smallest) / 2, smallest):
            if all(text_inches(line, size) <= room for text in form for line in text.split("\n")):
                return Headers(tuple(form), size, lines)
    short = tuple(
        "\n".join(shortened(line, smallest, room) for line in text.split("\n")) for text in forms[-1]
    )
    return Headers(short, smallest, len(forms))


def _in_two_lines(text: str) -> str:
    """Broken before the last bracket, or else at the first space."""
    return "\n(".join(text.rsplit(" (", 1)) if " (" in text else text.replace(" ", "\n", 1)


def _in_three_lines(text: str, size: float, room: float) -> str:
    """As in two; if the first of these is too wide it is broken too, where its parts come out narrowest."""
    name, *rest = _in_two_lines(text).split("\n")
    if rest and text_inches(name, size) > room:
        words = name.replace(" →", "\u00a0→").split(" ")  # an arrow ends its line
        forms = ["\n".join([" ".join(words[:n]), " ".join(words[n:])]) for n in range(1, len(words))]
        name = min(
            forms, key=lambda form: max(text_inches(line, size) for line in form.split("\n")), default=name
        )
    return "\n".join([name, *rest])


def shortened(text: str, size: float, room: float) -> str:
    """A line that is not wider than `room` inches."""
    width = text_inches(text, size)
    if width <= room:
        return text
    kept = int(len(text) * room / width)
    while kept > 1 and text_inches(text[:kept] + "…", size) > room:
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
    if headers.lines == 1:  # on one line with its neighbours, whether or not a letter reaches below it
        place, align = 1 + height * 0.46 - 0.26 * headers.size / 72 / size_of(ax)[1], "baseline"
    else:
        place, align = 1 + height * 0.48, "center"  # by eye: brackets reach below the line
    ax.text(
        0.5, place, text, transform=ax.transAxes, ha="center", va=align, fontsize=headers.size,
        linespacing=1.0, gid="header",
    )  # fmt: skip


def size_of(ax: Axes) -> tuple[float, float]:
    """Width and height of a panel in inches."""
    sheet: Any = ax.get_figure(root=True)
    box, (width, height) = ax.get_position(), sheet.get_size_inches()
    return float(box.width * width), float(box.height * height)
