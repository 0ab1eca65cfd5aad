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
    AtlasError,
    FitError,
    GateError,
    Head,
    HeadatlasError,
    HeadNameError,
    ModelRefusedError,
    ModelSourceError,
    ModelSpec,
    RequestError,
    StoreError,
    TaskError,
    UnknownNameError,
)

if TYPE_CHECKING:
    from headatlas.atlas import Atlas, HeadCard, Summary, categories, open_atlas
    from headatlas.export import export_model
    from headatlas.method import GatingSettings, relation_scores
    from headatlas.model import Model, SelfCheck, ValueOutput, gates, load_model
    from headatlas.run import Ray, contrast_heads, map_heads, relate_heads, validate_atlas
    from headatlas.task import Relation, Task, load_relation, load_task

__all__ = [
    "Atlas",
    "AtlasError",
    "FitError",
    "GateError",
    "GatingSettings",
    "Head",
    "HeadCard",
    "HeadNameError",
    "HeadatlasError",
    "Model",
    "ModelRefusedError",
    "ModelSourceError",
    "ModelSpec",
    "Ray",
    "Relation",
    "RequestError",
    "SelfCheck",
    "StoreError",
    "Summary",
    "Task",
    "TaskError",
    "UnknownNameError",
    "ValueOutput",
    "__version__",
    "categories",
    "contrast_heads",
    "export_model",
    "gates",
    "load_model",
    "load_relation",
    "load_task",
    "map_heads",
    "open_atlas",
    "relate_heads",
    "relation_scores",
    "validate_atlas",
]

_ROOM_OF = {
    "Atlas": "headatlas.atlas",
    "GatingSettings": "headatlas.method",
    "HeadCard": "headatlas.atlas",
    "Model": "headatlas.model",
    "Ray": "headatlas.run",
    "Relation": "headatlas.task",
    "SelfCheck": "headatlas.model",
    "Summary": "headatlas.atlas",
    "Task": "headatlas.task",
    "ValueOutput": "headatlas.model",
    "categories": "headatlas.atlas",
    "contrast_heads": "headatlas.run",
    "export_model": "headatlas.export",
    "gates": "headatlas.model",
    "load_model": "headatlas.model",
    "load_relation": "headatlas.task",
    "load_task": "headatlas.task",
    "map_heads": "headatlas.run",
    "open_atlas": "headatlas.atlas",
    "relate_heads": "headatlas.run",
    "relation_scores": "headatlas.method",
    "validate_atlas": "headatlas.run",
}


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        return getattr(import_module(_ROOM_OF[name]), name)
    raise AttributeError(f"module 'headatlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
