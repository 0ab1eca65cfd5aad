"""Everything headatlas raises on purpose.

    HeadatlasError            exit 1   the work failed
    ├── ExtensionError                 a method, figure or export format that breaks its contract
    ├── FitError                       a fit that went wrong: no number, no gradient, no memory
    ├── StoreError                     an atlas that cannot be written now: disk full, in use
    └── RequestError          exit 2   the request was wrong
        ├── UnknownNameError           no such built-in name; carries the closest ones
        ├── HeadNameError              text that names no head, or a head the model lacks
        ├── ModelSourceError           a model that cannot be found, reached or read
        ├── ModelRefusedError          a model that was read but cannot be mapped
        ├── GateError                  gate values that do not fit the model
        ├── TaskError                  a task that cannot be read, or has nothing to ask
        └── AtlasError                 a folder that is not an atlas, or does not fit the request

A result that needs a second look is a HeadatlasWarning.

A message is one sentence or two: the value, what is allowed, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from headatlas.core.text import escape_unprintable

__all__ = [
    "AtlasError",
    "ExtensionError",
    "FitError",
    "GateError",
    "HeadNameError",
    "HeadatlasError",
    "HeadatlasWarning",
    "ModelRefusedError",
    "ModelSourceError",
    "RequestError",
    "StoreError",
    "TaskError",
    "UnknownNameError",
]


class HeadatlasWarning(UserWarning):
    """A result that needs a second look."""


class HeadatlasError(Exception):
    """The work failed for a reason that is known, which is said in one line."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        text = " ".join(line.strip() for line in str(message).splitlines() if line.strip())
        super().__init__(escape_unprintable(text))  # a message may quote a foreign file


class ExtensionError(HeadatlasError):
    """A method, figure or export format that breaks its contract; its author can repair it."""


class FitError(HeadatlasError):
    """A fit that went wrong; finished fits stay as they are."""


class StoreError(HeadatlasError):
    """An atlas that cannot be written now; what was there is still there."""


class RequestError(HeadatlasError):
    """The request was wrong: another request can succeed, the same one cannot."""

    exit_code = 2


class UnknownNameError(RequestError):
    """A name that is not among the known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.name = name
        known = sorted(known)
        self.closest = tuple(get_close_matches(str(name), known, n=3, cutoff=0.5))
        if self.closest:
            advice = f"did you mean {' or '.join(repr(close) for close in self.closest)}?"
        else:
            advice = f"there are: {', '.join(known)}." if known else "there are none."
        super().__init__(f"no {kind} named {name!r}; {advice}{' ' + hint if hint else ''}")


class HeadNameError(RequestError):
    """Text that names no head, or a head that the model does not have."""


class ModelSourceError(RequestError):
    """A model that cannot be found, reached or read."""


class ModelRefusedError(RequestError):
    """A model that was read but whose heads cannot be gated and read faithfully.

    `check` holds the self-check that it failed, where it got as far as that.
    """

    check: Any = None


class GateError(RequestError):
    """Gate values, or a use of gates, that does not fit the model."""


class TaskError(RequestError):
    """A task that cannot be read, or that has nothing to ask of this model."""


class AtlasError(RequestError):
    """A folder that holds no atlas, a damaged one, or one that does not fit the request."""
