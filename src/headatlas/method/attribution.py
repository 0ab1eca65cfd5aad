"""Attribution: the effect of every head at once, from gradients at the gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headatlas.core import RequestError
from headatlas.method.method import Method, MetricOptions

__all__ = ["MOST_POINTS", "PROVIDES", "TOLERANCE", "GradientOptions"]

#: integrated gradients stop when the expected error of the sum over heads is this share of the whole effect
TOLERANCE = 0.02
#: or when they have used so many points per row
MOST_POINTS = 2048


@dataclass(frozen=True)
class GradientOptions(MetricOptions):
    """Options of the gradient at open gates, which is zero for KL: there the two models are the same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric == "kl":
            raise RequestError(
                "metric 'kl' has the slope 0 where all gates are open, so attribute-gradient is 0 for every "
                "head; use attribute-integrated or an ablation, or the metrics nll or logit_diff."
            )


def _gradient(model: Any, rows: Any, *, options: GradientOptions, seed: int, progress: Any) -> Any:
    from headatlas.method.engine.attribute import attribute

    return attribute(model, rows, metric=options.metric, progress=progress)


def _integrated(model: Any, rows: Any, *, options: MetricOptions, seed: int, progress: Any) -> Any:
    from headatlas.method.engine.attribute import integrate

    return integrate(
        model,
        rows,
        tolerance=TOLERANCE,
        most_points=MOST_POINTS,
        metric=options.metric,
        progress=progress,
    )


PROVIDES = [
    Method(
        "attribute-gradient",
        "Gradient",
        "slope of the loss at the open gate",
        GradientOptions,
        _gradient,
        version=2,
        aliases=("attribute",),
    ),
    Method(
        "attribute-integrated",
        "Integrated gradients",
        "slopes on the way from all gates shut to all open",
        MetricOptions,
        _integrated,
        version=2,
        constants={"tolerance": TOLERANCE, "most_points": MOST_POINTS, "path": "float32"},
    ),
]
