"""A task made ready for a model, and all that an atlas says about it."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from headatlas._version import __version__
from headatlas.atlas import Run
from headatlas.core import TaskError
from headatlas.method import GatingSettings, Outcome, Stream, draw, evaluate
from headatlas.model import Model
from headatlas.task import Row, Rows, Task, encode

__all__ = [
    "Prepared",
    "choose_rows",
    "describe",
    "held_out_figures",
    "identified",
    "made_with",
    "measure_baseline",
    "prepare",
    "read_rows",
    "row_groups",
]

#: raised when the same settings would give other numbers than before
_ALGORITHM = 2

_MAX_TOKENS = 512
#: the part of the settings that the numbers of a fit do not depend on
_NOT_IDENTITY = ("seeds",)


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
    """The rows, and the settings with a batch that suits them; refused if there is less than a batch."""
    ready = read_rows(model, task, max_tokens, settings.held_out)
    train = ready.rows.train
    settings = settings.for_targets(sum(len(row.target) for row in train) / len(train))
    assert settings.batch is not None
    if len(train) < settings.batch:
        raise TaskError(
            f"task {task.name!r} has {len(train)} rows to fit with, fewer than a batch of "
            f"{settings.batch}; give more rows or a smaller --batch."
        )
    return ready, settings


def read_rows(model: Model, task: Task, max_tokens: int | None, held_out: int) -> Prepared:
    """Read and tokenise; at most so many rows are held out."""
    first, why = model.first_tokens()
    items = task.items(model.tokenizer)
    rows = encode(items, model.tokenizer, first=first, max_tokens=_limit(model, max_tokens), name=task.name)
    test, groups = choose_rows(rows.test, held_out)
    known, _ = choose_rows(rows.known, held_out)
    facts = {
        "version": task.spec.version,
        "licence": task.spec.licence,
        "content_hash": items.content_hash,
        "spec": task.spec.to_json(),
        "records": items.seen,
        "train_rows": len(rows.train),
        "train_items": len({row.ids for row in rows.train}),
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


def describe(
    model: Model,
    method: str,
    name: str,
    facts: dict[str, Any],
    settings: GatingSettings,
    given: dict[str, Any],
) -> Run:
    """The entry of a run of gating."""
    resolved = settings.to_json()
    decides = {key: value for key, value in resolved.items() if key not in _NOT_IDENTITY}
    return identified(model, method, name, facts, {"given": given, "resolved": resolved}, decides, _ALGORITHM)


def identified(
    model: Model,
    method: str,
    name: str,
    facts: dict[str, Any],
    settings: dict[str, Any],
    decides: dict[str, Any],
    algorithm: int,
) -> Run:
    """The entry of a run, with the hash of everything that its numbers depend on: the weights, the task and
    what `decides`. `algorithm` is raised when the same would give other numbers than before."""
    parts = facts.get("parts", {name: facts})
    decides = {
        "method": method,
        "algorithm": algorithm,
        "weights": model.weights_identity,
        "dtype": model.spec.dtype,
        "device": model.device.type,
        "tasks": {part: _task_decides(one) for part, one in parts.items()},
        **decides,
    }
    decides = json.loads(json.dumps(decides, default=int))  # as it will be read again
    identity = sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    said = json.loads(json.dumps({**settings, "decides": decides}, default=int))  # also NumPy integers
    return Run(method, name, identity, facts, said, {}, made_with(model))


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


def measure_baseline(model: Model, task: Prepared) -> dict[str, Any]:
    """The ungated model on held-out rows; and what targets of other rows would get in place of the right
    ones, unless no rows of two groups can exchange their targets.

    `groups` and `held_out_nll` have one value per row.
    """
    held_out = task.held_out
    plain = evaluate(model, held_out)
    figures = {
        **held_out_figures(model, task, None, plain),
        "rows": len(held_out),
        "groups": list(task.groups),
    }
    if task.known:
        figures["known_rows"] = len(task.known)
    swapped, judged = [], []
    most = max(len(row.ids) for row in held_out)
    for place, row in enumerate(held_out):
        following = (*held_out[place + 1 :], *held_out[:place])
        other = next((one for one in following if _is_other(row, one, most)), None)
        if other is not None:
            swapped.append(Row((*row.prompt, *other.target), row.start))
            judged.append(place)
    groups = [task.groups[place] for place in judged]
    if len(set(groups)) < 2:
        return figures
    chance = evaluate(model, swapped)
    gain = (chance.nll - plain.nll[judged]).double()
    return {
        **figures,
        "chance_nll": chance.mean_nll,
        "gain": float(gain.mean()),
        "gain_error": _group_error(gain.numpy(), groups),
    }


def _group_error(values: np.ndarray, groups: Sequence[int]) -> float:
    """The standard error of a mean of values that are independent between groups only."""
    labels = np.unique(np.asarray(groups), return_inverse=True)[1]
    sums = np.bincount(labels, values - values.mean())
    return float(np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / len(values))


def held_out_figures(
    model: Model, task: Prepared, gates: np.ndarray | None, outcome: Outcome | None = None
) -> dict[str, Any]:
    """NLL and accuracies on rows of held-out groups, and as `known_nll` and so on of groups fitted on."""
    outcome = outcome or evaluate(model, task.held_out, gates)
    known = evaluate(model, task.known, gates).figures() if task.known else {}
    return {
        **outcome.figures(),
        "held_out_nll": [round(float(nll), 6) for nll in outcome.nll],
        **{f"known_{name}": value for name, value in known.items()},
    }


def _is_other(row: Row, other: Row, most: int) -> bool:
    """Can the target of `other` stand behind the prompt of `row`: another one, and not too long?"""
    return other.target != row.target and len(row.prompt) + len(other.target) <= most
