"""How many seeds are enough: what a map is like with fewer of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headatlas.atlas import THRESHOLD, Atlas, by_seeds
from headatlas.core import RequestError, require_share, title_of
from headatlas.core.lazy import pd
from headatlas.figure.footer import Foot, doubt_caption
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import (
    Sheet,
    inward_numbers,
    plain_axes,
    tasks_of,
)
from headatlas.figure.shown import figure_function
from headatlas.figure.style import TEXT_WIDTH

__all__ = ["plot_stability"]

_HEIGHT = 1.15  # inches
_DASHES = {"always": "-", "any": (0, (4, 2))}
_SCORES = {"facilitating": "facilitation", "interfering": "interference"}


@figure_function
def plot_stability(
    atlas: Atlas,
    tasks: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    threshold: float | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A row per task: the share of heads that facilitate and interfere in all and in any of so many
    seeds, and how well the mean over so many seeds agrees with that over as many others."""
    least = THRESHOLD if threshold is None else require_share("threshold", threshold)
    found = {task: by_seeds(atlas.scores(task), least) for task in _with_two_seeds(atlas, tasks)}
    frame, palette = Frame.of(atlas, ax, axes, title), palette_of(palette)
    words = palette.lines
    lines: list[Artist] = [
        Line2D([], [], color=words[score], linewidth=1.2, label=role) for role, score in _SCORES.items()
    ]
    lines += [
        Line2D([], [], color="#444444", linestyle=dash, linewidth=1.0, label=text)
        for dash, text in ((_DASHES["always"], "Always"), (_DASHES["any"], "Any"))
    ]
    caption = [
        "Left: heads whose score reaches the threshold in every one (Always) and in at least one (Any) of so "
        "many seeds. Right: rank correlation of the mean over so many seeds with that over as many others. "
        "Means over the choices of seeds.",
        *doubt_caption(atlas, list(found)),
    ]
    foot = Foot.of(lines, caption, width)
    sheet = Sheet(2, width, left=0.42, right=0.06, gap_x=0.32, gap_y=0.2)
    texts = [
        frame.title(f"{title_of(task)}: {word}", task=title_of(task), score=word)
        for task in found
        for word in ("share of heads", "agreement")
    ]
    grid = lay_out(sheet, texts, foot, _HEIGHT, frame=frame)
    for row, table in enumerate(found.values()):
        _draw_shares(table, ax=grid.panels[2 * row], palette=palette)
        _draw_agreement(table, ax=grid.panels[2 * row + 1], palette=palette)
    for panel in grid.panels:
        inward_numbers(panel)
    return grid.finish(x="Seeds", y="Share, rank correlation", label=label)


def _with_two_seeds(atlas: Atlas, tasks: Sequence[str] | str | None = None) -> list[str]:
    """The tasks that have two seeds or more, of those that were asked for or of all."""
    several = [task for task in tasks_of(atlas, tasks) if atlas.scores(task).sizes["seed"] > 1]
    if not several:
        raise RequestError(
            "no task of this atlas has two seeds; map it with seeds=5 and resume=True to add some."
        )
    return several


def _draw_shares(table: pd.DataFrame, *, ax: Axes, palette: PaletteLike) -> Axes:
    """Always and Any of a table by `by_seeds`."""
    for role, score in _SCORES.items():
        for when, dash in _DASHES.items():
            name = f"{when}_{role}"
            ax.plot(
                table["seeds"], table[name], color=palette_of(palette).lines[score], linestyle=dash,
                linewidth=1.2, gid=name,
            )  # fmt: skip
    return _scaled(ax, table["seeds"].tolist())


def _draw_agreement(table: pd.DataFrame, *, ax: Axes, palette: PaletteLike) -> Axes:
    """The agreement of maps from so many seeds each."""
    table = table[table["facilitation_with_others"].notna()]  # with more than half there are too few others
    for score in _SCORES.values():
        name = f"{score}_with_others"
        ax.plot(
            table["seeds"], table[name], color=palette_of(palette).lines[score], linewidth=1.2, marker="o",
            markersize=2, gid=name,
        )  # fmt: skip
    return _scaled(ax, table["seeds"].tolist())


def _scaled(ax: Axes, seeds: Sequence[int]) -> Axes:
    most = max(seeds, default=1)
    ax.set(xlim=(0.9, most + 0.1), ylim=(0, 1), yticks=(0, 0.5, 1))
    ax.set_yticklabels(["0", "0.5", "1"])
    ax.set_xticks(sorted({1, -(-most // 2), most}))
    plain_axes(ax)
    return ax


PROVIDES = [FigureKind("stability", "what maps from fewer seeds are like", plot_stability, _with_two_seeds)]
