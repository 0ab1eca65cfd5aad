"""What hatched cells mean: a place without a head, or a head of which the atlas has no value."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.artist import Artist
from matplotlib.patches import Patch

from headatlas.atlas import Atlas
from headatlas.core import NOT_IMPORTED
from headatlas.core.lazy import xr
from headatlas.figure.panels import hatch_holes
from headatlas.figure.style import LINE_WIDTH

__all__ = ["heads_of", "hole_legend"]


def heads_of(atlas: Atlas) -> np.ndarray:
    """[layer, head]: True where the model has a head."""
    return np.arange(atlas.spec.shape[1]) < np.array(atlas.spec.heads)[:, None]


def hole_legend(atlas: Atlas, maps: Iterable[xr.DataArray], *, imported: bool) -> list[Artist]:
    """An entry for the hatched cells of maps [layer, head], if there are any. `imported`: a value is missing
    because an imported table does not give it."""
    is_head = heads_of(atlas)
    is_unknown = np.zeros_like(is_head)
    for values in maps:
        is_unknown |= is_head & values.isnull().transpose("layer", "head").values
    words = ["no head"] if not is_head.all() else []
    if is_unknown.any():
        words.append(NOT_IMPORTED if imported else "not measured")
    if not words:
        return []
    patch = Patch(label=" or ".join(words), gid="hole")
    hatch_holes(patch)
    patch.set(linewidth=LINE_WIDTH)
    return [patch]
