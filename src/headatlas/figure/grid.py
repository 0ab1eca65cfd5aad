"""A figure of equal panels: headers on top, names of the axes outside, legend and caption below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.figure.footer import Foot
from headatlas.figure.headers import Headers, add_header, fit_headers
from headatlas.figure.panels import Sheet, add_label, add_outer_labels

__all__ = ["Grid", "lay_out"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Panels to draw in, row by row; `finish` adds what stands around them.

    `axes` [row, column] are all places, also those without a panel. `edges` says of each panel whether it is
    the leftmost of its row and the lowest of its column, where ticks are numbered.
    """

    figure: Figure
    axes: np.ndarray
    panels: list[Axes]
    edges: list[dict[str, bool]]
    headers: Headers
    foot: Foot
    lift: float

    def finish(self, *, x: str, y: str, label: str | None, indent: float = 0) -> Figure:
        """The figure with headers, the names of the axes, its label, legend and caption."""
        for ax, text in zip(self.panels, self.headers.texts, strict=True):
            add_header(ax, text, self.headers)
        add_outer_labels(self.figure, self.axes, x=x, y=y, lift=self.lift, indent=indent)
        add_label(self.figure, label)
        self.foot.draw(self.figure, self.axes[-1, -1])
        return self.figure


def lay_out(
    sheet: Sheet,
    texts: Sequence[str | None],
    foot: Foot,
    height: float | Callable[[Sheet], float],
    *,
    above_foot: float = 0,
    most_lines: int = 2,
) -> Grid:
    """A grid with a panel for each header text, in the columns of the sheet; None leaves a place empty.

    `height` of a panel in inches, or a function of the finished sheet. `above_foot`: inches between the foot
    and the names of the x axes that are kept for something else.
    """
    lift = foot.height + above_foot
    sheet = replace(sheet, rows=-(-len(texts) // sheet.columns), bottom=sheet.bottom + lift)
    headers = fit_headers([text for text in texts if text is not None], sheet.panel_width, most_lines)
    sheet = replace(sheet, header=headers.height)
    figure, axes = sheet.build(height(sheet) if callable(height) else height)
    padded = [*texts, *[None] * (axes.size - len(texts) + sheet.columns)]
    panels, edges = [], []
    for index, ax in enumerate(axes.flat):
        if padded[index] is None:
            ax.remove()
            continue
        panels.append(ax)
        edges.append({"left": index % sheet.columns == 0, "bottom": padded[index + sheet.columns] is None})
    return Grid(figure, axes, panels, edges, headers, foot, lift)
