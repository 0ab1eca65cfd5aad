"""Numbers and paths of a request: allowed ones, or one sentence that says what is allowed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from numbers import Real
from operator import index
from pathlib import Path
from typing import Any

from headatlas.core.errors import RequestError

__all__ = ["require_path", "require_seeds", "require_share", "require_whole", "seed_numbers"]


#: the largest seed that a request can name
MOST_SEED = 1_000_000


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


def require_seeds(value: Any, most: int) -> int | tuple[int, ...]:
    """How many seeds (0, 1, …), or which: different whole numbers, in order."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return require_whole("seeds", value, 1, most)
    seeds = sorted(require_whole("each of seeds", seed, 0, MOST_SEED) for seed in value)
    if not 1 <= len(seeds) <= most:
        raise RequestError(f"seeds are {len(seeds)} numbers; allowed are 1 to {most:,} of them.")
    for seed in seeds:
        if seeds.count(seed) > 1:
            raise RequestError(f"seeds hold {seed} twice; give each once.")
    return tuple(seeds)


def seed_numbers(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds of a request that says how many or which."""
    return tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)


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
