"""How often intervals cover and tests reject, and how often they should."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from headatlas.atlas import Interval

__all__ = ["DRAWS", "assert_covers", "assert_rejects", "covers", "pooled"]

#: draws of a simulation: 2 points from 5 % are then more than three standard errors
DRAWS = 1200
#: how far a rate may be from 5 %
_HALF = 0.02


def covers(interval: Interval, true: float) -> bool:
    """Does the interval hold the true value? There must be an interval."""
    assert interval.low is not None and interval.high is not None
    return interval.low <= true <= interval.high


def assert_covers(hits: Mapping[Any, Iterable[bool]], *, errors: float = 0) -> None:
    """Every kind of interval covers in 93 to 97 % of its draws."""
    _assert_near("coverage", 0.95, hits, errors)


def assert_rejects(p_values: Mapping[Any, Iterable[float]], *, errors: float = 0) -> None:
    """Every kind of test without an effect has p < 0.05 in 3 to 7 % of its draws."""
    rejected = {kind: [p < 0.05 for p in values] for kind, values in p_values.items()}
    _assert_near("rejection", 0.05, rejected, errors)


def pooled(by_statistic: Mapping[tuple[Hashable, ...], list[Any]]) -> dict[Hashable, list[Any]]:
    """The draws of all statistics with the same topic, which is the first part of the key."""
    by_topic: defaultdict[Hashable, list[Any]] = defaultdict(list)
    for (topic, *_), draws in by_statistic.items():
        by_topic[topic] += draws
    return by_topic


def _assert_near(what: str, wanted: float, hits: Mapping[Any, Iterable[bool]], errors: float) -> None:
    """Every rate lies within 2 points of the wanted one, or within so many standard errors if these are more.
    There must be draws enough that 2 points are three standard errors, unless the limits follow from them."""
    outside = {}
    assert hits
    for kind, each in hits.items():
        values = np.array(list(each), dtype=float)
        error = float(np.sqrt(0.05 * 0.95 / len(values)))
        half = max(_HALF, errors * error)
        assert errors or 3 * error < _HALF, f"{kind}: {len(values)} draws are too few"
        rate = float(values.mean())
        low, high = max(0.0, wanted - half), min(1.0, wanted + half)
        print(f"{what} | {kind} | {len(values)} | {rate:.3f} | {low:.3f} to {high:.3f}")
        if not low - 1e-9 <= rate <= high + 1e-9:
            outside[kind] = rate
    assert not outside, f"{what} too far from {wanted}: {outside}"
