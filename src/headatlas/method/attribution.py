"""Attribution: the effect of every head at once, from gradients at its gate.

`gradient`: how the loss falls as the gate opens, where all gates are open; a guess at what closing it would
do, good where the loss is a straight line. `integrated`: the mean of that slope on the straight way from all
gates shut to all open; over all heads these sum up to the difference between the two ends, if the points are
dense enough. In language models they often are not: with most heads half shut the loss can swing wildly, and
then the values are rough; how far the sum is from the difference says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headatlas.core import RequestError
from headatlas.method.batches import RowTable
from headatlas.method.effects import HeadEffects, HeadsDone, summed_up
from headatlas.method.likelihood import evaluate, row_nll, with_room
from headatlas.method.resources import allow_any_order, fit_conditions, token_budget
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["STEPS_ALONG", "attribute"]

#: points on the way from shut to open
STEPS_ALONG = 16


def attribute(
    model: Model, rows: Sequence[Row], steps: int | None = None, *, progress: HeadsDone | None = None
) -> HeadEffects:
    """The slope at open gates, or with `steps` its mean at so many points on the way there."""
    if steps is not None and steps < 1:
        raise RequestError(f"steps is {steps}; it is at least 1.")
    points = [1.0] if steps is None else [(step + 0.5) / steps for step in range(steps)]
    table = RowTable(rows)
    slopes = np.zeros((len(points), len(rows), *model.spec.shape))

    def work(budget: int) -> None:
        batches = list(table.passes(np.arange(len(rows))[:, None], budget, model.device))
        for number, point in enumerate(points):
            for place, batch in enumerate(batches):
                members = batch.members
                gates = torch.full((len(members), *model.spec.shape), point, device=model.device)
                gates.requires_grad_()
                with model.gates(gates):
                    row_nll(model, batch).sum().backward()
                assert gates.grad is not None
                slopes[number, members] = -gates.grad.double().cpu().numpy()
                if progress is not None:
                    progress(number * len(batches) + place + 1, len(points) * len(batches))

    with fit_conditions(model, int(table.lengths.max())):
        budget = token_budget(model, table)
        try:
            with_room(int(table.lengths.max()), budget, work)
        except RuntimeError as error:
            if not allow_any_order(error):
                raise
            with_room(int(table.lengths.max()), budget, work)
    slopes[..., ~_present(model)] = np.nan
    ends = [evaluate(model, rows, torch.full(model.spec.shape, gate)).mean_nll for gate in (0.0, 1.0)]
    return summed_up(slopes.mean(axis=0), ends[1], ends[0] - ends[1])


def _present(model: Model) -> np.ndarray:
    there = np.zeros(model.spec.shape, dtype=bool)
    for head in model.spec:
        there[head.layer, head.head] = True
    return there
