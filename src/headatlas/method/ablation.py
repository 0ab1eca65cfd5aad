"""Ablation: each head alone is replaced, and the loss is measured."""

from __future__ import annotations

from typing import Any

from headatlas.method.method import EffectOptions, Method

__all__ = ["PROVIDES"]


def _zero(model: Any, rows: Any, *, options: EffectOptions, seed: int, progress: Any) -> Any:
    from headatlas.method.engine.ablate import ablate

    return ablate(model, rows, "zero", seed=seed, progress=progress)


def _mean(model: Any, rows: Any, *, options: EffectOptions, seed: int, progress: Any) -> Any:
    from headatlas.method.engine.ablate import ablate

    return ablate(model, rows, "mean", seed=seed, progress=progress)


def _resample(model: Any, rows: Any, *, options: EffectOptions, seed: int, progress: Any) -> Any:
    from headatlas.method.engine.ablate import ablate

    return ablate(model, rows, "resample", seed=seed, progress=progress)


PROVIDES = [
    Method(
        "ablate-zero",
        "Zero ablation",
        "loss without the head, less loss with it",
        EffectOptions,
        _zero,
        version=2,
        aliases=("ablate",),
    ),
    Method(
        "ablate-mean", "Mean ablation", "the head's mean output in its place", EffectOptions, _mean, version=2
    ),
    Method(
        "ablate-resample",
        "Resample ablation",
        "its output on another item in its place",
        EffectOptions,
        _resample,
        version=2,
    ),
]
