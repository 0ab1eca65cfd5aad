"""(model, task) -> scores of heads. Names are loaded on first use: settings need no torch."""

from typing import TYPE_CHECKING

from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas.method.engine.head_effects import HeadEffects
    from headatlas.method.engine.metric import MetricBatch
    from headatlas.method.gating import GatingSettings
    from headatlas.method.method import METHODS, EffectOptions, Method, MetricOptions
    from headatlas.method.relation.scores import relation_scores

__all__ = [
    "METHODS",
    "EffectOptions",
    "GatingSettings",
    "HeadEffects",
    "Method",
    "MetricBatch",
    "MetricOptions",
    "relation_scores",
]

__getattr__, __dir__ = lazy_exports(__name__)
