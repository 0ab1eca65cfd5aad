"""How a task fares as heads are kept, taken away and switched off, in the order of each method.

A curve is kept as soon as it is there; when all are, they are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from headatlas.atlas import ORDERS, SHARES, Atlas, Store, validation_name
from headatlas.core import NLL, Metric, Progress, Update, identity_of, metric_to_json, ranked
from headatlas.method.engine.likelihood import evaluate_sets, kept_only
from headatlas.method.engine.metric import RowLoss
from headatlas.model import Model
from headatlas.request.validate_request import ALL_CURVES, OTHER_CURVES, ValidateRequest, curve_name
from headatlas.run.prepare import Prepared

__all__ = ["measure_curves", "places_in_order"]

#: raised when the same request would give other numbers than before
_ALGORITHM = 3
#: random rankings
_RANDOM = 20
#: a ranking is made again without each of so many parts of its data, to see how much it varies
_PARTS = 5


def measure_curves(
    model: Model,
    store: Store,
    atlas: Atlas,
    task: Prepared,
    methods: Sequence[str],
    request: ValidateRequest,
    progress: Progress,
    wanted: Collection[str],
    metric: Metric = NLL,
) -> None:
    """The `wanted` curves of a task by a metric; `ALL_CURVES` puts them together, with the request."""
    name, draws = task.name, request.draws
    run, seeds = atlas.run(name), atlas.seeds(name)
    decides = {
        "algorithm": _ALGORITHM,
        "gating": run.identity,
        "seeds": seeds,
        "methods": {
            method: [atlas.run(name, method).identity, atlas.effects(name, method).seed.values.tolist()]
            for method in methods
        },
        "items": len(task.held_out),
        "groups": list(task.groups),
        "draws": draws,
        "device": model.device.type,
        "dtype": model.spec.dtype,
        "weights": model.weights_identity,
    }
    if metric != NLL:
        decides["metric"] = metric_to_json(metric)
    identity = identity_of(decides)
    note = atlas.notes.get(validation_name(name))
    if note is not None and note[1].get("identity") == identity:
        return
    spec, heads = model.spec, len(model.spec)
    counts = sorted({round(share * heads) for share in SHARES})
    rankings, varied = _rankings(atlas, name, methods)
    parts = {
        part: np.stack([_kept_and_dropped(order, counts, spec.shape, part == "random") for order in orders])
        for part, orders in rankings.items()
    }
    parts |= dict(
        zip(OTHER_CURVES, _switched_off(atlas, name, seeds, counts, draws, spec.shape), strict=True)
    )
    whole = ALL_CURVES in wanted
    asked = {part: gates for part, gates in parts.items() if whole or part in wanted}
    sizes = [gates[..., 0, 0].size for gates in asked.values()]
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for before, size, (part, gates) in zip(accumulate(sizes), sizes, asked.items(), strict=True):

        def told(done: int, all_sets: int, start: int = before - size, size: int = size) -> None:
            what = f"{name}: heads kept, taken away, switched off"
            progress(Update(what, start + round(size * done / all_sets), sum(sizes)))

        found[part] = _curve(model, store, task, part, gates, identity, told, RowLoss(metric))
    if not whole:
        return
    arrays = {part: found[part][0] for part in OTHER_CURVES}
    for side, part in enumerate(("keep", "drop")):
        arrays[part], arrays[f"{part}_right"] = (
            np.concatenate([found[method][kind][:, side] for method in rankings]) for kind in (0, 1)
        )
    about: Mapping[str, Any] = {
        "identity": identity,
        "task": name,
        "methods": [label for method, orders in rankings.items() for label in _labels(method, len(orders))],
        "counts": counts,
        "heads": heads,
        "facts": {**decides, "shares": list(SHARES), "off": "zero", "rankings": varied},
        "request": request.to_json(),
    }
    store.write_note(validation_name(name), arrays, about)
    for part in parts:
        store.drop_note(curve_name(name, part))


def _labels(method: str, rankings: int) -> list[str]:
    """The names of a method's curves: its own ranking first; random orders have only numbers."""
    if method == "random":
        return [f"random {number + 1}" for number in range(rankings)]
    return [method, *(f"{method} {number}" for number in range(1, rankings))]


def _rankings(
    atlas: Atlas, name: str, methods: Sequence[str]
) -> tuple[dict[str, list[list[int]]], dict[str, str]]:
    """(method -> its ranking and those with a part of its data left out, method -> what is left out)."""
    scores = atlas.scores(name)

    def by_scores(seeds: np.ndarray) -> list[int]:
        mean = scores.isel(seed=seeds).mean("seed")
        return places_in_order(mean["facilitation"].values, mean["interference"].values)

    count = scores.sizes["seed"]
    parts = _left_out(np.arange(count))
    rankings = {"gating": [by_scores(np.arange(count)), *map(by_scores, parts)]}
    varied = {"gating": "seeds"}
    for method in methods:
        values, labels, varied[method] = _effect_samples(atlas, name, method)
        orders = [places_in_order(values[kept].mean(axis=0)) for kept in _left_out(labels)]
        rankings[method] = [places_in_order(atlas.importance(name, method).values), *orders]
    chance = np.random.default_rng(3)
    heads = rankings["gating"][0]
    rankings["random"] = [chance.permutation(heads).tolist() for _ in range(_RANDOM)]
    return rankings, {**varied, "random": "random orders"}


def _effect_samples(atlas: Atlas, name: str, method: str) -> tuple[np.ndarray, np.ndarray, str]:
    """([sample, layer, head], [sample], what a sample is): the measurements that a ranking averages, and the
    group of each. Samples are items, or seeds where effects on single items were not stored."""
    effects = atlas.effects(name, method)
    by_seed = [atlas.effect(name, method, int(seed)).per_item for seed in effects.seed.values]
    if any(per_item is None for per_item in by_seed):
        return effects["effect"].values, np.arange(effects.sizes["seed"]), "seeds"
    values, items, groups = (
        np.concatenate([getattr(per_item, part) for per_item in by_seed])
        for part in ("values", "items", "groups")
    )
    _, first, index = np.unique(items, return_index=True, return_inverse=True)
    pooled = np.stack([values[index == item].mean(axis=0) for item in range(len(first))])
    return pooled, groups[first], "effect items"


def _left_out(labels: np.ndarray) -> list[np.ndarray]:
    """The samples that stay when each of `_PARTS` parts is left out; samples with one label stay together.
    Every label is a part if there are fewer; none is left out if there is one."""
    distinct = np.unique(labels)
    if len(distinct) < 2:
        return []
    parts = np.array_split(np.random.default_rng(7).permutation(distinct), min(len(distinct), _PARTS))
    return [np.flatnonzero(~np.isin(labels, part)) for part in parts]


def _kept_and_dropped(
    order: Sequence[int], counts: Sequence[int], shape: tuple[int, int], is_random: bool
) -> np.ndarray:
    """Gates [side, share, layer, head] with the first heads of an order kept, and taken away.

    A random order is taken away from its end, which is as random: many sets are then the same on both
    sides, and each is measured once.
    """
    taken = list(reversed(order)) if is_random else order
    return np.stack([kept_only(order, counts, shape), 1 - kept_only(taken, counts, shape)])


def _curve(
    model: Model,
    store: Store,
    task: Prepared,
    part: str,
    gates: np.ndarray,
    identity: str,
    told: Callable[[int, int], None],
    row_loss: RowLoss,
) -> tuple[np.ndarray, np.ndarray]:
    """([..., row], [..., row]): losses and hits of gate sets [..., layer, head]; kept in the store."""
    name = curve_name(task.name, part)
    note = store.read_note(name)
    if note is None or note[1].get("identity") != identity:
        sets = gates.reshape(-1, *gates.shape[-2:])
        found = evaluate_sets(model, task.held_out, sets, progress=told, row_loss=row_loss)
        shape = (*gates.shape[:-2], len(task.held_out))
        nll, right = (values.reshape(shape).astype(np.float32) for values in found)
        store.write_note(name, {"nll": nll, "right": right}, {"identity": identity})
        return nll, right
    return note[0]["nll"], note[0]["right"]


def _switched_off(
    atlas: Atlas, name: str, seeds: Sequence[int], counts: Sequence[int], draws: int, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Gates [seed, order, share, layer, head] and [draw, share, layer, head]: G+ with heads switched off."""
    scores, gates = atlas.scores(name), atlas.gates(name).sel(fit="retain")
    off = []
    for seed in seeds:
        start = np.nan_to_num(gates.sel(seed=seed).values, nan=1.0)
        orders = [places_in_order(scores[score].sel(seed=seed).values) for score in ORDERS]
        off.append([start * (1 - kept_only(order, counts, shape)) for order in orders])
    chance = np.random.default_rng(4)
    by_chance = []
    for draw in range(draws):
        seed = seeds[draw % len(seeds)]
        order = chance.permutation(places_in_order(scores["facilitation"].sel(seed=seed).values)).tolist()
        start = np.nan_to_num(gates.sel(seed=seed).values, nan=1.0)
        by_chance.append(start * (1 - kept_only(order, counts, shape)))
    return np.array(off, dtype=np.float32), np.array(by_chance, dtype=np.float32)


def places_in_order(values: np.ndarray, then: np.ndarray | None = None) -> list[int]:
    """The places in the flat map of heads by falling value, of equals by rising `then`, else by lot."""
    width = values.shape[1]
    return [head.layer * width + head.head for head in ranked(values, then, ties="lot")]
