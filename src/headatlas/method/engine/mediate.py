"""Causal mediation: which heads carry over what a prompt says?

The model reads a corrupted prompt before the same target, and one head alone gets the output that it has on
the clean prompt. The indirect effect of the head is what the target gains by that.

Two choices define the effect, and they belong to a task, not to the rows that happen to be drawn from it.
`prompts`: "own", the corrupted prompts that the task brings, or "others", the prompts of other items.
`positions`: "all" patches the head at every position, which takes a corrupted prompt of the same length;
"target" patches it only where the target is predicted. `choose_corruption` decides for all rows of a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headatlas.core import NLL, Head, Metric, RequestError, UnknownNameError
from headatlas.method.engine.ablate import outputs_of_others, partners
from headatlas.method.engine.head_effects import (
    Change,
    HeadEffects,
    HeadsDone,
    gates_without,
    row_effects,
    summed_up,
)
from headatlas.method.engine.likelihood import evaluate
from headatlas.method.engine.metric import RowLoss
from headatlas.method.engine.rows import Pass, RowTable
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["POSITIONS", "PROMPTS", "Corruption", "choose_corruption", "corrupted_rows", "mediate"]

PROMPTS, POSITIONS = ("own", "others"), ("all", "target")


@dataclass(frozen=True, slots=True)
class Corruption:
    """Which corrupted prompts a task gets and where heads are patched; `because` is empty if the task's own
    prompts are patched at all positions."""

    prompts: str
    positions: str
    because: str = ""


def choose_corruption(rows: Sequence[Row]) -> Corruption:
    """From all rows of a task: its own prompts if every row has one, all positions if every one of those has
    as many tokens as the clean prompt."""
    missing = sum(not row.corrupted for row in rows)
    if missing:
        which = "no item has a" if missing == len(rows) else f"{missing} of {len(rows)} items have no"
        return Corruption("others", "target", f"{which} corrupted prompt")
    unequal = sum(len(row.corrupted) != row.start for row in rows)
    if unequal:
        reason = f"{unequal} of {len(rows)} corrupted prompts have another length than the clean prompt"
        return Corruption("own", "target", reason)
    return Corruption("own", "all")


def corrupted_rows(rows: Sequence[Row], seed: int = 0, prompts: str = "others") -> list[Row]:
    """The rows with their own corrupted prompts, or each with the prompt of another row that asks for another
    target (none that makes it longer than the longest row)."""
    if prompts == "own":
        return [Row((*row.corrupted, *row.target), len(row.corrupted), foil=row.foil) for row in rows]
    longest = max(len(row.ids) for row in rows)
    found = []
    for place, other in enumerate(partners(len(rows), seed)):
        row, away = rows[place], other
        while (
            rows[away].prompt == row.prompt
            or rows[away].target == row.target
            or rows[away].start + len(row.target) > longest
        ):
            away = (away + 1) % len(rows)
            if away == other:
                raise RequestError(
                    f"there is no other prompt to corrupt an item with: the {len(rows)} items ask for the "
                    "same, or are too few; give more items, or corrupted prompts of your own."
                )
        found.append(Row((*rows[away].prompt, *row.target), rows[away].start, foil=row.foil))
    return found


def mediate(
    model: Model,
    rows: Sequence[Row],
    *,
    prompts: str = "others",
    positions: str = "target",
    seed: int = 0,
    metric: Metric = NLL,
    progress: HeadsDone | None = None,
) -> HeadEffects:
    """The average indirect effect of every head; `whole` is the total effect of the corruption.

    With the metric "kl" the model on the clean prompt is what is compared with.

    Rows that `prompts` or `positions` cannot be applied to are an error: the definition never changes with
    the rows. `seed` draws the prompts of other rows.
    """
    _require_possible(rows, prompts, positions)
    corrupted = corrupted_rows(rows, seed, prompts)

    def changes(batch: Pass, members: Sequence[int]) -> Change:
        pairs = [(corrupted[place], rows[place]) for place in members]
        clean = outputs_of_others(model, pairs, batch.ids.shape[1])
        at = torch.zeros(batch.ids.shape, dtype=torch.bool, device=batch.ids.device)
        at[batch.rows, batch.positions] = True

        def change(head: Head | None) -> AbstractContextManager[None]:
            gates = torch.zeros(model.spec.shape) if head is None else gates_without(model, head)
            replacement = clean if head is None else {head.layer: clean[head.layer]}
            return model.gates(gates, positions=None if positions == "all" else at, replacement=replacement)

        return change

    row_loss = RowLoss(metric)

    def clean_logits(batch: Pass, members: Sequence[int]) -> Tensor:
        return _logits_of_others(model, [rows[place] for place in members], batch)

    reference = clean_logits if metric == "kl" else None
    plain, changed, _ = row_effects(model, corrupted, changes, progress, row_loss, reference)
    total = float(plain.mean()) - evaluate(model, rows, row_loss=row_loss).mean_loss
    return summed_up(plain[:, None, None] - changed, float(plain.mean()), total)


@torch.no_grad()
def _logits_of_others(model: Model, others: Sequence[Row], batch: Pass) -> Float[Tensor, "target token"]:
    """The logits at the targets of a pass where each row is replaced by another one with its target."""
    table = RowTable(others)
    starts = torch.from_numpy(table.starts).to(batch.rows.device)
    ids = torch.from_numpy(table.ids.astype(np.int64)).to(model.device)
    return model.logits_at(ids, batch.rows, starts[batch.rows] - 1 + batch.offsets)


def _require_possible(rows: Sequence[Row], prompts: str, positions: str) -> None:
    for kind, value, known in (("prompts", prompts, PROMPTS), ("positions", positions, POSITIONS)):
        if value not in known:
            raise UnknownNameError(kind, value, known)
    possible = choose_corruption(rows)
    if prompts == "own" and possible.prompts != "own":
        raise RequestError(f'{possible.because}; use prompts="others", or give every item one.')
    if positions == "all" and (prompts, possible.positions) != ("own", "all"):
        reason = possible.because or "prompts of other items have other lengths"
        raise RequestError(
            f'{reason}; patch at positions="target", or give corrupted prompts of the same length.'
        )
