"""One row per task and head: scores, roles and effects side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.roles import SCORES, roles_of
from headatlas.core import THRESHOLD, UnknownNameError
from headatlas.core.lazy import pd

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["LEVELS", "head_table"]

LEVELS = ("head", "seed")


def head_table(atlas: Atlas, level: str = "head", threshold: float = THRESHOLD) -> pd.DataFrame:
    """A row per task and head, or with `level="seed"` per task, seed and head.

    Columns: task, seed, layer, head, name, facilitation, interference, irrelevance, role, and effect_METHOD
    with its standard error stderr_METHOD for each method that measured effects. Without seeds, scores are the
    means over seeds, the role is that of the means, and effects are pooled over items. What was not measured
    is missing (NaN, None).
    """
    if level not in LEVELS:
        raise UnknownNameError("level of the table", level, LEVELS)
    tasks = list(dict.fromkeys([*atlas.tasks, *(task for task, _ in atlas.effect_maps)]))
    methods = list(dict.fromkeys(method for _, method in atlas.effect_maps))
    columns = [*SCORES.values(), "role", *(f"{what}_{m}" for m in methods for what in ("effect", "stderr"))]
    keys = ["task", *(["seed"] if level == "seed" else []), "layer", "head", "name"]
    parts = [
        part for task in tasks for part in (_by_seed if level == "seed" else _pooled)(atlas, task, threshold)
    ]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    table = table.reindex(columns=[*keys, *columns])
    return table.assign(role=table["role"].astype(object).where(table["role"].notna(), None))


def _pooled(atlas: Atlas, task: str, threshold: float) -> list[pd.DataFrame]:
    columns: dict[str, np.ndarray] = {}
    if task in atlas.tasks:
        scores = atlas.scores(task).mean("seed")
        columns |= {name: scores[name].values for name in SCORES.values()}
        columns["role"] = roles_of(scores, threshold).values
    for name, method in atlas.effect_maps:
        if name == task:
            effects = atlas.pooled_effects(task, method)
            columns |= {f"effect_{method}": effects["effect"].values}
            columns |= {f"stderr_{method}": effects["error"].values}
    return [_rows(atlas, columns, task=task)]


def _by_seed(atlas: Atlas, task: str, threshold: float) -> list[pd.DataFrame]:
    columns: dict[int, dict[str, np.ndarray]] = {}
    if task in atlas.tasks:
        scores = atlas.scores(task)
        roles = roles_of(scores, threshold)
        for seed in scores["seed"].values.tolist():
            of_seed = columns.setdefault(seed, {})
            of_seed |= {name: scores[name].sel(seed=seed).values for name in SCORES.values()}
            of_seed["role"] = roles.sel(seed=seed).values
    for name, method in atlas.effect_maps:
        if name == task:
            effects = atlas.effects(task, method)
            for seed in effects["seed"].values.tolist():
                of_seed = columns.setdefault(seed, {})
                of_seed[f"effect_{method}"] = effects["effect"].sel(seed=seed).values
                of_seed[f"stderr_{method}"] = effects["error"].sel(seed=seed).values
    return [_rows(atlas, of_seed, task=task, seed=seed) for seed, of_seed in sorted(columns.items())]


def _rows(atlas: Atlas, columns: dict[str, np.ndarray], **keys: Any) -> pd.DataFrame:
    """A row per head of the model."""
    heads = list(atlas.spec)
    layers, numbers = (np.array([head[axis] for head in heads], dtype=np.int64) for axis in (0, 1))
    rows = {"layer": layers, "head": numbers, "name": [str(head) for head in heads]}
    rows |= {name: values[layers, numbers] for name, values in columns.items()}
    return pd.DataFrame(rows).assign(**keys)
