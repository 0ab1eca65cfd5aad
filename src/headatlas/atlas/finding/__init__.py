"""One number with its uncertainty, and the heads that such numbers are made from."""

from __future__ import annotations

from copy import copy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from headatlas.core import plural

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["TOPICS", "Finding", "Heads", "plural"]

#: topic -> the question that it answers
TOPICS = {
    "density": "How many heads facilitate or interfere, in every seed and in at least one?",
    "tasks": "Do tasks need different numbers of heads?",
    "layers": "Do deeper layers have higher scores?",
    "categories": "Where do the heads of a category begin?",
    "columns": "Are the heads of a task or category gathered in some head columns?",
    "several": "How many heads have several roles or categories?",
    "overlap": "Do tasks share their heads?",
    "held-out": "Do the gates help on items that no gate was fitted on?",
    "ablation": "Do the scores say what happens when heads are switched off?",
    "mediation": "Do heads that mediation names facilitate?",
    "sufficiency": "Are the heads that gating names enough, and more so than those of other methods?",
    "stability": "Would the same map come out again?",
    "joined": "Do the heads that a task needs have the weights for it?",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One number: `value` with its 95 % interval, `p` of the test that goes with it and `adjusted` for all
    tests of the same question; `published`: what the papers say about other models."""

    topic: str
    about: str
    text: str
    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    adjusted: float | None = None
    published: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Heads:
    """The heads of a model as flat arrays, layer by layer, and random orders of them for permutation tests.

    Heads of one layer are not independent of each other. A statement about depth is therefore tested with
    whole layers permuted, any other statement with heads permuted within their layers.
    """

    def __init__(self, atlas: Atlas) -> None:
        heads = np.array([(head.layer, head.head) for head in atlas.spec])
        self.width = atlas.spec.shape[1]
        self.depth = atlas.spec.layers
        self._set(heads[:, 0], heads[:, 1])

    def _set(self, layers: np.ndarray, columns: np.ndarray) -> None:
        self.layers, self.columns, self.count = layers, columns, len(layers)
        #: heads per layer, of the layers that have heads, and the index among these of each head's layer
        _, self.layer_index, self.sizes = np.unique(self.layers, return_inverse=True, return_counts=True)

    def only(self, chosen: np.ndarray) -> Heads:
        """The heads for which `chosen` [head] is True; all arrays and orders are then of these."""
        heads = copy(self)
        heads._set(self.layers[chosen], self.columns[chosen])
        return heads

    def flat(self, values: xr.DataArray) -> np.ndarray:
        """[head]: the values [layer, head] of the heads that the model has."""
        flat: np.ndarray = values.transpose("layer", "head").values[self.layers, self.columns]
        return flat

    def layer_sums(self, values: np.ndarray) -> np.ndarray:
        """[layer with heads]: the sum over the heads of each layer."""
        return np.bincount(self.layer_index, values, len(self.sizes))

    def centered(self, values: np.ndarray) -> np.ndarray:
        """[head]: the values minus the mean of their layer."""
        centered: np.ndarray = values - (self.layer_sums(values) / self.sizes)[self.layer_index]
        return centered

    def within_layers(self, rng: np.random.Generator, draws: int) -> np.ndarray:
        """[draw, head]: orders of all heads that leave each in its layer."""
        return np.argsort(rng.random((draws, self.count)) + self.layer_index, axis=1)

    def shuffled_layers(self, rng: np.random.Generator, draws: int) -> np.ndarray:
        """[draw, layer with heads]: random orders of whole layers, as the depth that each layer gets."""
        return np.argsort(rng.random((draws, len(self.sizes))), axis=1)

    def depth_ranks(self, depths: np.ndarray) -> np.ndarray:
        """[..., layer with heads]: the mean rank by depth of the heads of each layer, if layers lie at
        `depths` [..., layer with heads]."""
        order = np.argsort(depths, axis=-1)
        sizes = self.sizes[order]
        middle = np.cumsum(sizes, axis=-1) - (sizes - 1) / 2
        ranks: np.ndarray = np.take_along_axis(middle, np.argsort(order, axis=-1), axis=-1)
        return ranks
