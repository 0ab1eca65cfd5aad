"""The agreement figure, read from its artists."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.text import Text

from headatlas.core import RequestError, UnknownNameError, title_of
from headatlas.figure import plot_agreement
from headatlas.figure.panels import ticks

BLACK, GREEN, RED, YELLOW = (0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)


def panels(figure):
    return [ax for ax in figure.axes if ax.get_gid() != "key"]


def key(figure):
    (found,) = [ax for ax in figure.axes if ax.get_gid() == "key"]
    return found


def colours(ax):
    return ax.images[0].get_array()[..., :3]


def headers(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts if text.get_gid() == "header"]


def test_colours_are_those_worked_out_by_hand(hand_made):
    always, either = panels(plot_agreement(hand_made))
    np.testing.assert_array_equal(colours(always), [[GREEN, RED, BLACK], [BLACK, BLACK, BLACK]])
    np.testing.assert_array_equal(colours(either), [[GREEN, RED, BLACK], [YELLOW, GREEN, BLACK]])


def test_values_between_are_not_rounded(from_gates):
    gates = np.array([[[[0.75]], [[0.25]]], [[[0.5]], [[0.375]]]])  # facilitation G−, interference 1 − G+
    always, either = panels(plot_agreement(from_gates({"math": gates})))
    np.testing.assert_allclose(colours(always)[0, 0], (0.25, 0.25, 0), atol=1e-6)
    np.testing.assert_allclose(colours(either)[0, 0], (0.5, 0.375, 0), atol=1e-6)


def test_a_threshold_cuts_scores_and_key(from_gates):
    gates = np.array([[[[0.5, 0.51]], [[0.5, 0.49]]]])
    figure = plot_agreement(from_gates({"math": gates}), threshold=0.5)
    np.testing.assert_array_equal(colours(panels(figure)[0]), [[YELLOW, BLACK]])
    assert len(np.unique(key(figure).images[0].get_array().reshape(-1, 3), axis=0)) == 4
    with pytest.raises(RequestError, match="threshold is 0; allowed"):
        plot_agreement(from_gates({"math": gates}), threshold=0)


def test_layer_0_is_at_the_bottom_and_cells_are_sharp(hand_made):
    for ax in panels(plot_agreement(hand_made)):
        image = ax.images[0]
        assert image.origin == "lower" and image.get_interpolation() == "nearest"
        assert image.get_extent() == [-0.5, 2.5, -0.5, 1.5]
        assert ax.get_ylim() == (-0.5, 1.5) and ax.get_xlim() == (-0.5, 2.5)


def test_rows_are_tasks_in_the_order_asked_for(any_atlas):
    atlas = any_atlas(4, 4, ["math", "syntax", "paper/math"])
    assert headers(plot_agreement(atlas, ["syntax", "math"])) == [
        "Syntax (Always)", "Syntax (Any)", "Math (Always)", "Math (Any)",
    ]  # fmt: skip
    assert headers(plot_agreement(atlas, "paper/math")) == ["Paper/math (Always)", "Paper/math (Any)"]
    assert len(panels(plot_agreement(atlas))) == 6
    figure = plot_agreement(atlas, ["syntax", "math"])
    np.testing.assert_allclose(
        colours(panels(figure)[3])[..., 1], atlas.any("math")["facilitation"], atol=1e-6
    )
    np.testing.assert_allclose(
        colours(panels(figure)[0])[..., 0], atlas.always("syntax")["interference"], atol=1e-6
    )


def test_every_header_is_a_bar_as_wide_as_its_panel(any_atlas):
    figure = plot_agreement(any_atlas(30, 9, 2))
    for ax in panels(figure):
        (bar,) = [patch for patch in ax.patches if patch.get_gid() == "header"]
        box, panel = bar.get_window_extent(), ax.get_window_extent()
        assert (box.x0, box.x1) == pytest.approx((panel.x0, panel.x1), abs=0.01)
        assert box.y0 == pytest.approx(panel.y1, abs=0.01)


@pytest.mark.parametrize(
    ("shape", "heads", "layers"),
    [
        ((32, 32), range(0, 32, 5), range(0, 32, 10)),
        ((30, 9), range(0, 9, 5), range(0, 30, 10)),
        ((80, 64), range(0, 64, 10), range(0, 80, 10)),
        ((16, 16), range(0, 16, 5), range(0, 16, 10)),
        ((4, 4), range(0, 4, 2), range(0, 4, 2)),
    ],
)
def test_ticks(any_atlas, shape, heads, layers):
    for ax in panels(plot_agreement(any_atlas(*shape))):
        assert list(ax.get_xticks()) == list(heads)
        assert list(ax.get_yticks()) == list(layers)


def test_the_rule_of_ticks():
    assert ticks(11, 5) == [0, 5, 10]
    assert ticks(10, 5) == [0, 5] and ticks(5, 5) == [0, 2, 4]
    assert ticks(2, 5) == [0, 1] and ticks(1, 10) == [0]
    assert ticks(200, 10, apart=0.2) == [0, 50, 100, 150]


def test_numbers_and_names_stand_at_the_outer_edges_only(any_atlas):
    figure = plot_agreement(any_atlas(30, 9, 2))
    for place, ax in enumerate(panels(figure)):
        ax.figure.draw_without_rendering()
        assert ax.yaxis.get_major_ticks()[0].label1.get_visible() == (place % 2 == 0)
        assert ax.xaxis.get_major_ticks()[0].label1.get_visible() == (place >= 2)
    words = [text.get_text() for text in figure.findobj(Text)]
    assert words.count("Head") == 1 and words.count("Layer") == 1


@pytest.mark.parametrize("palette", ["paper", "safe"])
def test_holes_are_open_to_a_hatched_ground(any_atlas, palette):
    atlas = any_atlas(6, 4, holes=(1, 2))
    figure = plot_agreement(atlas, palette=palette)
    for ax in panels(figure):
        alpha = ax.images[0].get_array()[..., 3]
        np.testing.assert_array_equal(alpha, np.isnan(atlas.always("math")["facilitation"]).values == 0)
        assert ax.patch.get_hatch() and min(ax.patch.get_facecolor()[:3]) > 0.8
    assert "no head" in [text.get_text() for text in figure.texts]
    whole = plot_agreement(any_atlas(6, 4), palette=palette)
    assert "no head" not in [text.get_text() for text in whole.texts]
    assert not panels(whole)[0].patch.get_hatch()


@pytest.mark.parametrize("names", [["math"], ["a-task-with-a-name-that-is-long"]])
def test_the_key_has_both_axes_and_all_corners(any_atlas, names):
    figure = plot_agreement(any_atlas(8, 8, names))
    ax = key(figure)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Interference", "Facilitation")
    assert list(ax.get_xticks()) == list(ax.get_yticks()) == [0, 1]
    image = ax.images[0].get_array()
    assert ax.images[0].origin == "lower"
    corners = [tuple(image[place]) for place in ((0, 0), (-1, 0), (0, -1), (-1, -1))]
    assert corners == [BLACK, GREEN, RED, YELLOW]
    box = ax.get_window_extent()
    assert box.width == pytest.approx(box.height)
    below = len(names[0]) > 10
    assert (box.y1 < panels(figure)[0].get_window_extent().y0) == below


def test_a_label_stands_in_the_top_left_corner(any_atlas):
    figure = plot_agreement(any_atlas(30, 9), label="(b)")
    (label,) = [text for text in figure.texts if text.get_gid() == "label"]
    assert label.get_text() == "(b)"
    box = label.get_window_extent()
    assert box.x1 < panels(figure)[0].get_window_extent().x0
    assert box.y0 > panels(figure)[0].get_window_extent().y1 - 1
    assert not [text for text in plot_agreement(any_atlas(30, 9)).texts if text.get_gid() == "label"]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(30, 9), (32, 32), (80, 64), (4, 4), (12, 64), (1, 1)])
@pytest.mark.parametrize("tasks", [1, 4])
def test_size_is_that_of_a_column_and_panels_keep_a_reasonable_shape(any_atlas, shape, tasks):
    figure = plot_agreement(any_atlas(*shape, [f"t{n}" for n in range(tasks)], seeds=1))
    assert figure.get_figwidth() == 3.3
    captions = [text for text in figure.texts if text.get_gid() == "caption"]  # a warning comes on top
    captioned = sum(text.get_window_extent().height for text in captions) / figure.dpi
    assert figure.get_figheight() - captioned < 7.3
    box = panels(figure)[0].get_window_extent()
    assert 0.49 < box.height / box.width < 1.61
    if shape[0] == shape[1] and tasks == 1:
        assert box.height == pytest.approx(box.width)


def test_wrong_requests_are_answered_in_a_sentence(hand_made, from_gates):
    with pytest.raises(UnknownNameError, match="'maths'; did you mean 'math'"):
        plot_agreement(hand_made, ["maths"])
    with pytest.raises(UnknownNameError, match="no palette named 'save'; did you mean 'safe'"):
        plot_agreement(hand_made, palette="save")
    with pytest.raises(RequestError, match="no task to draw"):
        plot_agreement(hand_made, [])
    with pytest.raises(RequestError, match="1 inches wide"):
        plot_agreement(hand_made, width=1)


def test_titles():
    assert [title_of(name) for name in ("math", "paper/math", "ABA")] == ["Math", "Paper/math", "ABA"]
