"""Relations in numbers: how each was measured, its best heads, and how many heads have which category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from headatlas.atlas.category import categories, category_words
from headatlas.atlas.imported import relations_of_one_origin
from headatlas.core import DIRECTIONS, Head, ranked

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["RelationSummary", "count_categories", "summarize_relations"]

#: best heads of each direction
_BEST = 3


@dataclass(frozen=True, slots=True)
class RelationSummary:
    """A relation in numbers. Of `listed` pairs `single` have one token on both sides; the score is made from
    `pairs`, read from the first `k` tokens and the vectors of `source`. `left_out` counts pairs by reason;
    `best` maps a direction to its best heads with a score above zero, and that score."""

    relation: str
    category: str
    kind: str
    pairs: int
    single: int
    listed: int
    k: int
    source: str
    left_out: dict[str, int]
    best: dict[str, list[tuple[Head, float]]]

    def to_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        best = values.pop("best")
        return values | {
            direction: [{"head": str(head), "score": score} for head, score in heads]
            for direction, heads in best.items()
        }


def summarize_relations(atlas: Atlas, relations: Sequence[str]) -> list[RelationSummary]:
    """These relations of an atlas in numbers."""
    scores = atlas.relation_scores().sel(relation=list(relations))
    summaries = []
    for name in relations:
        of_relation = scores.sel(relation=name)
        best = {}
        for direction in DIRECTIONS:
            values = of_relation.sel(direction=direction).values
            first = [(head, float(values[head.layer, head.head])) for head in ranked(values)[:_BEST]]
            best[direction] = [(head, round(score, 4)) for head, score in first if score > 0]
        keys = ("category", "kind", "pairs", "single", "listed", "k", "source")
        left_out = {reason: len(pairs) for reason, pairs in atlas.left_out_pairs(name).items()}
        summaries.append(
            RelationSummary(
                relation=name,
                **{key: of_relation[key].item() for key in keys},
                left_out=left_out,
                best=best,
            )
        )
    return summaries


def count_categories(atlas: Atlas) -> dict[str, dict[str, int]]:
    """direction -> category (or "2 categories", …) -> heads."""
    scores, _ = relations_of_one_origin(atlas)
    if not scores.sizes["relation"]:
        return {}
    by_category = categories(scores)
    counts: dict[str, dict[str, int]] = {}
    for direction in DIRECTIONS:
        words = category_words(by_category, direction).values.ravel().tolist()
        order = sorted(set(words) - {""}, key=lambda word: (word[0].isdigit(), word))
        counts[direction] = {word: words.count(word) for word in order}
    return counts
