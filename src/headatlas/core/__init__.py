"""Words that every room shares: errors, axes, heads, provenance. Imports no other room."""

from headatlas.core.axes import AXES, CATEGORIES, DIRECTIONS, FITS, ROLES
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
from headatlas.core.files import as_others_are
from headatlas.core.head import Head
from headatlas.core.methods import EFFECT_METHODS, IMPORTED, METHODS, NOT_IMPORTED, method_named
from headatlas.core.model_spec import ModelRef, ModelSpec
from headatlas.core.numbers import require_path, require_share, require_whole
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
from headatlas.core.text import escape_unprintable, parse_json
from headatlas.core.words import relation_words, title_of

__all__ = [
    "AXES",
    "CATEGORIES",
    "DIRECTIONS",
    "EFFECT_METHODS",
    "FITS",
    "IMPORTED",
    "METHODS",
    "NOT_IMPORTED",
    "ROLES",
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
    "Progress",
    "RequestError",
    "StoreError",
    "TaskError",
    "UnknownNameError",
    "Update",
    "Worker",
    "Workers",
    "as_others_are",
    "escape_unprintable",
    "method_named",
    "parse_json",
    "relation_words",
    "require_path",
    "require_share",
    "require_whole",
    "silent",
    "title_of",
]
