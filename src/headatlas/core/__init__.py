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
from headatlas.core.files import as_others_are
from headatlas.core.head import Head, ranked
from headatlas.core.methods import EFFECT_METHODS, IMPORTED, METHODS, NOT_IMPORTED, method_named
from headatlas.core.model_spec import ModelSpec
from headatlas.core.numbers import require_path, require_share, require_whole
from headatlas.core.text import escape_unprintable, parse_json
from headatlas.core.words import relation_words, title_of

__all__ = [
    "AXES",
    "CATEGORIES",
    "DIRECTIONS",
    "EFFECT_METHODS",
    "FITS",
    "IMPLEMENTS",
    "IMPORTED",
    "METHODS",
    "NOT_IMPORTED",
    "ROLES",
    "THRESHOLD",
    "AtlasError",
    "FitError",
    "GateError",
    "Head",
    "HeadNameError",
    "HeadatlasError",
    "ModelRefusedError",
    "ModelSourceError",
    "ModelSpec",
    "RequestError",
    "StoreError",
    "TaskError",
    "UnknownNameError",
    "as_others_are",
    "escape_unprintable",
    "method_named",
    "parse_json",
    "ranked",
    "relation_words",
    "require_path",
    "require_share",
    "require_whole",
    "title_of",
]
