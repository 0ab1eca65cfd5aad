"""Names of methods that an atlas must know without the code that declares them (`headatlas.method`)."""

from __future__ import annotations

__all__ = ["EFFECT_METHODS", "IMPORTED", "NOT_IMPORTED", "method_named"]

#: built-in methods that give one number per head, in the order in which they are shown
EFFECT_METHODS = (
    "ablate-zero",
    "ablate-mean",
    "ablate-resample",
    "attribute-gradient",
    "attribute-integrated",
    "mediate",
)
#: the method of a score that was made elsewhere, in a way that only its author knows
IMPORTED = "imported"
#: what is said of a head for which nothing was imported
NOT_IMPORTED = "not in the imported table"
_SHORT = {"ablate": "ablate-zero", "attribute": "attribute-gradient"}


def method_named(name: str) -> str:
    """The full name of a method; `ablate` and `attribute` are short for the plainest of their kind."""
    return _SHORT.get(name, name)
