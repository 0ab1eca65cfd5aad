"""The name of one attention head, and the ranking of heads.

Layers and query heads count from 0. Under grouped or multi-query attention a head is still a
*query* head: several heads then share one key/value head, but each has its own gate and its own
slice of the output projection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Literal

from headatlas.core.errors import HeadNameError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Head", "ranked"]

_SPELLINGS = (
    re.compile(r"L(\d+)H(\d+)", re.IGNORECASE),
    re.compile(r"(\d+)\.(\d+)"),
    re.compile(r"\(?\s*(\d+)\s*,\s*(\d+)\s*\)?"),
    re.compile(r"a(\d+)\.h(\d+)", re.IGNORECASE),
)


@dataclass(frozen=True, order=True, slots=True)
class Head:
    """Query head `head` of layer `layer`, printed as `L5H3`."""

    layer: int
    head: int

    def __post_init__(self) -> None:
        if self.layer < 0 or self.head < 0:
            raise HeadNameError(f"no head at layer {self.layer}, head {self.head}: both count from 0.")

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"

    @classmethod
    def parse(cls, name: str | Sequence[int] | Head) -> Head:
        """Read `"L5H3"`, `"5.3"`, `"a5.h3"`, `(5, 3)` or a `Head`."""
        if isinstance(name, Head):
            return name
        if isinstance(name, str):
            for spelling in _SPELLINGS:
                if match := spelling.fullmatch(name.strip()):
                    return cls(int(match[1]), int(match[2]))
        elif isinstance(name, Sequence) and len(name) == 2 and all(hasattr(n, "__index__") for n in name):
            return cls(index(name[0]), index(name[1]))  # type: ignore[arg-type]
        raise HeadNameError(f"{name!r} names no head; write it like 'L5H3', '5.3', 'a5.h3' or (5, 3).")


def ranked(
    values: np.ndarray, then: np.ndarray | None = None, *, ties: Literal["position", "lot"] = "position"
) -> list[Head]:
    """The heads of a map [layer, head] by falling value, without those whose value is NaN.

    Equal values go by rising `then`. Heads that are still equal stay in the order of the map, or are drawn by
    `ties="lot"`, always the same lot. Many gates rest at their bound, so that many scores are equal; by
    position, whole layers would come first.
    """
    import numpy as np  # not at import time: core is imported by every command

    flat = values.ravel()
    second = np.zeros_like(flat) if then is None else then.ravel()
    third = np.random.default_rng(6).permutation(len(flat)) if ties == "lot" else np.arange(len(flat))
    known = np.flatnonzero(~np.isnan(flat))
    order = known[np.lexsort((third[known], second[known], -flat[known]))]
    return [Head(*divmod(position, values.shape[1])) for position in order.tolist()]
