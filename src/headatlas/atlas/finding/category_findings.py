"""Findings about the categories of relations that heads implement: where they begin, how many heads have
several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, factorial, prod
from typing import TYPE_CHECKING

import numpy as np

from headatlas.atlas.category import categories
from headatlas.atlas.finding import Finding
from headatlas.atlas.finding.flat_heads import Heads
from headatlas.atlas.finding.published import are_published_relations
from headatlas.atlas.finding.role_findings import columns
from headatlas.atlas.imported import relations_of_one_origin
from headatlas.atlas.statistics import TEST_LEVEL, tail_p

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["category_findings", "first_layer", "several_categories"]

#: the share of a category's heads that lie in or above its first layer
_MOST = 0.9
#: layers of the models whose categories are published
_PUBLISHED_LAYERS = 32


def category_findings(atlas: Atlas, heads: Heads, permutations: int) -> list[Finding]:
    """Where the heads of each category begin, whether they share head columns, and heads with several."""
    scores, is_imported = relations_of_one_origin(atlas)
    if not scores.sizes["relation"]:
        return []
    implements = categories(scores).sel(direction="promote")
    names = [str(name) for name in implements["category"].values]
    relations = {
        name: scores["relation"].values[scores["category"].values == name].tolist() for name in names
    }
    is_published = {name: are_published_relations(atlas, relations[name]) for name in names}
    sets = {name: heads.flat(implements.sel(category=name)) for name in names}
    findings = []
    for name, chosen in sets.items():
        if chosen.any():
            published = _published_category(name, heads.depth) if is_published[name] else None
            findings.append(first_layer(heads, name, chosen, permutations, published))
            findings += columns(heads, chosen, "category", name, permutations)
    if len(names) > 1:
        published = "few heads have 2 or 3" if all(is_published.values()) else None
        findings.append(several_categories(heads, list(sets.values()), permutations, published))
    if is_imported:  # the paper scores relations in one way, the author of a table in any
        findings = [
            replace(one, numbers={**one.numbers, "imported": True}, published=None) for one in findings
        ]
    return findings


def _published_category(name: str, layers: int) -> str | None:
    """Where the heads of a category lie in the published models, which have 32 layers."""
    published = {
        "algorithmic": "from layer 18 of 32 on",
        "knowledge": "from layer 18 of 32 on",
        "linguistic": "over all layers, more with depth",
    }.get(name)
    return f"of other models: {published}" if published and layers != _PUBLISHED_LAYERS else published


def first_layer(
    heads: Heads, name: str, chosen: np.ndarray, permutations: int, published: str | None = None
) -> Finding:
    """The highest layer in or above which 90 % of the heads of a category lie. The test asks whether their
    mean depth is larger than with whole layers permuted."""
    layers = np.sort(heads.layers[chosen])
    first = int(layers[len(layers) - ceil(_MOST * len(layers) - 1e-9)])
    counts = heads.layer_sums(chosen)
    depths = heads.shuffled_layers(np.random.default_rng(0), permutations)
    observed = float(np.arange(len(counts)) @ counts)
    same = np.unique(counts, return_counts=True)[1]
    arrangements = factorial(len(counts)) // prod(factorial(int(times)) for times in same)
    p = None if 1 / arrangements > TEST_LEVEL else tail_p(observed, depths @ counts, "more")
    return Finding.of(
        "categories",
        "first layer",
        name,
        first,
        p,
        published,
        category=name,
        heads=len(layers),
        depth=heads.depth,
        mean_layer=float(layers.mean()),
        layers=int((counts > 0).sum()),
    )


def several_categories(
    heads: Heads, sets: Sequence[np.ndarray], permutations: int, published: str | None = None
) -> Finding:
    """How many heads implement relations of two or more categories."""
    value = int((np.sum(sets, axis=0) >= 2).sum())
    rng = np.random.default_rng(0)
    shuffled = sum(chosen[heads.within_layers(rng, permutations)].astype(int) for chosen in sets)
    null = (shuffled >= 2).sum(axis=1)
    p = None if np.ptp(null) == 0 else tail_p(value, null, "more")
    return Finding.of(
        "several", "categories", "categories", value, p, published, by_chance=float(null.mean())
    )
