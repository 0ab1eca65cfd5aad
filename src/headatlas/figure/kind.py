"""The kinds of figure by the word that the command line uses; each is a function of one signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from headatlas.atlas import IMPLEMENTS, Atlas
from headatlas.core import RequestError, UnknownNameError
from headatlas.figure.agreement_map import plot_agreement
from headatlas.figure.category_map import plot_categories
from headatlas.figure.dynamic_scatter import plot_dynamic
from headatlas.figure.effect_maps import plot_effects
from headatlas.figure.faithfulness import plot_ablation, plot_sufficiency
from headatlas.figure.gate_trajectories import plot_trajectories
from headatlas.figure.imported_map import plot_imported
from headatlas.figure.layer_profile import plot_layer_profile
from headatlas.figure.panels import tasks_of
from headatlas.figure.relation_maps import plot_relations
from headatlas.figure.score_histograms import plot_distributions
from headatlas.figure.score_map import plot_contrasts, plot_scores
from headatlas.figure.seed_curves import plot_stability

__all__ = ["KINDS", "FigureOptions", "draw_figure"]


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """What can be asked of a figure. A kind takes what it has a use for; `None`: all, or the usual."""

    tasks: tuple[str, ...] | None = None
    score: str = "facilitation"
    over: str = "mean"
    label: str | None = None
    colours: str = "paper"
    heads: tuple[str, ...] | None = None
    relations: tuple[str, ...] | None = None
    direction: str = "promote"
    threshold: float | None = None
    dynamic: str | None = None


def _agreement(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_agreement(
        atlas, options.tasks, label=options.label, colours=options.colours, threshold=options.threshold
    )


def _score(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_scores(
        atlas, options.tasks, options.score, options.over, label=options.label, colours=options.colours
    )


def _trajectories(atlas: Atlas, options: FigureOptions) -> Figure:
    tasks = tasks_of(atlas, options.tasks)
    if len(tasks) > 1:
        raise RequestError(
            f"trajectories are drawn for one task at a time; choose one of {', '.join(tasks)}."
        )
    return plot_trajectories(atlas, tasks[0], options.heads, label=options.label)


def _distributions(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_distributions(atlas, options.tasks, label=options.label, colours=options.colours)


def _profile(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_layer_profile(atlas, options.tasks, label=options.label, colours=options.colours)


def _contrast(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_contrasts(atlas, options.tasks, label=options.label, colours=options.colours)


def _effects(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_effects(atlas, options.tasks, label=options.label)


def _imported(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_imported(atlas, options.tasks, label=options.label)


def _ablation(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_ablation(atlas, options.tasks, label=options.label, colours=options.colours)


def _sufficiency(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_sufficiency(atlas, options.tasks, label=options.label)


def _stability(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_stability(
        atlas, options.tasks, label=options.label, colours=options.colours, threshold=options.threshold
    )


def _categories(atlas: Atlas, options: FigureOptions) -> Figure:
    threshold = IMPLEMENTS if options.threshold is None else options.threshold
    return plot_categories(
        atlas,
        direction=options.direction,
        threshold=threshold,
        label=options.label,
        colours=options.colours,
    )


def _relations(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_relations(
        atlas, options.relations, direction=options.direction, label=options.label, colours=options.colours
    )


def _dynamic(atlas: Atlas, options: FigureOptions) -> Figure:
    return plot_dynamic(
        atlas,
        options.relations,
        kind=options.dynamic,
        direction=options.direction,
        label=options.label,
        colours=options.colours,
    )


KINDS: dict[str, Callable[[Atlas, FigureOptions], Figure]] = {
    "ablation": _ablation,
    "agreement": _agreement,
    "categories": _categories,
    "contrast": _contrast,
    "distributions": _distributions,
    "dynamic": _dynamic,
    "effects": _effects,
    "imported": _imported,
    "profile": _profile,
    "relations": _relations,
    "score": _score,
    "stability": _stability,
    "sufficiency": _sufficiency,
    "trajectories": _trajectories,
}


def draw_figure(atlas: Atlas, kind: str, options: FigureOptions | None = None) -> Figure:
    """A figure of the kind of that name."""
    if kind not in KINDS:
        raise UnknownNameError("kind of figure", kind, KINDS)
    return KINDS[kind](atlas, options or FigureOptions())
