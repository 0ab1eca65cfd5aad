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
from headatlas.atlas.atlas import Atlas, atlases_in, open_atlas
from headatlas.atlas.card import EffectOfHead, HeadCard, RelationOfHead, SalientToken, TaskOfHead, plain_label
from headatlas.atlas.categories import IMPLEMENTS, categories, category_words
from headatlas.atlas.comparing import BINS, Comparison, compare_atlases, shared_tasks
from headatlas.atlas.doubts import doubts, doubts_of, made_how
from headatlas.atlas.export import write_table, write_text
from headatlas.atlas.finding import TOPICS, Finding
from headatlas.atlas.findings import find
from headatlas.atlas.gathering import gathering, put_in_order
from headatlas.atlas.importing import import_table
from headatlas.atlas.layout import (
    SCHEMA,
    effect_path,
    fit_path,
    is_result,
    is_work,
    note_path,
    score_path,
    slug,
)
from headatlas.atlas.records import EffectMap, Fit, Run, ScoreMap
from headatlas.atlas.report import SUFFICIENCY_WORDS, report_markdown
from headatlas.atlas.scores import SCORES, THRESHOLD, role_scores, roles_of
from headatlas.atlas.sharing import download_atlas, pack_atlas, unpack_atlas, upload_atlas
from headatlas.atlas.stability import HALVES, by_seeds, facilitating_jaccard, retest
from headatlas.atlas.store import Store, is_sound_file
from headatlas.atlas.validation import ORDERS, SHARES, Validation, faithfulness, validation_name

__all__ = [
    "BINS",
    "HALVES",
    "IMPLEMENTS",
    "ORDERS",
    "SCHEMA",
    "SCORES",
    "SHARES",
    "SUFFICIENCY_WORDS",
    "THRESHOLD",
    "TOPICS",
    "Atlas",
    "Comparison",
    "EffectMap",
    "EffectOfHead",
    "Finding",
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
    "Validation",
    "always",
    "any_seed",
    "atlases_in",
    "by_seeds",
    "categories",
    "category_words",
    "compare_atlases",
    "doubts",
    "doubts_of",
    "download_atlas",
    "effect_path",
    "facilitating_jaccard",
    "faithfulness",
    "find",
    "fit_path",
    "gathering",
    "import_table",
    "interval",
    "is_result",
    "is_sound_file",
    "is_work",
    "made_how",
    "note_path",
    "open_atlas",
    "pack_atlas",
    "plain_label",
    "put_in_order",
    "report_markdown",
    "retest",
    "role_scores",
    "roles_of",
    "score_path",
    "seed_correlation",
    "shared_tasks",
    "slug",
    "summarise",
    "unpack_atlas",
    "upload_atlas",
    "validation_name",
    "write_table",
    "write_text",
]
