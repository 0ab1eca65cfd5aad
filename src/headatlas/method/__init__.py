"""(model, task) -> scores of heads. Each method lives in a file of its own."""

from headatlas.method.ablation import STAND_INS, ablate
from headatlas.method.attribution import MOST_POINTS, TOLERANCE, attribute, integrate
from headatlas.method.batches import Pass, RowTable, draw
from headatlas.method.causal import CausalCheck, causal_check, questions
from headatlas.method.contrast import MARGIN, ContrastFit
from headatlas.method.curves import evaluate_sets, kept_only
from headatlas.method.effects import HeadEffects
from headatlas.method.gating import STAGES, FitResult, GateFit, Step, random_starts
from headatlas.method.in_text import TEMPLATES
from headatlas.method.likelihood import Outcome, evaluate, row_nll
from headatlas.method.mediation import Corruption, choose_corruption, corrupted_rows, mediate
from headatlas.method.relating import (
    SourceChoice,
    choose_source,
    dynamic_scores,
    relation_scores,
    scored_pairs,
    scores_from_weights,
    scores_in_texts,
)
from headatlas.method.relations import Writer, choose_k, relations_for
from headatlas.method.salient import Salient, salient_operations
from headatlas.method.settings import (
    OBJECTIVES,
    PRESETS,
    TARGETS_PER_BATCH,
    GatingSettings,
    Stage,
    resolve,
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
