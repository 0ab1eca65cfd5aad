"""Do the methods that an atlas has of a task rank its heads alike?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from headatlas.atlas.statistics import rank_correlation
from headatlas.core import Head, in_method_order, metric_words, ranked

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas
    from headatlas.atlas.record import Run

__all__ = ["MethodAgreement", "compare_methods"]

#: models with fewer heads are not compared: correlations would be by chance
_FEWEST_HEADS = 20
#: heads at the top of a ranking, at most a quarter of all
_TOP = 10
#: a rank correlation below this is a disagreement
_LOW = 0.3


@dataclass(frozen=True, slots=True)
class MethodAgreement:
    """How alike two methods rank the heads of a task.

    `correlation` is Spearman's over all heads; `shared` counts the heads that are among the `top` of both.
    `first_rank` is the rank that the method `second` gives to the head that `first` puts first, and
    `second_rank` the other way round, out of `heads`.
    """

    first: str
    second: str
    correlation: float
    shared: int
    top: int
    first_head: Head
    first_rank: int
    second_head: Head
    second_rank: int
    heads: int

    @property
    def disagree(self) -> bool:
        """True if the correlation is below 0.3, no top head is shared, or the first head of one method is in
        the lower half of the other's ranking."""
        lowest = max(self.first_rank, self.second_rank)
        return self.correlation < _LOW or not self.shared or lowest > self.heads / 2


def compare_methods(atlas: Atlas, task: str, method: str | None = None) -> list[MethodAgreement]:
    """Every pair of methods that measured the task by one metric, gating included; with `method` the pairs
    that it is in.

    Effects that were imported or are not in the unit of their metric are left out: what they rank by is not
    known.
    """
    names = ["gating"] if "gating" in atlas.methods(task) else []
    names += [
        name
        for name in in_method_order(name for of_task, name in atlas.effect_maps if of_task == task)
        if _is_in_unit_of_metric(atlas.run(task, name))
    ]
    if len(atlas.spec) < _FEWEST_HEADS or (method is not None and method not in names):
        return []
    metrics = {name: atlas.run(task, name).metric for name in names}
    pairs = [
        (first, second)
        for first, second in combinations(names, 2)
        if metrics[first] == metrics[second] and method in (None, first, second)
    ]
    importance = {name: atlas.importance(task, name).values for pair in pairs for name in pair}
    compared = [_compare(first, second, importance[first], importance[second]) for first, second in pairs]
    return [agreement for agreement in compared if agreement is not None]


def _is_in_unit_of_metric(run: Run) -> bool:
    return "imported_from" not in run.task_facts and run.unit == metric_words(run.metric).unit


def _compare(first: str, second: str, left: np.ndarray, right: np.ndarray) -> MethodAgreement | None:
    """None if one of the methods gives all heads the same value, or too few heads have both."""
    valid = ~np.isnan(left) & ~np.isnan(right)
    if valid.sum() < _FEWEST_HEADS:
        return None
    left, right = (np.where(valid, values, np.nan) for values in (left, right))
    correlation = rank_correlation(left[valid], right[valid])
    if np.isnan(correlation):
        return None
    by_first, by_second = ranked(left), ranked(right)
    top = min(_TOP, len(by_first) // 4)
    return MethodAgreement(
        first=first,
        second=second,
        correlation=correlation,
        shared=len(set(by_first[:top]) & set(by_second[:top])),
        top=top,
        first_head=by_first[0],
        first_rank=by_second.index(by_first[0]) + 1,
        second_head=by_second[0],
        second_rank=by_first.index(by_second[0]) + 1,
        heads=len(by_first),
    )
