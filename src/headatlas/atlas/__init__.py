"""Scores -> statements: roles, agreement over seeds; and the store on disk. No torch here."""

from headatlas.atlas.agreement import (
    Interval,
    Summary,
    always,
    any_seed,
    interval,
    seed_correlation,
    summarise,
)
from headatlas.atlas.atlas import Atlas, open_atlas
from headatlas.atlas.export import write_table
from headatlas.atlas.layout import SCHEMA, slug
from headatlas.atlas.records import Fit, Run
from headatlas.atlas.scores import SCORES, THRESHOLD, role_scores, roles_of
from headatlas.atlas.store import Store

__all__ = [
    "SCHEMA",
    "SCORES",
    "THRESHOLD",
    "Atlas",
    "Fit",
    "Interval",
    "Run",
    "Store",
    "Summary",
    "always",
    "any_seed",
    "interval",
    "open_atlas",
    "role_scores",
    "roles_of",
    "seed_correlation",
    "slug",
    "summarise",
    "write_table",
]
