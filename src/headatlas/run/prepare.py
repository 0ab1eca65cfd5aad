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

from headatlas.atlas import Run
from headatlas.core import TaskError
from headatlas.method import GatingSettings, draw, evaluate
from headatlas.model import Model
from headatlas.task import Row, Rows, Task, encode

__all__ = ["Prepared", "describe", "measure_baseline", "prepare", "worse_than_chance"]

_MAX_TOKENS = 512
#: the part of the settings that the numbers of a fit do not depend on
_NOT_IDENTITY = ("seeds",)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task's rows for one model, and the settings with a batch that suits them.

    `held_out` is a fixed fair choice of the rows that are held out.
    """

    name: str
    rows: Rows
    settings: GatingSettings
    held_out: Sequence[Row]
    facts: dict[str, Any]


def prepare(model: Model, task: Task, settings: GatingSettings, max_tokens: int | None) -> Prepared:
    """Read, tokenise and measure; refused if there is less than a batch."""
    bos, why = model.first_token()
    items = task.items(model.tokenizer)
    context = getattr(model.hf.config.get_text_config(), "max_position_embeddings", None)
    limit = max_tokens or _MAX_TOKENS
    if isinstance(context, int) and context > 0:
        limit = min(limit, context)
    rows = encode(items, model.tokenizer, bos=bos, max_tokens=limit, name=task.name)
    settings = settings.for_targets(sum(len(row.target) for row in rows.train) / len(rows.train))
    assert settings.batch is not None
    if len(rows.train) < settings.batch:
        raise TaskError(
            f"task {task.name!r} has {len(rows.train)} rows to fit with, fewer than a batch of "
            f"{settings.batch}; give more rows or a smaller --batch."
        )
    places = draw(len(rows.test), min(settings.held_out, len(rows.test)), 0, 0, 9)  # records may come sorted
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
        "first_token": bos,
        "first_token_because": why,
    }
    return Prepared(task.name, rows, settings, [rows.test[place] for place in places], facts)


def describe(
    model: Model,
    method: str,
    name: str,
    facts: dict[str, Any],
    settings: GatingSettings,
    given: dict[str, Any],
) -> Run:
    """The entry of a run, with the hash of everything that its numbers depend on."""
    resolved = settings.to_json()
    tasks = [facts, *facts.get("parts", {}).values()]
    decides = {
        "method": method,
        "model": [model.spec.content_hash, model.spec.dtype, model.device.type],
        "task": [[one.get(key) for key in ("content_hash", "max_tokens", "first_token")] for one in tasks],
        "settings": {key: value for key, value in resolved.items() if key not in _NOT_IDENTITY},
    }
    identity = sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    made_with = {name: version(name) for name in ("headatlas", "torch", "transformers", "numpy")}
    made_with |= {"python": platform.python_version(), "device": _device_name(model)}
    return Run(method, name, identity, facts, {"given": given, "resolved": resolved}, {}, made_with)


def _device_name(model: Model) -> str:
    if model.device.type == "cuda":
        return str(torch.cuda.get_device_name(model.device))
    return f"{model.device.type}, {torch.get_num_threads()} threads"


def measure_baseline(model: Model, held_out: Sequence[Row]) -> dict[str, float]:
    """The ungated model; and what targets of other rows would get in place of the right ones."""
    plain = evaluate(model, held_out)
    others = [*held_out[1:], held_out[0]]
    swapped = [
        Row((*row.prompt, *other.target), row.start) for row, other in zip(held_out, others, strict=True)
    ]
    chance = evaluate(model, swapped)
    gain = (chance.nll - plain.nll).double()
    return {
        "nll": plain.mean_nll,
        "accuracy": plain.accuracy,
        "chance_nll": chance.mean_nll,
        "gain_error": float(gain.std() / len(gain) ** 0.5) if len(gain) > 1 else 0.0,
        "rows": len(held_out),
    }


def worse_than_chance(run: Run) -> str | None:
    """A sentence if the model finds the right targets no likelier than those of other rows."""
    base = run.baseline
    if base["nll"] < base["chance_nll"] - 2 * base["gain_error"]:  # clearly likelier
        return None
    return (
        f"{run.task}: the model is no better than chance here: baseline NLL {base['nll']:.2f} "
        f"(targets of other rows {base['chance_nll']:.2f}), accuracy {base['accuracy']:.2f}"
    )
