"""`atlas.plot`: every kind of figure as a function of the atlas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

from headatlas.core import UnknownNameError

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["Plots"]


class Plots:
    """The figures of an atlas, built-in ones and those of plugins: `atlas.plot.agreement("math")`.

    Arguments are those of the function that draws the kind (`help(atlas.plot.agreement)`); called itself,
    `atlas.plot("score", …)` takes the name of a kind.
    """

    def __init__(self, atlas: Atlas) -> None:
        self._atlas = atlas

    def __call__(self, kind: str = "agreement", *args: Any, **options: Any) -> Any:
        from headatlas.figure import draw_figure

        return draw_figure(self._atlas, kind, *args, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        from headatlas.figure import FIGURES

        kinds = {kind.replace("-", "_"): kind for kind in FIGURES}
        if name not in kinds:
            raise AttributeError(str(UnknownNameError("kind of figure", name, kinds)))
        plot = partial(self.__call__, kinds[name])
        return update_wrapper(plot, FIGURES[kinds[name]].plot)

    def __dir__(self) -> list[str]:
        from headatlas.figure import FIGURES

        return sorted(kind.replace("-", "_") for kind in FIGURES)

    def __repr__(self) -> str:
        return f"<figures of {self._atlas.spec.name}: {', '.join(dir(self))}>"
