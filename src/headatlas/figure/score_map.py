"""One score of every head as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.atlas import SCORES, Atlas, contrast_doubts, contrasts_of
from headatlas.core import RequestError, UnknownNameError, title_of
from headatlas.figure.footer import Foot, doubt_caption
from headatlas.figure.headers import add_header, fit_headers
from headatlas.figure.holes import hole_legend
from headatlas.figure.palette import palette_of
from headatlas.figure.panels import (
    Sheet,
    add_label,
    add_outer_labels,
    columns_of,
    map_axes,
    map_height,
    tasks_of,
)
from headatlas.figure.style import COLUMN_WIDTH, FONT_SIZES, LINE_WIDTH, house_style

__all__ = [
    "DRAWN",
    "OVER",
    "draw_score",
    "heat_maps",
    "plot_contrasts",
    "plot_score",
    "plot_scores",
    "score_of",
]

#: what can be drawn -> how it is called in a figure
DRAWN = {**{name: name.capitalize() for name in SCORES.values()}, "retain": "Gate G+", "remove": "Gate G−"}
#: how seeds become one number: what holds in all of them, in one of them, on average
OVER = {"always": "Always", "any": "Any", "mean": "Mean"}

_BAR = 0.08  # inches: the width of the colour bar
_MOST_COLUMNS = 3


def score_of(atlas: Atlas, task: str, score: str = "facilitation", over: str = "mean") -> xr.DataArray:
    """[layer, head]: a score, or the gates of a fit, with the seeds reduced to one number."""
    if score not in DRAWN:
        raise UnknownNameError("score", score, DRAWN)
    if over not in OVER:
        raise UnknownNameError("way to sum up seeds", over, OVER)
    is_gate = score not in SCORES.values()
    values = atlas.gates(task).sel(fit=score, drop=True) if is_gate else atlas.scores(task)[score]
    reduce = {"always": values.min, "any": values.max, "mean": values.mean}[over]
    return reduce("seed", skipna=False).transpose("layer", "head").rename(score)


@house_style()
def draw_score(
    values: xr.DataArray, *, ax: Axes, colours: str = "paper", left: bool = True, bottom: bool = True
) -> Any:
    """A map [layer, head] of values from 0 to 1 as an image, which is returned; holes are left open."""
    shown = np.ma.masked_invalid(values.transpose("layer", "head").values)
    layers, heads = shown.shape
    image = ax.imshow(
        shown, cmap=palette_of(colours).heat, vmin=0, vmax=1, origin="lower", interpolation="nearest",
        aspect="auto", extent=(-0.5, heads - 0.5, -0.5, layers - 0.5),
    )  # fmt: skip
    map_axes(ax, (layers, heads), holes=bool(np.ma.is_masked(shown)), left=left, bottom=bottom)
    return image


@house_style()
def plot_score(
    atlas: Atlas,
    task: str,
    score: str = "facilitation",
    over: str = "mean",
    *,
    ax: Axes | None = None,
    colours: str = "paper",
) -> Axes:
    """One score of one task, on `ax` (which gives some room to the colour bar) or on a figure of its own."""
    if ax is None:
        axes: Axes = plot_scores(atlas, [task], score, over, colours=colours).axes[0]
        return axes
    image = draw_score(score_of(atlas, task, score, over), ax=ax, colours=colours)
    ax.set_xlabel("Head", fontsize=FONT_SIZES["axis"], labelpad=2)
    ax.set_ylabel("Layer", fontsize=FONT_SIZES["axis"], labelpad=2)
    ax.set_title(f"{title_of(task)} ({OVER[over]})", fontsize=FONT_SIZES["header"])
    bar = ax.figure.colorbar(image, ax=ax, ticks=(0, 0.5, 1))
    _style_bar(bar, DRAWN[score])
    return ax


@house_style()
def plot_scores(
    atlas: Atlas,
    tasks: Sequence[str] | str | None = None,
    score: str = "facilitation",
    over: str = "mean",
    *,
    label: str | None = None,
    colours: str = "paper",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """One panel per task, at most three beside each other, and one colour bar for all."""
    names = tasks_of(atlas, tasks)
    found = {task: score_of(atlas, task, score, over) for task in names}
    maps = [(f"{title_of(task)} ({OVER[over]})", one) for task, one in found.items()]
    caption = doubt_caption(atlas, names)
    return heat_maps(atlas, maps, DRAWN[score], label=label, colours=colours, width=width, caption=caption)


@house_style()
def plot_contrasts(
    atlas: Atlas,
    contrasts: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    colours: str = "paper",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """One panel per contrast: the mean gate over the seeds. A shut head serves the task to be forgotten, or
    neither."""
    names = (
        contrasts_of(atlas)
        if contrasts is None
        else [contrasts]
        if isinstance(contrasts, str)
        else list(contrasts)
    )
    if not names:
        raise RequestError("this atlas has no finished contrast to draw; 'headatlas contrast' makes one.")
    gates = [atlas.gates(name, "contrast").sel(fit="retain", drop=True) for name in names]
    maps = [(title_of(name), one.mean("seed", skipna=False)) for name, one in zip(names, gates, strict=True)]
    caption = doubt_caption(atlas, names, contrast_doubts)
    return heat_maps(atlas, maps, "Gate", label=label, colours=colours, width=width, caption=caption)


def heat_maps(
    atlas: Atlas,
    maps: Sequence[tuple[str, xr.DataArray]],
    bar: str,
    *,
    label: str | None,
    colours: str,
    width: float,
    narrowest: float | None = None,
    caption: Sequence[str] = (),
    imported: bool = False,
) -> Figure:
    """(Header, map) each, and one colour bar for all, named `bar`; paragraphs of `caption` below.

    At most three beside each other; or, in headers of up to three lines, as many as are not narrower than
    `narrowest`. `imported`: a value may be missing because an imported table does not give it.
    """
    names = [name for name, _ in maps]
    foot = Foot.of(hole_legend(atlas, [values for _, values in maps], imported=imported), caption, width)
    sheet = Sheet(1, 1, width, left=0.34, right=_BAR + 0.46, bottom=0.28 + foot.height)
    columns = min(len(names), _MOST_COLUMNS) if len(names) != 4 else 2
    if narrowest is not None:
        columns = columns_of(len(names), sheet, narrowest)
    rows = -(-len(names) // columns)
    sheet = replace(sheet, rows=rows, columns=columns)
    headers = fit_headers(names, sheet.panel_width, 2 if narrowest is None else 3)
    sheet = replace(sheet, header=headers.height)
    tall = {} if narrowest is None else {"header": headers.height}
    figure, axes = sheet.build(map_height(atlas.spec.shape, sheet.panel_width, rows, **tall))
    for place, ax in enumerate(axes.flat):
        if place >= len(names):
            ax.remove()
            continue
        is_last_below = place + columns >= len(names)
        image = draw_score(
            maps[place][1], ax=ax, colours=colours, left=place % columns == 0, bottom=is_last_below
        )
        add_header(ax, headers.texts[place], headers)
    add_outer_labels(figure, axes, x="Head", y="Layer", lift=foot.height)
    add_label(figure, label)
    foot.draw(figure)
    top, low = axes[0, 0].get_position(), axes[-1, 0].get_position()
    box = (1 - (_BAR + 0.36) / width, low.y0, _BAR / width, top.y1 - low.y0)
    _style_bar(figure.colorbar(image, cax=figure.add_axes(box, gid="bar"), ticks=(0, 0.5, 1)), bar)
    return figure


def _style_bar(bar: Any, name: str) -> None:
    bar.set_label(name, fontsize=FONT_SIZES["axis"], labelpad=2)
    bar.ax.tick_params(labelsize=FONT_SIZES["tick"], length=2, width=LINE_WIDTH, pad=1.5)
    bar.outline.set_linewidth(LINE_WIDTH)
