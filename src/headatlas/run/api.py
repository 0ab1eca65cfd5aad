"""The public functions: each builds a request and carries it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from headatlas.atlas import Atlas, Doubt, atlas_folder
from headatlas.core import Metric, Progress, given_load_options, progress_of, warn_user
from headatlas.method.method import METHODS, EffectOptions
from headatlas.request.map_request import ContrastRequest, MapRequest
from headatlas.request.relations_request import RelationsRequest
from headatlas.request.validate_request import DRAWS, HELD_OUT, ValidateRequest
from headatlas.run.executor import Executor, Request, execute, local_executor
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

#: continue an atlas, refuse to, or ("auto") continue it if there is one
Resume = bool | Literal["auto"]


def map_heads(
    model: Any,
    tasks: Tasks,
    *,
    method: str = "gating",
    test: HeldOut = AUTO,
    tokenizer: Any = None,
    out: str | Path | None = None,
    resume: Resume = "auto",
    max_tokens: int | None = None,
    progress: bool | Progress = True,
    checkpoint_seconds: float = 30.0,
    executor: Executor | None = None,
    dtype: Any = None,
    device: Any = None,
    device_map: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    **options: Any,
) -> Atlas:
    """Map which heads each task needs and open the atlas.

    `model` is a `Model`, a transformers model with its `tokenizer`, or a name, which is loaded in dtype
    "fast" unless `dtype` says otherwise; `dtype`, `device`, `device_map`, `revision` and `trust_remote_code`
    are those of `load_model` and go with a name only. `tasks` are names, files, `Task`s, lists of items as
    for `Task.of`, or {name: items}. `test` is held out of items in memory: a share or a number of them, a
    list of other items, or None for nothing; by default a tenth where gates are fitted, and nothing where
    effects are measured.

    `options` are those of the method; `seeds` is a count or a list of seed numbers. Gating has `preset`
    ("quick" or "paper"), `seeds`, `updates`, `batch` and `objective`; the other methods have `items` (32;
    all of a task in memory), which each of their `seeds` (1) draws anew, and measure the effect of every head
    on the loss. All built-in methods have `metric`, the loss of a row: "nll" (mean negative log-likelihood of
    the target, the default), "logit_diff" (first target token against first foil token; every item needs a
    foil), "kl" (from the ungated model), or a function (logits, batch) -> [row], see `MetricBatch`. Effects
    are differences of the metric, and gates are fitted on it.

    Methods answer different questions and can disagree: `attribute-gradient` is a linear estimate from one
    backward pass, and on SmolLM2 it gave the head that ablation puts first rank 262 of 270. Where an atlas
    has several methods of a task, those that rank heads differently say so (`Atlas.method_agreement`).

    `out` is a folder that keeps every finished fit. An existing atlas there is continued and may gain tasks
    and seeds, so a notebook cell can run twice; with `resume=False`, or with options that would change its
    numbers, the call is refused. A run that was killed and resumed gives the numbers of an uninterrupted run.

    `progress` shows a bar on a terminal and in a notebook; False shows nothing, and a function is called with
    each event. Reasons to doubt the result (`Atlas.doubts`) are a `HeadatlasWarning` at the end.

    Seeds are fitted together in blocks of five (0 to 4, 5 to 9, …). The seeds of a block change how each
    other's numbers are rounded, and a fit amplifies rounding: three seeds, and two more added later, are not
    bit for bit the five seeds of one run. Every fit records the seeds that it was fitted with
    (`seeds_together`).

    With an `executor` (a `Ray`) the work is done elsewhere; the model is then given by its name.
    """
    load = given_load_options(
        model, dtype=dtype, device=device, device_map=device_map, revision=revision,
        trust_remote_code=trust_remote_code,
    )  # fmt: skip
    local = local_executor(model, tokenizer)
    request = MapRequest.of(
        model,
        tasks,
        method,
        test=test,
        max_tokens=max_tokens,
        checkpoint_seconds=checkpoint_seconds,
        load=load,
        **options,
    )
    atlas = _execute(request, out, resume, executor or local, progress)
    _warn({task.name: _map_doubts(atlas, task.name, request.method) for task in request.tasks})
    return atlas


def contrast_heads(
    model: Any,
    retain: TaskSource,
    forget: TaskSource,
    *,
    test: HeldOut = AUTO,
    tokenizer: Any = None,
    out: str | Path | None = None,
    resume: Resume = "auto",
    preset: str | None = None,
    seeds: int | Sequence[int] | None = None,
    updates: int | None = None,
    batch: int | None = None,
    max_tokens: int | None = None,
    progress: bool | Progress = True,
    checkpoint_seconds: float = 30.0,
    executor: Executor | None = None,
    dtype: Any = None,
    device: Any = None,
    device_map: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Atlas:
    """Fit gates that keep the task `retain` and destroy the task `forget`.

    A task is as in `map_heads`; items without a name are called "retain" and "forget". `seeds` is a
    count or a list of seed numbers; `test` is held out of items in memory, as in `map_heads`.

    Both are measured on held-out items, without the gates and with them; the figures are in the run's
    `baseline` and in the fits' `facts`, as `retain_nll`, `forget_accuracy` and so on. Seeds are fitted
    side by side in blocks of five. `resume`, `progress`, `dtype` and the like as in `map_heads`.
    """
    load = given_load_options(
        model, dtype=dtype, device=device, device_map=device_map, revision=revision,
        trust_remote_code=trust_remote_code,
    )  # fmt: skip
    local = local_executor(model, tokenizer)
    request = ContrastRequest.of(
        model, retain, forget, test=test, max_tokens=max_tokens, checkpoint_seconds=checkpoint_seconds,
        load=load, preset=preset, seeds=seeds, updates=updates, batch=batch,
    )  # fmt: skip
    atlas = _execute(request, out, resume, executor or local, progress)
    _warn({request.name: atlas.doubts(request.name, "contrast")})
    return atlas


def relate_heads(
    model: Any,
    relations: Relations | None = None,
    *,
    out: str | Path | None = None,
    resume: Resume = "auto",
    k: int | None = None,
    source: str = "auto",
    salient: bool = True,
    dynamic: bool = False,
    causal: Sequence[str] = (),
    min_pairs: int = LEAST_PAIRS,
    norms: str = "published",
    tokenizer: Any = None,
    progress: bool | Progress = True,
    executor: Executor | None = None,
    dtype: Any = None,
    device: Any = None,
    device_map: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Atlas:
    """Score relations (all built-in ones if none is given) on all heads and open the atlas.

    `relations`, `source`, `norms` and `min_pairs` as in `relation_scores`, `k` for all relations; `tokenizer`
    is that of a transformers model. `salient` adds the tokens that each head amplifies, `dynamic` the scores
    in texts (at most 100 pairs of a relation in three texts), `causal` the named relations with their top
    heads switched off. With `out` all of it is kept in that folder; finished results are reused. A name is
    loaded in the dtype of its weights. `resume`, `progress`, `executor`, `dtype` and the like as in
    `map_heads`.
    """
    load = given_load_options(
        model, dtype=dtype, device=device, device_map=device_map, revision=revision,
        trust_remote_code=trust_remote_code,
    )  # fmt: skip
    local = local_executor(model, tokenizer)
    request = RelationsRequest.of(
        model, relations, k=k, source=source, salient=salient, dynamic=dynamic, causal=causal,
        min_pairs=min_pairs, norms=norms, load=load,
    )  # fmt: skip
    atlas = _execute(request, out, resume, executor or local, progress)
    if unmeasured := _unmeasured(atlas, request):
        warn_user(" ".join(unmeasured))
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
    tokenizer: Any = None,
    progress: bool | Progress = True,
    executor: Executor | None = None,
    dtype: Any = None,
    device: Any = None,
    device_map: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Atlas:
    """Measure what the maps of an atlas are worth, and keep it in its folder; finished results are reused. An
    atlas in memory stays as it is: the one that is returned has the results.

    For every task that was gated (or those of `tasks`): the paper's ablation curves, with `draws` random
    orders; sufficiency and necessity of the heads that gating and each of `methods` (all if None) put
    first, on `items` held-out items; and `retest` seeds fitted anew on each of two halves of the items. A
    method that the atlas does not have yet is run, on `effect_items` items. The curves are in the metric of
    the gates, or in `metric`.

    The atlas remembers its model, its task files and items in memory; give `model` (a transformers model with
    its `tokenizer`) or `tasks` if files have moved. `progress`, `executor`, `dtype` and the like as in
    `map_heads`; the model is loaded in the dtype of the gates.
    """
    load = getattr(executor, "load", {}) | given_load_options(
        model, dtype=dtype, device=device, device_map=device_map, revision=revision,
        trust_remote_code=trust_remote_code,
    )  # fmt: skip
    local = local_executor(model, tokenizer)
    with atlas_folder(atlas) as folder:
        request = ValidateRequest.of(
            folder, model=model, tasks=tasks, methods=methods, items=items, draws=draws, retest=retest,
            effect_items=effect_items, load=load, metric=metric,
        )  # fmt: skip
        validated = _execute(request, folder, True, executor or local, progress)
    if isinstance(atlas, Atlas):
        validated.path = atlas.path
    names = [task.name for task in request.tasks if task.name in validated.validated]
    _warn({name: validated.doubts(name, "validation") for name in names})
    return validated


def _execute(
    request: Request,
    out: str | Path | None,
    resume: Resume,
    executor: Executor | None,
    progress: bool | Progress,
) -> Atlas:
    with progress_of(progress) as shown:
        return execute(request, out, resume=resume, executor=executor, progress=shown)


def _map_doubts(atlas: Atlas, task: str, method: str) -> list[Doubt]:
    """The reasons to doubt what a method found. Fits other than G+ and G- have no roles and no doubts."""
    if not METHODS[method].stages or method in atlas.fitted_methods(task):
        return atlas.doubts(task, method)
    return []


def _warn(doubts: Mapping[str, Sequence[Doubt]]) -> None:
    """One warning for all results of a call: name -> its doubts."""
    lines = [f"{name}: {doubt.text}" for name, some in doubts.items() for doubt in some]
    if lines:
        warn_user("\n".join(lines))
