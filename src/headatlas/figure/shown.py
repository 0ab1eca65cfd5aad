"""Figures as notebooks and pyplot show them."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable
from functools import wraps
from io import BytesIO
from typing import Any, ParamSpec

from matplotlib.figure import Figure

from headatlas.figure.style import house_style

__all__ = ["Shown", "figure_function", "new_figure"]

#: dots per inch in a notebook
_NOTEBOOK = 160

_Params = ParamSpec("_Params")


class Shown(Figure):
    """A figure that a notebook shows, also where pyplot is not imported."""

    def _repr_html_(self) -> str:
        data = BytesIO()
        self.savefig(data, format="png", dpi=_NOTEBOOK)
        pyplot = _pyplot()
        if pyplot is not None and "inline" in pyplot.get_backend():
            pyplot.close(self)  # the inline backend would show it once more at the end of the cell
        return f'<img alt="figure" src="data:image/png;base64,{b64encode(data.getvalue()).decode()}">'


def _pyplot() -> Any:
    """pyplot, if the caller has imported it."""
    return sys.modules.get("matplotlib.pyplot")


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure of that size in inches. If pyplot is imported, it knows the figure, so that
    `plt.show()` shows it and `plt.close()` closes it."""
    pyplot = _pyplot()
    if pyplot is None:
        return Shown(figsize=size)
    figure: Figure = pyplot.figure(figsize=size, FigureClass=Shown)
    return figure


def figure_function(plot: Callable[_Params, Figure]) -> Callable[_Params, Any]:
    """Draw in the house style. The result is the figure; with `ax` or `axes`, those that were given. If
    drawing fails, pyplot keeps no half-drawn figure."""

    @wraps(plot)
    def styled(*args: _Params.args, **options: _Params.kwargs) -> Any:
        pyplot = _pyplot()
        numbers = set() if pyplot is None else set(pyplot.get_fignums())
        try:
            with house_style():
                figure = plot(*args, **options)
        except BaseException:
            for number in set() if pyplot is None else set(pyplot.get_fignums()) - numbers:
                pyplot.close(number)
            raise
        axes = [options[name] for name in ("ax", "axes") if options.get(name) is not None]
        return axes[0] if axes else figure

    return styled
