"""Scores -> statements: roles, agreement over seeds; and the store on disk. No torch here."""

from headatlas.atlas.agreement import Summary
from headatlas.atlas.atlas import Atlas, atlases_in, open_atlas, require_atlas
from headatlas.atlas.categories import categories, category_words
from headatlas.atlas.comparison import BINS, Comparison, compare_atlases, shared_tasks
from headatlas.atlas.contrasts import ContrastSummary, contrast_by_seed, contrasts_of, summarize_contrast
from headatlas.atlas.effect_summary import (
    COMPLETE,
    EffectSummary,
    clustered_error,
    corruptions,
    describe_corruption,
)
from headatlas.atlas.export import write_table, write_text
from headatlas.atlas.finding import TOPICS, Finding, find, plural
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
from headatlas.atlas.head_card import HeadCard, RelationOfHead, SalientToken, TaskOfHead
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
)
from headatlas.atlas.merge import gathering, put_in_order
from headatlas.atlas.record import EffectMap, Fit, ItemEffects, Run, ScoreMap
from headatlas.atlas.relation_summary import RelationSummary, count_categories, summarize_relations
from headatlas.atlas.report import SUFFICIENCY_WORDS, Report
from headatlas.atlas.roles import SCORES, role_scores, roles_of
from headatlas.atlas.selection import choose_gates
from headatlas.atlas.share import download_atlas, pack_atlas, unpack_atlas, upload_atlas
from headatlas.atlas.stability import Stability, by_seeds, half_overlap, retest
from headatlas.atlas.store import Store, is_sound_file
from headatlas.atlas.table_import import import_table
from headatlas.atlas.validation import ORDERS, SHARES, Validation, validation_name
from headatlas.core import IMPLEMENTS, THRESHOLD

__all__ = [
    "BINS",
    "COMPLETE",
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
    "ContrastSummary",
    "Doubt",
    "EffectMap",
    "EffectSummary",
    "Finding",
    "Fit",
    "HeadCard",
    "Interval",
    "ItemEffects",
    "RelationOfHead",
    "RelationSummary",
    "Report",
    "Run",
    "SalientToken",
    "ScoreMap",
    "Stability",
    "Store",
    "Summary",
    "TaskOfHead",
    "Validation",
    "atlases_in",
    "by_seeds",
    "categories",
    "category_words",
    "chance_doubt",
    "choose_gates",
    "clustered_error",
    "compare_atlases",
    "contrast_by_seed",
    "contrast_doubts",
    "contrasts_of",
    "corruptions",
    "count_categories",
    "describe_corruption",
    "doubts",
    "download_atlas",
    "effect_doubts",
    "effect_path",
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
    "plural",
    "put_in_order",
    "reading_words",
    "relations_of_one_origin",
    "require_atlas",
    "retest",
    "role_scores",
    "roles_of",
    "score_path",
    "seed_blocks_text",
    "seeds_given",
    "shared_tasks",
    "slug",
    "summarize_contrast",
    "summarize_relations",
    "uneven_seeds",
    "unpack_atlas",
    "upload_atlas",
    "validation_doubts",
    "validation_name",
    "write_table",
    "write_text",
]
