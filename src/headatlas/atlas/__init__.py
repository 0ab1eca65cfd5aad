"""Scores -> statements: roles, agreement over seeds; and the store on disk. No torch here."""

from headatlas.atlas.agreement import (
    Summary,
    always,
    any_seed,
    seed_correlation,
    summarise,
)
from headatlas.atlas.atlas import Atlas, atlases_in, open_atlas, require_atlas
from headatlas.atlas.card import (
    ContrastOfHead,
    EffectOfHead,
    HeadCard,
    ImportedOfHead,
    RelationOfHead,
    SalientToken,
    TaskOfHead,
    plain_label,
)
from headatlas.atlas.categories import IMPLEMENTS, categories, category_words
from headatlas.atlas.comparison import BINS, Comparison, compare_atlases, shared_tasks
from headatlas.atlas.contrasts import ContrastSummary, contrasts_of, summarize_contrast
from headatlas.atlas.effect_summary import COMPLETE, clustered_error, corruptions, describe_corruption
from headatlas.atlas.export import write_table, write_text
from headatlas.atlas.finding import TOPICS, Finding, plural
from headatlas.atlas.finding.doubts import (
    Doubt,
    chance_doubt,
    contrast_doubts,
    doubts,
    effect_doubts,
    made_how,
    seed_blocks_text,
    validation_doubts,
)
from headatlas.atlas.finding.role_findings import find
from headatlas.atlas.imported import (
    imported_effects,
    mean_of_seeds,
    reading_words,
    relations_of_one_origin,
    seeds_given,
    uneven_seeds,
)
from headatlas.atlas.interval import Interval
from headatlas.atlas.layout import (
    SCHEMA,
    effect_path,
    fit_path,
    is_result,
    is_work,
    note_path,
    score_path,
    slug,
    work_path,
)
from headatlas.atlas.merge import gathering, put_in_order
from headatlas.atlas.record import EffectMap, Fit, ItemEffects, Run, ScoreMap
from headatlas.atlas.report import SUFFICIENCY_WORDS, report_markdown
from headatlas.atlas.roles import SCORES, THRESHOLD, role_scores, roles_of
from headatlas.atlas.share import download_atlas, pack_atlas, unpack_atlas, upload_atlas
from headatlas.atlas.stability import HALVES, HalfOverlap, by_seeds, half_overlap, retest
from headatlas.atlas.store import Store, is_sound_file
from headatlas.atlas.table_import import import_table
from headatlas.atlas.validation import ORDERS, SHARES, Validation, faithfulness, validation_name

__all__ = [
    "BINS",
    "COMPLETE",
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
    "ContrastOfHead",
    "ContrastSummary",
    "Doubt",
    "EffectMap",
    "EffectOfHead",
    "Finding",
    "Fit",
    "HalfOverlap",
    "HeadCard",
    "ImportedOfHead",
    "Interval",
    "ItemEffects",
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
    "chance_doubt",
    "clustered_error",
    "compare_atlases",
    "contrast_doubts",
    "contrasts_of",
    "corruptions",
    "describe_corruption",
    "doubts",
    "download_atlas",
    "effect_doubts",
    "effect_path",
    "faithfulness",
    "find",
    "fit_path",
    "gathering",
    "half_overlap",
    "import_table",
    "imported_effects",
    "is_result",
    "is_sound_file",
    "is_work",
    "made_how",
    "mean_of_seeds",
    "note_path",
    "open_atlas",
    "pack_atlas",
    "plain_label",
    "plural",
    "put_in_order",
    "reading_words",
    "relations_of_one_origin",
    "report_markdown",
    "require_atlas",
    "retest",
    "role_scores",
    "roles_of",
    "score_path",
    "seed_blocks_text",
    "seed_correlation",
    "seeds_given",
    "shared_tasks",
    "slug",
    "summarise",
    "summarize_contrast",
    "uneven_seeds",
    "unpack_atlas",
    "upload_atlas",
    "validation_doubts",
    "validation_name",
    "work_path",
    "write_table",
    "write_text",
]
