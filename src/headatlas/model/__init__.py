"""Name → Model: finds the heads of any decoder, gates them, reads their V and O weights, proves
itself at load. Nothing here knows tasks, scores or files of results.

Names are imported when they are first used: locating a model needs no torch.
"""

from typing import TYPE_CHECKING

from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas.core import DTYPES
    from headatlas.model.anatomy import Anatomy, Attention, ValuePath
    from headatlas.model.embedded import EMBEDDED
    from headatlas.model.load import load_model
    from headatlas.model.locate import cached_models, list_models
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
    "list_models",
    "load_model",
    "single_precision",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "DTYPES": "headatlas.core",
        "EMBEDDED": "headatlas.model.embedded",
        "SOURCES": "headatlas.model.model",
        "Anatomy": "headatlas.model.anatomy",
        "Attention": "headatlas.model.anatomy",
        "LayerCheck": "headatlas.model.proof",
        "Model": "headatlas.model.model",
        "SelfCheck": "headatlas.model.proof",
        "ValueOutput": "headatlas.model.weights",
        "ValuePath": "headatlas.model.anatomy",
        "cached_models": "headatlas.model.locate",
        "eval_mode": "headatlas.model.modes",
        "gates": "headatlas.model.model",
        "is_dtype_error": "headatlas.model.modes",
        "list_models": "headatlas.model.locate",
        "load_model": "headatlas.model.load",
        "single_precision": "headatlas.model.modes",
    },
)
