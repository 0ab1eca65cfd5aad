"""Numbers and paths of a request: allowed ones, or one sentence that says what is allowed."""

from __future__ import annotations

import os
from numbers import Real
from operator import index
from pathlib import Path
from typing import Any

from headatlas.core.errors import RequestError

__all__ = ["require_path", "require_share", "require_whole"]


def require_whole(name: str, value: Any, least: int, most: int) -> int:
    """The value as an int; also NumPy integers. Fractions, texts and bools are refused."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise RequestError(f"{name} is {value!r:.60}; allowed are whole numbers from {least} to {most:,}.")
    if not least <= number <= most:
        raise RequestError(f"{name} is {number}; allowed are {least} to {most:,}.")
    return number


def require_share(name: str, value: Any) -> float:
    """The value as a float above 0 and up to 1; NaN is refused."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise RequestError(f"{name} is {value!r:.60}; allowed are numbers above 0 and up to 1.")
    return float(value)


def require_path(name: str, value: Any) -> Path:
    """The value as a path; anything but text or a path is refused."""
    if not isinstance(value, str | os.PathLike):
        raise RequestError(f"{name} is {value!r:.60}; allowed is a path.")
    return Path(value)
