"""Numbers with their uncertainty: intervals by bootstrap, tests by permutation, many tests at once.

All draws come from seeds that are fixed, so that the same atlas gives the same figures. A p-value by
permutation counts the observed case among the draws: it is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headatlas.atlas.agreement import Interval

__all__ = [
    "DRAWS",
    "PERMUTATIONS",
    "Overlap",
    "bootstrap",
    "concentration",
    "correlated",
    "holm",
    "jaccard",
    "mcnemar",
    "overlap",
    "permutation_p",
    "proportion",
    "rank_correlation",
    "shuffled_correlation",
]

#: bootstrap samples
DRAWS = 2000
#: so many that a p-value can stay small when it is adjusted for a page of tests
PERMUTATIONS = 5000


def bootstrap(
    count: int,
    statistic: Callable[[np.ndarray], float],
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """`statistic(places)` of all `count` units, and the percentile interval of it over draws with
    replacement.

    Draws of which the statistic is not defined (NaN) are left out.
    """
    chance = np.random.default_rng(seed)
    found = np.array([statistic(chance.integers(count, size=count)) for _ in range(draws)], dtype=float)
    found = found[~np.isnan(found)]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2]) if len(found) else (np.nan, np.nan)
    return Interval(float(statistic(np.arange(count))), float(low), float(high))


def permutation_p(
    observed: float,
    draw: Callable[[np.random.Generator], float],
    *,
    draws: int = PERMUTATIONS,
    seed: int = 0,
    sides: str = "two",
) -> float:
    """The share of draws at least as far out as what was observed: above it (`more`), below it (`less`), or
    twice the smaller of the two (`two`)."""
    chance = np.random.default_rng(seed)
    found = np.array([draw(chance) for _ in range(draws)])
    slack = 1e-12 * max(1.0, abs(observed))  # what differs by rounding alone is as far out
    more = (1 + (found >= observed - slack).sum()) / (1 + draws)
    less = (1 + (found <= observed + slack).sum()) / (1 + draws)
    return float({"more": more, "less": less, "two": min(1.0, 2 * min(more, less))}[sides])


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's; NaN where one of the two is constant."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if len(one) < 2 or not np.ptp(one) or not np.ptp(other):
        return float("nan")
    return float(np.clip(_standardised(one) @ _standardised(other), -1, 1))


def _standardised(values: np.ndarray) -> np.ndarray:
    """Ranks with mean zero and length one."""
    from scipy import stats  # takes a second, which most commands need not wait for

    ranks = stats.rankdata(values)
    ranks = ranks - ranks.mean()
    found: np.ndarray = ranks / np.sqrt(ranks @ ranks)
    return found


def shuffled_correlation(
    one: np.ndarray, other: np.ndarray, order: Callable[[np.random.Generator], np.ndarray]
) -> Callable[[np.random.Generator], float]:
    """For `permutation_p`: the rank correlation with the second in another order (ranks go along)."""
    first, second = _standardised(one), _standardised(other)
    return lambda chance: float(first @ second[order(chance)])


def proportion(count: int, of: int) -> Interval:
    """A share with Wilson's interval, which is no point where the share is 0 or 1."""
    from scipy import stats  # takes a second, which most commands need not wait for

    found = stats.binomtest(count, of).proportion_ci(method="wilson")
    return Interval(count / of, float(found.low), float(found.high))


def correlated(one: np.ndarray, other: np.ndarray, draws: int = 500) -> Interval:
    """The rank correlation with its interval over units."""
    return bootstrap(len(one), lambda places: rank_correlation(one[places], other[places]), draws=draws)


def mcnemar(one: np.ndarray, other: np.ndarray) -> float:
    """p of the exact test that two yes/no properties of the same heads are equally frequent."""
    from scipy import stats  # takes a second, which most commands need not wait for

    first, second = int((one & ~other).sum()), int((~one & other).sum())
    if first + second == 0:
        return 1.0
    return float(stats.binomtest(first, first + second, 0.5).pvalue)


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many heads two sets share, how many chance would give them, and the p of more than that."""

    both: int
    expected: float
    jaccard: float
    p: float


def overlap(one: np.ndarray, other: np.ndarray) -> Overlap:
    """Two sets of heads, as yes/no over all heads, against sets of their sizes drawn at random."""
    from scipy import stats  # takes a second, which most commands need not wait for

    count, first, second = len(one), int(one.sum()), int(other.sum())
    both = int((one & other).sum())
    p = float(stats.hypergeom.sf(both - 1, count, first, second))
    return Overlap(both, first * second / count, jaccard(one, other), min(p, 1.0))


def jaccard(one: np.ndarray, other: np.ndarray) -> float:
    """The share of the heads in either set that are in both; 1 for two empty sets."""
    either = int((one | other).sum())
    return float((one & other).sum() / either) if either else 1.0


def concentration(columns: np.ndarray, chosen: np.ndarray, width: int) -> float:
    """How unevenly the chosen heads are spread over the head columns: the variance of the counts over their
    mean (1 is what chance gives, about)."""
    counts = np.bincount(columns[chosen], minlength=width)
    return float(counts.var() / counts.mean()) if counts.mean() else float("nan")


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
