"""Categories, relations, static against dynamic: numbers in the artists are numbers of the atlas."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.text import Text

from headatlas.atlas import Atlas, category_words
from headatlas.core import AtlasError, RequestError, UnknownNameError
from headatlas.figure import (
    draw_figure,
    plot_categories,
    plot_dynamic,
    plot_relations,
    relation_title,
    save_figure,
)
from headatlas.figure.dynamic_scatter import pearson
from headatlas.figure.footer import Foot
from headatlas.figure.headers import text_inches
from headatlas.figure.palette import PALETTES
from headatlas.figure.panels import Sheet, columns_of

GRAY, BLUE, ORANGE, GREEN, RED = (
    to_rgb(name) for name in ("#b4b4b4", "tab:blue", "tab:orange", "tab:green", "tab:red")
)
PURPLE, BROWN, PINK = (to_rgb(name) for name in ("tab:purple", "tab:brown", "tab:pink"))
HOLE = None


def header(ax) -> str:
    return "".join(text.get_text() for text in ax.texts if text.get_gid() == "header").replace("\u00a0", " ")


def headers(figure) -> list[str]:
    return [header(ax) for ax in figure.axes if header(ax)]


def caption(figure) -> str:
    found = [text.get_text() for text in figure.texts if text.get_gid() == "caption"]
    return " ".join(found).replace("\n", " ").replace("\u00a0", " ")


def legend(figure) -> dict[str, str]:
    (found,) = figure.legends
    return dict(zip([text.get_text() for text in found.get_texts()], found.legend_handles, strict=True))


def cells(ax) -> list[list]:
    """[head][layer] from the bottom: colour, or HOLE."""
    image = ax.images[0].get_array()
    return [[tuple(cell[:3]) if cell[3] else HOLE for cell in row] for row in image]


def close(one, other) -> bool:
    return one is other or (None not in (one, other) and np.allclose(one, other))


def show_the_same(found, expected) -> bool:
    return all(
        close(a, b)
        for row, wanted in zip(found, expected, strict=True)
        for a, b in zip(row, wanted, strict=True)
    )


@pytest.fixture
def by_hand(from_scores):
    """Two layers of three heads. What they promote:

    L0H0 copying, L0H1 capitals, L0H2 nothing; L1H0 plurals, L1H1 copying and French, L1H2 all four. Only L0H2
    suppresses, and only plurals.
    """
    promoted = {
        "copying": [[0.2, 0, 0], [0, 0.15, 0.9]],
        "country-capital": [[0, 0.3, 0.14], [0, 0, 0.9]],
        "plural": [[0, 0.1, 0], [0.5, 0, 0.9]],
        "english-french": [[0, 0, 0], [0, 0.8, 0.9]],
    }
    nothing = np.zeros((2, 3))
    values = {name: np.array([scores, nothing]) for name, scores in promoted.items()}
    values["plural"][1, 0, 2] = 0.6
    return from_scores(values)


def test_categories_are_those_worked_out_by_hand(by_hand):
    figure = plot_categories(by_hand)
    assert headers(figure) == ["All Categories", "Algorithmic", "Knowledge", "Linguistic", "Translation"]
    expected = [
        [[BLUE, GREEN], [ORANGE, PURPLE], [GRAY, PINK]],
        [[BLUE, GRAY], [GRAY, BLUE], [GRAY, BLUE]],
        [[GRAY, GRAY], [ORANGE, GRAY], [GRAY, ORANGE]],
        [[GRAY, GREEN], [GRAY, GRAY], [GRAY, GREEN]],
        [[GRAY, GRAY], [GRAY, RED], [GRAY, RED]],
    ]
    for ax, wanted in zip(figure.axes, expected, strict=True):
        assert show_the_same(cells(ax), wanted), header(ax)


def test_the_layer_goes_along_x_and_head_0_is_at_the_bottom(any_atlas):
    figure = plot_categories(any_atlas(30, 9))
    for ax in figure.axes:
        image = ax.images[0]
        assert image.origin == "lower" and image.get_interpolation() == "nearest"
        assert image.get_extent() == [-0.5, 29.5, -0.5, 8.5]
        assert (ax.get_xlim(), ax.get_ylim()) == ((-0.5, 29.5), (-0.5, 8.5))
        assert (list(ax.get_xticks()), list(ax.get_yticks())) == ([0, 10, 20], [0, 5])
    words = [text.get_text() for text in figure.findobj(Text)]
    assert words.count("Layer") == words.count("Head") == 1


def test_a_threshold_is_reached_or_not(by_hand, from_scores):
    lower = plot_categories(by_hand, threshold=0.1)
    assert show_the_same(
        cells(lower.axes[0]), [[BLUE, GREEN], [PURPLE, PURPLE], [ORANGE, PINK]]
    )  # L0H1 also plurals, L0H2 capitals
    assert "at least 10 %" in caption(lower)
    with pytest.raises(RequestError, match="threshold is 0; allowed are numbers above 0"):
        plot_categories(by_hand, threshold=0)
    assert caption(draw_figure(by_hand, "categories", threshold=0.1)) == caption(lower)
    assert "at least 15 %" in caption(draw_figure(by_hand, "categories"))


@pytest.mark.slow
def test_the_direction_is_named(by_hand):
    suppressed = plot_categories(by_hand, direction="suppress")
    assert show_the_same(cells(suppressed.axes[0]), [[GRAY, GRAY], [GRAY, GRAY], [GREEN, GRAY]])
    assert headers(suppressed)[1] == "Algorithmic\n(suppressing)"
    assert "if it suppresses at least 15 % of" in caption(suppressed)
    for both in (None, "both"):
        either = plot_categories(by_hand, direction=both)
        assert show_the_same(cells(either.axes[0]), [[BLUE, GREEN], [ORANGE, PURPLE], [GREEN, PINK]])
        assert headers(either)[0] == "All Categories\n(either way)"
        assert "promotes or suppresses at least" in caption(either)
    assert "if it promotes at least" in caption(plot_categories(by_hand))


def test_the_legend_counts_the_heads_of_the_first_panel(by_hand, any_atlas):
    figure = plot_categories(by_hand)
    found = {text: to_rgb(handle.get_facecolor()) for text, handle in legend(figure).items()}
    assert found == {
        "unclassified (1)": GRAY, "algorithmic (1)": BLUE, "knowledge (1)": ORANGE, "linguistic (1)": GREEN,
        "translation (0)": RED, "2 categories (1)": PURPLE, "4 categories (1)": PINK,
    }  # fmt: skip
    assert "5 of 6 heads have one" in caption(figure)
    atlas = any_atlas(32, 32, holes=(3, 4))
    words = category_words(atlas.categories()).values
    counted = legend(plot_categories(atlas))
    assert f"unclassified ({(words == '').sum() - 2 * 32})" in counted
    assert f"2 categories ({(words == '2 categories').sum()})" in counted
    assert "no head" in counted and "no head" not in legend(figure)


@pytest.mark.parametrize("palette", ["paper", "safe"])
def test_holes_are_open_to_a_hatched_ground(from_scores, palette):
    values = np.zeros((2, 3, 2))
    values[:, 1], values[:, 2, 1] = np.nan, np.nan  # a layer without heads, and one with a single head
    figure = plot_categories(from_scores({"copying": values}, heads=(2, 0, 1)), palette=palette)
    gray = to_rgb(PALETTES[palette].unclassified)
    for ax in figure.axes:
        assert show_the_same(cells(ax), [[gray, HOLE, gray], [gray, HOLE, HOLE]])
        assert ax.patch.get_hatch()
    assert legend(figure)["no head"].get_hatch()


def test_a_category_of_ones_own_has_a_panel_and_a_colour(from_scores):
    on = np.ones((2, 1, 1))
    own = {name: name for name in ("dance", "music", "poetry")}
    figure = plot_categories(from_scores({"plural": on, **dict.fromkeys(own, on)}, category=own))
    assert headers(figure) == ["All Categories", "Linguistic", "Dance", "Music", "Poetry"]
    colours = [cells(ax)[0][0] for ax in figure.axes]
    assert close(colours[0], PINK) and close(colours[1], GREEN)  # four categories; the only linguistic one
    assert close(colours[2], to_rgb("tab:olive")) and close(colours[3], to_rgb("tab:cyan"))
    names = PALETTES["paper"].of_words(["algorithmic", "knowledge", "linguistic", "translation", "music"])
    assert names["4 categories"] == "#e377c2" and names["5 categories"] == "#000000"
    assert len(set(names.values())) == len(names)


def test_what_was_not_measured_like_the_others_is_named(from_scores):
    on, missing = np.ones((2, 1, 1)), np.full((2, 1, 1), np.nan)
    atlas = from_scores(
        {"plural": on, "number-digit": on, "next-year": missing, "english-french": missing},
        kind={"number-digit": "multi-token", "next-year": "none", "english-french": "none"},
        pairs={"number-digit": 84},
        single={"number-digit": 3, "next-year": 6, "english-french": 29},
    )
    figure = plot_categories(atlas)
    # nothing is known about translation, so no panel says that there is none
    assert headers(figure) == ["All Categories", "Algorithmic", "Linguistic"]
    wanted = "Not measurable from weights with this tokenizer, scored in texts instead: number-digit (n = 3)."
    assert wanted in caption(figure)
    left_out = "Not measurable with this tokenizer (n pairs of single tokens): next-year (n = 6), "
    assert left_out + "english-french (n = 29)." in caption(figure)
    maps = plot_relations(atlas)
    assert headers(maps) == ["Number → digit (n = 84†)", "Plural (n = 100)"]
    assert caption(maps).startswith("† " + wanted) and left_out in caption(maps)
    assert caption(plot_relations(atlas, "plural")) == ""
    with pytest.raises(RequestError, match=r"too few pairs .* in next-year"):
        plot_relations(atlas, ["next-year"])


@pytest.mark.slow
def test_panels_go_side_by_side_as_far_as_they_can_be_read(any_atlas):
    def columns(figure):
        return len({round(ax.get_position().x0, 3) for ax in figure.axes})

    assert columns(plot_categories(any_atlas(32, 32))) == 5
    assert columns(plot_categories(any_atlas(32, 32), width=3.3)) == 3
    assert columns(plot_categories(any_atlas(80, 64))) == 3
    assert columns(plot_categories(any_atlas(80, 64), width=3.3)) == 2
    sheet = Sheet(1, 5.5, left=0.25, right=0.25, bottom=0)  # five inches
    assert [columns_of(count, sheet, 0.9) for count in (1, 5, 6, 7, 11)] == [1, 5, 3, 4, 4]
    assert columns_of(3, sheet, 9) == 1


def test_the_legend_takes_a_free_place_that_is_large_enough(any_atlas):
    figure = plot_categories(any_atlas(80, 64))
    figure.draw_without_rendering()
    box, last = figure.legends[0].get_window_extent(), figure.axes[-1].get_window_extent()
    assert box.x0 > last.x1 and last.y0 <= box.y0 and box.y1 <= last.y1
    below = plot_categories(any_atlas(30, 9), width=3.3)
    below.draw_without_rendering()
    assert below.legends[0].get_window_extent().y1 < below.axes[-1].get_window_extent().y0


def test_a_map_per_relation_in_the_order_asked_for(any_atlas):
    atlas = any_atlas(5, 3)
    figure = plot_relations(atlas, ["plural", "copying"], direction="suppress", palette="safe")
    *panels, bar = figure.axes
    assert [header(ax) for ax in panels] == ["Plural (n = 100)", "Copying (n = 100)"]
    scores = atlas.relation_scores().sel(direction="suppress")
    for ax, name in zip(panels, ("plural", "copying"), strict=True):
        image = ax.images[0]
        np.testing.assert_allclose(image.get_array(), scores.sel(relation=name))
        assert image.get_clim() == (0, 1) and image.origin == "lower" and image.cmap.name == "cividis"
    assert bar.get_gid() == "bar" and bar.get_ylabel() == "Suppression score"
    higher = plot_relations(atlas, "plural", direction=None)
    both = atlas.relation_scores().sel(relation="plural").max("direction")
    np.testing.assert_allclose(higher.axes[0].images[0].get_array(), both)
    assert higher.axes[-1].get_ylabel() == "Either score"
    assert plot_relations(atlas).axes[-1].get_ylabel() == "Relation score"


@pytest.mark.slow
def test_all_relations_fit_on_a_page(any_atlas, every_relation):
    figure = plot_relations(any_atlas(30, 9, relations=every_relation))
    *panels, _ = figure.axes
    assert len(panels) == 24 and "next-year (n = 6)" in caption(figure)
    assert len({round(ax.get_position().x0, 3) for ax in panels}) == 5
    assert figure.get_figwidth() == 5.5 and figure.get_figheight() < 8
    assert not any("…" in header(ax) for ax in panels)
    assert "Country →\nlanguage\n(n = 100)" in headers(figure) and "Next month\nor day\n(n = 100)" in headers(
        figure
    )
    assert plot_relations(any_atlas(30, 9, relations=every_relation), width=3.3).get_figheight() < 9


def test_names_in_headers():
    assert [relation_title(name) for name in ("country-capital", "name-copying", "english-french")] == [
        "Country → capital", "Name copying", "English → French",
    ]  # fmt: skip
    assert [relation_title(name) for name in ("ing-form", "plural", "next-month-or-day", "my_own")] == [
        "-ing form", "Plural", "Next month or day", "My_own",
    ]  # fmt: skip


@pytest.fixture
def in_texts(from_scores, scores_of):
    """Three heads and two relations from the weights, one more in texts only; forced is half of static."""
    static = {
        "copying": np.array([[[0.0, 0.4, 0.8]], [[0, 0, 0]]]),
        "plural": np.array([[[0.2, np.nan, 0.6]], [[0, 0, 0.5]]]),
        "next-year": np.array([[[0.1, 0.1, 0.9]], [[0, 0, 0]]]),
    }
    forced = scores_of({name: values / 2 for name, values in static.items()}, "forced")
    attending = scores_of({"plural": np.array([[[0.5, 0.5, 0.1]], [[0, 0, 0.5]]])}, "attending")
    return from_scores(static, more=[*forced, *attending], kind={"next-year": "multi-token"})


def dots(ax):
    (found,) = ax.collections
    assert found.get_rasterized()
    rows = np.hstack([found.get_offsets(), found.get_facecolors()[:, :3]])
    return rows[np.lexsort(rows.T[::-1])]


def told(ax) -> list[str]:
    (found,) = [text.get_text() for text in ax.texts if text.get_gid() == "correlation"]
    return found.split("\n")


def test_a_dot_per_head_and_relation(in_texts):
    figure = plot_dynamic(in_texts)
    forced, attending = figure.axes
    assert headers(figure) == ["Forced onto the source", "As it attends"]
    expected = [
        [0, 0, *BLUE], [0.2, 0.1, *GREEN], [0.4, 0.2, *BLUE], [0.6, 0.3, *GREEN], [0.8, 0.4, *BLUE],
    ]  # fmt: skip
    np.testing.assert_allclose(dots(forced), expected, atol=1e-6)
    assert told(forced) == ["r = 1.00", "n = 5"]
    np.testing.assert_allclose(dots(attending), [[0.2, 0.5, *GREEN], [0.6, 0.1, *GREEN]], atol=1e-6)
    assert told(attending) == ["r = −1.00", "n = 2"]
    for ax in figure.axes:
        (line,) = ax.lines
        assert line.get_gid() == "equal" and line.get_slope() == 1 and line.get_xy1() == (0, 0)
        assert ax.get_xlim() == ax.get_ylim() == pytest.approx((-0.024, 0.824))
        box = ax.get_window_extent()
        assert box.width == pytest.approx(box.height)
    assert list(legend(figure)) == ["algorithmic", "linguistic", "equal scores"]


def test_one_kind_and_the_other_direction(in_texts):
    one = plot_dynamic(in_texts, dynamic="attending", direction="suppress")
    assert headers(one) == ["As it attends"] and list(legend(one)) == ["linguistic", "equal scores"]
    assert told(one.axes[0]) == ["r = 1.00", "n = 3"]
    assert "attention is put wholly" not in caption(one)
    only = plot_dynamic(in_texts, "copying")  # in texts only with forced attention
    assert headers(only) == ["Forced onto the source"] and "attention is put wholly" in caption(only)
    box = only.axes[0].get_window_extent()
    (name,) = [text for text in only.texts if text.get_text().startswith("Dynamic")]
    assert 0 < box.x0 - name.get_window_extent().x1 < 0.4 * only.dpi
    assert told(plot_dynamic(in_texts, "copying", direction="suppress").axes[0]) == ["r undefined", "n = 3"]


def test_correlation():
    x, y = np.random.default_rng(0).random((2, 50))
    expected = ((x - x.mean()) * (y - y.mean())).mean() / (x.std() * y.std())
    assert pearson(x, y) == pytest.approx(expected)
    assert np.isnan(pearson(x, np.ones(50))) and np.isnan(pearson(x[:1], y[:1]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pdf", "svg"])
def test_dots_are_an_image_in_vector_files_and_the_same_every_time(any_atlas, tmp_path, kind):
    atlas = any_atlas(40, 40)
    one, two = (save_figure(plot_dynamic(atlas), tmp_path / f"{name}.{kind}") for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    if kind == "pdf":
        assert one.read_bytes().count(b"/Subtype /Image") >= 2  # a panel each
    else:
        text = one.read_text()
        assert text.count("<image") == 2 and text.count("<use") < 100 and ">As it attends</text>" in text


def test_wrong_requests_are_answered_in_a_sentence(by_hand, in_texts, from_scores):
    with pytest.raises(
        UnknownNameError, match="no relation in this atlas named 'plurals'; did you mean 'plural'"
    ):
        plot_relations(by_hand, ["plurals"])
    with pytest.raises(RequestError, match="no relation to draw"):
        plot_relations(by_hand, [])
    for plot in (plot_relations, plot_categories, plot_dynamic):
        with pytest.raises(UnknownNameError, match="no direction named 'promotes'; did you mean 'promote'"):
            plot(in_texts, direction="promotes")
        with pytest.raises(AtlasError, match="this atlas has no relation scores; relate_heads makes"):
            plot(Atlas(by_hand.spec, [], []))
        with pytest.raises(UnknownNameError, match="did you mean 'safe'"):
            plot(in_texts, palette="save")
    with pytest.raises(AtlasError, match=r"no relation scores from texts .attending.; .* with dynamic=True"):
        plot_dynamic(by_hand)
    with pytest.raises(
        UnknownNameError, match="no kind of dynamic score named 'force'; did you mean 'forced'"
    ):
        plot_dynamic(in_texts, dynamic="force")
    with pytest.raises(RequestError, match="both from the weights and in texts"):
        plot_dynamic(in_texts, "next-year")
    nothing = from_scores({"next-year": np.full((2, 1, 1), np.nan)}, kind={"next-year": "none"})
    for plot in (plot_relations, plot_categories):
        with pytest.raises(RequestError, match=r"too few pairs .* in next-year \(n = \d+\)\.$"):
            plot(nothing)


def test_options_reach_the_figures(in_texts):
    options = {"relations": ("plural",), "direction": "suppress", "label": "(d)"}
    assert headers(draw_figure(in_texts, "relations", **options)) == ["Plural (n = 100)"]
    dynamic = draw_figure(in_texts, "dynamic", dynamic="forced", **options)
    assert headers(dynamic) == ["Forced onto the source"] and told(dynamic.axes[0])[1] == "n = 3"
    assert headers(draw_figure(in_texts, "categories", direction="suppress"))[0].endswith("(suppressing)")


def test_a_foot_is_read_row_by_row_and_wrapped():
    names = ["one", "two", "three", "four", "five"]
    foot = Foot.of([Patch(label=name) for name in names], [], 1.5)
    assert foot.columns == 3
    assert [handle.get_label() for handle in foot._by_columns()] == ["one", "four", "two", "five", "three"]
    text = "A sentence of many words that is too long for one line, with\u00a0no\u00a0break here."
    lines = Foot.of((), [text, "Next."], 1.5).lines
    assert " ".join(lines) == f"{text} Next." and lines[-1] == "Next."
    assert all(text_inches(line, 6) <= 1.5 for line in lines)
    assert Foot.of((), [], 1.5).height == 0
    assert Foot.of((), ["é" * 99], 1.5).lines[0].endswith("…")
