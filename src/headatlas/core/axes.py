"""The axes of every array that headatlas makes, the words allowed on the named ones, and the thresholds.

An array has the axes that it needs, always in the order of `AXES`. `layer` runs over all blocks
of the model, also over those without attention heads; `head` runs up to the largest number of
query heads in any layer. Cells with no head are holes (NaN in scores), never zeros.
"""

from __future__ import annotations

__all__ = ["AXES", "CATEGORIES", "DIRECTIONS", "FITS", "IMPLEMENTS", "ROLES", "THRESHOLD"]

AXES = ("task", "seed", "fit", "relation", "direction", "layer", "head")
FITS = ("free", "retain", "remove")
ROLES = ("facilitating", "interfering", "irrelevant")
CATEGORIES = ("algorithmic", "knowledge", "linguistic", "translation")
DIRECTIONS = ("promote", "suppress")
#: a head has a role if its score is at least this; a gate that is at least this is open
THRESHOLD = 0.5
#: a head implements a relation if its score is at least this
IMPLEMENTS = 0.15
