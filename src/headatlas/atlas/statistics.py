"""Tests by permutation, intervals that invert them, and many tests at once.

All draws come from fixed seeds, so the same atlas gives the same figures. A permutation p-value counts the
observed case among the draws, so it is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from headatlas.atlas.interval import LEVEL, Interval

__all__ = [
    "PERMUTATIONS",
    "concentration",
    "correlation_interval",
    "difference_interval",
    "holm",
    "jaccard",
    "permutation_p",
    "rank_correlation",
    "rank_correlations",
    "shuffled_correlation",
    "standardized_ranks",
    "tail_p",
]

#: so many that a p-value can stay small when it is adjusted for a page of tests
PERMUTATIONS = 5000


def permutation_p(
    observed: float,
    draw: Callable[[np.random.Generator], float],
    *,
    draws: int = PERMUTATIONS,
    seed: int = 0,
    sides: str = "two",
) -> float:
    """`tail_p` of values that `draw` makes one by one."""
    rng = np.random.default_rng(seed)
    return tail_p(observed, np.array([draw(rng) for _ in range(draws)]), sides)


def tail_p(observed: float, null: np.ndarray, sides: str = "two") -> float:
    """The mid-p-value of an observed value among null values: above it ("more"), below it ("less"), or twice
    the smaller of the two ("two").

    Null values equal to the observed one count half, and so does the observed one itself. Counts of heads
    have many ties, and a test that counts them fully rejects far too rarely.
    """
    slack = 1e-12 * max(1.0, abs(observed))  # values that differ only by rounding are equal
    above, below = (null > observed + slack).sum(), (null < observed - slack).sum()
    ties = 1 + len(null) - above - below
    more, less = ((tail + ties / 2) / (1 + len(null)) for tail in (above, below))
    return float({"more": more, "less": less, "two": min(1.0, 2 * min(more, less))}[sides])


def correlation_interval(observed: float, null: np.ndarray) -> Interval:
    """A correlation with the interval that inverts its permutation test.

    On Fisher's z scale the spread of a correlation hardly depends on its size, so the spread under the null
    is taken for it.
    """
    limit = 1 - 1e-9
    low, high = _mid_quantiles(np.arctanh(np.clip(null, -limit, limit)))
    center = np.arctanh(np.clip(observed, -limit, limit))
    return Interval(observed, float(np.tanh(center - high)), float(np.tanh(center - low)))


def difference_interval(observed: float, null: np.ndarray) -> Interval:
    """A difference with the interval that inverts its permutation test; the null has mean zero."""
    low, high = _mid_quantiles(null)
    return Interval(observed, float(observed - high), float(observed - low))


def _mid_quantiles(null: np.ndarray) -> tuple[float, float]:
    """The quantiles that bound 95 % of null values, of which equal ones count half, as in `tail_p`."""
    values, counts = np.unique(np.round(null, 12), return_counts=True)
    shares = (np.cumsum(counts) - counts / 2) / len(null)
    low, high = np.interp([(1 - LEVEL) / 2, (1 + LEVEL) / 2], shares, values)
    return float(low), float(high)


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's; NaN where one of the two is constant."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    return float(rank_correlations(one[None], other[None])[0]) if len(one) > 1 else float("nan")


def rank_correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """[row]: Spearman's correlation of each row of `one` with the same row of `other`; NaN where one of the
    two is constant."""
    products = np.einsum("ij,ij->i", standardized_ranks(one), standardized_ranks(other))
    correlations: np.ndarray = np.clip(products, -1, 1)
    return correlations


def standardized_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks along the last axis with mean zero and length one; NaN where all values are equal."""
    from scipy import stats  # importing scipy takes a second; most commands do not need it

    ranks = stats.rankdata(values, axis=-1)
    ranks = ranks - ranks.mean(axis=-1, keepdims=True)
    lengths = np.sqrt((ranks**2).sum(axis=-1, keepdims=True))
    unit: np.ndarray = ranks / np.where(lengths > 0, lengths, np.nan)
    return unit


def shuffled_correlation(
    one: np.ndarray, other: np.ndarray, order: Callable[[np.random.Generator], np.ndarray]
) -> Callable[[np.random.Generator], float]:
    """For `permutation_p`: the rank correlation with the second in another order (ranks go along)."""
    first, second = standardized_ranks(one), standardized_ranks(other)
    return lambda chance: float(first @ second[order(chance)])


def jaccard(one: np.ndarray, other: np.ndarray) -> float:
    """The share of the heads in either set that are in both; 1 for two empty sets."""
    either = int((one | other).sum())
    return float((one & other).sum() / either) if either else 1.0


def concentration(counts: np.ndarray) -> np.ndarray:
    """[...]: how unevenly heads are spread over head columns, from `counts` [..., column]: the variance of
    the counts over their mean (about 1 by chance)."""
    means = counts.mean(axis=-1)
    ratio: np.ndarray = counts.var(axis=-1) / np.where(means > 0, means, np.nan)
    return ratio


def holm(p_values: Mapping[str, float] | Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given (Holm): the chance of even one false alarm among all stays below
    the level."""
    values = np.array(
        list(p_values.values()) if isinstance(p_values, Mapping) else list(p_values), dtype=float
    )
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, (len(values) - rank) * values[place])
        adjusted[place] = min(1.0, highest)
    return [float(value) for value in adjusted]
