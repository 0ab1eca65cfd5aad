"""Carries out what is to be fitted, loses nothing, goes on where it was."""

from headatlas.run.contrasting import contrast_heads, contrast_name, contrasted
from headatlas.run.fitting import Progress
from headatlas.run.mapping import distinct_tasks, map_heads, require_sound
from headatlas.run.prepare import prepare

__all__ = [
    "Progress",
    "contrast_heads",
    "contrast_name",
    "contrasted",
    "distinct_tasks",
    "map_heads",
    "prepare",
    "require_sound",
]
