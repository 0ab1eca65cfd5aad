"""Colours: what stands for helping, hurting, both and neither, and for the categories of relations; and how
values between them look.

`paper` is the published look, green and red on black. `safe` tells the same things apart for readers who
do not see red and green as different colours. Both are in `palette.json`; the build of the page reads it too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Colormap, LinearSegmentedColormap, is_color_like, to_hex, to_rgb

from headatlas.core import RequestError, UnknownNameError

__all__ = [
    "FIT_COLOURS",
    "HEADER_COLOUR",
    "HOLE_COLOUR",
    "HOLE_HATCH",
    "PALETTES",
    "Palette",
    "PaletteLike",
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
    `several`: two, three, four, more. `diverging` shows values below and above zero, `fits` the three fits,
    `methods` the curves of methods whose usual color is not wanted.
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
    diverging: Colormap = field(default_factory=lambda: colormaps["RdBu"])
    fits: dict[str, str] = field(default_factory=lambda: dict(FIT_COLOURS))
    methods: dict[str, str] = field(default_factory=dict)

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


#: a palette, its name, or colors that replace those of "paper": {"helps": "C0", "hurts": "C3"}
PaletteLike = str | Mapping[str, Any] | Palette
_CORNERS = ("neither", "helps", "hurts", "both")


def palette_of(palette: PaletteLike | None, names: Iterable[str] = ()) -> Palette:
    """The palette of that name (None: "paper"), or "paper" with the colors of a mapping.

    A mapping may name helps, hurts, both and neither; scores (facilitation, …); fits (free, retain, remove);
    categories and unclassified; heat, a colormap; and `names`, the methods that a figure shows. Colors of
    helps and hurts are also those of facilitation and interference and of diverging maps.
    """
    if isinstance(palette, Palette):
        return palette
    if isinstance(palette, Mapping):
        return _changed(PALETTES["paper"], palette, tuple(names))
    if palette is None:
        return PALETTES["paper"]
    if palette not in PALETTES:
        raise UnknownNameError("palette", palette, PALETTES)
    return PALETTES[palette]


def _changed(palette: Palette, colours: Mapping[str, Any], names: tuple[str, ...]) -> Palette:
    known = [*_CORNERS, *palette.lines, *palette.fits, *palette.categories, "unclassified", "heat", *names]
    for name, colour in colours.items():
        if name not in known:
            raise UnknownNameError("color of this figure", name, known)
        is_map = isinstance(colour, Colormap) or colour in colormaps
        if not (is_map if name == "heat" else is_color_like(colour)):
            allowed = "colormap" if name == "heat" else "color"
            raise RequestError(f"palette[{name!r}] is {colour!r:.40}, which is not a {allowed}.")
    chosen = {name: to_hex(colour) for name, colour in colours.items() if name != "heat"}
    corners = {name: chosen[name] for name in _CORNERS if name in chosen}
    helps, hurts = (corners.get(name, getattr(palette, name)) for name in ("helps", "hurts"))
    diverging, lines = palette.diverging, dict(palette.lines)
    if {"helps", "hurts"} & corners.keys():
        light = np.clip(np.array(to_rgb(helps)) + np.array(to_rgb(hurts)), 0, 1)
        corners.setdefault("both", to_hex(light))  # as green and red make yellow
        diverging = LinearSegmentedColormap.from_list("hurts-helps", [hurts, "white", helps])
        of_corners = {"facilitation": "helps", "interference": "hurts"}
        lines |= {line: corners[corner] for line, corner in of_corners.items() if corner in corners}
    heat = colours.get("heat", palette.heat)
    neither, helps, hurts, both = (corners.get(name, getattr(palette, name)) for name in _CORNERS)
    return replace(
        palette,
        neither=neither,
        helps=helps,
        hurts=hurts,
        both=both,
        lines=_replaced(lines, chosen),
        heat=colormaps[heat] if isinstance(heat, str) else heat,
        unclassified=chosen.get("unclassified", palette.unclassified),
        categories={**palette.categories, **{name: chosen[name] for name in names if name in chosen}}
        | _replaced(palette.categories, chosen),
        diverging=diverging,
        fits=_replaced(palette.fits, chosen),
        methods={name: chosen[name] for name in names if name in chosen},
    )


def _replaced(colours: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    return {name: chosen.get(name, colour) for name, colour in colours.items()}
