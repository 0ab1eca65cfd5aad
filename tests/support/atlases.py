"""Atlases made by hand, for tests that need no model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from headatlas.atlas import Atlas, Fit, Run
from headatlas.core import ModelSpec

__all__ = ["atlas_of", "contrast_atlas", "fit_of", "spec_of", "without_fits"]


def spec_of(*heads: int) -> ModelSpec:
    """A model with so many heads in each layer."""
    return ModelSpec(
        name="made up",
        architecture="MadeUp",
        model_type="made_up",
        layers=len(heads),
        heads=heads,
        kv_heads=heads,
        head_dim=tuple(4 if count else 0 for count in heads),
        hidden=16,
        vocabulary=50,
        parameters=1000,
        dtype="float32",
        revision=None,
        content_hash="abc",
    )


def fit_of(task: str, seed: int, fit: str, gates: np.ndarray, spec: ModelSpec) -> Fit:
    """A finished fit with these gates; holes are made where the model has no head."""
    gates = np.array(gates, dtype=np.float64)
    for layer, count in enumerate(spec.heads):
        gates[layer, count:] = np.nan
    with np.errstate(divide="ignore"):
        logits = np.log(gates) - np.log1p(-gates)
    path = np.stack([np.full_like(gates, 0.5), gates]).astype(np.float32)
    return Fit(
        "gating",
        task,
        seed,
        fit,
        "id",
        logits.astype(np.float32),
        path,
        np.array([1, 2], np.int32),
        np.array([2.0, 1.0], np.float32),
        {"nll": 1.0 + seed, "accuracy": 0.5, "token_accuracy": 0.75} if fit != "free" else {},
    )


def atlas_of(
    tasks: Mapping[str, Mapping[int, tuple[np.ndarray, np.ndarray]]], spec: ModelSpec | None = None
) -> Atlas:
    """task -> seed -> (G+, G-)."""
    first = next(iter(next(iter(tasks.values())).values()))[0]
    spec = spec or spec_of(*[np.shape(first)[1]] * np.shape(first)[0])
    plain = {"nll": 3.0, "accuracy": 0.25, "token_accuracy": 0.5, "rows": 7}
    runs = [Run("gating", task, "id", baseline=plain) for task in tasks]
    fits = []
    for task, seeds in tasks.items():
        for seed, (high, low) in seeds.items():
            fits.append(fit_of(task, seed, "free", np.full(np.shape(high), 0.5), spec))
            fits.append(fit_of(task, seed, "retain", high, spec))
            fits.append(fit_of(task, seed, "remove", low, spec))
    return Atlas(spec, runs, fits)


def without_fits(atlas: Atlas, *missing: tuple[int, str]) -> Atlas:
    """The atlas of a run that was stopped before it had these fits, (seed, fit)."""
    fits = [fit for fits in atlas._fits.values() for key, fit in fits.items() if key not in missing]
    return Atlas(atlas.spec, atlas.runs.values(), fits)


def contrast_atlas() -> Atlas:
    """A contrast with two seeds, of a model with two layers of two heads."""
    spec = spec_of(2, 2)
    run = Run(
        "contrast",
        "sums without words",
        "id",
        {"parts": {"retain": {"task": "sums"}, "forget": {"task": "words"}}},
        baseline={"retain_nll": 1.0, "retain_accuracy": 0.5, "forget_nll": 2.0, "forget_accuracy": 0.75},
    )
    fits: list[Fit] = []
    for seed, gates in enumerate(([[0.9, 0.1], [0.9, 0.9]], [[0.9, 0.3], [0.2, 0.9]])):
        facts = {"retain_nll": 1.0 + seed, "retain_accuracy": 0.5, "forget_nll": 4.0, "forget_accuracy": 0.0}
        fit = fit_of(run.task, seed, "retain", np.array(gates), spec)
        fits.append(replace(fit, method="contrast", facts=facts))
    return Atlas(spec, [run], fits)
