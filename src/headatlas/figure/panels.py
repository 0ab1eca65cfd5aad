"""What panels have in common: their places on the sheet in inches, ticks, names of axes, hatched holes.

Sizes are worked out here and not left to matplotlib, because a map of a model has a shape of its own and a
column of a paper has a fixed width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.atlas import Atlas
from headatlas.core import RequestError, escape_unprintable
from headatlas.figure.headers import size_of
from headatlas.figure.palette import HOLE_COLOUR, HOLE_HATCH
from headatlas.figure.shown import new_figure
from headatlas.figure.style import FONT_SIZES, LINE_WIDTH

__all__ = [
    "Sheet",
    "add_label",
    "add_outer_labels",
    "columns_of",
    "draw_map",
    "hatch_holes",
    "inward_numbers",
    "map_height",
    "plain_axes",
    "tasks_of",
    "ticks",
]

#: inches: a digit of a tick label, and the line it stands on; labels stay one digit or line apart
_DIGIT, _LINE = 0.047, 0.10
#: coarser and finer steps, for axes on which the usual one gives too many or too few ticks
_STEPS = (1, 2, 5, 10, 20, 50, 100)
#: a panel is at most this much taller than wide, at least this much; between them, cells are square
_TALLEST, _FLATTEST = 1.6, 0.5
#: inches: what all panels of a figure may be tall together, to stay on a page
_PAGE = 5.6
#: inches: a header of one line
_LOW_HEADER = 0.17
#: inches: the tallest single panel
_PANEL = 2.6
_NARROWEST = 2.5


@dataclass(frozen=True, slots=True)
class Sheet:
    """A grid of equal panels, in inches: margins, gaps, and the `header` that stands on each panel."""

    columns: int
    width: float
    left: float
    right: float
    bottom: float = 0.28
    rows: int = 1
    header: float = 0
    gap_x: float = 0.10
    gap_y: float = 0.09

    @property
    def panel_width(self) -> float:
        if self.width < _NARROWEST:
            raise RequestError(
                f"a figure {self.width:g} inches wide cannot be read; give at least {_NARROWEST:g}."
            )
        return (self.width - self.left - self.right - self.gap_x * (self.columns - 1)) / self.columns

    def build(self, panel_height: float) -> tuple[Figure, np.ndarray]:
        """The figure and its axes as [row, column], row 0 at the top."""
        top = 0.02
        row = self.header + panel_height
        height = top + row * self.rows + self.gap_y * (self.rows - 1) + self.bottom
        figure = new_figure((self.width, height))
        axes = np.empty((self.rows, self.columns), dtype=object)
        for place in np.ndindex(self.rows, self.columns):
            x = self.left + place[1] * (self.panel_width + self.gap_x)
            y = height - top - row - place[0] * (row + self.gap_y)
            box = (x / self.width, y / height, self.panel_width / self.width, panel_height / height)
            axes[place] = figure.add_axes(box)
        return figure, axes


def tasks_of(atlas: Atlas, tasks: Sequence[str] | str | None = None) -> list[str]:
    """The tasks that were asked for, or all of which a seed is finished."""
    wanted = atlas.tasks if tasks is None else [tasks] if isinstance(tasks, str) else list(tasks)
    if not wanted:
        only = any(method == "contrast" for method, _ in atlas.runs)
        hint = " This atlas holds contrasts: kind='contrast' draws those." if only else ""
        if atlas.imported:
            hint = " This atlas holds imported scores: kind='imported' draws those."
        if atlas.relations:
            hint = " This atlas holds relations: kind='categories' draws those."
        raise RequestError(f"there is no task to draw; name one, or finish a seed with map_heads.{hint}")
    return wanted


def columns_of(count: int, sheet: Sheet, narrowest: float) -> int:
    """How many of `count` panels go beside each other on `sheet`, none narrower than `narrowest` inches."""
    room = replace(sheet, columns=1).panel_width
    most = max(1, min(count, int((room + sheet.gap_x) / (narrowest + sheet.gap_x))))
    rows = -(-count // most)
    return -(-count // rows)


def map_height(shape_of_map: tuple[int, int], *, tall_headers: bool = False) -> Callable[[Sheet], float]:
    """Inches of a panel on a sheet. Square cells where that gives a reasonable panel, else the nearest
    reasonable one.

    With `tall_headers`, headers of several lines leave less of the page.
    """
    tall, wide = shape_of_map
    shape = np.clip(tall / max(wide, 1), _FLATTEST, _TALLEST)

    def height(sheet: Sheet) -> float:
        header = sheet.header if tall_headers else _LOW_HEADER
        room = _PAGE / sheet.rows - max(0, header - _LOW_HEADER)
        return float(min(sheet.panel_width * shape, _PANEL, max(room, _FLATTEST * sheet.panel_width)))

    return height


def ticks(count: int, step: int, apart: float = 0) -> list[int]:
    """Ticks at 0, step, 2·step, … below `count`.

    With fewer than two of them the step is made finer. Where neighbours would be less than `apart`
    (a share of the axis) from each other it is made coarser.
    """
    place = _STEPS.index(step)
    while place > 0 and len(range(0, count, _STEPS[place])) < 2:
        place -= 1
    while place + 1 < len(_STEPS) and _STEPS[place] < apart * count:
        place += 1
    return list(range(0, count, _STEPS[place]))


def plain_axes(ax: Axes, *, left: bool = True, bottom: bool = True) -> None:
    """Small ticks, and numbers only where this panel is at the edge of the grid."""
    ax.tick_params(
        labelsize=FONT_SIZES["tick"], length=2, width=LINE_WIDTH, pad=1.5, labelleft=left, labelbottom=bottom
    )


def draw_map(
    ax: Axes,
    cells: np.ndarray,
    *,
    left: bool = True,
    bottom: bool = True,
    turned: bool = False,
    **colours: Any,
) -> Any:
    """An image of values or RGBA colours [layer, head], which is returned: head along x, layer along y from
    the bottom. `turned`: [head, layer], the other way round.

    Where a value is NaN or a colour transparent a hatched ground shows through.
    """
    up, across = cells.shape[:2]
    image = ax.imshow(
        cells, origin="lower", interpolation="nearest", aspect="auto",
        extent=(-0.5, across - 0.5, -0.5, up - 0.5), **colours,
    )  # fmt: skip
    step_x, step_y = (10, 5) if turned else (5, 10)
    width, height = size_of(ax)
    ax.set_xticks(ticks(across, step_x, _DIGIT * (len(str(across - 1)) + 1) / width))
    ax.set_yticks(ticks(up, step_y, _LINE / height))
    ax.set(xlim=(-0.5, across - 0.5), ylim=(-0.5, up - 0.5))
    plain_axes(ax, left=left, bottom=bottom)
    if (np.isnan(cells) if cells.ndim == 2 else cells[..., 3] == 0).any():
        hatch_holes(ax.patch)
    return image


def inward_numbers(ax: Axes) -> None:
    """Keep the first and last number on x within the panel, clear of those of its neighbours."""
    texts: list[Any] = ax.get_xticklabels()
    texts[0].set_horizontalalignment("left")
    texts[-1].set_horizontalalignment("right")


def hatch_holes(patch: Any) -> None:
    """Make a patch look like a place without a head."""
    patch.set(facecolor=HOLE_COLOUR, hatch="//////", edgecolor=HOLE_HATCH, linewidth=0, hatch_linewidth=0.4)


def add_outer_labels(
    figure: Figure, axes: np.ndarray, *, x: str, y: str, lift: float = 0, indent: float = 0
) -> None:
    """One name for the x axes below all panels, one for the y axes to the left of them.

    `lift` and `indent`: inches at the lower and at the left edge that are kept for something else.
    """
    first, last = axes[0, 0].get_position(), axes[-1, -1].get_position()
    size: dict[str, Any] = {"fontsize": FONT_SIZES["axis"]}
    figure.text(
        (first.x0 + last.x1) / 2, (lift + 0.02) / figure.get_figheight(), x, ha="center", va="bottom", **size
    )
    edge = (indent + 0.02) / figure.get_figwidth()
    figure.text(edge, (last.y0 + first.y1) / 2, y, ha="left", va="center", rotation="vertical", **size)


def add_label(figure: Figure, label: str | None) -> None:
    """The name of the figure among others, such as "(b)", in the top left corner."""
    if label:
        x, y = 0.02 / figure.get_figwidth(), 1 - 0.02 / figure.get_figheight()
        figure.text(
            x, y, escape_unprintable(label), ha="left", va="top", fontsize=FONT_SIZES["label"], gid="label"
        )
