"""The figure that this project exists to draw: which heads help or hurt always, and which in any seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headatlas.atlas import Atlas, require_atlas
from headatlas.core import require_share, title_of
from headatlas.core.lazy import xr
from headatlas.figure.footer import Foot, doubt_caption
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.headers import fit_headers
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import (
    Sheet,
    draw_map,
    hatch_holes,
    map_height,
    plain_axes,
    tasks_of,
)
from headatlas.figure.shown import figure_function
from headatlas.figure.style import COLUMN_WIDTH, FONT_SIZES, LINE_WIDTH, house_style

__all__ = ["draw_agreement", "draw_key", "plot_agreement"]

#: inches: the side of the colour key, and its place with numbers and names, beside or below the panels
_KEY, _KEY_COLUMN, _KEY_ROW = 0.50, 0.87, 0.82


@figure_function
def plot_agreement(
    atlas: Atlas | str | Path,
    tasks: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    threshold: float | None = None,
    width: float = COLUMN_WIDTH,
) -> Figure:
    """One row per task, Always beside Any. x is the head, y the layer, colour facilitation and interference.

    With a `threshold` scores are cut to 0 or 1: the picture of what a table of shares counts. `width` in
    inches; the height follows from the model's shape.
    """
    atlas = require_atlas(atlas)
    names = tasks_of(atlas, tasks)
    frame = Frame.of(atlas, ax, axes, title)
    palette = palette_of(palette)
    maps = [scores for task in names for scores in (atlas.always(task), atlas.any(task))]
    texts = [
        frame.title(f"{title_of(task)} ({word})", task=title_of(task), agreement=word, method=method)
        for task in names
        for method in atlas.fitted_methods(task)[:1]
        for word in ("Always", "Any")
    ]
    foot = Foot.of((), doubt_caption(atlas, names), width)
    sheet = Sheet(2, width, left=0.34, right=_KEY_COLUMN)
    beside = fit_headers(texts, sheet.panel_width).lines == 1
    if not beside:  # long names: the key goes below, which leaves them more room
        sheet = replace(sheet, right=0.04)
    above_foot = 0 if beside else _KEY_ROW
    grid = lay_out(sheet, texts, foot, map_height(atlas.spec.shape), above_foot=above_foot, frame=frame)
    for panel, edge, scores in zip(grid.panels, grid.edges, maps, strict=True):
        draw_agreement(scores, ax=panel, palette=palette, threshold=threshold, **edge)
    figure = grid.finish(x="Head", y="Layer", label=label)
    if not grid.is_new:
        return figure
    hole = bool(maps[0]["facilitation"].isnull().any())
    key = _add_key(figure, grid.axes, beside=beside, hole=hole, lift=foot.height)
    draw_key(key, palette=palette, threshold=threshold)
    return figure


@house_style()
def draw_agreement(
    scores: xr.Dataset,
    *,
    ax: Axes,
    palette: PaletteLike = "paper",
    threshold: float | None = None,
    left: bool = True,
    bottom: bool = True,
) -> Axes:
    """A map of facilitation and interference [layer, head] as an image; holes are left open.

    `left` and `bottom`: whether the ticks there are numbered.
    """
    helping, hurting = (
        _cut(scores[name].transpose("layer", "head").values, threshold)
        for name in ("facilitation", "interference")
    )
    there = ~np.isnan(helping)
    image = np.dstack([palette_of(palette).blend(np.nan_to_num(helping), np.nan_to_num(hurting)), there])
    image[~there] = 0
    draw_map(ax, image, left=left, bottom=bottom)
    return ax


@house_style()
def draw_key(ax: Axes, *, palette: PaletteLike = "paper", threshold: float | None = None) -> Axes:
    """Draw the color key: interference rises from left to right, facilitation from bottom to top."""
    steps = np.linspace(0, 1, 65)
    hurting, helping = np.meshgrid(_cut(steps, threshold), _cut(steps, threshold))
    ax.imshow(
        palette_of(palette).blend(helping, hurting), origin="lower", interpolation="nearest", aspect="auto",
        extent=(0, 1, 0, 1),
    )  # fmt: skip
    ax.set(xticks=(0, 1), yticks=(0, 1), xlabel="Interference", ylabel="Facilitation")
    plain_axes(ax)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(FONT_SIZES["tick"])
        axis.labelpad = 0
    return ax


def _add_key(figure: Figure, axes: np.ndarray, *, beside: bool, hole: bool, lift: float) -> Axes:
    """Axes for the key: beside the panels, half-way up, or below them, half-way along.

    Where the map has a hole, the key says what one looks like. `lift`: inches of the caption below.
    """
    width, height = figure.get_size_inches()
    first, last = axes[0, 0].get_position(), axes[-1, -1].get_position()
    if beside:
        x, y = width - _KEY - 0.06, (first.y1 + last.y0) / 2 * height - _KEY / 2
        y = max(
            y, lift + (0.44 if hole else 0.20)
        )  # low panels: what stands below the key stays on the sheet
        hole_x, hole_y = x, y - 0.42
    else:
        x, y = (first.x0 + last.x1) / 2 * width - _KEY / 2, lift + 0.24
        hole_x, hole_y = x + _KEY + 0.15, y
    if hole:
        side = 0.09
        box = Rectangle(
            (hole_x / width, hole_y / height),
            side / width,
            side / height,
            transform=figure.transFigure,
            gid="hole",
        )
        hatch_holes(box)
        box.set(linewidth=LINE_WIDTH)
        figure.add_artist(box)
        text_x, text_y = (hole_x + side + 0.04) / width, (hole_y + side / 2) / height
        figure.text(text_x, text_y, "no head", va="center", fontsize=FONT_SIZES["tick"])
    return figure.add_axes((x / width, y / height, _KEY / width, _KEY / height), gid="key")


def _cut(values: np.ndarray, threshold: float | None) -> np.ndarray:
    if threshold is None:
        return np.asarray(values, dtype=float)
    return np.where(np.isnan(values), np.nan, values >= require_share("threshold", threshold))


PROVIDES = [
    FigureKind(
        "agreement",
        "facilitation and interference in all seeds (Always) and in any seed",
        plot_agreement,
        tasks_of,
    )
]
