"""Words that every room shares: errors, axes, heads, provenance. Imports no other room."""

from headatlas.core.axes import AXES, CATEGORIES, DIRECTIONS, FITS, IMPLEMENTS, ROLES, THRESHOLD
from headatlas.core.errors import (
    AtlasError,
    ExtensionError,
    FitError,
    GateError,
    HeadatlasError,
    HeadNameError,
    ModelRefusedError,
    ModelSourceError,
    RequestError,
    StoreError,
    TaskError,
    UnknownNameError,
)
from headatlas.core.files import slug, staged_folder, write_whole, writing
from headatlas.core.head import Head, ranked
from headatlas.core.identity import difference, identity_of
from headatlas.core.methods import (
    IMPORTED,
    METHOD_ORDER,
    NOT_IMPORTED,
    in_method_order,
    method_name_problem,
)
from headatlas.core.model_spec import ModelRef, ModelSpec
from headatlas.core.numbers import require_path, require_share, require_whole
from headatlas.core.options import Options, require_options
from headatlas.core.progress import (
    Event,
    Loaded,
    Note,
    Progress,
    Update,
    Worker,
    Workers,
    silent,
)
from headatlas.core.text import (
    escape_unprintable,
    first_line,
    parse_json,
    plural,
    relation_words,
    title_of,
)

__all__ = [
    "AXES",
    "CATEGORIES",
    "DIRECTIONS",
    "FITS",
    "IMPLEMENTS",
    "IMPORTED",
    "METHOD_ORDER",
    "NOT_IMPORTED",
    "ROLES",
    "THRESHOLD",
    "AtlasError",
    "Event",
    "ExtensionError",
    "FitError",
    "GateError",
    "Head",
    "HeadNameError",
    "HeadatlasError",
    "Loaded",
    "ModelRef",
    "ModelRefusedError",
    "ModelSourceError",
    "ModelSpec",
    "Note",
    "Options",
    "Progress",
    "RequestError",
    "StoreError",
    "TaskError",
    "UnknownNameError",
    "Update",
    "Worker",
    "Workers",
    "difference",
    "escape_unprintable",
    "first_line",
    "identity_of",
    "in_method_order",
    "method_name_problem",
    "parse_json",
    "plural",
    "ranked",
    "relation_words",
    "require_options",
    "require_path",
    "require_share",
    "require_whole",
    "silent",
    "slug",
    "staged_folder",
    "title_of",
    "write_whole",
    "writing",
]
