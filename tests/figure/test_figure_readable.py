"""Every kind of figure for models of every shape: no text small, cut off, or on top of other text."""

from __future__ import annotations

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.text import Text

from headatlas.core import title_of
from headatlas.figure import (
    FIGURES,
    draw_figure,
    plot_agreement,
    plot_categories,
    plot_dynamic,
    plot_relations,
    plot_trajectories,
)
from headatlas.figure.style import FONT_SIZES, house_style

SHAPES = {"30x9": (30, 9), "32x32": (32, 32), "80x64": (80, 64), "4x4": (4, 4), "126x128": (126, 128)}


def one_quick(*shapes: str) -> list:
    """The shapes as parameters; all but 30x9 are slow."""
    return [pytest.param(shape, marks=[] if shape == "30x9" else [pytest.mark.slow]) for shape in shapes]


def outside(axis) -> set[int]:
    """Tick labels that exist but are not drawn, because they lie beyond the ends of the axis."""
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
    return {id(label) for tick in ticks for label in (tick.label1, tick.label2)}


def shown_texts(figure):
    with house_style():
        figure.draw_without_rendering()
    hidden = set().union(*(outside(axis) for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)))
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden:
            yield text, text.get_window_extent()


def faults(figure) -> list[str]:
    found = []
    texts = list(shown_texts(figure))
    inch = figure.dpi
    width, height = figure.get_size_inches() * inch
    for text, box in texts:
        if text.get_fontsize() < 6:
            found.append(f"{text.get_text()!r} is set in {text.get_fontsize()} points")
        slack = 0.01 * inch
        if box.x0 < -slack or box.y0 < -slack or box.x1 > width + slack or box.y1 > height + slack:
            found.append(f"{text.get_text()!r} leaves the sheet")
        if text.get_gid() == "header" and box.width > text.axes.get_window_extent().width:
            found.append(f"{text.get_text()!r} is wider than its panel")
    for (one, box), (other, other_box) in combinations(texts, 2):
        overlap_x = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
        overlap_y = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
        if overlap_x > 0 and overlap_y > 0.02 * inch:  # boxes have air above and below the letters
            found.append(f"{one.get_text()!r} lies on {other.get_text()!r}")
    return found


@pytest.mark.parametrize("shape", one_quick(*SHAPES))
@pytest.mark.parametrize("tasks", [["math", "syntax"], ["math", "aba", "paper/commonsense"]])
def test_the_agreement_figure_can_be_read(any_atlas, shape, tasks):
    assert faults(plot_agreement(any_atlas(*SHAPES[shape], tasks), label="(b)")) == []


@pytest.mark.parametrize("shape", one_quick("30x9", "126x128"))
@pytest.mark.parametrize("tasks", [["math"], ["math", "aba", "paper/commonsense"]])
@pytest.mark.parametrize("kind", sorted(set(FIGURES) - {"agreement"}))
def test_the_other_kinds_can_be_read(any_atlas, kind, shape, tasks):
    atlas = any_atlas(*SHAPES[shape], tasks)
    if FIGURES[kind].missing(atlas) is None:  # test_figure_kinds.py says how many kinds are drawn
        chosen = {"tasks": tasks[:1]} if kind == "trajectories" else {}
        chosen |= {"label": "(b)"} if "label" in FIGURES[kind].options else {}
        assert faults(draw_figure(atlas, kind, **chosen)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["a-task-of-mine/with-a-name-that-nobody-remembers", "é" * 70, "$x$ $" * 12],
    ids=["long", "wide", "dollars"],
)
def test_names_that_are_too_long_are_cut(any_atlas, name):
    figure = plot_agreement(any_atlas(32, 32, [name]))
    assert faults(figure) == []
    start, end = figure.axes[0].texts[0].get_text().split("…")
    assert title_of(name).startswith(start) and end == "\n(Always)"


@pytest.mark.slow
def test_holes_and_narrow_trajectories_can_be_read(any_atlas):
    atlas = any_atlas(24, 16, ["math", "paper/commonsense"], holes=tuple(range(0, 24, 2)))
    assert faults(plot_agreement(atlas, ["math"])) == []
    assert faults(plot_agreement(any_atlas(12, 64, ["math"], holes=(3,)))) == []
    assert faults(plot_agreement(atlas)) == []
    assert faults(plot_trajectories(atlas, "math", width=3.3)) == []
    assert faults(plot_trajectories(atlas, "math", [f"L1H{head}" for head in range(7)], width=3.3)) == []


@pytest.mark.parametrize("width", [3.3, 5.5])
@pytest.mark.parametrize("shape", one_quick(*SHAPES))
def test_categories_can_be_read(any_atlas, shape, width):
    atlas = any_atlas(*SHAPES[shape], relations=("copying", "next-year", "number-digit", "antonym", "e-f"))
    for direction in ("promote", "suppress", None):
        assert faults(plot_categories(atlas, direction=direction, width=width, label="(b)")) == []
    layers = SHAPES[shape][0]
    holed = any_atlas(*SHAPES[shape], holes=tuple(range(0, layers, 2)))
    assert faults(plot_categories(holed, direction=None, width=width)) == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [3.3, 5.5])
@pytest.mark.parametrize("shape", one_quick("30x9", "80x64"))
def test_all_relations_can_be_read(any_atlas, every_relation, shape, width):
    atlas = any_atlas(*SHAPES[shape], relations=every_relation)
    for count in (1, 4, 12, 25):
        assert faults(plot_relations(atlas, every_relation[-count:], width=width, label="(b)")) == []


@pytest.mark.parametrize("width", [3.3, 5.5])
@pytest.mark.parametrize("kind", ["forced", "both"])
def test_dots_can_be_read(any_atlas, kind, width):
    assert faults(plot_dynamic(any_atlas(8, 8), dynamic=kind, width=width, label="(b)")) == []


@pytest.mark.slow
def test_relations_and_categories_of_any_name_can_be_read(from_scores, scores_of):
    names = ["a-relation-of-mine-with-a-name-that-nobody-remembers", "é" * 70, "$x$ $" * 12, "plural"]
    values = {name: np.random.default_rng(0).random((2, 12, 12)) for name in names}
    category = {name: name for name in names[:-1]}
    kind = dict(zip(names, ("multi-token", "none", "static", "static"), strict=True))
    forced = scores_of(values, "forced", category=category)
    atlas = from_scores(values, more=forced, category=category, kind=kind)
    for width in (3.3, 5.5):
        for plot in (plot_categories, plot_relations, plot_dynamic):
            assert faults(plot(atlas, width=width)) == []


def test_the_check_sees_faults(any_atlas):
    figure = plot_agreement(any_atlas(4, 4))
    figure.text(0.8, 0.9, "tiny", fontsize=5)
    figure.text(0.99, 0.9, "outside", fontsize=8)
    (axis,) = (text for text in figure.texts if text.get_text() == "Head")
    figure.text(0.4, axis.get_position()[1], "On top", fontsize=8)
    assert faults(figure) == [
        "'tiny' is set in 5.0 points", "'outside' leaves the sheet", "'Head' lies on 'On top'",
    ]  # fmt: skip


def test_a_readers_own_settings_change_nothing_and_stay(any_atlas):
    own = {"axes.grid": True, "font.size": 20.0, "image.origin": "upper", "figure.autolayout": True}
    with mpl.rc_context(own):
        figure = plot_agreement(any_atlas(4, 4))
        assert {name: mpl.rcParams[name] for name in own} == own
    ax = figure.axes[0]
    assert ax.images[0].origin == "lower" and not ax.xaxis.get_gridlines()[0].get_visible()
    assert max(text.get_fontsize() for text, _ in shown_texts(figure)) <= max(FONT_SIZES.values())
