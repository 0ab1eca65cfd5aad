"""Carries out requests, loses nothing, and continues where a run was interrupted."""

from headatlas.run.api import contrast_heads, map_heads, relate_heads, validate_atlas
from headatlas.run.executor import Executor, LocalExecutor, execute
from headatlas.run.ray_executor import Ray, require_ray

__all__ = [
    "Executor",
    "LocalExecutor",
    "Ray",
    "contrast_heads",
    "execute",
    "map_heads",
    "relate_heads",
    "require_ray",
    "validate_atlas",
]
