"""Two maps beside each other and their difference; or, of models of different shapes, what heads do by "
"depth."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headatlas.atlas import BINS, Atlas, Comparison, doubts
from headatlas.core import title_of
from headatlas.figure.footer import Foot
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.palette import Palette, PaletteLike, palette_of
from headatlas.figure.panels import Sheet, draw_map, map_height, plain_axes
from headatlas.figure.shown import figure_function
from headatlas.figure.style import TEXT_WIDTH

__all__ = ["plot_comparison"]

_HEIGHT = 1.2  # inches: of a profile


@figure_function
def plot_comparison(
    one: Atlas,
    other: Atlas,
    found: Comparison,
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    width: float = TEXT_WIDTH,
) -> Figure:
    """What `compare` found: two maps and their difference; by depth for models of different shapes."""
    frame, palette = Frame.of(one, ax, axes, title), palette_of(palette)
    if found.by_heads:
        return _maps(one, other, found, frame, label, palette, width)
    return _profiles(one, other, found, frame, label, palette, width)


def _names(found: Comparison) -> list[str]:
    """What tells the two apart: their tasks, their models or both."""
    tasks = [title_of(task) for task in found.tasks]
    if found.names[0] == found.names[1]:
        return tasks if tasks[0] != tasks[1] else [f"{tasks[0]}, first", f"{tasks[1]}, second"]
    if tasks[0] == tasks[1]:
        return list(found.names)
    return [f"{name}: {task}" for name, task in zip(found.names, tasks, strict=True)]


def _maps(
    one: Atlas,
    other: Atlas,
    found: Comparison,
    frame: Frame,
    label: str | None,
    palette: Palette,
    width: float,
) -> Figure:
    maps = [atlas.importance(task).values for atlas, task in zip((one, other), found.tasks, strict=True)]
    maps.append(maps[1] - maps[0])
    caption = [
        "Facilitation less interference, the mean over seeds: blue heads help, red ones hurt, from −1 to 1. "
        f"Difference: the second less the first, from −2 to 2. {_agreement(found, 'over heads')}"
        f"{100 * (found.same or 0):.0f} % of the heads have the same role in both.",
        *_verdict(found),
        *_doubts(one, other, found),
    ]
    foot = Foot.of((), caption, width)
    sheet = Sheet(3, width, left=0.34, right=0.06)
    texts = [
        frame.title(name, task=title_of(task), model=model)
        for name, task, model in zip(_names(found), found.tasks, found.names, strict=True)
    ]
    texts.append(frame.title("Difference", task="Difference", model="difference"))
    grid = lay_out(sheet, texts, foot, map_height(one.spec.shape), frame=frame)
    for place, (ax, edge, values) in enumerate(zip(grid.panels, grid.edges, maps, strict=True)):
        most = 2 if place == 2 else 1
        draw_map(ax, values, **edge, cmap=palette.diverging, vmin=-most, vmax=most)
    return grid.finish(x="Head", y="Layer", label=label)


def _profiles(
    one: Atlas,
    other: Atlas,
    found: Comparison,
    frame: Frame,
    label: str | None,
    palette: Palette,
    width: float,
) -> Figure:
    names = _names(found)
    caption = [
        "Means over the heads at each tenth of the depth, of the means over seeds. "
        + _agreement(found, "of the profiles").strip(),
        *_verdict(found),
        *_doubts(one, other, found),
    ]
    styles = ("-", "--")
    lines: list[Artist] = [
        Line2D([], [], color="black", linestyle=style, linewidth=1.2, label=name)
        for style, name in zip(styles, names, strict=True)
    ]
    foot = Foot.of(lines, caption, width)
    sheet = Sheet(len(found.profiles), width, left=0.42, right=0.06)
    texts = [
        frame.title(name.capitalize(), score=name, task=title_of(found.tasks[0])) for name in found.profiles
    ]
    grid = lay_out(sheet, texts, foot, _HEIGHT, frame=frame)
    top = max(0.2, np.ceil(5 * max(max(map(_largest, pair)) for pair in found.profiles.values())) / 5)
    middle = (np.arange(BINS) + 0.5) / BINS
    for ax, edge, (score, pair) in zip(grid.panels, grid.edges, found.profiles.items(), strict=True):
        for style, values in zip(styles, pair, strict=True):
            ax.plot(middle, values, color=palette.lines[score], linestyle=style, linewidth=1.2)
        ax.set(xlim=(0, 1), ylim=(0, top), xticks=(0, 0.5, 1), yticks=(0, top / 2, top))
        ax.set_yticklabels([f"{tick:g}" for tick in ax.get_yticks()])
        plain_axes(ax, **edge)
    return grid.finish(x="Relative depth", y="Mean over heads", label=label)


def _verdict(found: Comparison) -> list[str]:
    """Lines of the caption: whether the two differ more than seeds do, and why they are not independent."""
    shared = [f"Not independent: {'; '.join(found.shared)}."] if found.shared else []
    if found.perhaps_shared:
        shared.append(f"Perhaps not independent: {'; '.join(found.perhaps_shared)}.")
    return [f"Verdict: {found.verdict}.", *shared]


def _doubts(one: Atlas, other: Atlas, found: Comparison) -> list[str]:
    """A line of the caption: what is doubtful about each of the two; none if nothing is."""
    parts = []
    for name, atlas, task in zip(_names(found), (one, other), found.tasks, strict=True):
        if some := doubts(atlas, task):
            parts.append(f"{name} ({', '.join(doubt.brief for doubt in some)})")
    return [f"Doubtful: {'; '.join(parts)}. The report says why."] if parts else []


def _agreement(found: Comparison, units: str) -> str:
    facts = found.correlation["facilitation"]
    if facts is None:
        return "Facilitation is the same everywhere in one of the two. "
    p = found.p["facilitation"]
    tested = found.test if p is None else f"p {p:.2g}, {found.test}"
    return f"Rank correlation of facilitation {units} {facts.mean:.2f}{facts.brackets()} ({tested}). "


def _largest(values: list[float]) -> float:
    return float(np.nanmax(values)) if not np.isnan(values).all() else 0.0
