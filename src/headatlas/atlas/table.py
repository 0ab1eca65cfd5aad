"""All values of an atlas as one tidy table, and the table as a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headatlas.atlas.record import EffectMap, Fit, ScoreMap
from headatlas.core import DIRECTIONS, ModelSpec, in_method_order, write_whole
from headatlas.core.lazy import pd

__all__ = ["COLUMNS", "tidy_table", "write_table"]

COLUMNS = ["method", "task", "seed", "fit", "relation", "direction", "layer", "head", "value"]


def tidy_table(
    spec: ModelSpec, fits: Iterable[Fit], effects: Iterable[EffectMap], scores: Iterable[ScoreMap]
) -> pd.DataFrame:
    """One line per value: fits, then effects method by method, then relations by name. A head without a
    value has no line."""
    parts = [
        _part(spec, fit.gates, fit.method, fit.task, _seed(fit.seed, fit.facts), fit.fit) for fit in fits
    ]
    effects = list(effects)
    order = in_method_order(effect.method for effect in effects)
    for effect in sorted(effects, key=lambda each: order.index(each.method)):
        seed = _seed(effect.seed, effect.facts)
        parts.append(_part(spec, effect.values, effect.method, effect.task, seed))
    for score in sorted(scores, key=lambda each: (each.method, each.relation)):
        method = str(score.facts.get("stated_method", score.method))
        per_seed = score.values[None] if score.per_seed is None else score.per_seed
        for seed, maps in zip(score.facts.get("seeds") or [pd.NA], per_seed, strict=True):
            for direction, values in zip(DIRECTIONS, maps, strict=True):
                parts.append(
                    _part(spec, values, method, "", seed, relation=score.relation, direction=direction)
                )
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(parts, ignore_index=True)[COLUMNS].astype({"seed": "Int64"})


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """CSV or Parquet, by the name's ending."""
    if path.suffix.lower() == ".csv":
        write_whole(path, lambda draft: frame.to_csv(draft, index=False))
    else:
        write_whole(path, lambda draft: frame.to_parquet(draft, index=False))


def _seed(seed: int, facts: Mapping[str, Any]) -> Any:
    """The seed; not available where an imported table gave none."""
    return seed if facts.get("seed_given", True) else pd.NA


def _part(
    spec: ModelSpec,
    values: np.ndarray,
    method: str,
    task: str,
    seed: Any,
    fit: str = "",
    relation: str = "",
    direction: str = "",
) -> pd.DataFrame:
    places = [(head.layer, head.head) for head in spec]
    layers, heads = (np.array(column, dtype=np.int32) for column in zip(*places, strict=True))
    part = pd.DataFrame({"layer": layers, "head": heads, "value": values[layers, heads]})
    return part[part["value"].notna()].assign(
        method=method, task=task, seed=seed, fit=fit, relation=relation, direction=direction
    )
