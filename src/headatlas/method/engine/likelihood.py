"""How likely a model finds the targets, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from headatlas.core import FitError
from headatlas.method.engine.rows import Pass, RowTable
from headatlas.model import Model
from headatlas.task import Row

__all__ = [
    "NO_ROOM",
    "NoRoomError",
    "Outcome",
    "evaluate",
    "forward_budget",
    "is_out_of_memory",
    "outcome_of",
    "require_finite",
    "row_nll",
    "token_nll",
    "with_room",
]

NO_ROOM = (
    "one row at a time does not fit in memory; take a smaller dtype, a larger device or --device-map auto."
)
#: tokens of a pass that keeps nothing for a backward pass
_BUDGET = {"cpu": 1024, "cuda": 16_384}
_Found = TypeVar("_Found")


class NoRoomError(FitError):
    """Not even a pass of one row fits in memory."""

    def __init__(self) -> None:
        super().__init__(NO_ROOM)


_NO_MEMORY = ("out of memory", "can't allocate memory", "alloc_failed")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Per row: mean negative log-likelihood of its target tokens, in nats; the share of them that are the
    top choice."""

    nll: Tensor
    right: Tensor

    @property
    def mean_nll(self) -> float:
        return float(self.nll.mean())

    @property
    def accuracy(self) -> float:
        """The share of rows with every target token on top."""
        return float((self.right == 1).float().mean())

    @property
    def token_accuracy(self) -> float:
        return float(self.right.mean())

    def figures(self) -> dict[str, float]:
        return {"nll": self.mean_nll, "accuracy": self.accuracy, "token_accuracy": self.token_accuracy}


def token_nll(logits: Tensor, targets: Tensor) -> Tensor:
    """[target]: negative log-likelihoods, in single precision."""
    return functional.cross_entropy(logits.float(), targets, reduction="none")


def row_nll(
    model: Model,
    batch: Pass,
    logits: Tensor | None = None,
    each_nll: Callable[[Tensor, Tensor], Tensor] = token_nll,
) -> Tensor:
    """[row]: mean negative log-likelihood of the row's target tokens."""
    if logits is None:
        logits = model.logits_at(batch.ids, batch.rows, batch.positions)
    each = each_nll(logits, batch.targets.to(logits.device)) * batch.weights.to(logits.device)
    return _by_row(each, batch).sum(1) / batch.counts.to(each.device)


def _by_row(each: Tensor, batch: Pass) -> Tensor:
    """[row, place in the target]: one value per target token, zeros behind them.

    Every value has a cell of its own, so that the sum over a row is always made in the same order.
    """
    places = batch.rows.to(each.device), batch.offsets.to(each.device)
    cells = torch.zeros(len(batch.ids), batch.width, dtype=each.dtype, device=each.device)
    return cells.index_put(places, each)


def is_out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or any(w in str(error).lower() for w in _NO_MEMORY)


def forward_budget(model: Model) -> int:
    """Tokens that go through the model at once where nothing is kept for a backward pass."""
    return _BUDGET.get(model.device.type, _BUDGET["cpu"])


def with_room(longest: int, budget: int, work: Callable[[int], _Found]) -> _Found:
    """`work(budget)`, with half the budget when memory runs out; refused when that is less than a row."""
    while True:
        try:
            return work(budget)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        if budget <= longest:
            raise NoRoomError
        budget //= 2
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def require_finite(model: Model, values: np.ndarray | Tensor, what: str) -> None:
    """Raise if any of `values` [row, ...] is NaN or infinite; `what` says in the plural what they are."""
    finite = torch.as_tensor(values).isfinite()
    if not bool(finite.all()):
        rows = int((~finite.reshape(len(finite), -1).all(1)).sum())
        dtype = model.spec.dtype
        repair = (
            "look for NaN or infinite weights"
            if dtype == "float32"
            else "try --dtype float32 and another --out"
        )
        raise FitError(
            f"{what} are NaN or infinite in {rows} of {len(finite)} rows; the model is in {dtype}: {repair}."
        )


@torch.no_grad()
def evaluate(model: Model, rows: Sequence[Row], gates: Any = None, budget: int | None = None) -> Outcome:
    """The rows under `gates` ([layer, head], or [row, layer, head]), or under none; in passes of at most
    `budget` tokens, or smaller ones where memory is short. A loss that is NaN or infinite is an error."""
    longest = max(len(row.ids) for row in rows)
    outcome = with_room(
        longest, budget or forward_budget(model), lambda tokens: _evaluate(model, rows, gates, tokens)
    )
    require_finite(model, outcome.nll, "losses")
    return outcome


def _evaluate(model: Model, rows: Sequence[Row], gates: Any, budget: int) -> Outcome:
    nll = torch.zeros(len(rows))
    right = torch.zeros(len(rows))
    values = None if gates is None else torch.as_tensor(gates, dtype=torch.float32)
    for batch in RowTable(rows).passes(np.arange(len(rows))[:, None], budget, model.device):
        members = torch.from_numpy(batch.members)
        chosen = values if values is None or values.ndim == 2 else values[members]
        with nullcontext() if chosen is None else model.gates(chosen):
            logits = model.logits_at(batch.ids, batch.rows, batch.positions)
        nll[members], right[members] = (part.cpu() for part in outcome_of(model, batch, logits))
    return Outcome(nll, right)


def outcome_of(model: Model, batch: Pass, logits: Tensor) -> tuple[Tensor, Tensor]:
    """([row], [row]): mean loss of the row's target tokens; the share of them that are the top choice."""
    hits = logits.argmax(-1) == batch.targets.to(logits.device)
    right = _by_row(hits.float(), batch).sum(1) / batch.counts.to(logits.device)
    return row_nll(model, batch, logits), right
