"""Kinds of figure as registered values, and `draw_figure`, which draws one by its name.

A file of this room, or a plugin, that lists a `FigureKind` in its `PROVIDES` adds a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from headatlas.core import ExtensionError, RequestError, UnknownNameError
from headatlas.core.registry import Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headatlas.atlas import Atlas

__all__ = ["FIGURES", "FigureKind", "draw_figure"]

#: parameters that are no option of a kind: a caller in Python gives them
_OF_ALL = ("width", "title", "ax", "axes")


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure. `plot(atlas, **options)` draws it; `check(atlas)` raises a `RequestError` that says
    what the atlas lacks for it. `draws_gates`: it shows the gates of tasks, of whichever method is chosen."""

    name: str
    summary: str
    plot: Callable[..., Figure]
    check: Callable[[Atlas], object]
    draws_gates: bool = True

    def __post_init__(self) -> None:
        if not callable(self.plot):
            raise ExtensionError(f"the figure {self.name!r} has no function that draws it.")

    @property
    def options(self) -> frozenset[str]:
        """What can be asked of it: the parameters of `plot` other than the atlas, the width, the title, and
        the axes to draw in; `palette` only where the named palettes differ (its default is a name)."""
        parameters = signature(self.plot).parameters
        is_fixed = "palette" in parameters and parameters["palette"].default is None
        return frozenset(parameters) - {"atlas", *_OF_ALL} - ({"palette"} if is_fixed else set())

    def missing(self, atlas: Atlas) -> str | None:
        """What the atlas lacks for this figure, in one sentence; None if it lacks nothing."""
        try:
            self.check(atlas)
        except RequestError as error:
            return str(error)
        return None


FIGURES = Registry(
    "kind of figure",
    FigureKind,
    "headatlas.figure",
    "headatlas.figures",
    first=[
        "agreement", "score", "trajectories", "distributions", "profile", "contrast", "effects", "ablation",
        "sufficiency", "stability", "imported", "categories", "relations", "dynamic",
    ],
)  # fmt: skip


def draw_figure(atlas: Atlas, kind: str, *args: Any, **options: Any) -> Any:
    """A figure of the kind of that name; with `ax` or `axes`, those axes. An option that the kind does not
    have is refused."""
    chosen = FIGURES[kind]
    parameters = signature(chosen.plot).parameters
    for option in options:
        if option in (*_OF_ALL, "palette") and option in parameters:
            continue
        if option not in chosen.options:
            kinds = [other.name for other in FIGURES.values() if option in other.options]
            if not kinds:
                known = frozenset[str]().union(*(other.options for other in FIGURES.values()))
                raise UnknownNameError("option of figures", option, known)
            raise RequestError(f"the option {option!r} is for {', '.join(kinds)}; {kind} has no use for it.")
    return chosen.plot(atlas, *args, **options)
