"""The name of one attention head, and the ranking of heads.

Layers and query heads count from 0. Under grouped or multi-query attention a head is still a
*query* head: several heads then share one key/value head, but each has its own gate and its own
slice of the output projection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, SupportsIndex

from headatlas.core.errors import HeadNameError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Head", "head_list", "ranked"]

_SPELLINGS = (
    re.compile(r"L(\d+)H(\d+)", re.IGNORECASE),
    re.compile(r"(\d+)\.(\d+)"),
    re.compile(r"\(?\s*(\d+)\s*,\s*(\d+)\s*\)?"),
    re.compile(r"a(\d+)\.h(\d+)", re.IGNORECASE),
)


class _Pair(NamedTuple):
    layer: int
    head: int


class Head(_Pair):
    """Query head `head` of layer `layer`, printed as `L5H3`. A named tuple: it equals `(5, 3)`, and
    `array[Head(5, 3)]` is its cell in an array [layer, head]."""

    __slots__ = ()

    def __new__(cls, layer: SupportsIndex, head: SupportsIndex) -> Self:
        try:
            pair = super().__new__(cls, index(layer), index(head))
        except TypeError:
            raise HeadNameError(
                f"no head at layer {layer!r}, head {head!r}: both are whole numbers."
            ) from None
        if min(pair) < 0:
            raise HeadNameError(f"no head at layer {layer}, head {head}: both count from 0.")
        return pair

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override]
        return cls(*iterable)

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

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


def head_list(heads: str | Sequence[int] | Head | Iterable[Any]) -> list[Any]:
    """One head, `"L5H3"`, `(5, 3)` or a `Head`, or several, as a list of names."""
    if isinstance(heads, str):
        return [heads]
    names = list(heads)
    is_pair = isinstance(heads, tuple) and len(names) == 2 and all(hasattr(n, "__index__") for n in names)
    return [heads] if is_pair else names


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
