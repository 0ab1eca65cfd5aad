"""Attribution: the effect of every head at once, from gradients at the gates."""

from __future__ import annotations

from typing import Any

from headatlas.method.method import EffectOptions, Method

__all__ = ["MOST_POINTS", "PROVIDES", "TOLERANCE"]

#: integrated gradients stop when the expected error of the sum over heads is this share of the whole effect
TOLERANCE = 0.02
#: or when they have used so many points per row
MOST_POINTS = 2048


def _gradient(model: Any, rows: Any, *, options: EffectOptions, seed: int, progress: Any) -> Any:
    from headatlas.method.engine.attribute import attribute

    return attribute(model, rows, progress=progress)


def _integrated(model: Any, rows: Any, *, options: EffectOptions, seed: int, progress: Any) -> Any:
    from headatlas.method.engine.attribute import integrate

    return integrate(model, rows, tolerance=TOLERANCE, most_points=MOST_POINTS, progress=progress)


PROVIDES = [
    Method(
        "attribute-gradient",
        "Gradient",
        "slope of the loss at the open gate",
        EffectOptions,
        _gradient,
        version=2,
        aliases=("attribute",),
    ),
    Method(
        "attribute-integrated",
        "Integrated gradients",
        "slopes on the way from all gates shut to all open",
        EffectOptions,
        _integrated,
        version=2,
        constants={"tolerance": TOLERANCE, "most_points": MOST_POINTS, "path": "float32"},
    ),
]
