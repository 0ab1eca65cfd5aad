"""Name → Model: finds the heads of any decoder, gates them, reads their V and O weights, proves
itself at load. Nothing here knows tasks, scores or files of results.

Names are imported when they are first used: locating a model needs no torch.
"""

from typing import TYPE_CHECKING

from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas.model.load import as_model, load_model
    from headatlas.model.locate import list_models
    from headatlas.model.model import SOURCES, Model, gates
    from headatlas.model.modes import eval_mode, is_dtype_error, single_precision
    from headatlas.model.proof import SelfCheck
    from headatlas.model.weights import ValueOutput

__all__ = [
    "SOURCES",
    "Model",
    "SelfCheck",
    "ValueOutput",
    "as_model",
    "eval_mode",
    "gates",
    "is_dtype_error",
    "list_models",
    "load_model",
    "single_precision",
]

__getattr__, __dir__ = lazy_exports(__name__)
