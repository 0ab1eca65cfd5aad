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
    that asks for another target."""
    if all(row.corrupted for row in rows):
        return [Row((*row.corrupted, *row.target), len(row.corrupted)) for row in rows]
    found = []
    for place, other in enumerate(partners(len(rows), seed)):
        row, away = rows[place], other
        while rows[away].prompt == row.prompt or rows[away].target == row.target:
            away = (away + 1) % len(rows)
            if away == other:
                raise RequestError("all rows ask for the same; there is no other prompt to corrupt one with.")
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

        def change(head: Head) -> AbstractContextManager[None]:
            return model.gates(
                gates_without(model, head),
                at=None if everywhere else at,
                toward={head.layer: clean[head.layer]},
            )

        return change

    plain, changed = row_effects(model, corrupted, changes, progress)
    total = float(plain.mean()) - evaluate(model, rows).mean_nll
    return summed_up(plain[:, None, None] - changed, float(plain.mean()), total)
