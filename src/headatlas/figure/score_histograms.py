"""How the scores of all heads and seeds are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.atlas import SCORES, THRESHOLD, Atlas
from headatlas.core import title_of
from headatlas.core.lazy import xr
from headatlas.figure.footer import Foot, doubt_caption
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import Sheet, inward_numbers, plain_axes, tasks_of
from headatlas.figure.shown import figure_function
from headatlas.figure.style import COLUMN_WIDTH, FONT_SIZES, LINE_WIDTH, house_style

__all__ = ["BINS", "draw_distribution", "plot_distributions"]

BINS = 20
_HEIGHT = 0.75  # inches
#: the tallest bin over the median one that is not empty, from which on counts are drawn on a log scale
_STEEP = 10


@figure_function
def plot_distributions(
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
    """One row per task; columns facilitation, interference, irrelevance. All counts on one scale.

    The scale is logarithmic when the tallest bin is more than ten times the median bin: scores gather at 0
    and 1, and what lies between would not be seen.
    """
    names = tasks_of(atlas, tasks)
    frame, palette = Frame.of(atlas, ax, axes, title), palette_of(palette)
    scores = [atlas.scores(task) for task in names]
    every = [_counts(one[name]) for one in scores for name in SCORES.values()]
    filled = np.concatenate([counts[counts > 0] for counts in every])
    log = bool(filled.max() > _STEEP * np.median(filled))
    foot = Foot.of((), doubt_caption(atlas, names), width)
    sheet = Sheet(len(SCORES), width, left=0.46, right=0.06, gap_x=0.09)
    texts = [
        frame.title(f"{title_of(task)} ({name})", task=title_of(task), score=name)
        for task in names
        for name in SCORES.values()
    ]
    grid = lay_out(sheet, texts, foot, _HEIGHT, frame=frame)
    maps = [of_task[name] for of_task in scores for name in SCORES.values()]
    for panel, edge, values in zip(grid.panels, grid.edges, maps, strict=True):
        draw_distribution(values, ax=panel, palette=palette, log=log)
        # room above the tallest bin for the share
        panel.set_ylim(0.7 if log else 0, filled.max() * (5 if log else 1.3))
        plain_axes(panel, **edge)
    return grid.finish(x="Score", y="Heads × seeds", label=label)


@house_style()
def draw_distribution(
    score: xr.DataArray, *, ax: Axes, palette: PaletteLike = "paper", log: bool = False
) -> Axes:
    """A histogram of one score over heads and seeds, the threshold, and the share that reaches it."""
    ax.stairs(
        _counts(score), np.linspace(0, 1, BINS + 1), fill=True, baseline=0.5 if log else 0,
        color=palette_of(palette).lines[str(score.name)],
    )  # fmt: skip
    ax.axvline(THRESHOLD, color="black", linewidth=LINE_WIDTH, linestyle=(0, (4, 2)), gid="threshold")
    values = _values(score)
    ax.text(
        THRESHOLD + 0.04, 0.95, f"{(values >= THRESHOLD).mean():.0%} →", transform=ax.get_xaxis_transform(),
        ha="left", va="top", fontsize=FONT_SIZES["tick"], gid="share",
    )  # fmt: skip
    ax.set(xlim=(0, 1), xticks=(0, 0.5, 1), xticklabels=("0", "0.5", "1"))
    if log:
        ax.set_yscale("log")
        ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda count, _: f"{count:g}" if count < 1000 else f"{count / 1000:g}k")
    plain_axes(ax)
    inward_numbers(ax)
    return ax


def _values(score: xr.DataArray) -> np.ndarray:
    values = np.asarray(score.values, dtype=float).ravel()
    there: np.ndarray = values[~np.isnan(values)]
    return there


def _counts(score: xr.DataArray) -> np.ndarray:
    return np.histogram(_values(score), bins=BINS, range=(0, 1))[0]


PROVIDES = [
    FigureKind(
        "distributions", "how the scores of all heads and seeds are spread", plot_distributions, tasks_of
    )
]
