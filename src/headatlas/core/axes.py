"""The axes of every array that headatlas makes, and the words allowed on the named ones.

An array has the axes that it needs, always in the order of `AXES`. `layer` runs over all blocks
of the model, also over those without attention heads; `head` runs up to the largest number of
query heads in any layer. Cells with no head are holes (NaN in scores), never zeros.
"""

from __future__ import annotations

__all__ = ["AXES", "CATEGORIES", "DIRECTIONS", "FITS", "ROLES"]

AXES = ("task", "seed", "fit", "relation", "direction", "layer", "head")
FITS = ("free", "retain", "remove")
ROLES = ("facilitating", "interfering", "irrelevant")
CATEGORIES = ("algorithmic", "knowledge", "linguistic", "translation")
DIRECTIONS = ("promote", "suppress")
