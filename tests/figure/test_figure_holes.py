"""Heads that an imported table does not name: hatched, and named in the legend."""

from __future__ import annotations

import numpy as np
import pytest

from headatlas.atlas import Atlas, EffectMap, Run
from headatlas.figure import plot_categories, plot_effects, plot_imported, plot_relations

HOLE = "not in the imported table"


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def transparent(ax):
    """[row, column] of the image: where the hatched ground shows."""
    shown = ax.get_images()[0].get_array()
    return shown[..., 3] == 0 if shown.ndim == 3 else np.ma.getmaskarray(shown)


@pytest.fixture
def scores():
    """Two layers of three heads; nothing is known of L1H2."""
    values = np.full((2, 2, 3), 0.5)
    values[:, 1, 2] = np.nan
    return {"copying": values}


def test_unknown_heads_are_not_unclassified(from_scores, scores):
    figure = plot_categories(from_scores(scores, kind={"copying": "imported"}, seeds={"copying": [0, 1]}))
    for ax in figure.axes[:2]:
        assert transparent(ax).T.tolist() == [[False] * 3, [False, False, True]]
        assert ax.patch.get_hatch()
    assert HOLE in legend_of(figure) and "unclassified (0)" in legend_of(figure)
    caption = figure.texts[-1].get_text().replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")
    assert "5 of 5 heads have one" in caption and f"1 more are {HOLE}" in caption
    assert "copying (mean over 2 seeds)" in caption and "% of the pairs" not in caption


def test_heat_maps_name_both_kinds_of_holes(from_scores, scores):
    figure = plot_relations(from_scores(scores, kind={"copying": "imported"}))
    assert transparent(figure.axes[0])[1, 2] and legend_of(figure) == [HOLE]
    scores["copying"][:, 0, 2] = np.nan
    figure = plot_relations(from_scores(scores, heads=(2, 3), kind={"copying": "imported"}))
    assert legend_of(figure) == [f"no head or {HOLE}"]
    scores["copying"][:, 1, 2] = 0.5
    assert legend_of(plot_relations(from_scores(scores, heads=(2, 3)))) == ["no head"]


def test_effects_and_imported_scores_name_their_holes(from_scores, scores):
    spec = from_scores(scores).spec
    values = scores["copying"][0]
    for method, draw, words in (("imported", plot_imported, HOLE), ("mediate", plot_effects, "not measured")):
        effects = [EffectMap(method, "mine", 0, "x", values, values)]
        figure = draw(Atlas(spec, [Run(method, "mine", "x")], [], effects=effects))
        assert legend_of(figure) == [words] and transparent(figure.axes[0])[1, 2]
    facts = {"imported_from": "t.csv"}
    figure = plot_effects(Atlas(spec, [Run("mediate", "mine", "x", facts)], [], effects=effects))
    assert legend_of(figure) == [HOLE]
