"""Gates on their way: how the free fit and then the two pressed fits move the gate of a head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headatlas.atlas import SCORES, THRESHOLD, Atlas
from headatlas.core import FITS, AtlasError, Head, RequestError, head_list, title_of
from headatlas.core.lazy import xr
from headatlas.figure.footer import Foot, doubt_caption
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import Palette, PaletteLike, palette_of
from headatlas.figure.panels import Sheet, inward_numbers, plain_axes, tasks_of
from headatlas.figure.shown import figure_function
from headatlas.figure.style import FONT_SIZES, LINE_WIDTH, TEXT_WIDTH, house_style

__all__ = ["draw_trajectory", "example_heads", "plot_trajectories"]

_FIT_WORDS = {"free": "free", "retain": "retain (G+)", "remove": "remove (G−)"}
_HEIGHT, _LEGEND = 0.95, 0.15  # inches
_NARROWEST = 0.82  # inches: a panel, with numbers below it


def example_heads(atlas: Atlas, task: str) -> dict[str, Head]:
    """Role -> its clearest head: the one whose lowest score over the seeds is the highest.

    Of equals the first one is taken, layer by layer.
    """
    lowest = atlas.always(task)
    found = {}
    for role, score in SCORES.items():
        values = lowest[score].transpose("layer", "head").values
        layer, head = np.unravel_index(np.argmax(np.where(np.isnan(values), -np.inf, values)), values.shape)
        found[role] = Head(int(layer), int(head))
    return found


@figure_function
def plot_trajectories(
    atlas: Atlas,
    tasks: Sequence[str] | str | None = None,
    heads: str | tuple[int, int] | Sequence[str | tuple[int, int]] | None = None,
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """One panel per head of one task: its gate against the update, one line per seed and fit.

    Without `heads`, those of `example_heads`. A header names a role only if all seeds agree on it.
    """
    task = _one_task(atlas, tasks)
    frame, palette = Frame.of(atlas, ax, axes, title), palette_of(palette)
    lowest = atlas.always(task)
    if heads is None:
        chosen = list(example_heads(atlas, task).items())
        texts = [_example_title(role, head, lowest) for role, head in chosen]
        wanted = [head for _, head in chosen]
    else:
        wanted = [atlas.spec.require(head) for head in head_list(heads)]
        texts = [_title(head, lowest) for head in wanted]
    if not wanted:
        raise RequestError("no head was named; name some, such as 'L5H3', or leave heads out for examples.")
    texts = [
        frame.title(text, task=title_of(task), head=str(head))
        for text, head in zip(texts, wanted, strict=True)
    ]
    foot = Foot.of((), doubt_caption(atlas, [task]), width)
    sheet = Sheet(1, width, left=0.42, right=0.08, gap_x=0.12)
    columns = min(len(wanted), int((sheet.panel_width + sheet.gap_x) / (_NARROWEST + sheet.gap_x)))
    paths = {fit: atlas.trajectory(task, fit) for fit in FITS}
    sheet = replace(sheet, columns=columns)
    grid = lay_out(sheet, texts, foot, _HEIGHT, above_foot=_LEGEND, frame=frame)
    for panel, edge, head in zip(grid.panels, grid.edges, wanted, strict=True):
        draw_trajectory(
            {fit: path.sel(layer=head.layer, head=head.head) for fit, path in paths.items()},
            ax=panel,
            palette=palette,
        )
        plain_axes(panel, **edge)
    lines = ", a line per seed" if paths["free"].sizes["seed"] > 1 else ""
    figure = grid.finish(x=f"Update ({title_of(task)}{lines})", y="Gate", label=label)
    if grid.is_new:
        _add_legend(figure, foot.height, palette)
    else:
        grid.add_legend(_legend(palette))
    return figure


def _one_task(atlas: Atlas, tasks: Sequence[str] | str | None) -> str:
    wanted = tasks_of(atlas, tasks)
    if len(wanted) > 1:
        raise RequestError(
            f"trajectories are drawn for one task at a time; choose one of {', '.join(wanted)}."
        )
    return wanted[0]


def _require_paths(atlas: Atlas) -> None:
    """Refuse an atlas all of whose gates were imported: they have no trajectories."""
    for task in tasks_of(atlas):
        try:
            atlas.trajectory(task, "retain")
        except AtlasError as error:
            refusal = error
        else:
            return
    raise refusal


@house_style()
def draw_trajectory(paths: dict[str, xr.DataArray], *, ax: Axes, palette: PaletteLike | None = None) -> Axes:
    """The gate [seed, update] of one head in each fit. The pressed fits start where the free one ended."""
    free = paths["free"].transpose("seed", "update")
    end = int(free["update"].values[-1])
    style: dict[str, Any] = {"alpha": 0.75, "solid_capstyle": "round"}
    # retain is the wider line and lies below remove, so that both are seen where they take the same way
    for fit, line_width in (("free", 0.7), ("retain", 1.3), ("remove", 0.6)):
        for seed in free["seed"].values:
            path = paths[fit].sel(seed=seed)
            x, y = path["update"].values, path.values
            if fit != "free":
                x = end + x
                if x[0] > end:  # paths of older atlases begin after the start
                    x, y = np.append(end, x), np.append(free.sel(seed=seed).values[-1], y)
            ax.plot(x, y, color=palette_of(palette).fits[fit], linewidth=line_width, gid=fit, **style)
    ax.axvline(end, color="black", linewidth=LINE_WIDTH, linestyle=(0, (4, 2)), gid="pressure")
    length = end + int(paths["retain"]["update"].values[-1])
    ax.set(xlim=(0, length), ylim=(-0.04, 1.04), yticks=(0, 0.5, 1), xticks=(0, end, length))
    inward_numbers(ax)
    plain_axes(ax)
    return ax


def _title(head: Head, lowest: xr.Dataset) -> str:
    for role, score in SCORES.items():
        if float(lowest[score].sel(layer=head.layer, head=head.head)) >= THRESHOLD:
            return f"{head} {role}"
    return str(head)


def _example_title(role: str, head: Head, lowest: xr.Dataset) -> str:
    """Where no head has the role in every seed, the score is shown in place of the role."""
    value = float(lowest[SCORES[role]].sel(layer=head.layer, head=head.head))
    return f"{head} {role}" if value >= THRESHOLD else f"{head} ({SCORES[role]} {value:.2f})"


def _legend(palette: Palette) -> list[Line2D]:
    lines = [Line2D([], [], color=palette.fits[fit], linewidth=1.2, label=_FIT_WORDS[fit]) for fit in FITS]
    lines.append(
        Line2D([], [], color="black", linewidth=LINE_WIDTH, linestyle=(0, (4, 2)), label="pressure starts")
    )
    return lines


def _add_legend(figure: Figure, lift: float, palette: Palette) -> None:
    lines = _legend(palette)
    figure.legend(
        handles=lines, loc="lower center", bbox_to_anchor=(0.5, lift / figure.get_figheight()),
        ncols=len(lines), borderaxespad=0.1, borderpad=0, handlelength=1.6, columnspacing=1.4,
        fontsize=FONT_SIZES["tick"],
    )  # fmt: skip


PROVIDES = [
    FigureKind(
        "trajectories",
        "the gates of some heads during the fits of one task",
        plot_trajectories,
        _require_paths,
    )
]
