"""Colours: what stands for helping, hurting, both and neither, and for the categories of relations; and how
values between them look.

`paper` is the published look, green and red on black. `safe` tells the same things apart for readers who
do not see red and green as different colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

HEADER_COLOUR = "#d9d9d9"
#: cells without a head: light and hatched, so that they are neither black nor the light "both" of `safe`
HOLE_COLOUR, HOLE_HATCH = "#e6e6e6", "#a6a6a6"
#: of the three fits; kept away from the colours of the roles, which are something else
FIT_COLOURS = {"free": "#8c8c8c", "retain": "#6a3d9a", "remove": "#e08a00"}


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
    lines: dict[str, str]
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


PALETTES = {
    "paper": Palette(
        neither="#000000",
        helps="#00ff00",
        hurts="#ff0000",
        both="#ffff00",
        # pure green is too light for a line on white
        lines={"facilitation": "#1b9e3f", "interference": "#d7191c", "irrelevance": "#7f7f7f"},
        heat=LinearSegmentedColormap.from_list(
            "black-green-yellow-red", ["#000000", "#00a000", "#ffff00", "#ff0000"]
        ),
        unclassified="#b4b4b4",
        categories={
            "algorithmic": "#1f77b4",
            "knowledge": "#ff7f0e",
            "linguistic": "#2ca02c",
            "translation": "#d62728",
        },
        others=("#bcbd22", "#17becf"),
        several=("#9467bd", "#8c564b", "#e377c2", "#000000"),
    ),
    "safe": Palette(
        neither="#000000",
        helps="#2f7fff",
        hurts="#f58a07",
        both="#fff3ea",
        lines={"facilitation": "#2463c7", "interference": "#e07b00", "irrelevance": "#7f7f7f"},
        heat=colormaps["cividis"],
        unclassified="#c4c4c4",
        categories={
            "algorithmic": "#333ae3",
            "knowledge": "#dd7a00",
            "linguistic": "#00c27b",
            "translation": "#af2603",
        },
        others=("#94abfc", "#b1ff00"),
        several=("#894694", "#000000", "#ffce6a", "#5e6554"),
    ),
}


def palette_of(name: str) -> Palette:
    """The palette of that name."""
    if name not in PALETTES:
        raise UnknownNameError("set of colours", name, PALETTES)
    return PALETTES[name]
