"""Where in the depth of the model heads help and hurt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from headatlas.atlas import Atlas
from headatlas.core import title_of
from headatlas.core.lazy import xr
from headatlas.figure.footer import Foot, doubt_caption
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import Sheet, plain_axes, tasks_of, ticks
from headatlas.figure.shown import figure_function
from headatlas.figure.style import COLUMN_WIDTH, FONT_SIZES, house_style

__all__ = ["draw_layer_profile", "plot_layer_profile"]

_PROFILED = ("facilitation", "interference")
_HEIGHT, _LEGEND = 0.85, 0.15  # inches
_BAND = 0.22  # how much of its colour a band has


@figure_function
def plot_layer_profile(
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
    """One panel per task, one above the other: facilitation and interference against the layer."""
    names = tasks_of(atlas, tasks)
    frame, palette = Frame.of(atlas, ax, axes, title), palette_of(palette)
    foot = Foot.of((), doubt_caption(atlas, names), width)
    sheet = Sheet(1, width, left=0.42, right=0.06)
    texts = [frame.title(title_of(task), task=title_of(task)) for task in names]
    grid = lay_out(sheet, texts, foot, _HEIGHT, above_foot=_LEGEND, frame=frame)
    for panel, edge, task in zip(grid.panels, grid.edges, names, strict=True):
        draw_layer_profile(atlas.scores(task), ax=panel, palette=palette)
        plain_axes(panel, **edge)
    # tasks are compared by height, so all panels end at the same round number
    most = max(float(panel.dataLim.y1) for panel in grid.panels)
    top = min(1.0, max(0.2, np.ceil(most * 5) / 5))
    for panel in grid.panels:
        panel.set(ylim=(0, top), yticks=(0, top / 2, top))
        panel.set_yticklabels([f"{tick:g}" for tick in panel.get_yticks()])
    figure = grid.finish(x="Layer", y="Mean over heads", label=label)
    lines: list[Artist] = [
        Line2D([], [], color=palette.lines[name], linewidth=1.2, label=name) for name in _PROFILED
    ]
    lines.append(Patch(facecolor="#7f7f7f", alpha=_BAND, linewidth=0, label="range of seeds"))
    if not grid.is_new:
        grid.add_legend(lines)
        return figure
    figure.legend(
        handles=lines, loc="lower center", ncols=3,
        bbox_to_anchor=(0.5, foot.height / figure.get_figheight()), borderaxespad=0.1, borderpad=0,
        handlelength=1.6, fontsize=FONT_SIZES["tick"],
    )  # fmt: skip
    return figure


@house_style()
def draw_layer_profile(scores: xr.Dataset, *, ax: Axes, palette: PaletteLike = "paper") -> Axes:
    """The mean score of each layer's heads: the line is the mean over seeds, the band all seeds.

    Layers without heads are left out; where there are any, dots mark the layers that were measured.
    """
    layers = scores.sizes["layer"]
    for name in _PROFILED:
        there = scores[name].notnull().any(["seed", "head"])
        by_seed = scores[name].sel(layer=there.values).mean("head").transpose("seed", "layer")
        x, colour = by_seed["layer"].values, palette_of(palette).lines[name]
        lowest, highest = by_seed.min("seed").values, by_seed.max("seed").values
        ax.fill_between(x, lowest, highest, color=colour, alpha=_BAND, linewidth=0)
        marker = "" if len(x) == layers else "o"
        ax.plot(x, by_seed.mean("seed").values, color=colour, linewidth=1.0, marker=marker, ms=1.8, gid=name)
    ax.set_xlim(-0.5, layers - 0.5)
    ax.set_xticks(ticks(layers, 10))
    plain_axes(ax)
    return ax


PROVIDES = [FigureKind("profile", "facilitation and interference by layer", plot_layer_profile, tasks_of)]
