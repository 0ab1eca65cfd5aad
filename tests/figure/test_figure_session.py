"""Figures in a session: axes, palettes and titles of the caller, `atlas.plot`, and pyplot."""

from __future__ import annotations

import subprocess
import sys
from inspect import signature

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from headatlas.atlas import compare_atlases
from headatlas.core import RequestError, UnknownNameError
from headatlas.figure import (
    FIGURES,
    PALETTES,
    Palette,
    draw_figure,
    palette_of,
    plot_agreement,
    plot_comparison,
    plot_trajectories,
    save_figure,
)

BLUE, RED = to_rgb("C0"), to_rgb("C3")


def given_axes(count):
    return Figure(figsize=(4 * count, 3)).subplots(1, count, squeeze=False)[0]


def panel_count(figure):
    return len([ax for ax in figure.axes if ax.get_gid() not in ("key", "bar")])


@pytest.mark.parametrize("kind", FIGURES.built_in)
def test_every_kind_draws_in_the_axes_of_the_caller(any_atlas, kind):
    atlas = any_atlas(5, 4, seeds=3, holes=(1,))
    options = {"heads": [(0, 1), "L2H3"]} if kind == "trajectories" else {}
    usual = draw_figure(atlas, kind, **options)
    axes = given_axes(panel_count(usual))
    title = "{task}{relation}{head}|{model}"
    assert draw_figure(atlas, kind, axes=axes, title=title, palette="safe", **options) is axes
    for ax, expected in zip(axes, usual.axes, strict=False):
        assert "|tiny" in ax.get_title() and ax.get_xlabel()
        assert len(ax.images) == len(expected.images) and len(ax.lines) == len(expected.lines)
        for image, other in zip(ax.images, expected.images, strict=True):
            assert np.shape(image.get_array()) == np.shape(other.get_array())
    axes[0].figure.draw_without_rendering()
    with pytest.raises(RequestError, match=r"this figure has \d+ panels? and \d+ axes were given; make them"):
        draw_figure(atlas, kind, axes=given_axes(panel_count(usual) + 1), **options)


def test_one_axes_of_a_figure_with_others(from_gates):
    ax, other = given_axes(2)
    atlas = from_gates({"math": np.full((1, 2, 2, 3), 0.5)})
    assert atlas.plot.score("math", ax=ax, label="(b)") is ax
    assert len(ax.images) == 1 and not other.images
    assert ax.get_title() == "Math (Mean)" and ax.get_title(loc="left") == "(b)"
    with pytest.raises(RequestError, match="both ax and axes are given"):
        atlas.plot.score("math", ax=ax, axes=[ax])
    with pytest.raises(RequestError, match=r"is not matplotlib axes; give what plt\.subplots returns"):
        atlas.plot.score("math", ax=3)


def test_a_comparison_in_the_axes_of_the_caller(any_atlas):
    one, other = any_atlas(5, 4), any_atlas(5, 4, seeds=3)
    found = compare_atlases(one, other, "math")
    axes = given_axes(3)
    assert plot_comparison(one, other, found, axes=axes, title="{model}: {task}") is axes
    assert [ax.get_title() for ax in axes] == ["tiny: Math", "tiny: Math", "difference: Difference"]


def test_titles(any_atlas):
    atlas = any_atlas(4, 4, 2)

    def headers(figure):
        return [text.get_text() for ax in figure.axes for text in ax.texts if text.get_gid() == "header"]

    usual = headers(plot_agreement(atlas))
    assert headers(plot_agreement(atlas, title="{task} ({agreement})")) == usual
    assert headers(atlas.plot.agreement("math", title="{model}, {method}")) == ["tiny, gating"] * 2
    with pytest.raises(UnknownNameError, match="no field of a title named 'tasks'; did you mean 'task'"):
        plot_agreement(atlas, title="{tasks}")
    with pytest.raises(RequestError, match="not a format string"):
        plot_agreement(atlas, title="{task")


def test_a_mapping_replaces_colors(from_gates):
    gates = np.array([[[[1.0, 0.0]], [[1.0, 0.0]]]])  # helps, hurts
    figure = plot_agreement(from_gates({"math": gates}), palette={"helps": "C0", "hurts": "C3"})
    shown = figure.axes[0].images[0].get_array()[..., :3]
    np.testing.assert_allclose(shown, [[BLUE, RED]], atol=0.003)
    palette = palette_of({"helps": "C0", "hurts": "C3"})
    assert palette.lines["facilitation"] == palette.helps and palette.lines["interference"] == palette.hurts
    np.testing.assert_allclose(palette.diverging(1.0)[:3], BLUE, atol=0.003)
    np.testing.assert_allclose(palette.diverging(0.0)[:3], RED, atol=0.003)
    assert to_rgb(palette.both) == pytest.approx(np.clip(np.add(BLUE, RED), 0, 1), abs=0.003)
    assert palette_of({"both": "white", "irrelevance": "k"}).lines["irrelevance"] == "#000000"
    assert palette_of({"heat": "viridis"}).heat.name == "viridis"
    assert palette_of({}) == PALETTES["paper"]


def test_a_palette_is_taken_as_it_is(hand_made):
    safe = palette_of("safe")
    assert isinstance(safe, Palette) and palette_of(safe) is safe
    images = [plot_agreement(hand_made, palette=palette).axes[0].images[0] for palette in ("safe", safe)]
    np.testing.assert_array_equal(images[0].get_array(), images[1].get_array())


def test_wrong_palettes_are_refused(hand_made):
    with pytest.raises(UnknownNameError, match="no color of this figure named 'help'; did you mean 'helps'"):
        plot_agreement(hand_made, palette={"help": "C0"})
    with pytest.raises(RequestError, match=r"palette\['helps'\] is 'sky', which is not a color"):
        plot_agreement(hand_made, palette={"helps": "sky"})
    with pytest.raises(RequestError, match="which is not a colormap"):
        plot_agreement(hand_made, palette={"heat": "red"})


def test_colors_of_fits_methods_and_categories(any_atlas):
    atlas = any_atlas(5, 4)
    figure = plot_trajectories(atlas, "math", (1, 2), palette={"retain": "C0"})
    lines = [line for line in figure.axes[0].lines if line.get_gid() == "retain"]
    assert lines and {to_rgb(line.get_color()) for line in lines} == {BLUE}
    figure = atlas.plot.sufficiency(palette={"gating": "C3"})
    assert {to_rgb(line.get_color()) for line in figure.axes[0].lines if line.get_gid() == "gating"} == {RED}
    legend = atlas.plot.categories(palette={"knowledge": "C0"}).legends[0]
    colors = dict(
        zip([text.get_text().split()[0] for text in legend.texts], legend.get_patches(), strict=True)
    )
    assert colors["Knowledge" if "Knowledge" in colors else "knowledge"].get_facecolor()[:3] == pytest.approx(
        BLUE, abs=0.003
    )


@pytest.mark.parametrize("kind", FIGURES.built_in)
def test_every_kind_takes_the_same_arguments(kind):
    assert {"title", "ax", "axes", "palette", "label", "width"} <= signature(
        FIGURES[kind].plot
    ).parameters.keys()
    assert not {"title", "ax", "axes", "width"} & FIGURES[kind].options
    is_fixed = kind in ("effects", "imported", "trajectories", "sufficiency")  # the same colors in "safe"
    assert ("palette" in FIGURES[kind].options) == (not is_fixed)


def test_the_accessor_lists_and_draws_every_kind(any_atlas, monkeypatch):
    atlas = any_atlas(4, 4)
    monkeypatch.setitem(FIGURES._values, "two-words", FIGURES["score"])
    assert set(dir(atlas.plot)) == {name.replace("-", "_") for name in FIGURES}
    header = atlas.plot.two_words("math", "interference").axes[0].texts[0].get_text()
    assert header == atlas.plot("score", "math", score="interference").axes[0].texts[0].get_text()
    assert atlas.plot.agreement.__doc__ == plot_agreement.__doc__
    assert "agreement" in repr(atlas.plot)
    with pytest.raises(
        AttributeError, match="no kind of figure named 'agreements'; did you mean 'agreement'"
    ):
        _ = atlas.plot.agreements
    with pytest.raises(UnknownNameError, match="no option of figures named 'treshold'"):
        atlas.plot.agreement(treshold=1)


IN_PYPLOT = """
import sys
sys.path[:0] = ["tests/figure", "tests"]
import conftest
import headatlas.figure as figure
atlas = conftest.random_atlas(5, 4)
before = figure.save_figure(atlas.plot.agreement(), sys.argv[1] + "/before.png").read_bytes()
assert "matplotlib.pyplot" not in sys.modules
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
shown = atlas.plot.agreement()
assert plt.gcf() is shown and len(plt.get_fignums()) == 1
assert figure.save_figure(shown, sys.argv[1] + "/after.png").read_bytes() == before
plt.close(shown)
try:
    atlas.plot.effects(palette={"x": "y"})
except figure.kind.RequestError:
    pass
try:
    figure.plot_agreement(atlas, label=3)
except Exception:
    pass
assert plt.get_fignums() == []
fig, axes = plt.subplots(1, 2)
atlas.plot.agreement(axes=axes)
assert plt.get_fignums() == [fig.number]
plt.close("all")
plt.get_backend = lambda: "module://matplotlib_inline.backend_inline"
shown = atlas.plot.agreement()
assert shown._repr_html_().startswith("<img") and plt.get_fignums() == []
print("done")
"""


def test_pyplot_shows_figures_only_once_it_is_imported(tmp_path):
    code = [sys.executable, "-c", IN_PYPLOT, str(tmp_path)]
    result = subprocess.run(code, check=False, capture_output=True, text=True)
    assert result.stdout == "done\n", result.stderr


def test_saving_what_was_drawn_elsewhere(any_atlas, tmp_path):
    axes = given_axes(2)
    any_atlas(4, 4).plot.agreement(axes=axes)
    assert save_figure(axes[0].figure, tmp_path / "x.png").stat().st_size > 1000
