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

__getattr__, __dir__ = lazy_exports(__name__)
