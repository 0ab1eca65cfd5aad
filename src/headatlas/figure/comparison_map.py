"""Two maps beside each other and their difference; or, of models of different shapes, what heads do by "
"depth."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headatlas.atlas import BINS, Atlas, Comparison, doubts
from headatlas.core import title_of
from headatlas.figure.footer import Foot
from headatlas.figure.grid import lay_out
from headatlas.figure.palette import palette_of
from headatlas.figure.panels import Sheet, draw_map, map_height, plain_axes
from headatlas.figure.style import TEXT_WIDTH, house_style

__all__ = ["plot_comparison"]

_HEIGHT = 1.2  # inches: of a profile


@house_style()
def plot_comparison(
    one: Atlas,
    other: Atlas,
    found: Comparison,
    *,
    label: str | None = None,
    colours: str = "paper",
    width: float = TEXT_WIDTH,
) -> Figure:
    """What `compare_atlases` found."""
    if found.by_heads:
        return _maps(one, other, found, label, width)
    return _profiles(one, other, found, label, colours, width)


def _names(found: Comparison) -> list[str]:
    """What tells the two apart: their tasks, their models or both."""
    tasks = [title_of(task) for task in found.tasks]
    if found.names[0] == found.names[1]:
        return tasks if tasks[0] != tasks[1] else [f"{tasks[0]}, first", f"{tasks[1]}, second"]
    if tasks[0] == tasks[1]:
        return list(found.names)
    return [f"{name}: {task}" for name, task in zip(found.names, tasks, strict=True)]


def _maps(one: Atlas, other: Atlas, found: Comparison, label: str | None, width: float) -> Figure:
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
    grid = lay_out(sheet, [*_names(found), "Difference"], foot, map_height(one.spec.shape))
    for place, (ax, edge, values) in enumerate(zip(grid.panels, grid.edges, maps, strict=True)):
        most = 2 if place == 2 else 1
        draw_map(ax, values, **edge, cmap=colormaps["RdBu"], vmin=-most, vmax=most)
    return grid.finish(x="Head", y="Layer", label=label)


def _profiles(
    one: Atlas, other: Atlas, found: Comparison, label: str | None, colours: str, width: float
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
    grid = lay_out(sheet, [name.capitalize() for name in found.profiles], foot, _HEIGHT)
    top = max(0.2, np.ceil(5 * max(max(map(_largest, pair)) for pair in found.profiles.values())) / 5)
    middle = (np.arange(BINS) + 0.5) / BINS
    for ax, edge, (score, pair) in zip(grid.panels, grid.edges, found.profiles.items(), strict=True):
        for style, values in zip(styles, pair, strict=True):
            ax.plot(middle, values, color=palette_of(colours).lines[score], linestyle=style, linewidth=1.2)
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
    return [f"Doubtful: {'; '.join(parts)}. 'headatlas report' says why."] if parts else []


def _agreement(found: Comparison, units: str) -> str:
    facts = found.correlation["facilitation"]
    if facts is None:
        return "Facilitation is the same everywhere in one of the two. "
    p = found.p["facilitation"]
    tested = found.test if p is None else f"p {p:.2g}, {found.test}"
    return f"Rank correlation of facilitation {units} {facts.mean:.2f}{facts.brackets()} ({tested}). "


def _largest(values: list[float]) -> float:
    return float(np.nanmax(values)) if not np.isnan(values).all() else 0.0
