"""(model, task) -> scores of heads. Each method lives in a file of its own."""

from headatlas.method.engine.ablate import STAND_INS, ablate
from headatlas.method.engine.attribute import MOST_POINTS, TOLERANCE, attribute, integrate
from headatlas.method.engine.contrast_fit import MARGIN, ContrastFit
from headatlas.method.engine.gate_fit import STAGES, FitResult, GateFit, Step, random_starts
from headatlas.method.engine.gate_sets import evaluate_sets, kept_only
from headatlas.method.engine.head_effects import HeadEffects
from headatlas.method.engine.likelihood import Outcome, evaluate, row_nll
from headatlas.method.engine.mediate import Corruption, choose_corruption, corrupted_rows, mediate
from headatlas.method.engine.rows import Pass, RowTable, draw
from headatlas.method.gating import (
    OBJECTIVES,
    PRESETS,
    TARGETS_PER_BATCH,
    GatingSettings,
    Stage,
    resolve,
)
from headatlas.method.relation.causal_check import CausalCheck, causal_check, questions
from headatlas.method.relation.in_text import TEMPLATES
from headatlas.method.relation.salient import Salient, salient_operations
from headatlas.method.relation.scorer import Writer, choose_k, relations_for
from headatlas.method.relation.scores import (
    SourceChoice,
    choose_source,
    dynamic_scores,
    relation_scores,
    scored_pairs,
    scores_from_weights,
    scores_in_texts,
)

__all__ = [
    "MARGIN",
    "MOST_POINTS",
    "OBJECTIVES",
    "PRESETS",
    "STAGES",
    "STAND_INS",
    "TARGETS_PER_BATCH",
    "TEMPLATES",
    "TOLERANCE",
    "CausalCheck",
    "ContrastFit",
    "Corruption",
    "FitResult",
    "GateFit",
    "GatingSettings",
    "HeadEffects",
    "Outcome",
    "Pass",
    "RowTable",
    "Salient",
    "SourceChoice",
    "Stage",
    "Step",
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
