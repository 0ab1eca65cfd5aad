"""How likely a model finds the targets, row by row, as it is and under gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from headatlas.core import FitError
from headatlas.method.engine.memory import forward_budget, with_room
from headatlas.method.engine.rows import Pass, RowTable
from headatlas.model import Model
from headatlas.task import Row

if TYPE_CHECKING:
    from headatlas.method.engine.metric import RowLoss

__all__ = [
    "Outcome",
    "by_row",
    "evaluate",
    "evaluate_sets",
    "kept_only",
    "outcome_of",
    "require_finite",
    "row_nll",
    "token_nll",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Per row: mean negative log-likelihood of its target tokens, in nats; the share of them that are the
    top choice; and its loss by another metric, if one was asked for."""

    nll: Float[Tensor, " row"]
    right: Float[Tensor, " row"]
    loss: Float[Tensor, " row"] | None = None

    @property
    def mean_nll(self) -> float:
        return float(self.nll.mean())

    @property
    def mean_loss(self) -> float:
        """By the metric that was asked for, the negative log-likelihood by default."""
        return self.mean_nll if self.loss is None else float(self.loss.mean())

    @property
    def accuracy(self) -> float:
        """The share of rows with every target token on top."""
        return float((self.right == 1).float().mean())

    @property
    def token_accuracy(self) -> float:
        return float(self.right.mean())

    def figures(self) -> dict[str, float]:
        return {"nll": self.mean_nll, "accuracy": self.accuracy, "token_accuracy": self.token_accuracy}


@no_type_check  # it is compiled, and a compiler cannot trace a check of shapes
def token_nll(
    logits: Float[Tensor, "target token"], targets: Int[Tensor, " target"]
) -> Float[Tensor, " target"]:
    """Negative log-likelihoods, in single precision."""
    return functional.cross_entropy(logits.float(), targets, reduction="none")


def row_nll(
    model: Model,
    batch: Pass,
    logits: Float[Tensor, "target token"] | None = None,
    token_loss: Callable[[Tensor, Tensor], Tensor] = token_nll,
) -> Float[Tensor, " row"]:
    """The mean negative log-likelihood of each row's target tokens."""
    if logits is None:
        logits = model.logits_at(batch.ids, batch.rows, batch.positions)
    each = token_loss(logits, batch.targets.to(logits.device)) * batch.weights.to(logits.device)
    return by_row(each, batch).sum(1) / batch.counts.to(each.device)


def by_row(each: Float[Tensor, " target"], batch: Pass) -> Float[Tensor, "row place"]:
    """One value per place in the target of each row, zeros behind them.

    Every value has a cell of its own, so that the sum over a row is always made in the same order.
    """
    places = batch.rows.to(each.device), batch.offsets.to(each.device)
    cells = torch.zeros(len(batch.ids), batch.width, dtype=each.dtype, device=each.device)
    return cells.index_put(places, each)


def require_finite(model: Model, values: np.ndarray | Tensor, what: str) -> None:
    """Raise if any of `values` [row, ...] is NaN or infinite; `what` says in the plural what they are."""
    finite = torch.as_tensor(values).isfinite()
    if not bool(finite.all()):
        rows = int((~finite.reshape(len(finite), -1).all(1)).sum())
        dtype = model.spec.dtype
        repair = (
            "look for NaN or infinite weights"
            if dtype == "float32"
            else "try dtype='float32' and another out=…"
        )
        raise FitError(
            f"{what} are NaN or infinite in {rows} of {len(finite)} rows; the model is in {dtype}: {repair}."
        )


@torch.no_grad()
def evaluate(
    model: Model,
    rows: Sequence[Row],
    gates: Any = None,
    budget: int | None = None,
    row_loss: RowLoss | None = None,
) -> Outcome:
    """The rows under `gates` ([layer, head], or [row, layer, head]), or under none; in passes of at most
    `budget` tokens, or smaller ones where memory is short. A loss that is NaN or infinite is an error.
    `row_loss` adds losses by another metric."""
    longest = max(len(row.ids) for row in rows)
    outcome = with_room(
        longest,
        budget or forward_budget(model),
        lambda tokens: _evaluate(model, rows, gates, tokens, row_loss),
    )
    require_finite(model, outcome.nll, "losses")
    if outcome.loss is not None:
        require_finite(model, outcome.loss, "losses")
    return outcome


def _evaluate(
    model: Model, rows: Sequence[Row], gates: Any, budget: int, row_loss: RowLoss | None
) -> Outcome:
    nll = torch.zeros(len(rows))
    right = torch.zeros(len(rows))
    other = None if row_loss is None or row_loss.is_nll else row_loss
    loss = torch.zeros(len(rows))
    values = None if gates is None else torch.as_tensor(gates, dtype=torch.float32)
    for batch in RowTable(rows).passes(np.arange(len(rows))[:, None], budget, model.device):
        members = torch.from_numpy(batch.members)
        chosen = values if values is None or values.ndim == 2 else values[members]
        reference = None if other is None else other.reference(model, batch)
        with nullcontext() if chosen is None else model.gates(chosen):
            logits = model.logits_at(batch.ids, batch.rows, batch.positions)
        nll[members], right[members] = (part.cpu() for part in outcome_of(model, batch, logits))
        if other is not None:
            loss[members] = other(model, batch, logits, reference=reference).cpu()
    return Outcome(nll, right, None if other is None else loss)


def outcome_of(
    model: Model, batch: Pass, logits: Float[Tensor, "target token"]
) -> tuple[Float[Tensor, " row"], Float[Tensor, " row"]]:
    """The mean loss of each row's target tokens; the share of them that are the top choice."""
    hits = logits.argmax(-1) == batch.targets.to(logits.device)
    right = by_row(hits.float(), batch).sum(1) / batch.counts.to(logits.device)
    return row_nll(model, batch, logits), right


@torch.no_grad()
def evaluate_sets(
    model: Model,
    rows: Sequence[Row],
    sets: Float[np.ndarray, "set layer head"],
    *,
    replacement: Mapping[int, Tensor] | None = None,
    progress: Callable[[int, int], None] | None = None,
    row_loss: RowLoss | None = None,
) -> tuple[Float[np.ndarray, "set row"], Float[np.ndarray, "set row"]]:
    """The loss of each row under each gate set (the mean of its target tokens, or that of `row_loss`), and
    the share of its target tokens that are the top choice. Sets that are the same are measured once.

    `replacement` as in `gates`: what closed gates leave (nothing, if not given).
    """
    different, places = np.unique(sets.reshape(len(sets), -1), axis=0, return_inverse=True)
    values = torch.from_numpy(different.reshape(-1, *sets.shape[1:])).float()
    table = RowTable(rows)
    found = np.full((2, len(values), len(rows)), np.nan)
    is_done = np.zeros((len(values), len(rows)), dtype=bool)
    other = None if row_loss is None or row_loss.is_nll else row_loss

    def work(budget: int) -> None:
        left = np.argwhere(~is_done)  # some are done if memory ran out on the way
        batches = table.passes(left[:, 1:], budget, model.device)
        done = len(values) * len(rows) - len(left)
        for batch in batches:
            which, row = left[batch.members].T
            reference = None if other is None else other.reference(model, batch)
            with model.gates(values[which].to(model.device), replacement=replacement):
                logits = model.logits_at(batch.ids, batch.rows, batch.positions)
            losses, right = outcome_of(model, batch, logits)
            if other is not None:
                losses = other(model, batch, logits, reference=reference)
            require_finite(model, losses, "losses with gated heads")
            found[:, which, row] = losses.cpu().numpy(), right.cpu().numpy()
            is_done[which, row] = True
            done += len(which)
            if progress is not None:
                progress(done, len(values) * len(rows))

    with_room(int(table.lengths.max()), forward_budget(model), work)
    nll, right = found[:, places.ravel()]
    return nll, right


def kept_only(
    order: Sequence[int], counts: Sequence[int], shape: tuple[int, int]
) -> Float[np.ndarray, "count layer head"]:
    """Ones for the first so many places of `order` (places in the flat map)."""
    gates = np.zeros((len(counts), shape[0] * shape[1]), dtype=np.float32)
    for number, count in enumerate(counts):
        gates[number, list(order[:count])] = 1
    return gates.reshape(len(counts), *shape)
