"""Figures of two atlases: what their captions say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headatlas.atlas import compare_atlases
from headatlas.figure import plot_comparison
from support.atlases import atlas_of


def caption(figure) -> str:
    found = [text.get_text() for text in figure.texts if text.get_gid() == "caption"]
    return " ".join(found).replace("\n", " ").replace("\u00a0", " ")


def sound_atlas(seeds, layers=4):
    """Roles that are clear and the same in every seed; 40 held-out items."""
    low = np.tile([[0.9, 0.1, 0.9, 0.1]], (layers, 1))
    atlas = atlas_of({"sums": dict.fromkeys(seeds, (np.full((layers, 4), 0.9), low))})
    run = atlas.runs["gating", "sums"]
    atlas.runs["gating", "sums"] = replace(run, baseline={**run.baseline, "rows": 40})
    return atlas


def test_the_caption_names_the_doubts_about_both_maps():
    one, other = sound_atlas(range(1)), sound_atlas(range(2))
    shown = caption(plot_comparison(one, other, compare_atlases(one, other, "sums")))
    assert "Doubtful: Sums, first (1 seed); Sums, second (2 seeds). The report says why." in shown


def test_of_models_of_different_shapes_too():
    one, other = sound_atlas(range(3)), sound_atlas(range(2), layers=6)
    other.spec = replace(other.spec, name="deep")
    shown = caption(plot_comparison(one, other, compare_atlases(one, other, "sums")))
    assert "Doubtful: deep (2 seeds). The report says why." in shown


def test_a_caption_without_doubts():
    one, other = sound_atlas(range(3)), sound_atlas(range(3))
    assert "Doubtful" not in caption(plot_comparison(one, other, compare_atlases(one, other, "sums")))
