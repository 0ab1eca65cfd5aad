"""(model, task) -> scores of heads. Names are loaded on first use: settings need no torch."""

from typing import TYPE_CHECKING

from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas.method.attribution import MOST_POINTS, TOLERANCE
    from headatlas.method.engine.ablate import STAND_INS, ablate
    from headatlas.method.engine.attribute import attribute, integrate
    from headatlas.method.engine.gate_fit import FitResult, GateFit, Step, random_starts
    from headatlas.method.engine.head_effects import HeadEffects
    from headatlas.method.engine.likelihood import Outcome, evaluate, evaluate_sets, kept_only, row_nll
    from headatlas.method.engine.mediate import Corruption, choose_corruption, corrupted_rows, mediate
    from headatlas.method.engine.objective import Batch, Contrast, Objective, Pressure
    from headatlas.method.engine.rows import Pass, RowTable, Stream, draw
    from headatlas.method.gating import (
        OBJECTIVES,
        PRESETS,
        STAGES,
        TARGETS_PER_BATCH,
        GatingSettings,
        Stage,
        resolve,
    )
    from headatlas.method.method import METHODS, EffectOptions, Method
    from headatlas.method.relation.causal_check import CausalCheck, causal_check, questions
    from headatlas.method.relation.in_text import TEMPLATES
    from headatlas.method.relation.salient import Salient, salient_operations
    from headatlas.method.relation.scorer import Writer, choose_k, relations_for
    from headatlas.method.relation.scores import (
        dynamic_scores,
        relation_scores,
        scored_pairs,
        scores_from_weights,
        scores_in_texts,
    )
    from headatlas.method.relation.source_choice import SourceChoice, choose_source

__all__ = [
    "METHODS",
    "MOST_POINTS",
    "OBJECTIVES",
    "PRESETS",
    "STAGES",
    "STAND_INS",
    "TARGETS_PER_BATCH",
    "TEMPLATES",
    "TOLERANCE",
    "Batch",
    "CausalCheck",
    "Contrast",
    "Corruption",
    "EffectOptions",
    "FitResult",
    "GateFit",
    "GatingSettings",
    "HeadEffects",
    "Method",
    "Objective",
    "Outcome",
    "Pass",
    "Pressure",
    "RowTable",
    "Salient",
    "SourceChoice",
    "Stage",
    "Step",
    "Stream",
    "Writer",
    "ablate",
    "attribute",
    "causal_check",
    "choose_corruption",
    "choose_k",
    "choose_source",
    "corrupted_rows",
    "draw",
    "dynamic_scores",
    "evaluate",
    "evaluate_sets",
    "integrate",
    "kept_only",
    "mediate",
    "questions",
    "random_starts",
    "relation_scores",
    "relations_for",
    "resolve",
    "row_nll",
    "salient_operations",
    "scored_pairs",
    "scores_from_weights",
    "scores_in_texts",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "METHODS": "headatlas.method.method",
        "MOST_POINTS": "headatlas.method.attribution",
        "OBJECTIVES": "headatlas.method.gating",
        "PRESETS": "headatlas.method.gating",
        "STAGES": "headatlas.method.gating",
        "STAND_INS": "headatlas.method.engine.ablate",
        "TARGETS_PER_BATCH": "headatlas.method.gating",
        "TEMPLATES": "headatlas.method.relation.in_text",
        "TOLERANCE": "headatlas.method.attribution",
        "Batch": "headatlas.method.engine.objective",
        "CausalCheck": "headatlas.method.relation.causal_check",
        "Contrast": "headatlas.method.engine.objective",
        "Corruption": "headatlas.method.engine.mediate",
        "EffectOptions": "headatlas.method.method",
        "FitResult": "headatlas.method.engine.gate_fit",
        "GateFit": "headatlas.method.engine.gate_fit",
        "GatingSettings": "headatlas.method.gating",
        "HeadEffects": "headatlas.method.engine.head_effects",
        "Method": "headatlas.method.method",
        "Objective": "headatlas.method.engine.objective",
        "Outcome": "headatlas.method.engine.likelihood",
        "Pass": "headatlas.method.engine.rows",
        "Pressure": "headatlas.method.engine.objective",
        "RowTable": "headatlas.method.engine.rows",
        "Salient": "headatlas.method.relation.salient",
        "SourceChoice": "headatlas.method.relation.source_choice",
        "Stage": "headatlas.method.gating",
        "Step": "headatlas.method.engine.gate_fit",
        "Stream": "headatlas.method.engine.rows",
        "Writer": "headatlas.method.relation.scorer",
        "ablate": "headatlas.method.engine.ablate",
        "attribute": "headatlas.method.engine.attribute",
        "causal_check": "headatlas.method.relation.causal_check",
        "choose_corruption": "headatlas.method.engine.mediate",
        "choose_k": "headatlas.method.relation.scorer",
        "choose_source": "headatlas.method.relation.source_choice",
        "corrupted_rows": "headatlas.method.engine.mediate",
        "draw": "headatlas.method.engine.rows",
        "dynamic_scores": "headatlas.method.relation.scores",
        "evaluate": "headatlas.method.engine.likelihood",
        "evaluate_sets": "headatlas.method.engine.likelihood",
        "integrate": "headatlas.method.engine.attribute",
        "kept_only": "headatlas.method.engine.likelihood",
        "mediate": "headatlas.method.engine.mediate",
        "questions": "headatlas.method.relation.causal_check",
        "random_starts": "headatlas.method.engine.gate_fit",
        "relation_scores": "headatlas.method.relation.scores",
        "relations_for": "headatlas.method.relation.scorer",
        "resolve": "headatlas.method.gating",
        "row_nll": "headatlas.method.engine.likelihood",
        "salient_operations": "headatlas.method.relation.salient",
        "scored_pairs": "headatlas.method.relation.scores",
        "scores_from_weights": "headatlas.method.relation.scores",
        "scores_in_texts": "headatlas.method.relation.scores",
    },
)
