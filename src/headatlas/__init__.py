"""headatlas: an atlas of what every attention head of a transformer language model does.

>>> import headatlas
>>> model = headatlas.load_model("smollm2")  # doctest: +SKIP
>>> with headatlas.gates(model, values):  # doctest: +SKIP
...     logits = model.hf(ids).logits

Names are loaded when they are first used, so that `import headatlas` is quick and needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headatlas._version import __version__
from headatlas.core import (
    GateError,
    Head,
    HeadatlasError,
    HeadNameError,
    ModelRefusedError,
    ModelSourceError,
    ModelSpec,
    RequestError,
    UnknownNameError,
)

if TYPE_CHECKING:
    from headatlas.model import Model, SelfCheck, ValueOutput, gates, load_model

__all__ = [
    "GateError",
    "Head",
    "HeadNameError",
    "HeadatlasError",
    "Model",
    "ModelRefusedError",
    "ModelSourceError",
    "ModelSpec",
    "RequestError",
    "SelfCheck",
    "UnknownNameError",
    "ValueOutput",
    "__version__",
    "gates",
    "load_model",
]

_ROOM_OF = {
    "Model": "headatlas.model",
    "SelfCheck": "headatlas.model",
    "ValueOutput": "headatlas.model",
    "gates": "headatlas.model",
    "load_model": "headatlas.model",
}


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        return getattr(import_module(_ROOM_OF[name]), name)
    raise AttributeError(f"module 'headatlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
