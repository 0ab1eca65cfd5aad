"""Aliases and units of methods, from the registry.

The registry loads plugins, so it is asked only about a method that the atlas itself says nothing of.
"""

from __future__ import annotations

__all__ = ["UNKNOWN_UNIT", "is_installed", "method_named", "unit_of_method"]

#: of imported effects, if the method is not installed
UNKNOWN_UNIT = "unknown"


def method_named(name: str) -> str:
    """The full name of a method; `ablate` and `attribute` are short for the plainest of their kind."""
    from headatlas.method.method import METHODS

    return METHODS[name].name if name in METHODS else name


def is_installed(name: str) -> bool:
    """True for a built-in method or one of a plugin."""
    from headatlas.method.method import METHODS

    return name in METHODS


def unit_of_method(name: str) -> str:
    """The unit of the effects of a method."""
    from headatlas.method.method import METHODS

    return METHODS[name].unit if name in METHODS else UNKNOWN_UNIT
