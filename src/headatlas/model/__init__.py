"""Name → Model: finds the heads of any decoder, gates them, reads their V and O weights, proves
itself at load. Nothing here knows tasks, scores or files of results."""

from headatlas.model.anatomy import Anatomy, Attention, ValuePath
from headatlas.model.embedded import EMBEDDED
from headatlas.model.load import DTYPES, load_model
from headatlas.model.locate import cached_models
from headatlas.model.model import SOURCES, Model, gates
from headatlas.model.modes import eval_mode, is_dtype_error, single_precision
from headatlas.model.proof import LayerCheck, SelfCheck
from headatlas.model.weights import ValueOutput

__all__ = [
    "DTYPES",
    "EMBEDDED",
    "SOURCES",
    "Anatomy",
    "Attention",
    "LayerCheck",
    "Model",
    "SelfCheck",
    "ValueOutput",
    "ValuePath",
    "cached_models",
    "eval_mode",
    "gates",
    "is_dtype_error",
    "load_model",
    "single_precision",
]
