"""Atlases made by hand: gates of 0 and 1 give scores that need no calculator."""

from __future__ import annotations

import numpy as np
import pytest

from headatlas.atlas import Atlas, Fit, Run
from headatlas.core import FITS, ModelSpec

#: role -> (gate of retain, gate of remove)
GATES = {"facilitating": (1.0, 1.0), "interfering": (0.0, 0.0), "irrelevant": (1.0, 0.0)}


def make_spec(heads: tuple[int, ...]) -> ModelSpec:
    widths = tuple(64 if count else 0 for count in heads)
    return ModelSpec(
        "tiny", "Tiny", "tiny", len(heads), heads, heads, widths, 64, 100, 1000, "float32", None, None
    )


def make_atlas(gates: dict[str, np.ndarray], heads: tuple[int, ...] | None = None) -> Atlas:
    """From task -> [seed, (retain, remove), layer, head]; free gates are 0.5, updates 10 and 20 are kept.

    The gates of retain are also there as a contrast of the same name.
    """
    first = next(iter(gates.values()))
    heads = heads or (first.shape[3],) * first.shape[2]
    fits = []
    for task, values in gates.items():
        for seed, (retain, remove) in enumerate(values):
            for fit, gate in zip(
                FITS, (np.where(np.isnan(retain), np.nan, 0.5), retain, remove), strict=True
            ):
                with np.errstate(divide="ignore"):
                    logits = np.log(gate) - np.log1p(-gate)
                path = np.stack([(gate + 0.5) / 2, gate])
                updates = np.array([10, 20])
                methods = ("gating", *(["contrast"] if fit == "retain" else []))
                rest = (task, seed, fit, "x", logits, path, updates, np.zeros(20))
                fits.extend(Fit(method, *rest) for method in methods)
    runs = [Run(method, task, "x") for method in ("gating", "contrast") for task in gates]
    return Atlas(make_spec(heads), runs, fits)


def random_atlas(layers: int, heads: int, tasks: int | list[str] = 1, seeds: int = 2, holes=()) -> Atlas:
    names = ["math", "syntax", "aba", "paper/math"][:tasks] if isinstance(tasks, int) else tasks
    draw = np.random.default_rng(0)
    gates = {}
    for name in names:
        values = draw.beta(0.3, 0.3, size=(seeds, 2, layers, heads))
        values[:, :, list(holes)] = np.nan
        gates[name] = values
    return make_atlas(gates, tuple(0 if layer in holes else heads for layer in range(layers)))


@pytest.fixture
def hand_made() -> Atlas:
    """Two seeds, two layers of three heads.

    L0: helps, hurts, is idle in both seeds. L1: helps then hurts, helps then is idle, is idle in both.
    """
    seeds = [
        [["facilitating", "interfering", "irrelevant"], ["facilitating", "facilitating", "irrelevant"]],
        [["facilitating", "interfering", "irrelevant"], ["interfering", "irrelevant", "irrelevant"]],
    ]
    gates = np.array([[[GATES[role] for role in layer] for layer in seed] for seed in seeds])
    return make_atlas({"math": np.moveaxis(gates, -1, 1)})


@pytest.fixture
def any_atlas():
    """A function: random gates for a model of any shape."""
    return random_atlas


@pytest.fixture
def from_gates():
    """A function: an atlas with exactly these gates."""
    return make_atlas
