"""Which gates of an atlas are applied to a model."""

from __future__ import annotations

import numpy as np

from headatlas.atlas import Atlas
from headatlas.core import AtlasError

__all__ = ["choose_gates"]


def choose_gates(
    atlas: Atlas,
    task: str,
    gates: str = "always",
    hard: float | None = None,
    seed: int | None = None,
    threshold: float = 0.5,
) -> np.ndarray:
    """[layer, head]: what is folded in; NaN where there is no head."""
    if gates == "always":
        interferes = atlas.always(task)["interference"].values
        if not (interferes >= threshold).any():
            raise AtlasError(
                f"{task}: no head interferes in every seed (threshold {threshold}); --gates retain folds in "
                "what the fit found best."
            )
        values: np.ndarray = np.where(np.isnan(interferes), np.nan, interferes < threshold)
        return values
    found = atlas.gates(task).sel(fit=gates)
    values = (found.mean("seed") if seed is None else found.sel(seed=seed)).values.astype(np.float64)
    return values if hard is None else np.where(np.isnan(values), np.nan, values >= hard)
