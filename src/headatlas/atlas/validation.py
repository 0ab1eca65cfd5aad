"""How far can a map be believed? What was measured with heads kept, taken away and switched off, in numbers.

The metric of a gate set is the mean log-probability of the targets over held-out items. *Faithfulness* of
a set of heads is (metric − metric of no heads) / (metric of all heads − metric of no heads).

    sufficiency   the area under faithfulness over the share of heads that is kept, the best first: higher
                  is better, above 1 where the model does better without the rest
    distance      the area between faithfulness and 1: lower is better
    necessity     1 − the area under faithfulness over the share that is taken away, the best first: higher is
                  better
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headatlas.atlas.agreement import Interval
from headatlas.atlas.layout import slug
from headatlas.atlas.statistics import DRAWS, bootstrap

__all__ = ["ORDERS", "SHARES", "Validation", "faithfulness", "validation_name"]

#: shares of the heads at which the curves are measured
SHARES = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
#: the scores by which heads are switched off from G+
ORDERS = ("facilitation", "irrelevance", "interference")


def validation_name(task: str) -> str:
    """The note that holds a task's."""
    return f"validation-{slug(task)}"


def faithfulness(metric: np.ndarray, none: float, full: float) -> np.ndarray:
    """0 where the metric is that of no heads, 1 where it is that of all; NaN if these are the same."""
    gap = full - none
    return (metric - none) / gap if gap else np.full_like(np.asarray(metric, dtype=float), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """What `headatlas validate` measured of one task.

    Losses are per held-out item: `keep` and `drop` [method, share, item], with the heads that a method
    puts first kept alone, or taken away; `off` [seed, order, share, item], switched off one after another
    from the G+ of each seed in the order of each score; `by_chance` [draw, share, item], in random orders.
    Shares are those of `counts` heads among `heads`; random rankings stand among the methods as "random
    1", ….
    """

    task: str
    methods: tuple[str, ...]
    counts: tuple[int, ...]
    heads: int
    keep: np.ndarray
    drop: np.ndarray
    keep_right: np.ndarray
    drop_right: np.ndarray
    off: np.ndarray
    by_chance: np.ndarray
    facts: Mapping[str, Any]

    @classmethod
    def from_note(cls, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> Validation:
        names = ("keep", "drop", "keep_right", "drop_right", "off", "by_chance")
        parts = {name: arrays[name].astype(float) for name in names}
        return cls(
            about["task"], tuple(about["methods"]), tuple(about["counts"]), int(about["heads"]),
            facts=about["facts"], **parts,
        )  # fmt: skip

    @property
    def shares(self) -> np.ndarray:
        return np.array(self.counts) / self.heads

    @property
    def items(self) -> int:
        return int(self.keep.shape[-1])

    def named(self) -> list[str]:
        """The methods, the random rankings as one."""
        return list(dict.fromkeys("random" if one.startswith("random ") else one for one in self.methods))

    def _of(self, method: str, losses: np.ndarray) -> np.ndarray:
        """[share, item]; of the random rankings their mean."""
        chosen = [
            place
            for place, name in enumerate(self.methods)
            if name == method or (method == "random" and name.startswith("random "))
        ]
        found: np.ndarray = losses[chosen].mean(axis=0)
        return found

    def curve(self, method: str, side: str = "keep", items: Sequence[int] | None = None) -> np.ndarray:
        """[share]: faithfulness with the heads that the method puts first kept (or taken away: "drop")."""
        chosen = slice(None) if items is None else list(items)
        losses = self._of(method, self.keep if side == "keep" else self.drop)[:, chosen]
        ends = self.keep[0][:, chosen]  # no heads, all heads: the same for every method
        return faithfulness(-losses.mean(axis=1), -float(ends[0].mean()), -float(ends[-1].mean()))

    def accuracy(self, method: str, side: str = "keep") -> np.ndarray:
        """[share]: the share of target tokens that are the top choice."""
        right = self.keep_right if side == "keep" else self.drop_right
        found: np.ndarray = self._of(method, right).mean(axis=1)
        return found

    def sufficiency(self, method: str, draws: int = DRAWS) -> Interval:
        return self._area(method, "keep", lambda curve: curve, draws)

    def distance(self, method: str, draws: int = DRAWS) -> Interval:
        return self._area(method, "keep", lambda curve: np.abs(1 - curve), draws)

    def necessity(self, method: str, draws: int = DRAWS) -> Interval:
        return self._area(method, "drop", lambda curve: 1 - curve, draws)

    def _area(self, method: str, side: str, what: Any, draws: int) -> Interval:
        def area(places: np.ndarray) -> float:
            return float(np.trapezoid(what(self.curve(method, side, places.tolist())), self.shares))

        return bootstrap(self.items, area, draws=draws)

    def difference(self, one: str, other: str, draws: int = DRAWS) -> Interval:
        """Sufficiency of one method less that of another, on the same items."""

        def area(places: np.ndarray) -> float:
            curves = (self.curve(method, "keep", places.tolist()) for method in (one, other))
            return float(np.trapezoid(next(curves) - next(curves), self.shares))

        return bootstrap(self.items, area, draws=draws)

    def table(self, draws: int = DRAWS) -> pd.DataFrame:
        """One line per method, the most sufficient first; each figure with its 95 % interval over items."""
        lines = []
        for method in self.named():
            found = {
                "sufficiency": self.sufficiency(method, draws),
                "distance": self.distance(method, draws),
                "necessity": self.necessity(method, draws),
            }
            line: dict[str, Any] = {"method": method}
            for name, value in found.items():
                line |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
            lines.append(line)
        return pd.DataFrame(lines).sort_values("sufficiency", ascending=False, ignore_index=True)

    def change(self, order: str, share: float, draws: int = DRAWS) -> Interval:
        """Of the target log-probability from G+ (mean over seeds) with about that share of heads switched
        off, the first by one of `ORDERS`."""
        place = int(np.abs(self.shares - share).argmin())
        some = self.off[:, ORDERS.index(order)]
        each = -(some[:, place] - some[:, 0]).mean(axis=0)
        return bootstrap(self.items, lambda places: float(each[places].mean()), draws=draws)

    def ablation(self) -> xr.Dataset:
        """The change of the target log-probability from G+ as heads are switched off: `change` [order,
        share], the mean over seeds and items, and over random orders `low`, `middle` and `high` [share]
        (2.5, 50 and 97.5 % of the draws)."""
        change = -(self.off - self.off[:, :, :1]).mean(axis=(0, 3))
        chance = -(self.by_chance - self.by_chance[:, :1]).mean(axis=2)
        low, middle, high = np.quantile(chance, [0.025, 0.5, 0.975], axis=0)
        shares = self.shares
        return xr.Dataset(
            {
                "change": (("order", "share"), change),
                "low": ("share", low),
                "middle": ("share", middle),
                "high": ("share", high),
            },
            coords={"order": list(ORDERS), "share": shares},
        )
