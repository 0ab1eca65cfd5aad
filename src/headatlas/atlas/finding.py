"""One number with its uncertainty, and the heads that such numbers are made from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

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
    "ablation": "Do the scores say what happens when heads are switched off?",
    "mediation": "Do heads that mediation names facilitate?",
    "sufficiency": "Are the heads that gating names enough, and more so than those of other methods?",
    "stability": "Would the same map come out again?",
    "joined": "Do the heads that a task needs have the weights for it?",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One number: `value` with its 95 % interval, `p` of the test that goes with it and `adjusted` for all
    tests of the report; `published`: what the papers say, of other models."""

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


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


class Heads:
    """The heads of a model as places in flat arrays."""

    def __init__(self, atlas: Atlas) -> None:
        places = [(head.layer, head.head) for head in atlas.spec]
        self.layers, self.columns = (np.array(part) for part in zip(*places, strict=True))
        self.count = len(places)
        self.width = atlas.spec.shape[1]
        self.depth = atlas.spec.layers
        self._even = len(set(atlas.spec.heads)) == 1

    def flat(self, values: xr.DataArray) -> np.ndarray:
        found: np.ndarray = values.transpose("layer", "head").values[self.layers, self.columns]
        return found

    def within_layers(self, chance: np.random.Generator) -> np.ndarray:
        """An order of all heads that leaves each in its layer."""
        if self._even:  # as heads come layer by layer, a row is a layer
            rows = np.arange(self.count).reshape(-1, self.width)
            found: np.ndarray = chance.permuted(rows, axis=1).ravel()
            return found
        # heads come layer by layer here too
        return np.lexsort((chance.random(self.count), self.layers))
