"""How often intervals cover and tests reject, and how often they should."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headatlas.atlas import Interval

__all__ = ["assert_covers", "assert_rejects", "covers"]


def covers(interval: Interval, true: float) -> bool:
    """Does the interval hold the true value? There must be an interval."""
    assert interval.low is not None and interval.high is not None
    return interval.low <= true <= interval.high


def assert_covers(hits: Mapping[Any, Iterable[bool]]) -> None:
    """Every kind of interval covers in 93 to 97 % of its draws."""
    _assert_within(hits, 0.93, 0.97)


def assert_rejects(p_values: Mapping[Any, Iterable[float]]) -> None:
    """Every kind of test without an effect has p < 0.05 in 3 to 7 % of its draws."""
    _assert_within({kind: [p < 0.05 for p in values] for kind, values in p_values.items()}, 0.03, 0.07)


def _assert_within(hits: Mapping[Any, Iterable[bool]], low: float, high: float) -> None:
    rates = {kind: float(np.mean(list(values))) for kind, values in hits.items()}
    print({str(kind): round(rate, 3) for kind, rate in rates.items()})
    outside = {str(kind): rate for kind, rate in rates.items() if not low <= rate <= high}
    assert not outside, f"outside {low} to {high}: {outside}"
