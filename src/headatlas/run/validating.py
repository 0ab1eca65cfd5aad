"""`validate_atlas`: what is a map worth? Heads kept, taken away and switched off, on items that no fit
has seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from headatlas.atlas import ORDERS, SHARES, Atlas, Run, Store, open_atlas, validation_name
from headatlas.core import (
    EFFECT_METHODS,
    AtlasError,
    RequestError,
    TaskError,
    UnknownNameError,
    method_named,
)
from headatlas.method import GatingSettings, evaluate_sets, kept_only
from headatlas.model import Model, load_model
from headatlas.run.effects import ITEMS, add_effects, require_numbers
from headatlas.run.fitting import Fitter, Progress, Silence
from headatlas.run.mapping import fit_gates
from headatlas.run.prepare import Prepared, identified, read_rows
from headatlas.run.requests import opened, require_same
from headatlas.task import Task, load_task

__all__ = ["HELD_OUT", "require_validation", "unknown_tasks", "validate_atlas"]

#: raised when the same request would give other numbers than before
_ALGORITHM, _RETEST_ALGORITHM = 2, 1
#: held-out items, random orders that heads are switched off in, random rankings among the methods
HELD_OUT, DRAWS, RANDOM = 48, 20, 5
#: seeds that a half of the items can have; those of the other half begin there
_MOST_AGAIN = 1000
_OWN = (
    "not built in; give the file that it was mapped from with --task (relation:FILE for a relation), and all "
    "others that are to be validated."
)


def validate_atlas(
    folder: str | Path,
    *,
    model: Model | str | None = None,
    tasks: Sequence[str | Path | Task] = (),
    methods: Sequence[str] | None = None,
    items: int = HELD_OUT,
    draws: int = DRAWS,
    retest: int = 1,
    effect_items: int = ITEMS,
    progress: Progress | None = None,
) -> Atlas:
    """Measure what the maps of an atlas are worth, and keep it there; what is there is not made again.

    For every task that was gated (or those of `tasks`): the paper's ablation curves, with `draws` random
    orders; sufficiency and necessity of the heads that gating and each of `methods` (all if None) put
    first, on `items` held-out items; and `retest` seeds fitted anew on each of two halves of the items. A
    method that the atlas does not have yet is run, on `effect_items` items. A task that is not built in is
    given as the file that it was mapped from; `model` only if the atlas's name does not say where it is.
    """
    atlas = open_atlas(folder)
    wanted = [one for one in (methods if methods is not None else EFFECT_METHODS) if one != "gating"]
    chosen = require_validation(atlas, tasks, wanted, items, draws, retest)
    wanted = [method_named(one) for one in wanted]
    require_numbers(1, effect_items)
    loaded = _loaded(atlas, model)
    progress = progress or Silence()
    left = [] if tasks else unknown_tasks(atlas)
    if left:
        progress.note(f"left out: {', '.join(left)}; {_OWN}")
    with opened(loaded, folder, resume=True) as store:
        for task in chosen:
            run = atlas.run(task.name)
            ready = read_rows(loaded, task, run.task_facts.get("max_tokens"), items)
            require_same(run, ready)
            if len(ready.held_out) < items:
                progress.note(f"{task.name}: has {len(ready.held_out)} held-out items, not {items}")
            compared = _compared(atlas, task.name, wanted)
            for method in compared:
                if not _there(loaded, store, method, ready):
                    add_effects(loaded, store, [ready], method, 1, effect_items, progress)
            if retest:
                _retest(loaded, store, run, ready, retest, progress)
            _measure(loaded, store, open_atlas(store.root), run, ready, compared, draws, progress)
    return open_atlas(folder)


def _compared(atlas: Atlas, task: str, wanted: Sequence[str]) -> list[str]:
    """The methods asked for and those that were compared before: what is there is not lost."""
    before = atlas.validation(task).named() if task in atlas.validated else []
    known = [method for method in before if method in atlas.methods(task) and method != "gating"]
    return [method for method in EFFECT_METHODS if method in {*wanted, *known}]


def _there(model: Model, store: Store, method: str, task: Prepared) -> bool:
    """Has the atlas effects of this model and these items already, of however many of them?"""
    run = store.runs.get((method, task.name))
    if run is None or not store.measured(run):
        return False
    decides = run.settings.get("decides", {})
    same = identified(model, method, task.name, task.facts, {}, {}, 0).settings["decides"]
    return all(decides.get(key) == same[key] for key in ("weights", "tasks"))


def require_validation(
    atlas: Atlas,
    tasks: Sequence[str | Path | Task],
    methods: Sequence[str],
    items: int,
    draws: int,
    retest: int,
) -> list[Task]:
    """The tasks; what can be said before a model is loaded."""
    for name, value, least, most in (
        ("items", items, 2, 10_000),
        ("draws", draws, 1, 10_000),
        ("retest", retest, 0, _MOST_AGAIN),
    ):
        if not least <= value <= most:
            raise RequestError(f"{name} is {value}; allowed are {least} to {most:,}.")
    for method in methods:
        method_named(method)
    if not atlas.tasks:
        raise AtlasError(f"{atlas.path} has no task that was gated to the end; 'headatlas map' makes one.")
    for task in tasks:
        if isinstance(task, str) and task in unknown_tasks(atlas):
            raise RequestError(f"{task}: {_OWN}")
    given = [load_task(task) for task in tasks]
    for task in given:
        if task.name not in atlas.tasks:
            raise UnknownNameError("gated task in this atlas", task.name, atlas.tasks)
    imported = [name for name in atlas.tasks if "imported_from" in atlas.run(name).task_facts]
    if not given:
        given = [load_task(name) for name in atlas.tasks if name not in imported and _is_built_in(name)]
    if not given and len(imported) < len(atlas.tasks):
        raise RequestError(f"{', '.join(unknown_tasks(atlas))}: {_OWN}")
    for name in [task.name for task in given] or imported:
        if name in imported:
            raise AtlasError(f"{name!r} was imported: there are no items to measure it on.")
    return given


def unknown_tasks(atlas: Atlas) -> list[str]:
    """Gated tasks of which only the user knows where they are."""
    return [
        name
        for name in atlas.tasks
        if "imported_from" not in atlas.run(name).task_facts and not _is_built_in(name)
    ]


def _is_built_in(name: str) -> bool:
    try:
        load_task(name)
    except (UnknownNameError, TaskError):
        return False
    return True


def _loaded(atlas: Atlas, model: Model | str | None) -> Model:
    """In the dtype that the gates were fitted in."""
    if isinstance(model, Model):
        return model
    dtype = atlas.run(atlas.tasks[0]).settings.get("decides", {}).get("dtype", "fast")
    return load_model(model or atlas.spec.name, dtype=dtype)


def _retest(model: Model, store: Store, run: Run, task: Prepared, seeds: int, progress: Progress) -> None:
    """Fits on two halves of the items that have no item in common, with other seeds each."""
    settings = GatingSettings.from_json(run.settings["resolved"])
    train = task.rows.train
    order = np.random.default_rng(5).permutation(len(train))
    assert settings.batch is not None
    if len(train) // 2 < settings.batch:
        progress.note(f"{task.name}: too few items for two halves; not tested again on other items")
        return
    for place, letter in enumerate("ab"):
        half = [train[row] for row in order[place::2]]
        decides = {key: value for key, value in settings.to_json().items() if key != "seeds"}
        said = {"given": {"seeds": seeds}, "resolved": {"seeds": seeds, "half": letter}}
        about = {**task.facts, "half": letter}
        again = identified(
            model, f"retest-{letter}", task.name, about, said, {**decides, "half": letter}, _RETEST_ALGORITHM
        )
        (again,) = store.add(again)
        fitter = Fitter(model, store, progress)
        fit_gates(
            fitter, again, half, None, settings, range(place * _MOST_AGAIN, place * _MOST_AGAIN + seeds)
        )


def _order(values: np.ndarray, then: np.ndarray | None = None) -> list[int]:
    """Places in the flat map by falling value (of equals by rising `then`, else by lot); no place without a
    head.

    Many gates rest at the bound, so that many scores are the same: by place, whole layers would come first.
    """
    flat = values.ravel()
    second = np.zeros_like(flat) if then is None else then.ravel()
    lot = np.random.default_rng(6).permutation(len(flat))
    there = np.flatnonzero(~np.isnan(flat))
    return [int(place) for place in there[np.lexsort((lot[there], second[there], -flat[there]))]]


def _measure(
    model: Model,
    store: Store,
    atlas: Atlas,
    run: Run,
    task: Prepared,
    methods: Sequence[str],
    draws: int,
    progress: Progress,
) -> None:
    name = task.name
    seeds = atlas.seeds(name)
    decides = {
        "algorithm": _ALGORITHM,
        "gating": run.identity,
        "seeds": seeds,
        "methods": {
            method: [atlas.run(name, method).identity, atlas.effects(name, method).seed.values.tolist()]
            for method in methods
        },
        "items": len(task.held_out),
        "draws": draws,
        "device": model.device.type,
        "dtype": model.spec.dtype,
    }
    identity = sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    note = atlas.notes.get(validation_name(name))
    if note is not None and note[1].get("identity") == identity:
        return
    spec, heads = model.spec, len(model.spec)
    counts = sorted({round(share * heads) for share in SHARES})
    scores = atlas.scores(name)
    mean = scores.mean("seed")
    orders = {"gating": _order(mean["facilitation"].values, mean["interference"].values)}
    orders |= {method: _order(atlas.importance(name, method).values) for method in methods}
    chance = np.random.default_rng(3)
    for number in range(RANDOM):
        orders[f"random {number + 1}"] = chance.permutation(orders["gating"]).tolist()
    keep = np.stack([kept_only(order, counts, spec.shape) for order in orders.values()])
    drop = 1 - keep
    off, by_chance = _switched_off(atlas, name, seeds, counts, draws, spec.shape)
    parts = {"keep": keep, "drop": drop, "off": off, "by_chance": by_chance}
    flat = np.concatenate([part.reshape(-1, *spec.shape) for part in parts.values()])
    told = partial(progress.heads, f"{name}: heads kept, taken away, switched off")
    losses, right = evaluate_sets(model, task.held_out, flat, progress=told)
    arrays: dict[str, np.ndarray] = {}
    start = 0
    for part, gates in parts.items():
        shape = (*gates.shape[:-2], len(task.held_out))
        end = start + int(np.prod(gates.shape[:-2]))
        arrays[part] = losses[start:end].reshape(shape).astype(np.float32)
        if part in ("keep", "drop"):
            arrays[f"{part}_right"] = right[start:end].reshape(shape).astype(np.float32)
        start = end
    about: Mapping[str, Any] = {
        "identity": identity,
        "task": name,
        "methods": list(orders),
        "counts": counts,
        "heads": heads,
        "facts": {**decides, "shares": list(SHARES), "off": "zero"},
    }
    store.write_note(validation_name(name), arrays, about)


def _switched_off(
    atlas: Atlas, name: str, seeds: Sequence[int], counts: Sequence[int], draws: int, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Gates [seed, order, share, layer, head] and [draw, share, layer, head]: G+ with heads switched off."""
    scores, gates = atlas.scores(name), atlas.gates(name).sel(fit="retain")
    off = []
    for seed in seeds:
        start = np.nan_to_num(gates.sel(seed=seed).values, nan=1.0)
        orders = [_order(scores[score].sel(seed=seed).values) for score in ORDERS]
        off.append([start * (1 - kept_only(order, counts, shape)) for order in orders])
    chance = np.random.default_rng(4)
    by_chance = []
    for draw in range(draws):
        seed = seeds[draw % len(seeds)]
        order = chance.permutation(_order(scores["facilitation"].sel(seed=seed).values)).tolist()
        start = np.nan_to_num(gates.sel(seed=seed).values, nan=1.0)
        by_chance.append(start * (1 - kept_only(order, counts, shape)))
    return np.array(off, dtype=np.float32), np.array(by_chance, dtype=np.float32)
