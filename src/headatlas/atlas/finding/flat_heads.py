"""The heads that findings are made from, as flat arrays, and random orders of them for permutation tests."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from headatlas.core.lazy import xr

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["Heads"]


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
