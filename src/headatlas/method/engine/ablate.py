"""Ablation: each head alone is taken out, and the loss is measured.

What stands in for it is nothing (`zero`), the head's mean output over all tokens of the rows (`mean`), or
what it puts out on another row (`resample`): there a token takes the output at the other row's token that
stands as far from its target, or at the nearest one that there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headatlas.core import NLL, Head, Metric, RequestError, UnknownNameError
from headatlas.method.engine.head_effects import (
    Change,
    HeadEffects,
    HeadsDone,
    gates_without,
    row_effects,
    summed_up,
)
from headatlas.method.engine.memory import forward_budget, with_room
from headatlas.method.engine.metric import RowLoss
from headatlas.method.engine.rows import Pass, RowTable, Stream
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["STAND_INS", "ablate", "mean_outputs", "outputs_of_others", "partners"]

#: what a head is replaced by
STAND_INS = ("zero", "mean", "resample")


def ablate(
    model: Model,
    rows: Sequence[Row],
    instead: str = "zero",
    *,
    seed: int = 0,
    metric: Metric = NLL,
    progress: HeadsDone | None = None,
) -> HeadEffects:
    """The effect of every head: the loss without it, less the loss with it. `seed` draws the other rows."""
    if instead not in STAND_INS:
        raise UnknownNameError("stand-in", instead, STAND_INS)
    if instead == "resample" and len(rows) < 2:
        raise RequestError("one item alone has no other to take outputs from; give at least 2.")
    others = partners(len(rows), seed)
    mean = mean_outputs(model, rows) if instead == "mean" else {}

    def changes(batch: Pass, members: Sequence[int]) -> Change:
        pairs = [(rows[place], rows[others[place]]) for place in members]
        replacement = outputs_of_others(model, pairs, batch.ids.shape[1]) if instead == "resample" else mean

        def change(head: Head | None) -> AbstractContextManager[None]:
            if head is None:
                return model.gates(torch.zeros(model.spec.shape), replacement=replacement or None)
            chosen = {head.layer: replacement[head.layer]} if replacement else None
            return model.gates(gates_without(model, head), replacement=chosen)

        return change

    plain, changed, together = row_effects(model, rows, changes, progress, RowLoss(metric))
    return summed_up(changed - plain[:, None, None], float(plain.mean()), float((together - plain).mean()))


def partners(count: int, seed: int) -> list[int]:
    """For each of `count` rows another one; no row twice, none itself (unless it is the only one)."""
    order = np.random.default_rng([seed, Stream.PARTNERS]).permutation(count)
    found = np.empty(count, dtype=int)
    found[order] = np.roll(order, -1)
    return [int(place) for place in found]


@torch.no_grad()
def mean_outputs(model: Model, rows: Sequence[Row]) -> dict[int, Float[Tensor, " channel"]]:
    """What the heads of each layer put out, averaged over all tokens of the rows."""
    table = RowTable(rows)

    def work(budget: int) -> dict[int, Tensor]:
        sums: dict[int, Tensor] = {}
        for batch in table.passes(np.arange(len(rows))[:, None], budget, model.device):
            lengths = torch.from_numpy(table.lengths[batch.members])
            there = torch.arange(batch.ids.shape[1]) < lengths[:, None]
            for layer, outputs in model.head_activations(batch.ids).items():
                found = (outputs.double() * there.to(outputs.device)[..., None]).sum((0, 1))
                sums[layer] = sums[layer] + found if layer in sums else found
        return {layer: (total / int(table.lengths.sum())).float() for layer, total in sums.items()}

    return with_room(int(table.lengths.max()), forward_budget(model), work)


@torch.no_grad()
def outputs_of_others(
    model: Model, pairs: Sequence[tuple[Row, Row]], width: int
) -> dict[int, Float[Tensor, "row position channel"]]:
    """By layer, for each (row, other) the other's outputs, shifted so that targets begin at the same place;
    `width` positions."""
    table = RowTable([other for _, other in pairs])
    shifts = np.array([other.start - row.start for row, other in pairs])[:, None]
    places = np.clip(np.arange(width) + shifts, 0, table.lengths[:, None] - 1)
    ids = torch.from_numpy(table.ids.astype(np.int64)).to(model.device)
    outputs = model.head_activations(ids)
    return {
        layer: found.gather(
            1, torch.from_numpy(places).to(found.device)[..., None].expand(-1, -1, found.shape[-1])
        )
        for layer, found in outputs.items()
    }
