"""How likely a model finds the targets, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from headatlas.method.batches import Pass, RowTable
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["Outcome", "evaluate", "row_nll"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Per row: mean negative log-likelihood of its target tokens, in nats; are all of them the top choice?"""

    nll: Tensor
    correct: Tensor

    @property
    def mean_nll(self) -> float:
        return float(self.nll.mean())

    @property
    def accuracy(self) -> float:
        return float(self.correct.float().mean())


def row_nll(model: Model, batch: Pass, logits: Tensor | None = None) -> Tensor:
    """[row]: mean negative log-likelihood of the row's target tokens."""
    if logits is None:
        logits = model.logits_at(batch.ids, batch.rows, batch.positions)
    each = functional.cross_entropy(logits.float(), batch.targets.to(logits.device), reduction="none")
    return torch.segment_reduce(each, "mean", lengths=batch.counts.to(logits.device), axis=0)


@torch.no_grad()
def evaluate(model: Model, rows: Sequence[Row], gates: Any = None, budget: int = 2048) -> Outcome:
    """The rows under `gates` ([layer, head], or [row, layer, head]), or under none."""
    nll = torch.zeros(len(rows))
    correct = torch.zeros(len(rows), dtype=torch.bool)
    values = None if gates is None else torch.as_tensor(gates, dtype=torch.float32)
    for batch in RowTable(rows).passes(np.arange(len(rows))[:, None], budget, model.device):
        members = batch.members.cpu()
        chosen = values if values is None or values.ndim == 2 else values[members]
        with nullcontext() if chosen is None else model.gates(chosen):
            logits = model.logits_at(batch.ids, batch.rows, batch.positions)
        nll[members] = row_nll(model, batch, logits).cpu()
        wrong = logits.argmax(-1) != batch.targets.to(logits.device)
        misses = torch.segment_reduce(wrong.float(), "sum", lengths=batch.counts.to(logits.device), axis=0)
        correct[members] = (misses == 0).cpu()
    return Outcome(nll, correct)
