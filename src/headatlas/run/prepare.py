"""A task made ready for a model, and all that an atlas says about it."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import torch

from headatlas._version import __version__
from headatlas.atlas import Run
from headatlas.core import TaskError
from headatlas.method import GatingSettings, draw, evaluate
from headatlas.model import Model
from headatlas.task import Row, Rows, Task, encode

__all__ = [
    "Prepared",
    "describe",
    "identified",
    "made_with",
    "measure_baseline",
    "prepare",
    "read_rows",
    "worse_than_chance",
]

#: raised when the same settings would give other numbers than before
_ALGORITHM = 2

_MAX_TOKENS = 512
#: the part of the settings that the numbers of a fit do not depend on
_NOT_IDENTITY = ("seeds",)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task's rows for one model. `held_out` is a fixed fair choice of the rows that are held out."""

    name: str
    rows: Rows
    held_out: Sequence[Row]
    facts: dict[str, Any]


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
    places = draw(len(rows.test), min(held_out, len(rows.test)), 0, 0, 9)  # records may come sorted
    facts = {
        "version": task.spec.version,
        "licence": task.spec.licence,
        "content_hash": items.content_hash,
        "spec": task.spec.to_json(),
        "records": items.seen,
        "train_rows": len(rows.train),
        "test_rows": len(rows.test),
        "too_long": rows.too_long,
        "max_tokens": rows.max_tokens,
        "rows_hash": rows.rows_hash,
        "first_tokens": list(first),
        "first_tokens_because": why,
    }
    return Prepared(task.name, rows, [rows.test[place] for place in places], facts)


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
        [asked or _MAX_TOKENS, *(length for length in known if isinstance(length, int) and length > 0)]
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
        "weights": model.weights_hash,
        "dtype": model.spec.dtype,
        "device": model.device.type,
        "tasks": {part: _task_decides(one) for part, one in parts.items()},
        **decides,
    }
    decides = json.loads(json.dumps(decides))  # as it will be read again
    identity = sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    said = json.loads(json.dumps({**settings, "decides": decides}))
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


def measure_baseline(model: Model, held_out: Sequence[Row]) -> dict[str, float]:
    """The ungated model; and what targets of other rows would get in place of the right ones.

    Without the latter if no two rows can exchange their targets.
    """
    plain = evaluate(model, held_out)
    swapped, judged = [], []
    most = max(len(row.ids) for row in held_out)
    for place, row in enumerate(held_out):
        following = (*held_out[place + 1 :], *held_out[:place])
        other = next((one for one in following if _is_other(row, one, most)), None)
        if other is not None:
            swapped.append(Row((*row.prompt, *other.target), row.start))
            judged.append(place)
    found = {**plain.figures(), "rows": len(held_out)}
    if len(judged) < 2:
        return found
    chance = evaluate(model, swapped)
    gain = (chance.nll - plain.nll[judged]).double()
    return {
        **found,
        "chance_nll": chance.mean_nll,
        "gain": float(gain.mean()),
        "gain_error": float(gain.std() / len(gain) ** 0.5),
    }


def _is_other(row: Row, other: Row, most: int) -> bool:
    """Can the target of `other` stand behind the prompt of `row`: another one, and not too long?"""
    return other.target != row.target and len(row.prompt) + len(other.target) <= most


def worse_than_chance(run: Run) -> str | None:
    """A sentence if the model finds the right targets no likelier than those of other rows."""
    base = run.baseline
    if "gain" not in base or base["gain"] > 2 * base["gain_error"]:  # not to be judged, or clearly likelier
        return None
    return (
        f"{run.task}: the model is no better than chance here: baseline NLL {base['nll']:.2f} "
        f"(targets of other rows {base['chance_nll']:.2f}), accuracy {base['accuracy']:.2f}"
    )
