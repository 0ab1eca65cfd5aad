"""Words that every room shares: errors, axes, heads, provenance. Imports no other room."""

from headatlas.core.axes import AXES, CATEGORIES, DIRECTIONS, FITS, IMPLEMENTS, ROLES, THRESHOLD
from headatlas.core.errors import (
    AtlasError,
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
from headatlas.core.methods import EFFECT_METHODS, IMPORTED, NOT_IMPORTED, method_named
from headatlas.core.model_spec import ModelRef, ModelSpec
from headatlas.core.numbers import require_path, require_share, require_whole
from headatlas.core.options import Options
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
    is_printable,
    parse_json,
    plural,
    relation_words,
    title_of,
)

__all__ = [
    "AXES",
    "CATEGORIES",
    "DIRECTIONS",
    "EFFECT_METHODS",
    "FITS",
    "IMPLEMENTS",
    "IMPORTED",
    "NOT_IMPORTED",
    "ROLES",
    "THRESHOLD",
    "AtlasError",
    "Event",
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
    "is_printable",
    "method_named",
    "parse_json",
    "plural",
    "ranked",
    "relation_words",
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
