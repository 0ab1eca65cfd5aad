"""One score of every head as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.atlas import SCORES, Atlas, contrast_doubts, contrasts_of
from headatlas.core import RequestError, UnknownNameError, title_of
from headatlas.core.lazy import xr
from headatlas.figure.footer import Foot, doubt_caption
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.holes import hole_legend
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import (
    Sheet,
    columns_of,
    draw_map,
    map_height,
    tasks_of,
)
from headatlas.figure.shown import figure_function
from headatlas.figure.style import COLUMN_WIDTH, FONT_SIZES, LINE_WIDTH, house_style

__all__ = [
    "DRAWN",
    "OVER",
    "draw_score",
    "heat_maps",
    "plot_contrasts",
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
    values: xr.DataArray, *, ax: Axes, palette: PaletteLike = "paper", left: bool = True, bottom: bool = True
) -> Any:
    """A map [layer, head] of values from 0 to 1 as an image, which is returned; holes are left open."""
    cells, heat = values.transpose("layer", "head").values, palette_of(palette).heat
    return draw_map(ax, cells, left=left, bottom=bottom, cmap=heat, vmin=0, vmax=1)


@figure_function
def plot_scores(
    atlas: Atlas,
    tasks: Sequence[str] | str | None = None,
    score: str = "facilitation",
    over: str = "mean",
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """One panel per task, at most three beside each other, and one colour bar for all."""
    names = tasks_of(atlas, tasks)
    frame = Frame.of(atlas, ax, axes, title)
    found = {task: score_of(atlas, task, score, over) for task in names}
    fields = {"agreement": OVER[over], "score": DRAWN[score]}
    maps = [
        (frame.title(f"{title_of(task)} ({OVER[over]})", task=title_of(task), **fields), one)
        for task, one in found.items()
    ]
    caption = doubt_caption(atlas, names)
    return heat_maps(
        atlas, maps, DRAWN[score], frame=frame, label=label, palette=palette, width=width, caption=caption
    )


@figure_function
def plot_contrasts(
    atlas: Atlas,
    tasks: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """One panel per contrast: the mean gate over the seeds. A shut head serves the task to be forgotten, or
    neither."""
    names = _contrasts(atlas, tasks)
    frame = Frame.of(atlas, ax, axes, title)
    gates = [atlas.gates(name, "contrast").sel(fit="retain", drop=True) for name in names]
    maps = [
        (frame.title(title_of(name), task=title_of(name), method="contrast"), one.mean("seed", skipna=False))
        for name, one in zip(names, gates, strict=True)
    ]
    caption = doubt_caption(atlas, names, contrast_doubts)
    return heat_maps(
        atlas, maps, "Gate", frame=frame, label=label, palette=palette, width=width, caption=caption
    )


def _contrasts(atlas: Atlas, tasks: Sequence[str] | str | None = None) -> list[str]:
    """The contrasts that were asked for, or all that are finished."""
    names = contrasts_of(atlas) if tasks is None else [tasks] if isinstance(tasks, str) else list(tasks)
    if not names:
        raise RequestError("this atlas has no finished contrast to draw; contrast_heads makes one.")
    return names


def heat_maps(
    atlas: Atlas,
    maps: Sequence[tuple[str, xr.DataArray]],
    bar: str,
    *,
    frame: Frame,
    label: str | None,
    palette: PaletteLike,
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
    sheet = Sheet(1, width, left=0.34, right=_BAR + 0.46)
    columns = min(len(names), _MOST_COLUMNS) if len(names) != 4 else 2
    if narrowest is not None:
        columns = columns_of(len(names), sheet, narrowest)
    height = map_height(atlas.spec.shape, tall_headers=narrowest is not None)
    most_lines = 2 if narrowest is None else 3
    grid = lay_out(replace(sheet, columns=columns), names, foot, height, most_lines=most_lines, frame=frame)
    for panel, edge, (_, values) in zip(grid.panels, grid.edges, maps, strict=True):
        image = draw_score(values, ax=panel, palette=palette, **edge)
    figure = grid.finish(x="Head", y="Layer", label=label)
    if not grid.is_new:
        _style_bar(figure.colorbar(image, ax=grid.panels, ticks=(0, 0.5, 1)), bar)
        return figure
    top, low = grid.axes[0, 0].get_position(), grid.axes[-1, 0].get_position()
    box = (1 - (_BAR + 0.36) / width, low.y0, _BAR / width, top.y1 - low.y0)
    _style_bar(figure.colorbar(image, cax=figure.add_axes(box, gid="bar"), ticks=(0, 0.5, 1)), bar)
    return figure


def _style_bar(bar: Any, name: str) -> None:
    bar.set_label(name, fontsize=FONT_SIZES["axis"], labelpad=2)
    bar.ax.tick_params(labelsize=FONT_SIZES["tick"], length=2, width=LINE_WIDTH, pad=1.5)
    bar.outline.set_linewidth(LINE_WIDTH)


PROVIDES = [
    FigureKind("score", "one score of every head", plot_scores, tasks_of),
    FigureKind("contrast", "the gates of contrasts", plot_contrasts, _contrasts, draws_gates=False),
]
