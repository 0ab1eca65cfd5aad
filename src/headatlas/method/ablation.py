"""Ablation: each head alone is replaced, and the loss is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headatlas.method.method import Method, MetricOptions

__all__ = ["PROVIDES"]


def _by(stand_in: str) -> Callable[..., Any]:
    def measure(model: Any, rows: Any, *, options: MetricOptions, seed: int, progress: Any) -> Any:
        from headatlas.method.engine.ablate import ablate

        return ablate(model, rows, stand_in, seed=seed, metric=options.metric, progress=progress)

    return measure


PROVIDES = [
    Method(
        "ablate-zero",
        "Zero ablation",
        "loss without the head, less loss with it",
        MetricOptions,
        _by("zero"),
        version=2,
        aliases=("ablate",),
    ),
    Method(
        "ablate-mean",
        "Mean ablation",
        "the head's mean output in its place",
        MetricOptions,
        _by("mean"),
        version=2,
    ),
    Method(
        "ablate-resample",
        "Resample ablation",
        "its output on another item in its place",
        MetricOptions,
        _by("resample"),
        version=2,
    ),
]
