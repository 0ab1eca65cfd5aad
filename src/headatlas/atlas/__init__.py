"""What is stored, and what it means: records, roles, agreement over seeds, findings. No torch here.

Names are loaded on first use: a request needs the paths of records, and not xarray.
"""

from typing import TYPE_CHECKING

from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas.atlas.agreement import Summary
    from headatlas.atlas.atlas import Atlas, atlases_in, open_atlas, require_atlas
    from headatlas.atlas.category import categories, category_words
    from headatlas.atlas.combine import dtype_advice, other_dtypes
    from headatlas.atlas.comparison import BINS, Comparison, compare, compare_atlases, shared_tasks
    from headatlas.atlas.contents import Contents
    from headatlas.atlas.contrasts import ContrastSeeds, ContrastSummary, contrasts_of, summarize_contrast
    from headatlas.atlas.effect_summary import (
        HALF_PRECISION,
        EffectSummary,
        clustered_error,
        corruptions,
        describe_corruption,
    )
    from headatlas.atlas.finding import TOPICS, Finding, find
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
    from headatlas.atlas.folder import atlas_folder
    from headatlas.atlas.head_card import HeadCard
    from headatlas.atlas.import_summary import ImportSummary, summarize_import
    from headatlas.atlas.imported import (
        imported_effects,
        mean_of_seeds,
        reading_words,
        seeds_given,
        uneven_seeds,
        uneven_words,
    )
    from headatlas.atlas.interval import Interval
    from headatlas.atlas.merge import gathering, put_in_order
    from headatlas.atlas.method_agreement import MethodAgreement
    from headatlas.atlas.record import EffectMap, Fit, ItemEffects, Run, ScoreMap, record_path
    from headatlas.atlas.relation_summary import RelationSummary
    from headatlas.atlas.report import Report
    from headatlas.atlas.roles import SCORES
    from headatlas.atlas.share import download_atlas, pack_atlas, unpack_atlas, upload_atlas
    from headatlas.atlas.stability import Stability, by_seeds
    from headatlas.atlas.store import Store, is_result, is_work, note_path, work_path
    from headatlas.atlas.table import write_table
    from headatlas.atlas.table_import import import_table
    from headatlas.atlas.validation import ORDERS, SHARES, Validation, validation_name
    from headatlas.core import IMPLEMENTS, THRESHOLD

__all__ = [
    "BINS",
    "HALF_PRECISION",
    "IMPLEMENTS",
    "ORDERS",
    "SCORES",
    "SHARES",
    "THRESHOLD",
    "TOPICS",
    "Atlas",
    "Comparison",
    "Contents",
    "ContrastSeeds",
    "ContrastSummary",
    "Doubt",
    "EffectMap",
    "EffectSummary",
    "Finding",
    "Fit",
    "HeadCard",
    "ImportSummary",
    "Interval",
    "ItemEffects",
    "MethodAgreement",
    "RelationSummary",
    "Report",
    "Run",
    "ScoreMap",
    "Stability",
    "Store",
    "Summary",
    "Validation",
    "atlas_folder",
    "atlases_in",
    "by_seeds",
    "categories",
    "category_words",
    "chance_doubt",
    "clustered_error",
    "compare",
    "compare_atlases",
    "contrast_doubts",
    "contrasts_of",
    "corruptions",
    "describe_corruption",
    "doubts",
    "download_atlas",
    "dtype_advice",
    "effect_doubts",
    "find",
    "gathering",
    "import_table",
    "imported_effects",
    "is_result",
    "is_work",
    "made_how",
    "mean_of_seeds",
    "note_path",
    "open_atlas",
    "other_dtypes",
    "pack_atlas",
    "put_in_order",
    "reading_words",
    "record_path",
    "require_atlas",
    "seed_blocks_text",
    "seeds_given",
    "shared_tasks",
    "summarize_contrast",
    "summarize_import",
    "uneven_seeds",
    "uneven_words",
    "unpack_atlas",
    "upload_atlas",
    "validation_doubts",
    "validation_name",
    "work_path",
    "write_table",
]

__getattr__, __dir__ = lazy_exports(__name__)
