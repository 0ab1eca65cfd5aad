"""What an atlas says of methods without the code that declares them (`headatlas.method`)."""

from __future__ import annotations

from collections.abc import Iterable
from re import fullmatch

__all__ = ["IMPORTED", "METHOD_ORDER", "NOT_IMPORTED", "in_method_order", "method_name_problem"]

#: the order in which methods are shown; others come after them, by name
METHOD_ORDER = (
    "gating",
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

#: names that atlases reserve
_TAKEN = (
    "attending",
    "contrast",
    "forced",
    IMPORTED,
    "random",
    "relations",
    "retest-a",
    "retest-b",
    "validation",
)


def method_name_problem(name: str) -> str | None:
    """Why a method cannot have this name, which is also that of a folder; None if it can."""
    if name in _TAKEN:
        return "an atlas uses that name for something else"
    if not fullmatch(r"[a-z][a-z0-9-]{0,79}", name):
        return "a method's name has lower-case letters, digits and hyphens, and begins with a letter"
    return None


def in_method_order(methods: Iterable[str]) -> list[str]:
    """Each method once, in the order in which they are shown; imported scores last."""
    rank = {method: index for index, method in enumerate(METHOD_ORDER)}
    return sorted(set(methods), key=lambda name: (name == IMPORTED, rank.get(name, len(rank)), name))
