"""The ways to ask what heads do to a task, by name."""

from __future__ import annotations

from headatlas.core.errors import UnknownNameError

__all__ = ["EFFECT_METHODS", "IMPORTED", "METHODS", "NOT_IMPORTED", "method_named"]

#: methods that give one number per head, its effect on the loss; and what it is, in words
EFFECT_METHODS = {
    "ablate-zero": "loss without the head, less loss with it",
    "ablate-mean": "the head's mean output in its place",
    "ablate-resample": "its output on another item in its place",
    "attribute-gradient": "slope of the loss at the open gate",
    "attribute-integrated": "slopes on the way from all gates shut to all open",
    "mediate": "what its clean output brings back after a corrupted prompt",
}
METHODS = ("gating", *EFFECT_METHODS)
#: the method of a score that was made elsewhere, in a way that only its author knows
IMPORTED = "imported"
#: what is said of a head for which nothing was imported
NOT_IMPORTED = "not in the imported table"
_SHORT = {"ablate": "ablate-zero", "attribute": "attribute-gradient"}


def method_named(name: str) -> str:
    """The method of that name; `ablate` and `attribute` are short for the plainest of their kind."""
    if name in METHODS:
        return name
    if name in _SHORT:
        return _SHORT[name]
    raise UnknownNameError("method", name, METHODS)
