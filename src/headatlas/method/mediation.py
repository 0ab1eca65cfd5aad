"""Causal mediation: what a head's clean output brings back after a corrupted prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headatlas.method.method import Method, MetricOptions

__all__ = ["PROVIDES"]


def _decide(rows: Sequence[Any]) -> dict[str, str]:
    """How the prompts of a task are corrupted: decided by all rows, so that no draw changes it."""
    from headatlas.method.engine.mediate import choose_corruption

    chosen = choose_corruption(rows)
    return {"prompts": chosen.prompts, "positions": chosen.positions}


def _mediate(
    model: Any, rows: Any, *, options: MetricOptions, seed: int, progress: Any, decided: Mapping[str, str]
) -> Any:
    from headatlas.method.engine.mediate import mediate

    return mediate(model, rows, seed=seed, metric=options.metric, progress=progress, **decided)


def _remark(rows: Sequence[Any]) -> str:
    """Why the task's own prompts are not patched at all positions; empty if they are."""
    from headatlas.method.engine.mediate import choose_corruption

    return choose_corruption(rows).because


PROVIDES = [
    Method(
        "mediate",
        "Causal mediation",
        "what its clean output brings back after a corrupted prompt",
        MetricOptions,
        _mediate,
        version=2,
        decide=_decide,
        remark=_remark,
    )
]
