"""Tests by permutation, intervals that invert them, and many tests at once.

All draws come from fixed seeds, so the same atlas gives the same figures. A permutation p-value counts the
observed case among the draws, so it is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headatlas.atlas.interval import LEVEL, Interval, jackknife, jackknife_spread, spread_interval

__all__ = [
    "PERMUTATIONS",
    "TEST_LEVEL",
    "concentration",
    "correlation_interval",
    "depth_correlation_interval",
    "difference_interval",
    "holm",
    "jaccard",
    "layer_correlation_interval",
    "permutation_p",
    "rank_correlation",
    "rank_correlations",
    "shuffled_correlation",
    "standardized_ranks",
    "tail_p",
    "welch",
]

#: so many that a p-value can stay small when it is adjusted for a page of tests
PERMUTATIONS = 5000
#: the level of every test; a test that cannot reach it is not made
TEST_LEVEL = 0.05
#: correlations are cut off here before they go to Fisher's z scale, which has no value for 1
_LARGEST = 1 - 1e-9


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
    """A correlation with the interval that inverts its permutation test; none if there are too few different
    permutations.

    On Fisher's z scale the spread of a correlation hardly depends on its size, so the spread under the null
    is taken for it. This holds where heads are permuted within their layers. It does not where whole layers
    are, because a trend with depth adds to the variance between layers: see `depth_correlation_interval`.
    """
    bounds = _mid_quantiles(_fisher(null))
    if bounds is None:
        return Interval(observed)
    center = _fisher(observed)
    return Interval(observed, float(np.tanh(center - bounds[1])), float(np.tanh(center - bounds[0])))


def layer_correlation_interval(first: np.ndarray, second: np.ndarray, layers: np.ndarray) -> Interval:
    """The rank correlation of two maps [head], with its 95 % interval over the layers of these heads.

    Each layer is left out once. This is done on Fisher's z scale, where the spread of a correlation hardly
    depends on its size.
    """
    interval = jackknife(len(first), _fisher_correlation(first, second), groups=layers)
    return _from_fisher(rank_correlation(first, second), interval)


def depth_correlation_interval(layers: np.ndarray, values: np.ndarray) -> Interval:
    """The rank correlation of a map [head] with the depth of its `layers`, with its interval over layers.

    As `layer_correlation_interval`, but depths are not random. Without its first or last layer a map
    correlates less with depth because the range of depths is smaller. That part of the change grows with the
    squared distance from the middle depth and is the same in every sample, so it does not count: with it,
    intervals of a correlation of 0.5 cover 98 %.
    """
    observed, count = rank_correlation(layers, values), len(layers)
    index, sizes = np.unique(layers, return_inverse=True, return_counts=True)[1:]
    if len(sizes) < 2:
        return Interval(observed)
    distances = count * standardized_ranks(layers) ** 2  # squared, of each head; their mean is 1
    spread = jackknife_spread(
        count,
        _fisher_correlation(layers, values),
        groups=layers,
        fixed=np.bincount(index, distances - 1) / (count - sizes),
    )
    if spread is None:
        return Interval(observed)
    return _from_fisher(observed, spread_interval(float(_fisher(observed)), [spread]))


def _fisher(correlation: float | np.ndarray) -> np.ndarray:
    """Correlations on Fisher's z scale."""
    return np.asarray(np.arctanh(np.clip(correlation, -_LARGEST, _LARGEST)))


def _fisher_correlation(first: np.ndarray, second: np.ndarray) -> Callable[[np.ndarray], float]:
    return lambda index: float(_fisher(rank_correlation(first[index], second[index])))


def _from_fisher(observed: float, interval: Interval) -> Interval:
    """An interval on Fisher's z scale as that of a correlation."""
    if interval.low is None or interval.high is None:
        return Interval(observed)
    return Interval(observed, float(np.tanh(interval.low)), float(np.tanh(interval.high)))


def difference_interval(observed: float, null: np.ndarray) -> Interval:
    """The mean difference of some named heads from the others, with the interval that inverts its permutation
    test; the null has mean zero. None if there are too few different permutations.

    This assumes that the named heads vary as the others do and differ from them by a constant. The null
    contains that constant: where it is more than one standard deviation of the others, the interval is wider
    than it need be.
    """
    bounds = _mid_quantiles(null)
    if bounds is None:
        return Interval(observed)
    return Interval(observed, float(observed - bounds[1]), float(observed - bounds[0]))


def _mid_quantiles(null: np.ndarray) -> tuple[float, float] | None:
    """The quantiles that bound 95 % of null values, of which equal ones count half, as in `tail_p`. None if
    the smallest or the largest value is so frequent that it does not lie outside."""
    values, counts = np.unique(np.round(null, 12), return_counts=True)
    shares = (np.cumsum(counts) - counts / 2) / len(null)
    tail = (1 - LEVEL) / 2
    if shares[0] > tail or shares[-1] < 1 - tail:
        return None
    low, high = np.interp([tail, 1 - tail], shares, values)
    return float(low), float(high)


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's; NaN where one of the two is constant."""
    if len(one) < 2:
        return float("nan")
    first, second = standardized_ranks(np.array([one, other], dtype=float))
    return float(np.clip(first @ second, -1, 1))


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


def welch(first: np.ndarray, second: np.ndarray) -> tuple[Interval, float | None]:
    """The difference of two means with Welch's interval and p; none of these with one value on a side, or if
    neither side varies."""
    from scipy import stats  # importing scipy takes a second; most commands do not need it

    gap = float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2 or not (np.ptp(first) or np.ptp(second)):
        return Interval(gap), None
    parts = np.array([values.var(ddof=1) / len(values) for values in (first, second)])
    freedom = parts.sum() ** 2 / (parts**2 / [len(first) - 1, len(second) - 1]).sum()
    error = float(np.sqrt(parts.sum()))
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error
    return Interval(gap, gap - half, gap + half), float(2 * stats.t.sf(abs(gap) / error, freedom))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given (Holm): the chance of even one false alarm among all stays below
    the level."""
    values = np.array(p_values, dtype=float)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, (len(values) - rank) * values[place])
        adjusted[place] = min(1.0, highest)
    return [float(value) for value in adjusted]
