"""Carries out what is to be fitted, loses nothing, goes on where it was."""

from headatlas.run.contrasting import contrast_heads, contrast_name
from headatlas.run.fitting import Fitter, GateSetName, Progress, Silence
from headatlas.run.mapping import map_heads, require_new
from headatlas.run.prepare import Prepared, describe, measure_baseline, prepare, worse_than_chance

__all__ = [
    "Fitter",
    "GateSetName",
    "Prepared",
    "Progress",
    "Silence",
    "contrast_heads",
    "contrast_name",
    "describe",
    "map_heads",
    "measure_baseline",
    "prepare",
    "require_new",
    "worse_than_chance",
]
