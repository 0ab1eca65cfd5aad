"""What a caller says about the panels of a figure: whose axes they are, and what stands on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from string import Formatter
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from headatlas.atlas import Atlas
from headatlas.core import RequestError, UnknownNameError

__all__ = ["TITLE_FIELDS", "Frame"]

#: what a title may name; a field that a figure has no value for is empty
TITLE_FIELDS = ("task", "agreement", "model", "method", "score", "relation", "head")


@dataclass(frozen=True, slots=True)
class Frame:
    """The caller's `axes` (None: a new figure is made) and the format string of panel titles (None: the
    usual titles)."""

    model: str
    axes: tuple[Axes, ...] | None = None
    format: str | None = None

    @classmethod
    def of(cls, atlas: Atlas, ax: Axes | None = None, axes: Any = None, title: str | None = None) -> Frame:
        """Checked arguments of a plot function."""
        if ax is not None and axes is not None:
            raise RequestError("both ax and axes are given; give ax for one panel, axes for several.")
        if title is not None:
            _check_format(title)
        return cls(atlas.spec.name, _flat(ax if axes is None else axes), title)

    def title(self, usual: str, **fields: str) -> str:
        """The title of a panel, by default the usual one."""
        if self.format is None:
            return usual
        return self.format.format(**{**dict.fromkeys(TITLE_FIELDS, ""), "model": self.model, **fields})

    def panels(self, count: int) -> list[Axes]:
        """The caller's axes, as many as the figure has panels."""
        axes = self.axes or ()
        if len(axes) != count:
            raise RequestError(
                f"this figure has {count} panel{'' if count == 1 else 's'} and {len(axes)} axes were given; "
                f"make them with plt.subplots(1, {count})."
            )
        return list(axes)


def _check_format(title: str) -> None:
    try:
        names = [name for _, name, _, _ in Formatter().parse(title) if name is not None]
    except ValueError as error:
        raise RequestError(f"title is {title!r:.60}, which is not a format string: {error}.") from None
    for name in names:
        if name not in TITLE_FIELDS:
            raise UnknownNameError("field of a title", name, TITLE_FIELDS)


def _flat(axes: Any) -> tuple[Axes, ...] | None:
    if axes is None:
        return None
    listed = axes.flat if isinstance(axes, np.ndarray) else axes if isinstance(axes, Iterable) else [axes]
    panels = tuple(listed)
    for panel in panels:
        if not isinstance(panel, Axes):
            raise RequestError(f"{panel!r:.60} is not matplotlib axes; give what plt.subplots returns.")
    return panels
