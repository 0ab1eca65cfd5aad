"""The public functions: each builds a request and carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headatlas.atlas import Atlas, atlas_folder
from headatlas.core import Progress, silent
from headatlas.method.method import EffectOptions
from headatlas.request.map_request import ContrastRequest, MapRequest
from headatlas.request.relations_request import RelationsRequest
from headatlas.request.validate_request import DRAWS, HELD_OUT, ValidateRequest
from headatlas.run.executor import Executor, execute, local_executor
from headatlas.task import Relation, Task

__all__ = ["contrast_heads", "map_heads", "relate_heads", "validate_atlas"]


def map_heads(
    model: Any,
    tasks: str | Path | Task | Sequence[str | Path | Task],
    *,
    method: str = "gating",
    out: str | Path | None = None,
    resume: bool = False,
    max_tokens: int | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 30.0,
    executor: Executor | None = None,
    **options: Any,
) -> Atlas:
    """Map which heads each task needs and open the atlas.

    `model` is a `Model`, a transformers model, or a name, which is loaded in dtype "fast". `options` are
    those of the method. Gating has `preset` ("quick" or "paper"), `seeds`, `updates`, `batch` and
    `objective`; the other methods have `items` (32), which each of their `seeds` (1) draws anew, and measure
    the effect of every head on the loss.

    With `out` everything is kept in that folder, fit by fit; `resume` continues what is there, or adds tasks
    and seeds to it. A run that was killed and resumed gives the numbers of an uninterrupted run.

    Seeds are fitted together in blocks of five (0 to 4, 5 to 9, …). The seeds of a block change how each
    other's numbers are rounded, and a fit amplifies rounding: three seeds, and two more added later, are not
    bit for bit the five seeds of one run. Every fit records the seeds that it was fitted with
    (`seeds_together`).

    With an `executor` (a `Ray`) the work is done elsewhere; the model is then given by its name.
    """
    request = MapRequest.of(
        model, tasks, method, max_tokens=max_tokens, checkpoint_seconds=checkpoint_seconds, **options
    )
    return execute(
        request, out, resume=resume, executor=executor or local_executor(model), progress=progress or silent
    )


def contrast_heads(
    model: Any,
    retain: str | Path | Task,
    forget: str | Path | Task,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    preset: str | None = None,
    seeds: int | None = None,
    updates: int | None = None,
    batch: int | None = None,
    max_tokens: int | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 30.0,
    executor: Executor | None = None,
) -> Atlas:
    """Fit gates that keep the task `retain` and destroy the task `forget`.

    Both are measured on held-out items, without the gates and with them; the figures are in the run's
    `baseline` and in the fits' `facts`, as `retain_nll`, `forget_accuracy` and so on. Seeds are fitted
    side by side in blocks of five, as in `map_heads`.
    """
    request = ContrastRequest.of(
        model, retain, forget, max_tokens=max_tokens, checkpoint_seconds=checkpoint_seconds,
        preset=preset, seeds=seeds, updates=updates, batch=batch,
    )  # fmt: skip
    return execute(
        request, out, resume=resume, executor=executor or local_executor(model), progress=progress or silent
    )


def relate_heads(
    model: Any,
    relations: str | Path | Relation | Sequence[str | Path | Relation] | None = None,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    k: int | None = None,
    source: str = "auto",
    salient: bool = True,
    dynamic: bool = False,
    causal: Sequence[str] = (),
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Atlas:
    """Score relations (all built-in ones if none is given) on all heads and open the atlas.

    `source` as in `relation_scores`, `k` for all relations; `salient` adds the tokens that each head
    amplifies, `dynamic` the scores in texts (at most 100 pairs of a relation in three texts), `causal` the
    named relations with their top heads switched off. With `out` all of it is kept in that folder, next to
    what is there, which is not made again; that takes `resume`. A name is loaded in the dtype of its weights.
    `executor` as in `map_heads`.
    """
    request = RelationsRequest.of(
        model, relations, k=k, source=source, salient=salient, dynamic=dynamic, causal=causal
    )
    return execute(
        request, out, resume=resume, executor=executor or local_executor(model), progress=progress or silent
    )


def validate_atlas(
    atlas: Atlas | str | Path,
    *,
    model: Any = None,
    tasks: Sequence[str | Path | Task] = (),
    methods: Sequence[str] | None = None,
    items: int = HELD_OUT,
    draws: int = DRAWS,
    retest: int = 1,
    effect_items: int = EffectOptions.items,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Atlas:
    """Measure what the maps of an atlas are worth, and keep it in its folder; what is there is not made
    again. An atlas in memory stays as it is: the one that is returned has the results.

    For every task that was gated (or those of `tasks`): the paper's ablation curves, with `draws` random
    orders; sufficiency and necessity of the heads that gating and each of `methods` (all if None) put
    first, on `items` held-out items; and `retest` seeds fitted anew on each of two halves of the items. A
    method that the atlas does not have yet is run, on `effect_items` items.

    The atlas remembers its model and its task files; give `model` or `tasks` if they have moved. `executor`
    as in `map_heads`.
    """
    load = getattr(executor, "load", {})
    local = local_executor(model) if model is not None else None
    with atlas_folder(atlas) as folder:
        request = ValidateRequest.of(
            folder, model=model, tasks=tasks, methods=methods, items=items, draws=draws, retest=retest,
            effect_items=effect_items, load=load,
        )  # fmt: skip
        validated = execute(
            request, folder, resume=True, executor=executor or local, progress=progress or silent
        )
    if isinstance(atlas, Atlas):
        validated.path = atlas.path
    return validated
