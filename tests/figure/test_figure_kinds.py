"""Scores, trajectories, distributions, profiles: numbers in the artists are numbers of the atlas."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer import Context
from typer.main import get_command

from headatlas.atlas import Atlas
from headatlas.cli.app import app
from headatlas.core import HeadNameError, RequestError, UnknownNameError
from headatlas.figure import (
    FIGURES,
    draw_figure,
    example_heads,
    plot_contrasts,
    plot_distributions,
    plot_layer_profile,
    plot_scores,
    plot_trajectories,
)
from headatlas.figure.palette import FIT_COLOURS, PALETTES


def header(ax) -> str:
    return "".join(text.get_text() for text in ax.texts if text.get_gid() == "header")


@pytest.mark.parametrize("over", ["always", "any", "mean"])
@pytest.mark.parametrize("score", ["facilitation", "interference", "irrelevance", "retain", "remove"])
def test_a_heat_map_shows_the_atlas(any_atlas, score, over):
    atlas = any_atlas(5, 3, seeds=3)
    gates = atlas.gates("math").values
    retain, remove = gates[:, 1], gates[:, 2]
    values = {
        "facilitation": remove, "interference": 1 - retain, "irrelevance": retain * (1 - remove),
        "retain": retain, "remove": remove,
    }[score]  # fmt: skip
    expected = {"always": values.min(0), "any": values.max(0), "mean": values.mean(0)}[over]
    ax = plot_scores(atlas, "math", score, over).axes[0]
    np.testing.assert_allclose(ax.images[0].get_array(), expected, atol=1e-6)
    assert ax.images[0].get_clim() == (0, 1) and ax.images[0].origin == "lower"
    assert header(ax) == f"Math ({over.capitalize()})"


def test_a_heat_map_has_holes(any_atlas):
    ax = plot_scores(any_atlas(5, 3, holes=(2,)), "math").axes[0]
    assert ax.images[0].get_array().mask.all(axis=1).tolist() == [False, False, True, False, False]
    assert ax.patch.get_hatch()


def test_several_tasks_share_one_bar(any_atlas):
    figure = plot_scores(any_atlas(5, 3, 4), score="remove", palette="safe")
    *panels, bar = figure.axes
    assert [header(ax).split()[0].split("\n")[0] for ax in panels] == ["Math", "Syntax", "Aba", "Paper/math"]
    assert bar.get_gid() == "bar" and bar.get_ylabel() == "Gate G−"
    assert {ax.images[0].get_cmap().name for ax in panels} == {"cividis"}


def test_unknown_scores_are_answered_with_the_closest(hand_made):
    with pytest.raises(UnknownNameError, match="did you mean 'facilitation'"):
        plot_scores(hand_made, "math", "facilitations")
    with pytest.raises(UnknownNameError, match="'median'"):
        plot_scores(hand_made, "math", over="median")


def test_examples_are_the_clearest_heads(from_gates):
    gates = np.full((2, 2, 3, 3), 0.5)
    gates[:, :, 1, 1] = [[0.9, 0.9], [0.9, 0.7]]  # facilitation at least 0.7
    gates[:, :, 2, 0] = [[0.9, 1.0], [0.9, 0.6]]  # higher in one seed, but at least only 0.6
    gates[:, :, 0, 2] = [[0.2, 0.1], [0.3, 0.1]]  # interference at least 0.7
    gates[:, :, 2, 2] = gates[:, :, 0, 2]  # as high, but later
    gates[:, :, 1, 0] = [[1.0, 0.0], [0.9, 0.1]]  # irrelevance at least 0.81
    atlas = from_gates({"math": gates})
    assert {role: str(head) for role, head in example_heads(atlas, "math").items()} == {
        "facilitating": "L1H1", "interfering": "L0H2", "irrelevant": "L1H0",
    }  # fmt: skip
    figure = plot_trajectories(atlas, "math")
    assert [header(ax) for ax in figure.axes] == ["L1H1 facilitating", "L0H2 interfering", "L1H0 irrelevant"]


def test_examples_do_not_claim_a_role_that_no_head_has(from_gates):
    gates = np.array([[[[0.9, 1.0]], [[0.8, 0.2]]]])
    figure = plot_trajectories(from_gates({"math": gates}), "math")
    assert [header(ax).replace("\n", " ") for ax in figure.axes] == [
        "L0H0 facilitating", "L0H0 (interference 0.10)", "L0H1 irrelevant",
    ]  # fmt: skip


def test_examples_pass_over_holes(any_atlas):
    found = example_heads(any_atlas(4, 2, holes=(0,)), "math").values()
    assert all(head.layer > 0 for head in found)


def test_a_trajectory_runs_through_the_free_and_the_pressed_stage(hand_made):
    figure = plot_trajectories(hand_made, "math", ["L1H0", "0.2"])
    ax, other = figure.axes
    assert header(ax) == "L1H0" and header(other) == "L0H2 irrelevant"
    lines = {fit: [line for line in ax.lines if line.get_gid() == fit] for fit in FIT_COLOURS}
    assert [len(found) for found in lines.values()] == [2, 2, 2]
    assert all(line.get_color() == FIT_COLOURS[fit] for fit, found in lines.items() for line in found)
    np.testing.assert_allclose(lines["free"][0].get_xydata(), [[10, 0.5], [20, 0.5]])
    # seed 0 helps (gates to 1), seed 1 hurts (gates to 0); pressed lines start at the end of the free one
    np.testing.assert_allclose(lines["retain"][0].get_xydata(), [[20, 0.5], [30, 0.75], [40, 1]])
    np.testing.assert_allclose(lines["remove"][1].get_xydata(), [[20, 0.5], [30, 0.25], [40, 0]])
    (pressure,) = [line for line in ax.lines if line.get_gid() == "pressure"]
    assert pressure.get_xdata() == [20, 20]
    assert ax.get_ylim()[0] < 0 and ax.get_ylim()[1] > 1
    assert [text.get_text() for text in figure.legends[0].get_texts()][1] == "retain (G+)"


def test_heads_that_do_not_exist_are_refused(hand_made):
    with pytest.raises(HeadNameError, match="L9H9 does not exist"):
        plot_trajectories(hand_made, "math", ["L9H9"])
    with pytest.raises(RequestError, match="no head was named"):
        plot_trajectories(hand_made, "math", [])


def test_a_distribution_counts_every_head_and_seed(hand_made, any_atlas):
    figure = plot_distributions(hand_made)
    counts = [ax.patches[0].get_data().values for ax in figure.axes]
    # of 12: helps 2 + 2, hurts 2 + 1, idle 2 + 3
    assert [(row[0], row[-1], row.sum()) for row in counts] == [(8, 4, 12), (9, 3, 12), (7, 5, 12)]
    shares = [text.get_text() for ax in figure.axes for text in ax.texts if text.get_gid() == "share"]
    assert shares == ["33% →", "25% →", "42% →"]
    for ax in figure.axes:
        (line,) = ax.lines
        assert line.get_gid() == "threshold" and line.get_xdata() == [0.5, 0.5]
    holed = plot_distributions(any_atlas(6, 4, 2, seeds=3, holes=(0, 1)))
    assert len(holed.axes) == 6
    assert {ax.patches[0].get_data().values.sum() for ax in holed.axes} == {4 * 4 * 3}


def test_steep_distributions_are_drawn_on_a_log_scale(from_gates):
    gates = np.full((1, 2, 20, 20), 0.01)
    gates[0, :, 0, :9] = np.linspace(0.1, 0.9, 9)
    assert plot_distributions(from_gates({"math": gates})).axes[0].get_yscale() == "log"
    even = np.tile(np.linspace(0.01, 0.99, 20), (1, 2, 20, 1))
    assert plot_distributions(from_gates({"math": even})).axes[0].get_yscale() == "linear"


def test_a_profile_is_the_mean_over_heads(any_atlas):
    atlas = any_atlas(6, 4, 2, seeds=3, holes=(2,))
    figure = plot_layer_profile(atlas, palette="safe")
    assert [header(ax) for ax in figure.axes] == ["Math", "Syntax"]
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    (line,) = [line for line in figure.axes[1].lines if line.get_gid() == "interference"]
    assert line.get_color() == PALETTES["safe"].lines["interference"]
    by_seed = (1 - atlas.gates("syntax").values[:, 1]).mean(axis=-1)[:, [0, 1, 3, 4, 5]]
    np.testing.assert_array_equal(line.get_xdata(), [0, 1, 3, 4, 5])
    np.testing.assert_allclose(line.get_ydata(), by_seed.mean(axis=0), atol=1e-6)
    band = figure.axes[1].collections[1].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(by_seed.max(), abs=1e-6)
    assert band[:, 1].min() == pytest.approx(by_seed.min(), abs=1e-6)


GIVEN = {
    "tasks": ["math"], "score": "irrelevance", "over": "any", "label": "(c)", "palette": "safe",
    "heads": ["L1H1"], "relations": ["plural"], "direction": "suppress", "threshold": 0.4,
    "dynamic": "forced",
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(FIGURES))
def test_every_kind_takes_its_options_and_says_what_is_missing(any_atlas, kind):
    atlas, chosen = any_atlas(12, 8, ["math"]), FIGURES[kind]
    assert chosen.summary
    if chosen.missing(atlas) is None:
        assert isinstance(draw_figure(atlas, kind), Figure)
        given = {name: GIVEN[name] for name in chosen.options & GIVEN.keys()}
        figure = draw_figure(atlas, kind, **given)
        assert "label" not in given or "(c)" in [text.get_text() for text in figure.texts]
    bare = Atlas(atlas.spec, [], [])
    if reason := chosen.missing(bare):
        with pytest.raises(RequestError, match=re.escape(reason)):
            draw_figure(bare, kind)


def test_the_kinds_of_today_are_drawn_with_all_their_options(any_atlas):
    """So that no kind stops being tested unnoticed."""
    atlas = any_atlas(12, 8, ["math"])
    drawn = [kind for kind in FIGURES.values() if kind.missing(atlas) is None]
    assert len(drawn) >= 14 and sum(kind.options <= GIVEN.keys() for kind in drawn) >= 14
    assert sum(kind.missing(Atlas(atlas.spec, [], [])) is not None for kind in drawn) >= 14


def test_kinds_and_options_that_do_not_exist_are_refused(any_atlas):
    atlas = any_atlas(4, 4)
    with pytest.raises(UnknownNameError, match="did you mean 'agreement'"):
        draw_figure(atlas, "agreements")
    with pytest.raises(RequestError, match="'score' is for score; agreement has no use for it"):
        draw_figure(atlas, "agreement", score="facilitation")
    with pytest.raises(UnknownNameError, match="no option of figures named 'treshold'; did you mean 'thresh"):
        draw_figure(atlas, "agreement", treshold=0.5)


def test_imported_gates_have_no_trajectories(any_atlas):
    atlas = any_atlas(4, 4)
    atlas.runs["gating", "math"].task_facts["imported_from"] = "elsewhere"
    assert "its gates were imported" in FIGURES["trajectories"].missing(atlas)


def test_the_help_lists_every_kind(monkeypatch):
    monkeypatch.setitem(FIGURES._values, "two-words", FIGURES["score"])
    command = get_command(app).commands["plot"]
    (kind,) = (p for p in command.get_params(Context(command)) if p.name == "kind")
    assert set(FIGURES) == set(re.findall("[a-z-]+", kind.help))


@pytest.mark.parametrize("words", [["--help"], ["list", "models"]])
def test_commands_other_than_plot_load_no_matplotlib(words):
    code = (
        "import sys, headatlas.figure, headatlas.page\n"
        "from headatlas.cli import main\n"
        f"sys.argv = ['headatlas', *{words}]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print({'matplotlib', 'torch'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "set()"


def test_a_contrast_shows_the_mean_gate(hand_made):
    figure = plot_contrasts(hand_made)
    (image,) = figure.axes[0].get_images()
    # retain's gates of the two seeds: L0 1,0,1 and 1,0,1; L1 1,1,1 and 0,1,1
    np.testing.assert_allclose(image.get_array(), [[1, 0, 1], [0.5, 1, 1]])
    assert header(figure.axes[0]) == "Math"
    without = Atlas(hand_made.spec, [], [])
    with pytest.raises(RequestError, match="no finished contrast"):
        plot_contrasts(without)


def test_trajectories_ask_for_one_task(any_atlas):
    with pytest.raises(RequestError, match="one task at a time; choose one of math, syntax"):
        draw_figure(any_atlas(4, 4, 2), "trajectories")
