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
from headatlas.atlas.card import HeadCard, RelationOfHead, SalientToken, TaskOfHead, plain_label
from headatlas.atlas.categories import IMPLEMENTS, categories, category_words
from headatlas.atlas.export import write_table
from headatlas.atlas.importing import import_table
from headatlas.atlas.layout import SCHEMA, slug
from headatlas.atlas.records import EffectMap, Fit, Run, ScoreMap
from headatlas.atlas.scores import SCORES, THRESHOLD, role_scores, roles_of
from headatlas.atlas.store import Store

__all__ = [
    "IMPLEMENTS",
    "SCHEMA",
    "SCORES",
    "THRESHOLD",
    "Atlas",
    "EffectMap",
    "Fit",
    "HeadCard",
    "Interval",
    "RelationOfHead",
    "Run",
    "SalientToken",
    "ScoreMap",
    "Store",
    "Summary",
    "TaskOfHead",
    "always",
    "any_seed",
    "categories",
    "category_words",
    "import_table",
    "interval",
    "open_atlas",
    "plain_label",
    "role_scores",
    "roles_of",
    "seed_correlation",
    "slug",
    "summarise",
    "write_table",
]
