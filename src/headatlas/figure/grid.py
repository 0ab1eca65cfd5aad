"""A figure of equal panels: headers on top, names of the axes outside, legend and caption below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.core import escape_unprintable
from headatlas.figure.footer import Foot
from headatlas.figure.frame import Frame
from headatlas.figure.headers import Headers, add_header, fit_headers
from headatlas.figure.panels import Sheet, add_label, add_outer_labels
from headatlas.figure.style import FONT_SIZES

__all__ = ["Grid", "lay_out"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Panels to draw in, row by row; `finish` adds what stands around them.

    `axes` [row, column] are all places, also those without a panel. `edges` says of each panel whether it is
    the leftmost of its row and the lowest of its column, where ticks are numbered. In axes of the caller
    (`is_new` False) headers are titles, the legend is in the last panel, and there is no caption.
    """

    figure: Figure
    axes: np.ndarray
    panels: list[Axes]
    edges: list[dict[str, bool]]
    headers: Headers
    foot: Foot
    lift: float
    is_new: bool = True

    def finish(self, *, x: str, y: str, label: str | None, indent: float = 0) -> Figure:
        """The figure with headers, the names of the axes, its label, legend and caption."""
        if not self.is_new:
            return self._finish_given(x, y, label)
        for ax, text in zip(self.panels, self.headers.texts, strict=True):
            add_header(ax, text, self.headers)
        add_outer_labels(self.figure, self.axes, x=x, y=y, lift=self.lift, indent=indent)
        add_label(self.figure, label)
        self.foot.draw(self.figure, self.axes[-1, -1])
        return self.figure

    def _finish_given(self, x: str, y: str, label: str | None) -> Figure:
        style: dict[str, Any] = {"fontsize": FONT_SIZES["axis"]}
        for ax, text in zip(self.panels, self.headers.texts, strict=True):
            ax.set_title(text, fontsize=FONT_SIZES["label"], gid="header", parse_math=False)
            ax.set_xlabel(x, **style)
            ax.set_ylabel(y, **style)
        if label:
            self.panels[0].set_title(escape_unprintable(label), loc="left", fontsize=FONT_SIZES["label"])
        if self.foot.handles:
            self.add_legend(self.foot.handles)
        return self.figure

    def add_legend(self, handles: Sequence[Any]) -> None:
        """A legend within the last panel, for axes of the caller."""
        self.panels[-1].legend(handles=handles, loc="best", fontsize=FONT_SIZES["tick"])


def lay_out(
    sheet: Sheet,
    texts: Sequence[str | None],
    foot: Foot,
    height: float | Callable[[Sheet], float],
    *,
    above_foot: float = 0,
    most_lines: int = 2,
    frame: Frame | None = None,
) -> Grid:
    """A grid with a panel for each header text, in the columns of the sheet; None leaves a place empty.

    `height` of a panel in inches, or a function of the finished sheet. `above_foot`: inches between the foot
    and the names of the x axes that are kept for something else. `frame`: axes of the caller to draw in.
    """
    if frame is not None and frame.axes is not None:
        return _given_grid(frame, [text for text in texts if text is not None], foot)
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


def _given_grid(frame: Frame, texts: list[str], foot: Foot) -> Grid:
    """The axes of the caller, as a grid."""
    panels = frame.panels(len(texts))
    axes = np.empty((len(panels), 1), dtype=object)
    axes[:, 0] = panels
    edges = [{"left": True, "bottom": True} for _ in panels]
    figure: Any = panels[0].get_figure(root=True)
    headers = Headers(tuple(texts), FONT_SIZES["label"])
    return Grid(figure, axes, panels, edges, headers, foot, 0, is_new=False)
