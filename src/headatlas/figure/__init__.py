"""Atlas -> figures for a paper. Takes labelled arrays, gives matplotlib objects; imports neither pyplot nor
torch.

Every `plot_*` function takes `ax` (a figure of one panel) or `axes` (of several): then it draws there and
returns them. `palette` is a name, a `Palette`, or colors such as {"helps": "C0", "hurts": "C3"}; `title` is a
format string for the titles of panels, such as "{task} ({agreement})".

Names are loaded on first use, and matplotlib with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas.figure.agreement_map import draw_agreement, draw_key, plot_agreement
    from headatlas.figure.category_map import draw_categories, plot_categories
    from headatlas.figure.comparison_map import plot_comparison
    from headatlas.figure.dynamic_scatter import draw_dynamic, plot_dynamic
    from headatlas.figure.effect_maps import draw_effects, plot_effects
    from headatlas.figure.faithfulness import (
        draw_ablation,
        draw_sufficiency,
        plot_ablation,
        plot_sufficiency,
    )
    from headatlas.figure.gate_trajectories import draw_trajectory, example_heads, plot_trajectories
    from headatlas.figure.imported_map import plot_imported
    from headatlas.figure.kind import FIGURES, FigureKind, draw_figure
    from headatlas.figure.layer_profile import draw_layer_profile, plot_layer_profile
    from headatlas.figure.palette import PALETTES, Palette, PaletteLike, palette_of
    from headatlas.figure.relation_maps import plot_relations, relation_title
    from headatlas.figure.save import FORMATS, save_figure
    from headatlas.figure.score_histograms import draw_distribution, plot_distributions
    from headatlas.figure.score_map import draw_score, plot_contrasts, plot_scores, score_of
    from headatlas.figure.seed_curves import plot_stability

__all__ = [
    "FIGURES",
    "FORMATS",
    "PALETTES",
    "FigureKind",
    "Palette",
    "PaletteLike",
    "draw_ablation",
    "draw_agreement",
    "draw_categories",
    "draw_distribution",
    "draw_dynamic",
    "draw_effects",
    "draw_figure",
    "draw_key",
    "draw_layer_profile",
    "draw_score",
    "draw_sufficiency",
    "draw_trajectory",
    "example_heads",
    "palette_of",
    "plot_ablation",
    "plot_agreement",
    "plot_categories",
    "plot_comparison",
    "plot_contrasts",
    "plot_distributions",
    "plot_dynamic",
    "plot_effects",
    "plot_imported",
    "plot_layer_profile",
    "plot_relations",
    "plot_scores",
    "plot_stability",
    "plot_sufficiency",
    "plot_trajectories",
    "relation_title",
    "save_figure",
    "score_of",
]

__getattr__, __dir__ = lazy_exports(__name__)
