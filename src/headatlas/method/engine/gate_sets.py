"""Many gate sets on the same items: what validation draws its curves from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from headatlas.method.engine.head_effects import HeadsDone
from headatlas.method.engine.likelihood import forward_budget, outcome_of, require_finite, with_room
from headatlas.method.engine.rows import RowTable
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["evaluate_sets", "kept_only"]


@torch.no_grad()
def evaluate_sets(
    model: Model,
    rows: Sequence[Row],
    sets: np.ndarray,
    *,
    toward: Mapping[int, Tensor] | None = None,
    progress: HeadsDone | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """([set, row], [set, row]): mean loss of each row's target tokens under each gate set [set, layer, head],
    and the share of them that are the top choice. Sets that are the same are measured once.

    `toward` as in `gates`: what closed gates leave (nothing, if not given).
    """
    different, places = np.unique(sets.reshape(len(sets), -1), axis=0, return_inverse=True)
    values = torch.from_numpy(different.reshape(-1, *sets.shape[1:])).float()
    table = RowTable(rows)
    found = np.full((2, len(values), len(rows)), np.nan)
    is_done = np.zeros((len(values), len(rows)), dtype=bool)

    def work(budget: int) -> None:
        left = np.argwhere(~is_done)  # some are done if memory ran out on the way
        batches = table.passes(left[:, 1:], budget, model.device)
        done = len(values) * len(rows) - len(left)
        for batch in batches:
            which, row = left[batch.members].T
            with model.gates(values[which].to(model.device), toward=toward):
                logits = model.logits_at(batch.ids, batch.rows, batch.positions)
            nll, right = outcome_of(model, batch, logits)
            require_finite(model, nll, "losses with gated heads")
            found[:, which, row] = nll.cpu().numpy(), right.cpu().numpy()
            is_done[which, row] = True
            done += len(which)
            if progress is not None:
                progress(done, len(values) * len(rows))

    with_room(int(table.lengths.max()), forward_budget(model), work)
    nll, right = found[:, places.ravel()]
    return nll, right


def kept_only(order: Sequence[int], counts: Sequence[int], shape: tuple[int, int]) -> np.ndarray:
    """[count, layer, head]: ones for the first so many places of `order` (places in the flat map)."""
    gates = np.zeros((len(counts), shape[0] * shape[1]), dtype=np.float32)
    for number, count in enumerate(counts):
        gates[number, list(order[:count])] = 1
    return gates.reshape(len(counts), *shape)
