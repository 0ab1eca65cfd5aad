"""Where the heads of each category of relations are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from headatlas.atlas import IMPLEMENTS, Atlas, categories, category_words
from headatlas.core import IMPORTED, NOT_IMPORTED, title_of
from headatlas.core.lazy import xr
from headatlas.figure.footer import Foot, entry
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.holes import heads_of, hole_legend
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import (
    Sheet,
    columns_of,
    draw_map,
    map_height,
)
from headatlas.figure.relation_maps import direction_of, measured, notes_of, require_direction
from headatlas.figure.shown import figure_function
from headatlas.figure.style import TEXT_WIDTH, house_style

__all__ = ["draw_categories", "plot_categories"]

#: direction -> what stands in the headers, what the caption says that heads do
_WORDS = {
    "promote": ("", "promotes"),
    "suppress": (" (suppressing)", "suppresses"),
    None: (" (either way)", "promotes or suppresses"),
}
#: inches: a layer, and a panel of few layers and of many
_CELL, _NARROWEST, _WIDEST = 0.02, 0.8, 1.3


@figure_function
def plot_categories(
    atlas: Atlas,
    *,
    direction: str | None = "promote",
    threshold: float = IMPLEMENTS,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    width: float = TEXT_WIDTH,
) -> Figure:
    """All categories in one panel, then each in its own. x is the layer, y the head.

    A head has the categories of the relations that it scores `threshold` or more in; the legend counts the
    cells of the first panel, the caption the heads that have a category among others. `direction` None or
    "both": promoting and suppressing together.
    """
    way = direction_of(direction)
    frame = Frame.of(atlas, ax, axes, title)
    scores = atlas.relation_scores()
    known = _of_one_origin(measured(scores))
    require_direction(known, way)
    found = categories(known, threshold)
    names = [str(name) for name in found["category"].values]
    words = category_words(found, way)
    palette = palette_of(palette, names)
    there = heads_of(atlas)
    maps = [words, *(category_words(found.sel(category=[name]), way) for name in names)]
    in_header, verb = _WORDS[way]

    shown = known if way is None else known.sel(direction=[way])
    by_name = [shown.isel(relation=shown["category"].values == name) for name in names]
    best = [part.max(["relation", "direction"]) for part in (shown, *by_name)]  # NaN: no score at all
    scored = [there & one.notnull().transpose("layer", "head").values for one in best]
    all_imported = bool((shown["kind"].values == IMPORTED).all())
    holes = hole_legend(atlas, best, imported=bool((shown["kind"].values == IMPORTED).any()))
    counts = Counter(words.values[scored[0]].tolist())
    total, missing = int(scored[0].sum()), int(there.sum() - scored[0].sum())
    unscored = f"; {missing:,} more are {NOT_IMPORTED}" if missing else ""
    having = [int((part.values[there] != "").sum()) for part in maps[1:]]
    by_category = ", ".join(f"{count:,} {name}" for count, name in zip(having, names, strict=True) if count)
    at_least = f"it {verb} at least {100 * threshold:g} % of the pairs of a relation in it"
    if all_imported:
        at_least = f"it {verb} a relation in it with an imported score of at least {threshold:g}"
    by_category = f" ({by_category}; the legend counts those that have it alone)" if by_category else ""
    having_any = f"{total - counts['']:,} of {total:,} heads have one"
    caption = [
        f"A head has a category if {at_least}; {having_any}{by_category}{unscored}.",
        *notes_of(scores),
        *_left_out(scores, known),
    ]
    sheet = Sheet(1, width, left=0.34, right=0.04)
    layers, heads = atlas.spec.shape
    columns = columns_of(len(maps), sheet, float(np.clip(layers * _CELL, _NARROWEST, _WIDEST)))
    rows = -(-len(maps) // columns)
    sheet = replace(sheet, rows=rows, columns=columns)
    texts = [
        frame.title(f"{name}{in_header}", relation=name) for name in ("All Categories", *map(title_of, names))
    ]
    height = map_height((heads, layers))(sheet)
    free = (sheet.panel_width, height) if len(maps) < rows * columns else None
    foot = Foot.of([*_legend(counts, names, palette), *holes], caption, width, free)
    grid = lay_out(sheet, texts, foot, height, frame=frame)
    for panel, edge, of_heads, is_scored in zip(grid.panels, grid.edges, maps, scored, strict=True):
        draw_categories(of_heads, ax=panel, there=is_scored, known=names, palette=palette, **edge)
    return grid.finish(x="Layer", y="Head", label=label)


def _of_one_origin(scores: xr.DataArray) -> xr.DataArray:
    """Without imported relations, unless all are: nothing shows that their scores mean the same."""
    is_imported = scores["kind"].values == IMPORTED
    return scores if is_imported.all() else scores.isel(relation=~is_imported)


def _left_out(scores: xr.DataArray, shown: xr.DataArray) -> list[str]:
    """A line of the caption that names the imported relations that are not shown."""
    is_imported = scores["kind"].values == IMPORTED
    names = set(map(str, scores["relation"].values[is_imported])) - set(map(str, shown["relation"].values))
    return [f"Without imported relations: {', '.join(sorted(names))}."] if names else []


@house_style()
def draw_categories(
    words: xr.DataArray,
    *,
    ax: Axes,
    there: np.ndarray,
    known: Sequence[str],
    palette: PaletteLike = "paper",
    left: bool = True,
    bottom: bool = True,
) -> Axes:
    """A map [layer, head] of `category_words` as an image, the layer along x; cells where no scored head is
    `there` are left open. `known`: all categories of the atlas; they decide the colors of
    custom categories."""
    image = np.zeros((*there.T.shape, 4))
    of_words = palette_of(palette).of_words(known)
    across = words.transpose("head", "layer").values
    for word in np.unique(across):
        image[across == word] = to_rgba(of_words[str(word)])
    image[~there.T] = 0
    draw_map(ax, image, left=left, bottom=bottom, turned=True)
    return ax


def _legend(counts: Counter[str], names: Sequence[str], palette: PaletteLike) -> list[Artist]:
    """Every category with the number of its heads; of "2 categories" and so on, those that occur."""
    return [
        Patch(facecolor=colour, linewidth=0, label=f"{entry(word or 'unclassified')} ({counts[word]:,})")
        for word, colour in palette_of(palette).of_words(names).items()
        if counts[word] or not word.endswith(" categories")
    ]


PROVIDES = [
    FigureKind(
        "categories",
        "the heads of each category of relations",
        plot_categories,
        lambda atlas: measured(atlas.relation_scores()),
        draws_gates=False,
    )
]
