"""A figure: the norms of all heads as points."""

from __future__ import annotations

from typing import Any

from headatlas import RequestError
from headatlas.figure import FigureKind


def plot_norms(atlas: Any, *, label: str | None = None) -> Any:
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_subplot(title=label or "norms")
    axes.plot(atlas.effects("echo", "output-norm")["effect"].values.ravel(), "o")
    return figure


def check(atlas: Any) -> None:
    if ("echo", "output-norm") not in atlas.effect_maps:
        raise RequestError("the atlas has no norms.")


PROVIDES = [FigureKind("norms", "norms of head outputs", plot_norms, check)]
