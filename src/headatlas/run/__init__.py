"""Carries out what is to be fitted, loses nothing, goes on where it was."""

from headatlas.run.contrasting import contrast_heads, contrast_name, contrasted
from headatlas.run.effects import require_numbers
from headatlas.run.fitter import Progress
from headatlas.run.loading import mapped_dtype, mapped_revision
from headatlas.run.map_job import map_heads, require_settings
from headatlas.run.prepare import prepare
from headatlas.run.ray_executor import Ray, require_ray
from headatlas.run.relations_job import relate_heads, require_request
from headatlas.run.requests import distinct_tasks, require_place, require_sound
from headatlas.run.steps import Seen
from headatlas.run.validate_job import HELD_OUT, require_validation, unknown_tasks, validate_atlas

__all__ = [
    "HELD_OUT",
    "Progress",
    "Ray",
    "Seen",
    "contrast_heads",
    "contrast_name",
    "contrasted",
    "distinct_tasks",
    "map_heads",
    "mapped_dtype",
    "mapped_revision",
    "prepare",
    "relate_heads",
    "require_numbers",
    "require_place",
    "require_ray",
    "require_request",
    "require_settings",
    "require_sound",
    "require_validation",
    "unknown_tasks",
    "validate_atlas",
]
