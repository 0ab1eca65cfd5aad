"""Colours: what stands for helping, hurting, both and neither, and for the categories of relations; and how
values between them look.

`paper` is the published look, green and red on black. `safe` tells the same things apart for readers who
do not see red and green as different colours. Both are in `palette.json`; the build of the page reads it too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb

from headatlas.core import UnknownNameError

__all__ = [
    "FIT_COLOURS",
    "HEADER_COLOUR",
    "HOLE_COLOUR",
    "HOLE_HATCH",
    "PALETTES",
    "Palette",
    "palette_of",
]

_COLOURS: dict[str, Any] = json.loads(
    files("headatlas.figure").joinpath("palette.json").read_text(encoding="utf-8")
)

HEADER_COLOUR: str = _COLOURS["header"]
#: cells without a head: light and hatched, so that they are neither black nor the light "both" of `safe`
HOLE_COLOUR: str = _COLOURS["hole"]["fill"]
HOLE_HATCH: str = _COLOURS["hole"]["hatch"]
#: of the three fits; kept away from the colours of the roles, which are something else
FIT_COLOURS: dict[str, str] = _COLOURS["fits"]


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of the four corners of (facilitation, interference), of lines on white, of one score;

    and of heads that implement no relation, those of one category, `others` (yours) in turn, and those of
    `several`: two, three, four, more.
    """

    neither: str
    helps: str
    hurts: str
    both: str
    lines: dict[str, str]  # pure green is too light for a line on white
    heat: Colormap
    unclassified: str
    categories: dict[str, str]
    others: tuple[str, ...]
    several: tuple[str, ...]

    def of_words(self, categories: Sequence[str]) -> dict[str, str]:
        """The colour of each of `category_words`, in an atlas with these categories."""
        yours = [name for name in categories if name not in self.categories]
        of_yours = {name: self.others[place % len(self.others)] for place, name in enumerate(yours)}
        counts = range(2, len(categories) + 1)
        return {
            "": self.unclassified,
            **{name: of_yours.get(name) or self.categories[name] for name in categories},
            **{f"{n} categories": self.several[min(n - 2, len(self.several) - 1)] for n in counts},
        }

    def blend(self, facilitation: np.ndarray, interference: np.ndarray) -> np.ndarray:
        """RGB between the four corners, linear along both axes.

        With black, green, red and yellow in the corners this is red = interference, green = facilitation.
        """
        helping, hurting = (np.asarray(part, dtype=float)[..., None] for part in (facilitation, interference))
        blended: np.ndarray = (
            (1 - helping) * (1 - hurting) * np.array(to_rgb(self.neither))
            + helping * (1 - hurting) * np.array(to_rgb(self.helps))
            + (1 - helping) * hurting * np.array(to_rgb(self.hurts))
            + helping * hurting * np.array(to_rgb(self.both))
        )
        return blended


def _heat(name: str, steps: list[str]) -> Colormap:
    """Matplotlib's colormap of that name, or one through the steps."""
    return colormaps[name] if name in colormaps else LinearSegmentedColormap.from_list(name, steps)


def _palette(parts: dict[str, Any]) -> Palette:
    of_turns = {name: tuple(parts[name]) for name in ("others", "several")}
    return Palette(**{**parts, **of_turns, "heat": _heat(**parts["heat"])})


PALETTES = {name: _palette(parts) for name, parts in _COLOURS["palettes"].items()}


def palette_of(name: str) -> Palette:
    """The palette of that name."""
    if name not in PALETTES:
        raise UnknownNameError("set of colours", name, PALETTES)
    return PALETTES[name]
