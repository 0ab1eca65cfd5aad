"""Effects of single heads over several seeds: pooled by item, the strongest heads, what qualifies them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.markdown import escape_markdown
from headatlas.atlas.record import EffectMap
from headatlas.core import Head, plural, ranked

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas
    from headatlas.atlas.finding.doubts import Doubt

__all__ = [
    "COMPLETE",
    "HALF_PRECISION",
    "EffectSummary",
    "HeadEffect",
    "clustered_error",
    "completeness_error",
    "corruptions",
    "describe_corruption",
    "pool_effects",
    "qualifications",
    "summarize_effects",
]

#: integrated gradients whose sum is farther from the whole effect than this share of it are not converged
COMPLETE = 0.05
#: dtypes in which a path is measured only where a float32 copy of the model does not fit
HALF_PRECISION = frozenset({"float16", "bfloat16"})


def pool_effects(maps: Sequence[EffectMap]) -> tuple[np.ndarray, np.ndarray, int | None]:
    """([layer, head], [layer, head], count): the mean effects over the distinct items of all seeds, their
    standard errors, and the number of items.

    An item that several seeds measured counts once, with its mean. Maps without effects of single items may
    share items: then the seeds are averaged, the error is the mean of theirs, which is an upper bound, and
    the count is None.
    """
    kept = [one.per_item for one in maps if one.per_item is not None]
    if len(maps) == 1:
        return maps[0].values, maps[0].errors, len(kept[0].items) if kept else None
    if len(kept) < len(maps):
        values, errors = (np.stack([getattr(one, name) for one in maps]) for name in ("values", "errors"))
        return _mean_over_seeds(values), _mean_over_seeds(errors), None
    items, first, index = np.unique(
        np.concatenate([one.items for one in kept]), return_index=True, return_inverse=True
    )
    every = np.concatenate([one.values for one in kept]).astype(np.float64)
    sums = np.zeros((len(items), *every.shape[1:]))
    np.add.at(sums, index, every)
    means = sums / np.bincount(index).reshape(-1, 1, 1)
    groups = np.concatenate([one.groups for one in kept])[first]
    return means.mean(axis=0).astype(np.float32), clustered_error(means, groups), len(items)


def _mean_over_seeds(values: np.ndarray) -> np.ndarray:
    """Over the seeds that have a value; NaN where none has."""
    present = ~np.isnan(values)
    counts = present.sum(axis=0)
    sums = np.where(present, values, 0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).astype(np.float32)


def clustered_error(values: np.ndarray, groups: Sequence[int] | np.ndarray) -> np.ndarray:
    """[...]: the standard error of the mean over the items of `values` [item, ...]. Items of one group are
    not independent and count as one unit; NaN with a single group."""
    _, index = np.unique(np.asarray(groups), return_inverse=True)
    count = int(index.max()) + 1
    if count < 2:
        return np.full(values.shape[1:], np.nan, dtype=np.float32)
    sums = np.zeros((count, *values.shape[1:]))
    np.add.at(sums, index, values - values.mean(axis=0, dtype=np.float64))
    error: np.ndarray = np.sqrt((sums**2).sum(axis=0) * count / (count - 1)) / len(values)
    return error.astype(np.float32)


def completeness_error(maps: Sequence[EffectMap]) -> float | None:
    """How far the integrated gradients of a seed are from summing to the effect of closing all heads, as a
    share of it, in the seed where they are farthest; None for other methods and for imported effects.

    A sum can agree by accident. Where the errors of single intervals make a larger error likely, this is that
    one.
    """
    is_known = all({"sum", "whole"} <= one.facts.keys() for one in maps)
    if maps[0].method != "attribute-integrated" or not is_known:
        return None
    errors = []
    for effects in maps:
        whole = float(effects.facts["whole"])
        observed = abs(float(effects.facts["sum"]) - whole) / max(
            abs(whole), float(np.finfo(np.float32).tiny)
        )
        errors.append(max(observed, float(effects.facts.get("expected_error", 0.0))))
    return max(errors)


def describe_corruption(facts: Mapping[str, Any]) -> str:
    """How mediation corrupted the prompts and where it patched heads; empty if `facts` do not say."""
    if facts.get("positions") not in ("all", "target"):
        return ""
    prompts = {"own": "the task's corrupted prompts", "others": "the prompts of other items"}
    positions = {"all": "at all positions", "target": "only where the target is predicted"}
    prompt = prompts.get(str(facts.get("prompts")), "other prompts")
    return f"{prompt}, heads patched {positions[facts['positions']]}"


def corruptions(atlas: Atlas, tasks: Sequence[str] | None = None) -> list[tuple[str, str, str]]:
    """(task, method, how prompts were corrupted and where heads were patched) of all mediations."""
    described = [
        (task, method, describe_corruption(atlas.run(task, method).decides))
        for task, method in atlas.effect_maps
        if tasks is None or task in tasks
    ]
    return [entry for entry in described if entry[2]]


def qualifications(atlas: Atlas) -> list[str]:
    """What a reader must know beside the effects, as Markdown: how mediation corrupted the prompts, and
    whether integrated gradients converged."""

    def maps_of(task: str, method: str) -> list[EffectMap]:
        return [atlas.effect(task, method, int(seed)) for seed in atlas.effects(task, method)["seed"].values]

    described = corruptions(atlas)
    sentences = [escape_markdown(f"{task}, {method}: {text}.") for task, method, text in described]
    for task, method in atlas.effect_maps:
        error = atlas.completeness_error(task, method)
        if error is not None:
            verdict = "**not converged**" if error > COMPLETE else "converged"
            dtypes = {str(one.facts["dtype"]) for one in maps_of(task, method) if one.facts.get("dtype")}
            half = "".join(f", path measured in {dtype}" for dtype in sorted(dtypes & HALF_PRECISION))
            subject = escape_markdown(f"{task}, {method}")
            sentences.append(f"{subject}: {verdict}, completeness error {100 * error:.1f} %{half}.")
    return sentences


@dataclass(frozen=True, slots=True)
class HeadEffect:
    """The pooled effect of a head, with its standard error if there is one."""

    head: Head
    effect: float
    error: float | None


@dataclass(frozen=True, slots=True)
class EffectSummary:
    """Effects of single heads on a task in numbers; None stands for what an imported table does not tell.

    `items` of each seed and `distinct_items` of all; `of_items` that the task in memory has, if some are left
    out; `nll`: the loss with all heads (None in another metric: then `mean` is that of `metric`, as it is
    known: the mean logit difference, KL divergence, …); `whole`: the effect of all heads at once; `sum`: that
    of the heads, summed; `points` per item and `completeness_error` of integrated gradients; `corruption` of
    mediation; `heads` by falling effect.
    """

    task: str
    method: str
    seeds: int
    items: int | None
    distinct_items: int | None
    nll: float | None
    whole: float | None
    sum: float
    points: float | None
    completeness_error: float | None
    corruption: str | None
    doubts: tuple[Doubt, ...]
    heads: tuple[HeadEffect, ...]
    metric: str = "loss"
    mean: float | None = None
    of_items: int | None = None

    @property
    def item_words(self) -> str:
        """ "20 items", or "16 of 20 items"."""
        if self.of_items is None:
            return plural(self.items or 0, "item")
        return f"{self.items} of {plural(self.of_items, 'item')}"

    def strongest(self, most: int) -> tuple[list[HeadEffect], list[HeadEffect]]:
        """The heads that help most and those that hurt most, up to `most` each."""
        helping = [each for each in self.heads[:most] if each.effect > 0]
        return helping, [each for each in self.heads[: -most - 1 : -1] if each.effect < 0]

    def to_json(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "seeds": self.seeds,
            "items": self.items,
            "distinct_items": self.distinct_items,
            **({} if self.of_items is None else {"of_items": self.of_items}),
            "nll": self.nll,
            **({} if self.metric == "loss" else {"metric": self.metric, "mean": self.mean}),
            "whole": self.whole,
            "sum": self.sum,
            "points": self.points,
            "completeness_error": self.completeness_error,
            "corruption": self.corruption,
            "doubts": [doubt.text for doubt in self.doubts],
            "method": self.method,
            "heads": [
                {"head": str(each.head), "effect": each.effect, "error": each.error} for each in self.heads
            ],
        }


def summarize_effects(atlas: Atlas, task: str, method: str) -> EffectSummary:
    """The effects of a method on a task, pooled over its seeds."""
    pooled = atlas.pooled_effects(task, method)
    values, errors = pooled["effect"].values, pooled["error"].values
    seeds = atlas.effects(task, method).seed.values.tolist()
    facts = [atlas.effect(task, method, seed).facts for seed in seeds]
    task_facts = atlas.run(task, method).task_facts
    in_memory = (task_facts.get("spec") or {}).get("kind") == "items"
    has_left_out = in_memory and facts[0].get("items") != task_facts.get("records")

    def mean_of(name: str) -> float | None:
        return float(np.mean([each[name] for each in facts])) if name in facts[0] else None

    return EffectSummary(
        task=task,
        method=method,
        seeds=len(seeds),
        items=int(facts[0]["items"]) if "items" in facts[0] else None,
        distinct_items=pooled.attrs["items"],
        nll=mean_of("nll"),
        metric=atlas.run(task, method).about.get("metric", "loss"),
        mean=mean_of("metric"),
        whole=mean_of("whole"),
        sum=float(np.nansum(values)),
        points=mean_of("points"),
        completeness_error=atlas.completeness_error(task, method),
        corruption=describe_corruption(facts[0]) or None,
        doubts=tuple(atlas.doubts(task, method)),
        heads=tuple(
            HeadEffect(head, float(values[place]), None if np.isnan(errors[place]) else float(errors[place]))
            for head in ranked(values)
            for place in [(head.layer, head.head)]
        ),
        of_items=int(task_facts["records"]) if has_left_out else None,
    )
