"""How far a map can be believed: losses with heads kept, taken away and switched off, in numbers.

The metric of a gate set is the mean log-probability of the targets over held-out items, in nats; or minus the
mean loss by the metric that a task was validated in. "Nats" below, and in names, stand for its unit. A method
ranks the heads; the curves run over the share of heads kept (or taken away), the best first.

    sufficiency   the mean gain over no heads along the curve of heads kept: higher is better
    distance      the mean distance from the whole model along that curve: lower is better
    necessity     the mean loss against the whole model along the curve of heads taken away: higher is better

All three are areas in nats. Divided by the gap (metric of all heads − metric of no heads) they are areas
under *faithfulness*, (metric − metric of no heads) / gap. Faithfulness means nothing where the gap is not
positive, so areas are normalized only where the 95 % interval of the gap lies above 0.

Intervals count two sources of variation: held-out items, with each of their groups left out, and the ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from headatlas.atlas.interval import Interval, Spread, jackknife, jackknife_spread, spread_interval
from headatlas.core import NLL, AtlasError, MetricWords, metric_words, slug
from headatlas.core.lazy import pd, xr

__all__ = [
    "FAITHFULNESS_WORDS",
    "FIGURES",
    "ORDERS",
    "SHARES",
    "Validation",
    "faithfulness_words",
    "is_validation",
    "item_words",
    "validation_name",
]

#: shares of the heads at which the curves are measured
SHARES = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
#: the scores by which heads are switched off from G+
ORDERS = ("facilitation", "irrelevance", "interference")
#: the scatter of independent rankings is not reduced below this share of it
_LEAST_KEPT = 0.1
_FAITHFULNESS = (
    "*Sufficiency*: the mean gain in {gain} over no heads, along the share of heads kept, "
    "the most wanted first. *Distance*: the mean distance from the whole model along that curve. "
    "*Necessity*: the mean loss against the whole model as those heads are taken away. In {unit}; or "
    "divided by what all heads gain over none (faithfulness: 0 as without any head, 1 as the whole model), "
    "if that gain is clearly above 0.",
    "Heads that are not kept are switched off, as they are while gates are fitted: that suits gating and "
    "zero ablation more than methods that ask another question. Being ahead of random heads is a low bar.",
)


def faithfulness_words(metric: Any = NLL) -> tuple[str, ...]:
    """What the figures mean, a line each, for curves in a metric."""
    words = metric_words(metric)
    return tuple(line.format(gain=words.gain, unit=words.unit) for line in _FAITHFULNESS)


#: for curves in nats of the target log-probability
FAITHFULNESS_WORDS = faithfulness_words()
#: figure -> the side that it is measured on
FIGURES = {"sufficiency": "keep", "distance": "keep", "necessity": "drop"}


def validation_name(task: str) -> str:
    """The note that holds a task's."""
    return f"validation-{slug(task)}"


def is_validation(note: str) -> bool:
    """True for the name of a note that holds a validation."""
    return note.startswith("validation-")


def item_words(items: int, groups: int) -> str:
    """ "48 held-out items", or "48 held-out items in 4 groups" if some are not independent."""
    words = f"{items} held-out item{'s' * (items != 1)}"
    return words if groups == items else f"{words} in {groups} group{'s' * (groups != 1)}"


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """What `validate_atlas` measured of one task.

    Losses are per held-out item: `keep` and `drop` [curve, share, item], with the heads that a method
    puts first kept alone, or taken away; `off` [seed, order, share, item], switched off one after another
    from the G+ of each seed in the order of each score; `by_chance` [draw, share, item], in random orders.
    Shares are those of `counts` heads among `heads`.

    `methods` names the curves. "gating" is the ranking of a method; "gating 1", "gating 2", … are its
    rankings with a part of its data left out, which tell how much the ranking varies. "random 1", … are
    random orders, whose mean is "random".
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
    _gap: list[Interval] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def from_note(cls, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> Validation:
        names = ("keep", "drop", "keep_right", "drop_right", "off", "by_chance")
        parts = {name: arrays[name].astype(float) for name in names}
        validation = cls(
            about["task"], tuple(about["methods"]), tuple(about["counts"]), int(about["heads"]),
            facts=about["facts"], **parts,
        )  # fmt: skip
        if len(validation.groups) != validation.items:
            raise AtlasError(
                f"the validation of {validation.task!r} is damaged: {len(validation.groups)} groups for "
                f"{validation.items} items."
            )
        return validation

    @property
    def shares(self) -> np.ndarray:
        return np.array(self.counts) / self.heads

    @property
    def metric(self) -> MetricWords:
        """The metric that losses are measured in, and its unit: nats of the target log-probability unless
        the task was validated in another metric."""
        return metric_words(self.facts.get("metric", NLL))

    @property
    def items(self) -> int:
        return int(self.keep.shape[-1])

    @property
    def groups(self) -> np.ndarray:
        """[item]: items with the same number share a prompt or a template and are drawn together."""
        return np.asarray(self.facts.get("groups", range(self.items)), dtype=int)

    @property
    def independent(self) -> int:
        """How many groups of items there are."""
        return len(np.unique(self.groups))

    @property
    def gap(self) -> Interval:
        """The metric of all heads less that of no heads, in nats, with its interval over items."""
        if not self._gap:
            each = self.keep[0][0] - self.keep[0][-1]
            self._gap.append(
                jackknife(self.items, lambda index: float(each[index].mean()), groups=self.groups)
            )
        return self._gap[0]

    @property
    def is_normalized(self) -> bool:
        """True if all heads are clearly better than none, so that faithfulness means something."""
        return self.gap.low is not None and self.gap.low > 0

    def named(self) -> list[str]:
        """The methods, without their numbered rankings."""
        return list(dict.fromkeys(name.partition(" ")[0] for name in self.methods))

    def _rankings(self, method: str, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """([share, item], [ranking, share, item]): by the ranking of a method, and by its numbered ones."""
        numbered = values[[name.startswith(f"{method} ") for name in self.methods]]
        if method in self.methods:
            return values[self.methods.index(method)], numbered
        return numbered.mean(axis=0), numbered

    def gain(self, method: str, side: str = "keep") -> np.ndarray:
        """[share]: nats gained over no heads, with the heads that the method puts first kept (or taken away:
        "drop")."""
        losses, _ = self._rankings(method, self.keep if side == "keep" else self.drop)
        gained: np.ndarray = self.keep[0][0].mean() - losses.mean(axis=1)
        return gained

    def curve(self, method: str, side: str = "keep") -> np.ndarray:
        """[share]: the same as faithfulness; NaN where it is not normalized."""
        gained = self.gain(method, side)
        return gained / self.gap.mean if self.is_normalized else np.full_like(gained, np.nan)

    def accuracy(self, method: str, side: str = "keep") -> np.ndarray:
        """[share]: the share of target tokens that are the top choice."""
        right, _ = self._rankings(method, self.keep_right if side == "keep" else self.drop_right)
        share: np.ndarray = right.mean(axis=1)
        return share

    def sufficiency(self, method: str, *, nats: bool = False) -> Interval:
        return self.measure("sufficiency", method, nats=nats)

    def distance(self, method: str, *, nats: bool = False) -> Interval:
        return self.measure("distance", method, nats=nats)

    def necessity(self, method: str, *, nats: bool = False) -> Interval:
        return self.measure("necessity", method, nats=nats)

    def difference(self, one: str, other: str, *, nats: bool = False) -> Interval:
        """Sufficiency of one method less that of another, on the same items."""
        return self.measure("sufficiency", one, less=other, nats=nats)

    def measure(self, figure: str, method: str, *, less: str | None = None, nats: bool = False) -> Interval:
        """One of `FIGURES` of a method (less that of another), normalized or in nats, with its 95 % interval
        over groups of items and over rankings. NaN if it cannot be normalized."""
        if not nats and not self.is_normalized:
            return Interval(float("nan"))
        losses = self.keep if FIGURES[figure] == "keep" else self.drop
        none, full, shares = self.keep[0][0], self.keep[0][-1], self.shares

        def areas(values: np.ndarray, index: np.ndarray) -> np.ndarray:
            """[...], from losses [..., share, item]."""
            gap = 1.0 if nats else float(none[index].mean() - full[index].mean())
            if gap <= 0:  # all heads are no better than none on these items
                return np.full(values.shape[:-2], np.nan)
            loss = values[..., index].mean(axis=-1)
            heights = _heights(figure, loss, none[index].mean(), full[index].mean())
            return np.asarray(np.trapezoid(heights, shares)) / gap

        signed = [(1, self._rankings(method, losses))]
        signed += [] if less is None else [(-1, self._rankings(less, losses))]

        def total(index: np.ndarray) -> float:
            return sum(sign * float(areas(values, index)) for sign, (values, _) in signed)

        spreads = [jackknife_spread(self.items, total, groups=self.groups)]
        spreads += [
            _ranking_spread(partial(areas, numbered), self.groups, left_out=name in self.methods)
            for name, (_, (_, numbered)) in zip((method, less), signed, strict=False)
        ]
        interval = _interval(total(np.arange(self.items)), spreads)
        if figure == "distance" and less is None and interval.low is not None:
            return replace(interval, low=max(interval.low, 0.0))
        return interval

    def records(self) -> list[dict[str, Any]]:
        """A line per method, the most sufficient first; each figure in nats and normalized (None where it
        cannot be), with its 95 % interval, and what the interval counts (empty if there is none)."""
        lines = []
        for method in self.named():
            line: dict[str, Any] = {"method": method}
            for figure in FIGURES:
                for suffix in ("", "_nats"):
                    value = self.measure(figure, method, nats=bool(suffix))
                    name = figure + suffix
                    line[name] = None if np.isnan(value.mean) else value.mean
                    line |= {f"{name}_low": value.low, f"{name}_high": value.high}
            has_interval = line["sufficiency_nats_low"] is not None
            lines.append({**line, "varies": self.varies(method) if has_interval else ""})
        return sorted(lines, key=lambda line: -line["sufficiency_nats"])

    def to_json(self) -> dict[str, Any]:
        """All figures and curves; `keep` and `drop` as faithfulness are None where it means nothing."""
        curves, methods = self.ablation(), self.named()
        return {
            "items": self.items,
            "groups": self.independent,
            "gap": {"nats": self.gap.mean, "low": self.gap.low, "high": self.gap.high},
            **({} if self.metric.name == NLL else {"metric": self.metric.name, "unit": self.metric.unit}),
            "normalized": self.is_normalized,
            "why_not_normalized": self.why_not_normalized() or None,
            "intervals": self.interval_words() or None,
            "methods": self.records(),
            "shares": self.shares.tolist(),
            **{
                side: {method: self.curve(method, side).tolist() for method in methods}
                if self.is_normalized
                else None
                for side in ("keep", "drop")
            },
            **{
                f"{side}_nats": {method: self.gain(method, side).tolist() for method in methods}
                for side in ("keep", "drop")
            },
            "ablation": {
                str(order): curves["change"].sel(order=order).values.tolist() for order in curves.order.values
            },
            "random": {part: curves[part].values.tolist() for part in ("low", "middle", "high")},
        }

    def table(self) -> pd.DataFrame:
        """`records` as a table."""
        return pd.DataFrame(self.records())

    def varies(self, method: str) -> str:
        """What the intervals of a method count: "items and seeds", or "items only". Those leave out how much
        the ranking varies: they hold for this ranking, not for the method."""
        if len(self._rankings(method, self.keep)[1]) < 2:
            return "items only"
        of = self.facts.get("rankings", {}).get(method, "random orders" if method == "random" else "rankings")
        return f"items and {of}"

    def explanation(self) -> list[str]:
        """What the figures mean, and what their intervals are over."""
        return [
            words
            for words in (*faithfulness_words(self.facts.get("metric", NLL)), self.interval_words())
            if words
        ]

    def interval_words(self) -> str:
        """What the intervals count, in a sentence; empty if one group of items leaves none."""
        if self.independent < 2:
            return ""
        counted: dict[str, list[str]] = {}
        for method in self.named():
            counted.setdefault(self.varies(method), []).append(method)
        parts = [f"{what} ({', '.join(methods)})" for what, methods in counted.items()]
        return f"95 % intervals over {'; '.join(parts)}."

    def item_words(self) -> str:
        """ "48 held-out items", or "48 held-out items in 4 groups" if some are not independent."""
        return item_words(self.items, self.independent)

    def why_not_normalized(self) -> str:
        """Why there is no faithfulness; empty if there is."""
        if self.is_normalized:
            return ""
        if self.gap.low is None:
            reason = "one group cannot" if self.independent < 2 else "items that do not vary cannot"
            return (
                f"not normalized: the whole model is {self.gap.mean:+.2f} {self.metric.unit} better than no "
                f"heads on the held-out items, but {reason} tell how certain that is"
            )
        return (
            "not normalized: the whole model is not clearly better than no heads "
            f"({self.gap.mean:+.2f}{self.gap.brackets('+.2f')} {self.metric.unit})"
        )

    def change(self, order: str, share: float) -> Interval:
        """Of the target log-probability from G+ (mean over seeds) with about that share of heads switched
        off, the first by one of `ORDERS`; the interval is over items and seeds."""
        nearest = int(np.abs(self.shares - share).argmin())
        by_order = self.off[:, ORDERS.index(order)]
        change = by_order[:, 0] - by_order[:, nearest]  # [seed, item]
        each = change.mean(axis=0)
        over_items = jackknife_spread(self.items, lambda index: float(each[index].mean()), groups=self.groups)
        over_seeds = _ranking_spread(lambda index: change[:, index].mean(axis=1), self.groups, left_out=False)
        return _interval(float(each.mean()), [over_items, over_seeds])

    def ablation(self) -> xr.Dataset:
        """The change of the target log-probability from G+ as heads are switched off: `change` [order,
        share], the mean over seeds and items, and over random orders `low`, `middle` and `high` [share]: a
        new random order lies between `low` and `high` in 95 % of the cases, given 39 draws or more."""
        change = -(self.off - self.off[:, :, :1]).mean(axis=(0, 3))
        chance = -(self.by_chance - self.by_chance[:, :1]).mean(axis=2)
        low, middle, high = np.quantile(chance, [0.025, 0.5, 0.975], axis=0, method="weibull")
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


def _heights(figure: str, loss: np.ndarray, none: float, full: float) -> np.ndarray:
    """What one of `FIGURES` averages, from the mean losses [share], of no heads and of all heads."""
    if figure == "sufficiency":
        return none - loss
    return np.abs(loss - full) if figure == "distance" else loss - full


def _ranking_spread(
    figures: Callable[[np.ndarray], np.ndarray], groups: np.ndarray, *, left_out: bool
) -> Spread | None:
    """How much rankings move a figure; `figures(index)` are its values by several rankings on some items.

    With `left_out` each ranking leaves out one part of the data (jackknife). Otherwise rankings are
    independent and the figure is their mean. Rankings also scatter because items are few; that part is in the
    spread over items already and is subtracted. None with fewer than two rankings or groups.
    """
    labels = np.unique(groups)
    values = figures(np.arange(len(groups)))
    count = len(values)
    if count < 2 or len(labels) < 2:
        return None
    without = np.array([figures(np.flatnonzero(groups != label)) for label in labels])  # [group, ranking]
    apart, apart_without = (part - part.mean(axis=-1, keepdims=True) for part in (values, without))
    by_items = float(((apart - apart_without) ** 2).sum()) * (len(labels) - 1) / len(labels)
    squares = float((apart**2).sum())
    kept = max(1 - by_items / squares, 0.0) if squares else 1.0
    if left_out:
        # Ranks jump, so a jackknife overstates this variance: not with 2 parts, by half and more with 4 or 5
        # (tests/calibration). There one more degree of freedom makes up for it.
        return Spread(kept * squares * (count - 1) / count, count if count > 3 else count - 1)
    # Two rankings cannot tell how much of their scatter comes from the items.
    kept = max(kept, _LEAST_KEPT) if count > 2 else 1.0
    return Spread(kept * squares / (count - 1) / count, kept**1.5 * (count - 1))  # as uncertain as the whole


def _interval(estimate: float, spreads: Sequence[Spread | None]) -> Interval:
    """The interval over items, which come first, and rankings; none if the items cannot give one."""
    known = [spread for spread in spreads if spread is not None]
    return Interval(estimate) if spreads[0] is None else spread_interval(estimate, known)
