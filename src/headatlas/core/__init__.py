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
from headatlas.core.head import Head
from headatlas.core.provenance import ModelSpec
from headatlas.core.relation_names import relation_words

__all__ = [
    "AXES",
    "CATEGORIES",
    "DIRECTIONS",
    "FITS",
    "ROLES",
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
    "relation_words",
]
