"""Do the weights tell what heads do in texts? Static against dynamic relation scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headatlas.atlas import Atlas
from headatlas.core import AtlasError, RequestError, UnknownNameError
from headatlas.core.lazy import xr
from headatlas.figure.footer import Foot, entry
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import Sheet, inward_numbers, plain_axes
from headatlas.figure.relation_maps import BOTH, direction_of, imported_note, relations_of
from headatlas.figure.shown import figure_function
from headatlas.figure.style import COLUMN_WIDTH, FONT_SIZES, LINE_WIDTH, house_style

__all__ = ["DYNAMIC", "draw_dynamic", "pearson", "plot_dynamic"]

#: how heads attended when the dynamic scores were made -> the header
DYNAMIC = {"forced": "Forced onto the source", "attending": "As it attends"}
_WAYS = {"promote": " (promoting)", "suppress": " (suppressing)", None: " (promoting and suppressing)"}
_FORCED = "Forced: the head’s attention is put wholly onto the source."
_DOT, _ALPHA = 4, 0.5  # points squared; how much of its colour a dot has
_WIDEST = 2.0  # inches: a single panel


@figure_function
def plot_dynamic(
    atlas: Atlas,
    relations: Sequence[str] | str | None = None,
    *,
    dynamic: str | None = None,
    direction: str | None = "promote",
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """Static score against dynamic score, a dot per head and relation that was measured from the weights.

    `dynamic`: "forced" (the head's attention put onto the source), "attending" (left as it is), or None or
    "both": a panel each, as far as the atlas has them.
    """
    frame = Frame.of(atlas, ax, axes, title)
    pairs = _pairs(atlas, relations, dynamic, direction)
    known = list(dict.fromkeys(str(name) for name in atlas.relation_scores()["category"].values))
    palette = palette_of(palette, known)
    shown = {str(name) for one, _ in pairs.values() for name in one["category"].values}
    foot = Foot.of(
        _legend([name for name in known if name in shown], known, palette),
        [
            f"A dot per head and relation{_WAYS[direction_of(direction)]}; r: Pearson. "
            f"{_FORCED if 'forced' in pairs else ''}".strip(),
            *_left_out(atlas, relations, pairs),
            *imported_note(_static(atlas, relations)),
        ],
        width,
    )
    sheet = Sheet(len(pairs), width, left=0.42, right=0.06)
    indent = max(0, sheet.panel_width - _WIDEST) / 2 if len(pairs) == 1 else 0
    sheet = replace(sheet, left=sheet.left + indent, right=sheet.right + indent)
    texts = [frame.title(DYNAMIC[name], score=DYNAMIC[name]) for name in pairs]
    grid = lay_out(sheet, texts, foot, sheet.panel_width, frame=frame)
    most = max(float(np.nanmax(one)) for both in pairs.values() for one in both)
    top = min(1.0, max(0.2, np.ceil(most * 5) / 5))
    for panel, edge, both in zip(grid.panels, grid.edges, pairs.values(), strict=True):
        draw_dynamic(*both, ax=panel, known=known, palette=palette)
        low, high = -0.03 * top, 1.03 * top
        numbers = (0, top / 2, top)
        panel.set(xlim=(low, high), ylim=(low, high), xticks=numbers, yticks=numbers)
        panel.set_xticklabels([f"{number:g}" for number in numbers])
        panel.set_yticklabels([f"{number:g}" for number in numbers])
        plain_axes(panel, **edge)
        inward_numbers(panel)
    return grid.finish(x="Static score (weights)", y="Dynamic score (texts)", label=label, indent=indent)


def _static(atlas: Atlas, relations: Sequence[str] | str | None) -> xr.DataArray:
    """Scores that were measured from the weights, or imported."""
    scores = relations_of(atlas, relations)
    return scores.isel(relation=np.isin(scores["kind"].values, ("static", "imported")))


def _pairs(
    atlas: Atlas,
    relations: Sequence[str] | str | None = None,
    dynamic: str | None = None,
    direction: str | None = None,
) -> dict[str, tuple[xr.DataArray, xr.DataArray]]:
    """Kind of dynamic score -> static and dynamic scores of the relations that have both."""
    way = direction_of(direction)
    static = _static(atlas, relations)
    if way is not None:
        static = static.sel(direction=[way])
    pairs = {}
    for name, in_texts in _dynamic_scores(atlas, dynamic).items():
        is_scored = in_texts.notnull().any(["direction", "layer", "head"]).values
        scored = in_texts["relation"].values[is_scored]
        shared = [relation for relation in static["relation"].values if relation in scored]
        if shared:
            ways = static["direction"].values
            pairs[name] = static.sel(relation=shared), in_texts.sel(relation=shared, direction=ways)
    if not pairs:
        raise RequestError(
            "none of these relations was measured both from the weights and in texts; leave relations out "
            "for all, or have more measured with dynamic=True."
        )
    return pairs


def _left_out(
    atlas: Atlas, asked: Sequence[str] | str | None, pairs: dict[str, tuple[xr.DataArray, xr.DataArray]]
) -> list[str]:
    """Relations that have no static score, or none in texts."""
    shown = {str(name) for static, _ in pairs.values() for name in static["relation"].values}
    missing = [str(name) for name in relations_of(atlas, asked)["relation"].values if str(name) not in shown]
    return [f"Not both from weights and in texts: {', '.join(missing)}."] if missing else []


def _dynamic_scores(atlas: Atlas, kind: str | None) -> dict[str, xr.DataArray]:
    if kind is not None and kind != BOTH:
        if kind not in DYNAMIC:
            raise UnknownNameError("kind of dynamic score", kind, [*DYNAMIC, BOTH])
        return {kind: atlas.relation_scores(kind)}
    found = {}
    for name in DYNAMIC:
        try:
            found[name] = atlas.relation_scores(name)
        except AtlasError as error:
            missing = error
    if not found:
        raise missing
    return found


@house_style()
def draw_dynamic(
    static: xr.DataArray,
    dynamic: xr.DataArray,
    *,
    ax: Axes,
    known: Sequence[str],
    palette: PaletteLike = "paper",
) -> Axes:
    """Scores [relation, …] with a `category` along it, one against the other, and their correlation.

    `known`: all categories of the atlas; they decide the colors of custom categories.
    """
    of_words = palette_of(palette).of_words(known)
    dynamic = dynamic.transpose(*static.dims)
    ax.axline((0, 0), slope=1, color="black", linewidth=LINE_WIDTH, linestyle=(0, (4, 2)), gid="equal")
    colour = np.array([to_rgb(of_words[str(name)]) for name in static["category"].values])
    places = np.nonzero(~(np.isnan(static.values) | np.isnan(dynamic.values)))
    x, y, dots = static.values[places], dynamic.values[places], colour[places[0]]
    mixed = np.random.default_rng(0).permutation(len(x))  # or the last category would cover the others
    ax.scatter(
        x[mixed], y[mixed], s=_DOT, alpha=_ALPHA, c=dots[mixed], linewidths=0, rasterized=True, zorder=2,
        gid="dots",
    )  # fmt: skip
    r = pearson(x, y)
    r_text = "r undefined" if np.isnan(r) else f"r = {r:.2f}".replace("-", "−")
    ax.text(
        0.04, 0.96, f"{r_text}\nn = {len(x):,}", transform=ax.transAxes, ha="left", va="top",
        fontsize=FONT_SIZES["tick"], linespacing=1.1, gid="correlation",
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5},
    )  # fmt: skip
    ax.set_aspect("equal")
    plain_axes(ax)
    return ax


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """NaN where either has no spread."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def _legend(names: Sequence[str], known: Sequence[str], palette: PaletteLike) -> list[Artist]:
    of_words = palette_of(palette).of_words(known)
    entries: list[Artist] = [
        Line2D([], [], color=of_words[name], linestyle="", marker="o", markersize=3, label=entry(name))
        for name in names
    ]
    entries.append(
        Line2D([], [], color="black", linewidth=LINE_WIDTH, linestyle=(0, (4, 2)), label="equal scores")
    )
    return entries


PROVIDES = [
    FigureKind(
        "dynamic", "static relation scores against scores in texts", plot_dynamic, _pairs, draws_gates=False
    )
]
