"""headatlas: an atlas of what every attention head of a transformer language model does.

>>> import headatlas
>>> model = headatlas.load_model("smollm2")  # doctest: +SKIP
>>> with headatlas.gates(model, values):  # doctest: +SKIP
...     logits = model.hf(ids).logits

Names are loaded when they are first used, so that `import headatlas` is quick and needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headatlas._version import __version__
from headatlas.core import (
    AtlasError,
    ExtensionError,
    FitError,
    GateError,
    Head,
    HeadatlasError,
    HeadatlasWarning,
    HeadNameError,
    ModelRefusedError,
    ModelSourceError,
    ModelSpec,
    RequestError,
    StoreError,
    TaskError,
    UnknownNameError,
)
from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas import figure
    from headatlas.atlas import (
        Atlas,
        Comparison,
        Contents,
        ContrastSeeds,
        Doubt,
        EffectSummary,
        Finding,
        HeadCard,
        ImportSummary,
        Interval,
        MethodAgreement,
        RelationSummary,
        Report,
        Stability,
        Summary,
        Validation,
        atlases_in,
        categories,
        compare,
        compare_atlases,
        download_atlas,
        import_table,
        open_atlas,
        pack_atlas,
        shared_tasks,
        summarize_import,
        unpack_atlas,
        upload_atlas,
        write_table,
    )
    from headatlas.export import FORMATS, Exported, ExportRequest, export_model
    from headatlas.method import METHODS, GatingSettings, MetricBatch, relation_scores
    from headatlas.model import Model, SelfCheck, ValueOutput, gates, list_models, load_model
    from headatlas.page import write_page
    from headatlas.request import ContrastRequest, MapRequest, RelationsRequest, ValidateRequest
    from headatlas.run import (
        LocalExecutor,
        Ray,
        contrast_heads,
        execute,
        map_heads,
        relate_heads,
        validate_atlas,
    )
    from headatlas.task import Relation, Task, builtin_relations, builtin_tasks, load_relation, load_task

__all__ = [
    "FORMATS",
    "METHODS",
    "Atlas",
    "AtlasError",
    "Comparison",
    "Contents",
    "ContrastRequest",
    "ContrastSeeds",
    "Doubt",
    "EffectSummary",
    "ExportRequest",
    "Exported",
    "ExtensionError",
    "Finding",
    "FitError",
    "GateError",
    "GatingSettings",
    "Head",
    "HeadCard",
    "HeadNameError",
    "HeadatlasError",
    "HeadatlasWarning",
    "ImportSummary",
    "Interval",
    "LocalExecutor",
    "MapRequest",
    "MethodAgreement",
    "MetricBatch",
    "Model",
    "ModelRefusedError",
    "ModelSourceError",
    "ModelSpec",
    "Ray",
    "Relation",
    "RelationSummary",
    "RelationsRequest",
    "Report",
    "RequestError",
    "SelfCheck",
    "Stability",
    "StoreError",
    "Summary",
    "Task",
    "TaskError",
    "UnknownNameError",
    "ValidateRequest",
    "Validation",
    "ValueOutput",
    "__version__",
    "atlases_in",
    "builtin_relations",
    "builtin_tasks",
    "categories",
    "compare",
    "compare_atlases",
    "contrast_heads",
    "download_atlas",
    "execute",
    "export_model",
    "figure",
    "gates",
    "import_table",
    "list_models",
    "load_model",
    "load_relation",
    "load_task",
    "map_heads",
    "open_atlas",
    "pack_atlas",
    "relate_heads",
    "relation_scores",
    "shared_tasks",
    "summarize_import",
    "unpack_atlas",
    "upload_atlas",
    "validate_atlas",
    "write_page",
    "write_table",
]

__getattr__, _ = lazy_exports(__name__)


def __dir__() -> list[str]:
    return __all__
