"""What single heads do to a task: the words and the loop that ablation and mediation share.

An effect of a built-in method says by how much the loss of the rows rises without the head; by default the
mean negative log-likelihood of the targets, in nats (`metric` has the others). Above zero the head helps the
task, below zero it hurts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headatlas.core import ExtensionError, Head, ModelSpec
from headatlas.method.engine.likelihood import require_finite, row_nll
from headatlas.method.engine.lower_layers import KeptStream, can_keep_stream
from headatlas.method.engine.memory import forward_budget, with_room
from headatlas.method.engine.metric import RowLoss
from headatlas.method.engine.rows import Pass, RowTable
from headatlas.model import Model
from headatlas.task import Row

__all__ = [
    "Change",
    "HeadEffects",
    "HeadsDone",
    "checked_effects",
    "gates_without",
    "row_effects",
    "summed_up",
]

#: what is done to one head, or (None) to all of them, while a pass runs
Change = Callable[[Head | None], AbstractContextManager[None]]
#: told (heads done, heads in all), a head counting once for each pass
HeadsDone = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class HeadEffects:
    """`values`, the mean over the rows, and `errors`, its standard error; NaN: no head there. `per_row` are
    the effects that they are the mean of.

    A method that measures no loss leaves out `plain` and `whole`. `plain` is the loss of the rows as they are
    (in mediation, corrupted). `whole`: of ablation the effect of replacing all heads at once, of attribution
    that of shutting all, of mediation that of the corruption.

    Integrated gradients also have `points`, the mean number of points per row; `dtype`, in which the path was
    measured; and `expected_error`, that of their sum over all heads as a share of `whole`, from the errors of
    single intervals of the path.
    """

    values: Float[np.ndarray, "layer head"]
    errors: Float[np.ndarray, "layer head"]
    per_row: Float[np.ndarray, "row layer head"]
    plain: float | None = None
    whole: float | None = None
    points: float | None = None
    dtype: str | None = None
    expected_error: float | None = None

    @property
    def rows(self) -> int:
        """How many rows were measured."""
        return len(self.per_row)

    def facts(self) -> dict[str, Any]:
        """What an atlas keeps of integrated gradients beside the effects; nothing for other methods."""
        if self.points is None:
            return {}
        return {
            "points": self.points,
            "completeness_error": self.completeness_error,
            "dtype": self.dtype,
            "expected_error": self.expected_error,
        }

    @property
    def completeness_error(self) -> float | None:
        """How far the effects of all heads are from summing to `whole`, as a share of it. Exact integrated
        gradients sum to it. None without `whole`."""
        if self.whole is None:
            return None
        gap = abs(float(np.nansum(self.values, dtype=np.float64)) - self.whole)
        return gap / max(abs(self.whole), float(np.finfo(np.float32).tiny))


def checked_effects(method: str, measured: Any, spec: ModelSpec, rows: int) -> HeadEffects:
    """What `method` measured on so many rows, in single precision; refused if an atlas could not hold it."""
    owner = f"the method {method!r}"
    if not isinstance(measured, HeadEffects):
        returned = "None" if measured is None else f"a value of type {type(measured).__name__}"
        raise ExtensionError(f"{owner} returned {returned}, not HeadEffects.")
    layers, heads = spec.shape
    has_head = np.arange(heads) < np.array(spec.heads)[:, None]
    arrays: dict[str, Any] = {}
    for name, shape, axes in (
        ("values", (layers, heads), "[layer, head]"),
        ("errors", (layers, heads), "[layer, head]"),
        ("per_row", (rows, layers, heads), "[row, layer, head]"),
    ):
        array = getattr(measured, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            kind = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ExtensionError(f"{owner} returned {kind} as {name}, not a NumPy array of floats.")
        if array.shape != shape:
            raise ExtensionError(
                f"{owner} returned {name} of shape {list(array.shape)}; {axes} is {list(shape)} here."
            )
        with np.errstate(over="ignore"):
            arrays[name] = single = array.astype(np.float32, copy=False)
        is_number = np.isfinite(single)
        if name == "errors":
            is_number |= np.isnan(single)  # one row alone has no standard error
        wrong = np.argwhere(~np.where(has_head, is_number, np.isnan(single)))
        if len(wrong):
            *_, layer, head = wrong[0]
            expected = "a finite number" if has_head[layer, head] else "NaN: the model has no head there"
            raise ExtensionError(
                f"{owner} returned {array[tuple(wrong[0])]} in {name} for L{layer}H{head}, not {expected}."
            )
    for name in ("plain", "whole"):
        value = getattr(measured, name)
        if value is not None and not (isinstance(value, Real) and np.isfinite(float(value))):
            raise ExtensionError(f"{owner} returned {value!r:.60} as {name}, not a finite number or None.")
    return replace(measured, **arrays)


def gates_without(model: Model, *heads: Head) -> Float[Tensor, "layer head"]:
    """Ones, but for these heads."""
    gates = torch.ones(model.spec.shape)
    for head in heads:
        gates[head.layer, head.head] = 0
    return gates


@torch.no_grad()
def row_effects(
    model: Model,
    rows: Sequence[Row],
    changes: Callable[[Pass, Sequence[int]], Change],
    progress: HeadsDone | None = None,
    row_loss: RowLoss | None = None,
    reference: Callable[[Pass, Sequence[int]], Tensor | None] | None = None,
) -> tuple[Float[np.ndarray, " row"], Float[np.ndarray, "row layer head"], Float[np.ndarray, " row"]]:
    """The losses of the rows as they are, with each head changed, and with all of them.

    `changes(batch, members)` gets ready for a pass over the rows `members` and gives what to do to a head.
    `reference(batch, members)` are the logits that the metric compares with, those of the model by default.
    A change of a head leaves the layers below it as they are: where the model allows it they run once for all
    heads of a layer, which gives the same bits.
    """
    row_loss = row_loss or RowLoss()
    table = RowTable(rows)
    plain = np.full(len(rows), np.nan)
    changed = np.full((len(rows), *model.spec.shape), np.nan)
    together = np.full(len(rows), np.nan)
    is_done = np.zeros(len(rows), dtype=bool)
    keeps_stream = can_keep_stream(model)
    ones = torch.ones(model.spec.shape)

    def measure(batch: Pass, reference: Tensor | None, what: str) -> np.ndarray:
        losses = row_loss(model, batch, reference=reference).cpu()
        require_finite(model, losses, what)
        return losses.numpy()

    def work(budget: int) -> None:
        left = np.flatnonzero(~is_done)  # some are done if memory ran out on the way
        batches = list(table.passes(left[:, None], budget, model.device))
        done, total = 0, len(batches) * len(model.spec)
        for batch in batches:
            members = left[batch.members]
            reference_logits = (
                row_loss.reference(model, batch) if reference is None else reference(batch, members.tolist())
            )
            plain[members] = measure(batch, reference_logits, "losses")
            change = changes(batch, members.tolist())
            stream = KeptStream(model) if keeps_stream else None
            for head in model.spec:
                if stream is not None:
                    with model.gates(ones):
                        stream.move_to(head.layer, partial(row_nll, model, batch))
                with change(head), nullcontext() if stream is None else stream.skipped():
                    changed[members, head.layer, head.head] = measure(
                        batch, reference_logits, f"losses without {head}"
                    )
                done += 1
                if progress is not None:
                    progress(done, total)
            with change(None):
                together[members] = measure(batch, reference_logits, "losses with all heads replaced")
            is_done[members] = True

    with_room(int(table.lengths.max()), forward_budget(model), work)
    return plain, changed, together


def summed_up(
    per_row: Float[np.ndarray, "row layer head"], plain: float, whole: float, points: float | None = None
) -> HeadEffects:
    """The mean over rows, with its error."""
    count = len(per_row)
    mean = per_row.mean(axis=0)
    errors = per_row.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.full_like(mean, np.nan)
    means, errors, each = (part.astype(np.float32) for part in (mean, errors, per_row))
    return HeadEffects(means, errors, each, plain, whole, points)
