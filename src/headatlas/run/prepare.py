"""A task made ready for a model, and all that an atlas says about it."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from headatlas._version import __version__
from headatlas.atlas import Run, Store, dtype_advice, other_dtypes
from headatlas.core import (
    NLL,
    AtlasError,
    Metric,
    Note,
    TaskError,
    identity_of,
    metric_words,
    plural,
)
from headatlas.method import GatingSettings
from headatlas.method.engine.likelihood import Outcome, evaluate
from headatlas.method.engine.metric import RowLoss
from headatlas.method.engine.rows import Stream, draw
from headatlas.model import Model
from headatlas.task import Items, Row, Rows, Task, encode, no_foil_words

__all__ = [
    "Prepared",
    "choose_rows",
    "dtype_notes",
    "enter_run",
    "group_error",
    "held_out_figures",
    "made_with",
    "measure_baseline",
    "prepare",
    "read_rows",
    "require_same",
    "row_groups",
    "row_notes",
]

_MAX_TOKENS = 512
#: rows to fit with that the ungated model is measured on where none are held out
_TRAIN_ROWS = 64


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task's rows for one model.

    `held_out` is a fixed fair choice of the rows of held-out groups: each prompt once, equally many rows per
    group where possible. `groups` has one number per held-out row: rows of one group or with one prompt have
    the same number. `known` are as many held-out rows of groups that are fitted on, or none.
    """

    name: str
    rows: Rows
    held_out: Sequence[Row]
    facts: dict[str, Any]
    groups: Sequence[int] = ()
    known: Sequence[Row] = ()


def prepare(
    model: Model, task: Task, settings: GatingSettings, max_tokens: int | None
) -> tuple[Prepared, GatingSettings]:
    """The rows, and the settings with a batch that suits them; refused if there is less than a batch. A task
    in memory may be small: there an open batch has at most all rows."""
    ready = read_rows(model, task, max_tokens, settings.held_out, settings.metric)
    train = ready.rows.train
    may_shrink = settings.batch is None and task.in_memory
    settings = settings.for_targets(sum(len(row.target) for row in train) / len(train))
    assert settings.batch is not None
    if len(train) >= settings.batch:
        return ready, settings
    if may_shrink:
        return ready, replace(settings, batch=len(train))
    raise TaskError(
        f"task {task.name!r} has {len(train)} rows to fit with, fewer than a batch of "
        f"{settings.batch}; give more rows or a smaller batch=…."
    )


def read_rows(
    model: Model, task: Task, max_tokens: int | None, held_out: int, metric: Metric = NLL
) -> Prepared:
    """Read and tokenise; at most so many rows are held out. Refused if the metric needs foils and a row has
    none."""
    first, why = model.first_tokens()
    items = task.items(model.tokenizer)
    rows = encode(items, model.tokenizer, first=first, max_tokens=_limit(model, max_tokens), name=task.name)
    if metric_words(metric).needs_foil:
        _require_foils(task.name, items, rows, model.tokenizer)
    test, groups = choose_rows(rows.test, held_out)
    known, _ = choose_rows(rows.known, held_out)
    facts = {
        "version": task.spec.version,
        "licence": task.spec.licence,
        "content_hash": items.content_hash,
        "spec": _spec_facts(task),
        "records": items.seen,
        "train_rows": len(rows.train),
        "train_items": len({(row.ids, row.foil) for row in rows.train}),
        "test_rows": len(rows.test),
        "known_rows": len(rows.known),
        "train_groups": len(set(row_groups(rows.train))),
        "test_groups": len(set(row_groups(rows.test))),
        "copies": items.copies,
        "too_long": rows.too_long,
        "unknown_targets": rows.unknown_targets,
        "unknown_prompts": rows.unknown_prompts,
        "max_tokens": rows.max_tokens,
        "rows_hash": rows.rows_hash,
        "first_tokens": list(first),
        "first_tokens_because": why,
    }
    return Prepared(task.name, rows, test, facts, groups, known)


def _require_foils(name: str, items: Items, rows: Rows, tokenizer: Any) -> None:
    """Every item has a foil, whose first token is another than that of the target."""
    for item in (*items.train, *items.test, *items.known):
        if not item.foil:
            raise TaskError(no_foil_words(name, item.prompt, item.target))
    for row in (*rows.train, *rows.test, *rows.known):
        if row.foil[0] == row.target[0]:
            prompt, target, foil = (tokenizer.decode(ids) for ids in (row.prompt, row.target, row.foil))
            raise TaskError(
                f"task {name!r}: the item {prompt[-60:]!r} → {target!r} has the foil {foil!r}, which begins "
                "with the same token, so the metric logit_diff cannot tell them apart; choose another foil."
            )


def _spec_facts(task: Task) -> dict[str, Any]:
    """The definition of the task. Items in memory are counted: the request of a run has them."""
    spec = task.spec.to_json()
    if not task.in_memory:
        return spec
    counted = len(spec["test"]) if isinstance(spec["test"], list) else None
    held_out = {} if counted is None else {"test": {"items": counted}}
    return {**spec, "source": {"items": len(spec["source"]["items"])}, **held_out}


def choose_rows(rows: Sequence[Row], most: int) -> tuple[list[Row], list[int]]:
    """At most so many rows, one per prompt, equally many per group where possible; and a number per row that
    tells its group.

    Rows that all have the same prompt are told apart by their targets.
    """
    labels = row_groups(rows)
    by_target = len({row.prompt for row in rows}) == 1
    seen: set[tuple[int, ...]] = set()
    drawn: Counter[int] = Counter()
    ranked: list[tuple[int, int]] = []
    for index in draw(len(rows), len(rows), 0, 0, Stream.CHOICE) if rows else []:  # records may come sorted
        question = rows[index].ids if by_target else rows[index].prompt
        if question not in seen:
            seen.add(question)
            ranked.append((drawn[labels[index]], index))
            drawn[labels[index]] += 1
    chosen = [index for _, index in sorted(ranked, key=lambda entry: entry[0])[:most]]
    numbers: dict[int, int] = {}
    return [rows[index] for index in chosen], [
        numbers.setdefault(labels[index], len(numbers)) for index in chosen
    ]


def row_groups(rows: Sequence[Row]) -> list[int]:
    """[row]: the same number for rows of one group. Rows without a group are grouped by their prompt, or by
    their target if all have the same prompt."""
    has_one_prompt = len({row.prompt for row in rows}) == 1
    numbers: dict[Any, int] = {}
    return [
        numbers.setdefault(row.group or (row.ids if has_one_prompt else row.prompt), len(numbers))
        for row in rows
    ]


def _limit(model: Model, asked: int | None) -> int:
    """Tokens that a row may have: as asked for, and no more than the model was made for.

    Not the stretched length of models that change their positions with the length of the batch: there a
    row's numbers would depend on the rows beside it.
    """
    config = model.hf.config.get_text_config()
    scaling = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    known = [getattr(config, "max_position_embeddings", None)]
    if isinstance(scaling, dict) and scaling.get("rope_type") in ("dynamic", "longrope"):
        known.append(scaling.get("original_max_position_embeddings"))
    return min(
        [int(asked or _MAX_TOKENS), *(length for length in known if isinstance(length, int) and length > 0)]
    )


def enter_run(
    model: Model,
    method: str,
    name: str,
    facts: Mapping[str, Any],
    settings: Mapping[str, Any],
    decides: Mapping[str, Any],
    *,
    version: int,
    request: Mapping[str, Any] | None = None,
    about: Mapping[str, str] | None = None,
) -> Run:
    """The entry of a run, with the hash of everything that its numbers depend on: the weights, the tasks and
    what `decides`. `version` rises when the same would give other numbers than before."""
    parts = facts.get("parts", {name: facts})
    decides = {
        "method": method,
        "algorithm": version,
        "weights": model.weights_identity,
        "dtype": model.spec.dtype,
        "device": model.device.type,
        "tasks": {part: _task_decides(part_facts) for part, part_facts in parts.items()},
        **decides,
    }
    decides = json.loads(json.dumps(decides, default=int))  # as it will be read again
    stored = json.loads(json.dumps({**settings, "decides": decides}, default=int))  # also NumPy integers
    return Run(
        method,
        name,
        identity_of(decides),
        facts,
        stored,
        {},
        made_with(model),
        request=request or {},
        about=about or {},
    )


def require_same(run: Run, ready: Prepared) -> None:
    """The task is the one that was mapped."""
    for key, what in (("content_hash", "items"), ("rows_hash", "tokens")):
        if run.task_facts.get(key) != ready.facts[key]:
            raise AtlasError(
                f"{run.task!r} has other {what} now than when it was mapped. If it was a file of that name, "
                "give the file with tasks=…; else map it again."
            )


def dtype_notes(store: Store, run: Run) -> list[Note]:
    """A note if the atlas has results of the same weights in another dtype than this run."""
    others = other_dtypes(run, store.runs.values())
    if not others:
        return []
    listed = ", ".join(f"{name} in {other}" for name, other in others.items())
    return [
        Note(
            f"{run.task}: the model is in {run.decides['dtype']}, but this atlas has {listed}; "
            f"{dtype_advice(others)}"
        )
    ]


def row_notes(task: Prepared) -> Iterator[Note]:
    """Which rows were left out, and why."""
    seen, spec = task.facts["records"], task.facts["spec"]
    if spec["shortest"] is None and spec["per_group"] is None and seen > spec["rows"]:
        yield Note(f"{task.name}: a fair sample of {spec['rows']:,} of its {seen:,} records")
    if long := task.rows.too_long:
        yield Note(f"{task.name}: left out {plural(long, 'row')} over {task.rows.max_tokens} tokens")
    if copies := task.facts["copies"]:
        yield Note(f"{task.name}: left out {plural(copies, 'held-out record')} that repeat others")
    if unknown := task.rows.unknown_targets:
        yield Note(
            f"{task.name}: left out {plural(unknown, 'row')}: the vocabulary lacks a part of the target, "
            f"such as {task.rows.unknown_example!r}"
        )
    if unknown := task.rows.unknown_prompts:
        yield Note(f"{task.name}: {plural(unknown, 'row')} with an unknown token (<unk>) in the prompt")
    if spec["kind"] == "items":
        fitted, held_out = task.facts["train_rows"], task.facts["test_rows"]
        if fitted < seen:
            yield Note(f"{task.name}: {fitted} of {plural(seen, 'item')}, {held_out} held out", "fact")
        return
    rows = sum(task.facts[f"{side}_rows"] for side in ("train", "test", "known"))
    share = task.facts["test_rows"] / rows
    if "test_split" not in spec["source"] and not spec["test"] / 2 <= share <= 2 * spec["test"]:
        yield Note(
            f"{task.name}: {share:.0%} of {plural(rows, 'row')} are held out, not {spec['test']:.0%}: whole "
            "groups are held out, and they differ in size; change 'group' or 'test' in the task"
        )


def made_with(model: Model) -> dict[str, str]:
    """Versions and device; a run says those of its beginning, each fit its own."""
    versions = {name: version(name) for name in ("torch", "transformers", "numpy")}
    return {
        "headatlas": __version__,
        **versions,
        "python": platform.python_version(),
        "device": _device_name(model),
    }


def _task_decides(facts: dict[str, Any]) -> dict[str, Any]:
    keys = {"content_hash": "content", "rows_hash": "tokens", "max_tokens": "max_tokens"}
    return {word: facts[key] for key, word in keys.items()}


def _device_name(model: Model) -> str:
    if model.device.type == "cuda":
        return str(torch.cuda.get_device_name(model.device))
    return f"{model.device.type}, {torch.get_num_threads()} threads"


def measure_baseline(model: Model, task: Prepared, metric: Metric = NLL) -> dict[str, Any]:
    """The ungated model on held-out rows, also by `metric`; and what targets of other rows would get in
    place of the right ones. Without rows of two groups that can take other targets there is no `gain`.

    `groups` and `held_out_nll` have one value per row. Without `gain`, `targets` counts the distinct targets.
    Without held-out rows the names begin with `train_`, and the figures are of rows to fit with.
    """
    if not task.held_out:
        rows, row_labels = choose_rows(task.rows.train, _TRAIN_ROWS)
        figures = measure_baseline(model, replace(task, held_out=rows, groups=row_labels, known=()), metric)
        return {f"train_{name}": value for name, value in figures.items()}
    held_out = task.held_out
    plain = evaluate(model, held_out, row_loss=RowLoss(metric))
    figures = {
        **held_out_figures(model, task, None, plain, metric),
        "rows": len(held_out),
        "groups": list(task.groups),
    }
    if task.known:
        figures["known_rows"] = len(task.known)
    swapped, judged = [], []
    most = max(len(row.ids) for row in held_out)
    for place, row in enumerate(held_out):
        following = (*held_out[place + 1 :], *held_out[:place])
        room = most - len(row.prompt)
        others = (one for one in following if one.target != row.target and len(one.target) <= room)
        other = next(others, None)
        if other is not None:
            swapped.append(Row((*row.prompt, *other.target), row.start))
            judged.append(place)
    groups = [task.groups[place] for place in judged]
    if len(set(groups)) < 2:
        return {**figures, "targets": len({row.target for row in held_out})}
    chance = evaluate(model, swapped)
    gain = (chance.nll - plain.nll[judged]).double()
    return {
        **figures,
        "chance_nll": chance.mean_nll,
        "gain": float(gain.mean()),
        "gain_error": group_error(gain.numpy(), groups),
    }


def group_error(values: np.ndarray, groups: Sequence[int]) -> float:
    """The standard error of a mean of values that are independent between groups only."""
    labels = np.unique(np.asarray(groups), return_inverse=True)[1]
    sums = np.bincount(labels, values - values.mean())
    return float(np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / len(values))


def held_out_figures(
    model: Model,
    task: Prepared,
    gates: np.ndarray | None,
    outcome: Outcome | None = None,
    metric: Metric = NLL,
) -> dict[str, Any]:
    """NLL and accuracies on rows of held-out groups, and as `known_nll` and so on of groups fitted on; empty
    if nothing is held out. With another metric also its mean, `metric`: of logit_diff the mean logit
    difference, higher being better."""
    if not task.held_out:
        return {}
    row_loss = RowLoss(metric)
    outcome = outcome or evaluate(model, task.held_out, gates, row_loss=row_loss)
    known = _figures(evaluate(model, task.known, gates, row_loss=row_loss), metric) if task.known else {}
    return {
        **_figures(outcome, metric),
        "held_out_nll": [round(float(nll), 6) for nll in outcome.nll],
        **{f"known_{name}": value for name, value in known.items()},
    }


def _figures(outcome: Outcome, metric: Metric) -> dict[str, float]:
    if metric == NLL:
        return outcome.figures()
    return {**outcome.figures(), "metric": metric_words(metric).sign * outcome.mean_loss}
