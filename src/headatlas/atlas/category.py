"""From relation scores to statements about heads: which relations and categories a head implements.

A head implements a relation if its score reaches the threshold; its categories are those of the relations
it implements. Promoting and suppressing are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headatlas.core import CATEGORIES, IMPLEMENTS, require_share
from headatlas.core.lazy import xr

__all__ = ["categories", "category_words", "in_order"]


def in_order(names: Iterable[str]) -> list[str]:
    """Categories, the known ones first and in their order."""
    names = set(names)
    return [*(name for name in CATEGORIES if name in names), *sorted(names - set(CATEGORIES))]


def categories(scores: xr.DataArray, threshold: float = IMPLEMENTS) -> xr.DataArray:
    """[category, direction, layer, head]: does the head implement a relation of the category?

    `scores` is [relation, direction, layer, head] with a `category` along `relation`. A cell without a head
    is False throughout.
    """
    threshold = require_share("threshold", threshold)
    there = in_order(str(name) for name in scores["category"].values)
    parts = [
        (scores.isel(relation=scores["category"].values == name) >= threshold).any("relation")
        for name in there
    ]
    found = xr.concat(parts, dim=xr.DataArray(there, dims="category", name="category"))
    return (
        found.transpose("category", "direction", "layer", "head")
        .rename("implements")
        .assign_attrs(threshold=threshold)
    )


def category_words(found: xr.DataArray, direction: str | None = "promote") -> xr.DataArray:
    """[layer, head]: the category of a head, "2 categories" and so on where it has several, "" where none.

    `direction` None: promoting and suppressing together.
    """
    either = found.any("direction") if direction is None else found.sel(direction=direction, drop=True)
    values = either.transpose("category", "layer", "head").values
    counts = values.sum(0)
    words = np.full(counts.shape, "", dtype=object)
    for place, name in enumerate(found["category"].values):
        words[(counts == 1) & values[place]] = str(name)
    for number in range(2, len(values) + 1):
        words[counts == number] = f"{number} categories"
    return xr.DataArray(
        words.astype(str), dims=["layer", "head"], coords={"layer": found["layer"], "head": found["head"]}
    )
