"""Which heads to switch off, by role or name, and the gates that do it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from headatlas.atlas.roles import SCORES
from headatlas.core import ROLES, THRESHOLD, AtlasError, Head, UnknownNameError, ranked, require_share

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["choose_gates", "heads_by_role", "heads_off"]


def heads_by_role(atlas: Atlas, task: str, role: str, threshold: float = THRESHOLD) -> list[Head]:
    """The heads with a role in every seed, the strongest first."""
    if role not in SCORES:
        raise UnknownNameError("role", role, ROLES)
    scores = atlas.always(task)[SCORES[role]].values
    threshold = require_share("threshold", threshold)
    return [head for head in ranked(scores) if scores[head.layer, head.head] >= threshold]


def heads_off(atlas: Atlas, heads: Iterable[str | tuple[int, int] | Head]) -> np.ndarray:
    """[layer, head]: gates that switch off these heads and leave all others as they are; NaN where the model
    has no head."""
    gates = np.full(atlas.spec.shape, np.nan)
    for head in atlas.spec:
        gates[head.layer, head.head] = 1
    for name in heads:
        head = atlas.spec.require(name)
        gates[head.layer, head.head] = 0
    return gates


def choose_gates(
    atlas: Atlas,
    task: str,
    gates: str = "always",
    hard: float | None = None,
    seed: int | None = None,
    threshold: float = THRESHOLD,
) -> np.ndarray:
    """[layer, head]: what is folded in; NaN where there is no head."""
    if gates == "always":
        interfering = heads_by_role(atlas, task, "interfering", threshold)
        if not interfering:
            raise AtlasError(
                f"{task}: no head interferes in every seed (threshold {threshold}); gates='retain' folds in "
                "what the fit found best."
            )
        return heads_off(atlas, interfering)
    found = atlas.gates(task).sel(fit=gates)
    values = (found.mean("seed") if seed is None else found.sel(seed=seed)).values.astype(np.float64)
    if hard is None:
        return values
    return np.where(np.isnan(values), np.nan, values >= require_share("hard", hard))
