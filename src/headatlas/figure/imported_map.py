"""Scores that were made elsewhere, as they were imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.atlas import Atlas, mean_of_seeds, reading_words, require_atlas, seeds_given, uneven_seeds
from headatlas.core import IMPORTED, RequestError, UnknownNameError, title_of
from headatlas.figure.effect_maps import draw_effects, scale_end
from headatlas.figure.footer import Foot
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.holes import hole_legend
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import Sheet, columns_of, map_height
from headatlas.figure.shown import figure_function
from headatlas.figure.style import TEXT_WIDTH

__all__ = ["plot_imported"]

_NARROWEST = 1.3  # inches: a panel


@figure_function
def plot_imported(
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
    """A panel per imported task score: blue above zero, red below, each with a scale of its own."""
    atlas = require_atlas(atlas)
    frame, palette = Frame.of(atlas, ax, axes, title), palette_of(palette)
    wanted = _imported(atlas, tasks)
    maps = [mean_of_seeds(atlas, name) for name in wanted]
    foot = Foot.of(hole_legend(atlas, maps, imported=True), _caption(atlas, wanted), width)
    sheet = Sheet(1, width, left=0.34, right=0.06)
    sheet = replace(sheet, columns=columns_of(max(len(maps), 3), sheet, _NARROWEST))
    texts = [
        frame.title(
            f"{title_of(name)} (±{scale_end(values.values):.2g})", task=title_of(name), method=IMPORTED
        )
        for name, values in zip(wanted, maps, strict=True)
    ]
    grid = lay_out(sheet, texts, foot, map_height(atlas.spec.shape), frame=frame)
    for panel, edge, values in zip(grid.panels, grid.edges, maps, strict=True):
        draw_effects(values, ax=panel, palette=palette, **edge)
    return grid.finish(x="Head", y="Layer", label=label)


def _imported(atlas: Atlas, tasks: Sequence[str] | str | None = None) -> list[str]:
    """The imported scores that were asked for, or all."""
    wanted = atlas.imported if tasks is None else [tasks] if isinstance(tasks, str) else list(tasks)
    if not wanted:
        raise RequestError("this atlas has no imported task score to draw; import_table reads one.")
    for name in wanted:
        if name not in atlas.imported:
            raise UnknownNameError("imported score in this atlas", name, atlas.imported)
    return wanted


def _caption(atlas: Atlas, names: Sequence[str]) -> list[str]:
    facts = [atlas.run(name, IMPORTED).task_facts for name in names]
    files = dict.fromkeys(str(one.get("imported_from", "elsewhere")) for one in facts)
    counts = {name: len(seeds_given(atlas, name)) for name in names}
    several = [f"{name} ({count})" for name, count in counts.items() if count > 1]
    caption = [
        f"Scores as imported from {', '.join(files)}, not measured here. Blue: above zero, red: below. Each "
        "panel has a scale of its own, to the ± in its header, beyond which the strongest 2 % of heads lie."
    ]
    if several:
        caption.append(f"The mean over seeds: {', '.join(several)}.")
    uneven = uneven_seeds(atlas)
    caption += [f"{name}: {uneven[IMPORTED, name]}." for name in names if (IMPORTED, name) in uneven]
    notes = dict.fromkeys(text for one in facts for text in reading_words(one) if "mean" in text)
    return [*caption, *(f"{text[0].upper()}{text[1:]}." for text in notes)]


PROVIDES = [FigureKind("imported", "imported scores of tasks", plot_imported, _imported, draws_gates=False)]
