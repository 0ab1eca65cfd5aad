"""Causal mediation: which heads carry over what a prompt says?

The model reads a corrupted prompt before the same target, and one head alone is given what it puts out on the
clean one: where the target is predicted, or everywhere if both prompts have as many tokens in every row. The
indirect effect of the head is what the target gains by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch

from headatlas.core import Head, RequestError
from headatlas.method.ablation import outputs_of_others, partners
from headatlas.method.batches import Pass
from headatlas.method.effects import Change, HeadEffects, HeadsDone, gates_without, row_effects, summed_up
from headatlas.method.likelihood import evaluate
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["corrupted_rows", "mediate"]


def corrupted_rows(rows: Sequence[Row], seed: int = 0) -> list[Row]:
    """The rows with their own corrupted prompts if all have one, else each with the prompt of another row
    that asks for another target (none that makes it longer than the longest row)."""
    if all(row.corrupted for row in rows):
        return [Row((*row.corrupted, *row.target), len(row.corrupted)) for row in rows]
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
        found.append(Row((*rows[away].prompt, *row.target), rows[away].start))
    return found


def mediate(
    model: Model,
    rows: Sequence[Row],
    *,
    seed: int = 0,
    progress: HeadsDone | None = None,
) -> HeadEffects:
    """The average indirect effect of every head; `whole` is the total effect of the corruption."""
    corrupted = corrupted_rows(rows, seed)
    everywhere = all(
        bad.start == row.start and row.corrupted for bad, row in zip(corrupted, rows, strict=True)
    )

    def changes(batch: Pass, members: Sequence[int]) -> Change:
        pairs = [(corrupted[place], rows[place]) for place in members]
        clean = outputs_of_others(model, pairs, batch.ids.shape[1])
        at = torch.zeros(batch.ids.shape, dtype=torch.bool, device=batch.ids.device)
        at[batch.rows, batch.positions] = True

        def change(head: Head | None) -> AbstractContextManager[None]:
            gates = torch.zeros(model.spec.shape) if head is None else gates_without(model, head)
            toward = clean if head is None else {head.layer: clean[head.layer]}
            return model.gates(gates, at=None if everywhere else at, toward=toward)

        return change

    plain, changed, _ = row_effects(model, corrupted, changes, progress)
    total = float(plain.mean()) - evaluate(model, rows).mean_nll
    return summed_up(plain[:, None, None] - changed, float(plain.mean()), total)
