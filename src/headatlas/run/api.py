"""The public functions: each builds a request and carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from warnings import warn

from headatlas.atlas import Atlas, atlas_folder
from headatlas.core import HeadatlasWarning, Metric, Progress, silent
from headatlas.method.method import EffectOptions
from headatlas.request.map_request import ContrastRequest, MapRequest
from headatlas.request.relations_request import RelationsRequest
from headatlas.request.validate_request import DRAWS, HELD_OUT, ValidateRequest
from headatlas.run.executor import Executor, execute, local_executor
from headatlas.task import (
    AUTO,
    LEAST_PAIRS,
    HeldOut,
    Relations,
    Tasks,
    TaskSource,
    too_few_text,
    unmeasured_text,
)

__all__ = ["contrast_heads", "map_heads", "relate_heads", "validate_atlas"]


def map_heads(
    model: Any,
    tasks: Tasks,
    *,
    method: str = "gating",
    test: HeldOut = AUTO,
    tokenizer: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    max_tokens: int | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 30.0,
    executor: Executor | None = None,
    **options: Any,
) -> Atlas:
    """Map which heads each task needs and open the atlas.

    `model` is a `Model`, a transformers model with its `tokenizer`, or a name, which is loaded in dtype
    "fast". `tasks` are names, files, `Task`s, lists of items as for `Task.of`, or {name: items}. `test` is
    held out of items in memory: a share or a number of them, a list of other items, or None for nothing; by
    default a tenth where gates are fitted, and nothing where effects are measured.

    `options` are those of the method; `seeds` are so many, or those of a list. Gating has `preset` ("quick"
    or "paper"), `seeds`, `updates`, `batch` and `objective`; the other methods have `items` (32; all of a
    task in memory), which each of their `seeds` (1) draws anew, and measure the effect of every head on the
    loss. All built-in methods have `metric`, what a row loses: "nll" (mean negative log-likelihood of the
    target, the default), "logit_diff" (first target token against first foil token; every item needs a foil),
    "kl" (from the ungated model), or a function (logits, batch) -> [row], see `MetricBatch`. Effects are
    differences of the metric, and gates are fitted on it.

    With `out` everything is kept in that folder, fit by fit; `resume` continues what is there, or adds tasks
    and seeds to it. A run that was killed and resumed gives the numbers of an uninterrupted run.

    Seeds are fitted together in blocks of five (0 to 4, 5 to 9, …). The seeds of a block change how each
    other's numbers are rounded, and a fit amplifies rounding: three seeds, and two more added later, are not
    bit for bit the five seeds of one run. Every fit records the seeds that it was fitted with
    (`seeds_together`).

    With an `executor` (a `Ray`) the work is done elsewhere; the model is then given by its name.
    """
    request = MapRequest.of(
        model, tasks, method, test=test, max_tokens=max_tokens, checkpoint_seconds=checkpoint_seconds,
        **options,
    )  # fmt: skip
    executor = executor or local_executor(model, tokenizer)
    return execute(request, out, resume=resume, executor=executor, progress=progress or silent)


def contrast_heads(
    model: Any,
    retain: TaskSource,
    forget: TaskSource,
    *,
    tokenizer: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    preset: str | None = None,
    seeds: int | Sequence[int] | None = None,
    updates: int | None = None,
    batch: int | None = None,
    max_tokens: int | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 30.0,
    executor: Executor | None = None,
) -> Atlas:
    """Fit gates that keep the task `retain` and destroy the task `forget`.

    A task is as in `map_heads`; items without a name are called "retain" and "forget". `seeds` are so many,
    or those of a list.

    Both are measured on held-out items, without the gates and with them; the figures are in the run's
    `baseline` and in the fits' `facts`, as `retain_nll`, `forget_accuracy` and so on. Seeds are fitted
    side by side in blocks of five, as in `map_heads`.
    """
    request = ContrastRequest.of(
        model, retain, forget, max_tokens=max_tokens, checkpoint_seconds=checkpoint_seconds,
        preset=preset, seeds=seeds, updates=updates, batch=batch,
    )  # fmt: skip
    executor = executor or local_executor(model, tokenizer)
    return execute(request, out, resume=resume, executor=executor, progress=progress or silent)


def relate_heads(
    model: Any,
    relations: Relations | None = None,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    k: int | None = None,
    source: str = "auto",
    salient: bool = True,
    dynamic: bool = False,
    causal: Sequence[str] = (),
    min_pairs: int = LEAST_PAIRS,
    tokenizer: Any = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Atlas:
    """Score relations (all built-in ones if none is given) on all heads and open the atlas.

    `relations`, `source` and `min_pairs` as in `relation_scores`, `k` for all relations; `tokenizer` is that
    of a transformers model. `salient` adds the tokens that each head amplifies, `dynamic` the scores in texts
    (at most 100 pairs of a relation in three texts), `causal` the named relations with their top heads
    switched off. With `out` all of it is kept in that folder, next to what is there, which is not made again;
    that takes `resume`. A name is loaded in the dtype of its weights.
    `executor` as in `map_heads`.
    """
    request = RelationsRequest.of(
        model, relations, k=k, source=source, salient=salient, dynamic=dynamic, causal=causal,
        min_pairs=min_pairs,
    )  # fmt: skip
    executor = executor or local_executor(model, tokenizer)
    atlas = execute(request, out, resume=resume, executor=executor, progress=progress or silent)
    if unmeasured := _unmeasured(atlas, request):
        warn(" ".join(unmeasured), HeadatlasWarning, stacklevel=2)
    return atlas


def _unmeasured(atlas: Atlas, request: RelationsRequest) -> list[str]:
    """Why relations of the request could not be measured."""
    scores, least = atlas.relation_scores(), request.min_pairs
    texts = []
    for name in (relation.name for relation in request.relations):
        if scores["kind"].sel(relation=name).item() == "none":
            usable = len(atlas.left_out_pairs(name).get(too_few_text(least), ()))
            listed = int(scores["listed"].sel(relation=name).item())
            texts.append(unmeasured_text(name, usable, listed, least))
    return texts


def validate_atlas(
    atlas: Atlas | str | Path,
    *,
    model: Any = None,
    tasks: Tasks = (),
    methods: Sequence[str] | None = None,
    items: int = HELD_OUT,
    draws: int = DRAWS,
    retest: int = 1,
    effect_items: int = EffectOptions.items,
    metric: Metric | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Atlas:
    """Measure what the maps of an atlas are worth, and keep it in its folder; what is there is not made
    again. An atlas in memory stays as it is: the one that is returned has the results.

    For every task that was gated (or those of `tasks`): the paper's ablation curves, with `draws` random
    orders; sufficiency and necessity of the heads that gating and each of `methods` (all if None) put
    first, on `items` held-out items; and `retest` seeds fitted anew on each of two halves of the items. A
    method that the atlas does not have yet is run, on `effect_items` items. The curves are in the metric of
    the gates, or in `metric`.

    The atlas remembers its model, its task files and items in memory; give `model` or `tasks` if files have
    moved. `executor` as in `map_heads`.
    """
    load = getattr(executor, "load", {})
    local = local_executor(model) if model is not None else None
    with atlas_folder(atlas) as folder:
        request = ValidateRequest.of(
            folder, model=model, tasks=tasks, methods=methods, items=items, draws=draws, retest=retest,
            effect_items=effect_items, load=load, metric=metric,
        )  # fmt: skip
        validated = execute(
            request, folder, resume=True, executor=executor or local, progress=progress or silent
        )
    if isinstance(atlas, Atlas):
        validated.path = atlas.path
    return validated
