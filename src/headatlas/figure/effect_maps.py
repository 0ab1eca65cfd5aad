"""What single heads do to a task by each method, next to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.atlas import Atlas, Doubt, corruptions, doubts, effect_doubts, require_atlas, uneven_seeds
from headatlas.core import RequestError, UnknownNameError, title_of
from headatlas.core.lazy import xr
from headatlas.figure.footer import Foot, doubt_caption
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.holes import hole_legend
from headatlas.figure.kind import FigureKind
from headatlas.figure.method_look import method_label
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import Sheet, draw_map, map_height
from headatlas.figure.shown import figure_function
from headatlas.figure.style import TEXT_WIDTH, house_style

__all__ = ["draw_effects", "plot_effects", "scale_end"]

#: of the values of a map, how many lie within its scale: a few strong heads would leave the others white
_WITHIN = 0.98
_COLUMNS = 4


@figure_function
def plot_effects(
    atlas: Atlas | str | Path,
    tasks: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel per task and method: blue heads help, red ones hurt. Every panel has a scale of its own."""
    atlas = require_atlas(atlas)
    frame, palette = Frame.of(atlas, ax, axes, title), palette_of(palette)
    by_task = _methods_by_task(atlas, tasks)
    wanted = list(by_task)
    columns = min(_COLUMNS, max(map(len, by_task.values())))
    maps: list[tuple[str, str] | None] = []
    for task, methods in by_task.items():  # each begins a row
        maps += [(task, method) for method in methods] + [None] * (-len(methods) % columns)
    caption = [
        "Blue: the task wants the head, red: it hurts the task; gating: facilitation less interference, the "
        f"others: nats of loss{_other_units(atlas, by_task)}. Each panel has a scale of its own, to the ± in "
        "its header, beyond which the strongest 2 % of heads lie.",
        *[
            f"{title_of(task)}, {method_label(atlas, method)}: {text}."
            for task, method, text in corruptions(atlas, wanted)
        ],
        *doubt_caption(atlas, wanted, _doubts),
    ]
    drawn = [one for one in maps if one is not None]
    imported = [one for one in drawn if "imported_from" in atlas.run(*one).task_facts]
    if imported:
        caption.append(f"Imported, not measured here: {'; '.join(map(', '.join, imported))}.")
        uneven = uneven_seeds(atlas)
        caption += [f"{', '.join(one)}: {uneven[one[::-1]]}." for one in imported if one[::-1] in uneven]
    holes = hole_legend(atlas, [atlas.importance(*one) for one in drawn], imported=bool(imported))
    foot = Foot.of(holes, caption, width)
    texts = [
        frame.title(_header(atlas, *one), task=title_of(one[0]), method=method_label(atlas, one[1]))
        if one
        else None
        for one in maps
    ]
    sheet = Sheet(columns, width, left=0.34, right=0.06)
    grid = lay_out(sheet, texts, foot, map_height(atlas.spec.shape), frame=frame)
    for panel, edge, one in zip(grid.panels, grid.edges, drawn, strict=True):
        draw_effects(atlas.importance(*one), ax=panel, palette=palette, **edge)
    return grid.finish(x="Head", y="Layer", label=label)


def _methods_by_task(atlas: Atlas, tasks: Sequence[str] | str | None = None) -> dict[str, list[str]]:
    """The methods of each task that was asked for, or of all."""
    known = list(dict.fromkeys(name for _, name in atlas.runs if atlas.methods(name)))
    wanted = known if tasks is None else [tasks] if isinstance(tasks, str) else list(tasks)
    for task in wanted:
        if task not in known:
            raise UnknownNameError("task in this atlas", task, known)
    by_task = {task: atlas.methods(task) for task in wanted}
    if not any(by_task.values()):
        raise RequestError("this atlas has no task to draw; map_heads makes one.")
    return by_task


def _doubts(atlas: Atlas, task: str) -> list[Doubt]:
    """Of the gates and of all effects of a task, each once."""
    found = doubts(atlas, task) if task in atlas.tasks else []
    for method in atlas.methods(task):
        if method not in atlas.fitted_methods(task):
            found += [doubt for doubt in effect_doubts(atlas, task, method) if doubt not in found]
    return found


def _other_units(atlas: Atlas, by_task: Mapping[str, Sequence[str]]) -> str:
    """ "; entropy: bits": methods of plugins whose values are not in nats."""
    units = {
        method: atlas.run(task, method).unit
        for task, methods in by_task.items()
        for method in methods
        if method not in atlas.fitted_methods(task)
    }
    return "".join(
        f"; {method_label(atlas, method)}: {unit}" for method, unit in units.items() if unit != "nats"
    )


def _header(atlas: Atlas, task: str, method: str) -> str:
    most = scale_end(atlas.importance(task, method).values)
    # the method in a line of its own
    return f"{title_of(task)}\N{NO-BREAK SPACE}±{most:.2g}: {method_label(atlas, method)}"


def scale_end(values: np.ndarray) -> float:
    """The end of a map's scale."""
    return float(np.nanquantile(np.abs(values), _WITHIN)) or 1.0


@house_style()
def draw_effects(
    values: xr.DataArray,
    *,
    ax: Axes,
    palette: PaletteLike | None = None,
    left: bool = True,
    bottom: bool = True,
) -> Axes:
    """A map [layer, head] of values above and below zero; holes are left open."""
    cells, most = values.transpose("layer", "head").values, scale_end(values.values)
    draw_map(ax, cells, left=left, bottom=bottom, cmap=palette_of(palette).diverging, vmin=-most, vmax=most)
    return ax


PROVIDES = [FigureKind("effects", "the effect of each head by every method", plot_effects, _methods_by_task)]
