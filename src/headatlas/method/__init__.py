"""(model, task) -> scores of heads. Each method lives in a file of its own."""

from headatlas.method.batches import Pass, RowTable, draw
from headatlas.method.contrast import MARGIN, ContrastFit
from headatlas.method.gating import STAGES, FitResult, GateFit, Step, random_starts
from headatlas.method.likelihood import Outcome, evaluate, row_nll
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
    "OBJECTIVES",
    "PRESETS",
    "STAGES",
    "TARGETS_PER_BATCH",
    "ContrastFit",
    "FitResult",
    "GateFit",
    "GatingSettings",
    "Outcome",
    "Pass",
    "RowTable",
    "Stage",
    "Step",
    "draw",
    "evaluate",
    "random_starts",
    "resolve",
    "row_nll",
]
