"""Effects of single heads over several seeds: pooled by item, with what qualifies them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.record import EffectMap

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = [
    "COMPLETE",
    "clustered_error",
    "completeness_error",
    "corruptions",
    "describe_corruption",
    "pool_effects",
    "qualifications",
]

#: integrated gradients whose sum is farther from the whole effect than this share of it are not converged
COMPLETE = 0.05


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
        (task, method, describe_corruption(atlas.run(task, method).settings.get("decides", {})))
        for task, method in atlas.effect_maps
        if tasks is None or task in tasks
    ]
    return [entry for entry in described if entry[2]]


def qualifications(atlas: Atlas) -> list[str]:
    """What a reader must know beside the effects: how mediation corrupted the prompts, and whether integrated
    gradients converged."""
    sentences = [f"{task}, {method}: {text}." for task, method, text in corruptions(atlas)]
    for task, method in atlas.effect_maps:
        error = atlas.completeness_error(task, method)
        if error is not None:
            verdict = "**not converged**" if error > COMPLETE else "converged"
            sentences.append(f"{task}, {method}: {verdict}, completeness error {100 * error:.1f} %.")
    return sentences
