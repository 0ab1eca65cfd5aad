"""Attribution: the effect of every head at once, from gradients at its gate.

`attribute`: the slope of the loss where all gates are open. It predicts what closing a gate does where the
loss is close to a straight line.

`integrate`: integrated gradients, the mean slope on the straight path from all gates shut to all open. Over
all heads they sum to the difference between the two ends (completeness). On this path the loss of a language
model swings by nats within a hundredth of the path, so evenly spaced points miss it. The points are therefore
chosen by adaptive quadrature: the loss at both ends of an interval says what the slopes between them must sum
to, and the intervals of each row where the trapezoid rule is farthest from that are halved. Half precision
rounds the losses by more than a short interval changes them, so the path is measured in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from headatlas.core import NLL, Metric, RequestError
from headatlas.method.attribution import MOST_POINTS, TOLERANCE
from headatlas.method.engine.determinism import fit_conditions, with_any_order
from headatlas.method.engine.head_effects import HeadEffects, HeadsDone, summed_up
from headatlas.method.engine.likelihood import evaluate, require_finite
from headatlas.method.engine.memory import NoRoomError, is_out_of_memory, token_budget, with_room
from headatlas.method.engine.metric import RowLoss
from headatlas.method.engine.rows import Pass, RowTable
from headatlas.model import Model, is_dtype_error, single_precision
from headatlas.task import Row

__all__ = ["attribute", "integrate"]

#: intervals that it starts with
_INTERVALS = 16
#: rows whose points are in memory at a time
_ROWS = 64


def attribute(
    model: Model, rows: Sequence[Row], *, metric: Metric = NLL, progress: HeadsDone | None = None
) -> HeadEffects:
    """How fast the loss rises as each gate closes, where all gates are open."""
    row_loss = RowLoss(metric)
    path = _Path(model, rows, row_loss, progress)
    _, slopes = path.measure(np.arange(len(rows)), np.ones(len(rows)))
    ends = [
        evaluate(model, rows, torch.full(model.spec.shape, gate), row_loss=row_loss).mean_loss
        for gate in (0.0, 1.0)
    ]
    return summed_up(path.with_holes(slopes), ends[1], ends[0] - ends[1])


def integrate(
    model: Model,
    rows: Sequence[Row],
    *,
    tolerance: float = TOLERANCE,
    most_points: int = MOST_POINTS,
    metric: Metric = NLL,
    progress: HeadsDone | None = None,
) -> HeadEffects:
    """Integrated gradients of every head; `points` is the mean number of points per row.

    A half-precision model is measured in float32, unless it is quantized or offloaded or the copy does not
    fit in memory; `dtype` of the result says which.

    Intervals are halved until the root of the summed squares of their errors is at most `tolerance` of the
    whole effect: the expected error of the sum over heads, if the errors of intervals are independent. A sum
    that agrees by accident does not end it, and rounding noise in the losses does not keep it from ending.
    """
    if not 0 < tolerance < 1:
        raise RequestError(f"tolerance is {tolerance}; it lies between 0 and 1.")
    if most_points < 2:
        raise RequestError(f"most_points is {most_points}; a path has at least its 2 ends.")
    try:
        with single_precision(model.hf) as is_single:
            found = _integrate(model, rows, tolerance, most_points, RowLoss(metric), progress)
            return replace(found, dtype="float32" if is_single else model.spec.dtype)
    except NoRoomError:
        if not _has_half_precision(model):
            raise
    except RuntimeError as error:
        if not (is_out_of_memory(error) or is_dtype_error(error)):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    found = _integrate(model, rows, tolerance, most_points, RowLoss(metric), progress)
    return replace(found, dtype=model.spec.dtype)


def _has_half_precision(model: Model) -> bool:
    return any(weight.dtype in (torch.bfloat16, torch.float16) for weight in model.hf.parameters())


def _integrate(
    model: Model,
    rows: Sequence[Row],
    tolerance: float,
    most_points: int,
    row_loss: RowLoss,
    progress: HeadsDone | None,
) -> HeadEffects:
    path = _Path(model, rows, row_loss, progress)
    parts = [
        _integrate_rows(path, np.arange(start, min(start + _ROWS, len(rows))), tolerance, most_points)
        for start in range(0, len(rows), _ROWS)
    ]
    integrals, ends, errors, counts = zip(*parts, strict=True)
    closed, opened = np.concatenate(ends, axis=1)
    whole = float((closed - opened).mean())
    expected = np.sqrt(np.square(errors).sum()) / len(rows)
    found = summed_up(path.with_holes(np.concatenate(integrals)), float(opened.mean()), whole)
    return replace(found, points=sum(counts) / len(rows), expected_error=float(expected) / _above_zero(whole))


def _integrate_rows(
    path: _Path, rows: np.ndarray, tolerance: float, most_points: int
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """([row, layer, head], [closed or open, row], error, points): the integrals of some rows, their losses
    at both ends of the path, the expected error of the sum of all integrals, and the number of points."""
    first = np.linspace(0, 1, min(_INTERVALS, most_points - 1) + 1)
    row, place = np.repeat(np.arange(len(rows)), len(first)), np.tile(first, len(rows))
    points = _Points(row, place, *path.measure(rows[row], place))
    while True:
        chosen = points.to_halve(tolerance)[: most_points * len(rows) - len(points.row)]
        if not len(chosen):
            break
        row = points.row[chosen]
        place = (points.place[chosen] + points.place[chosen + 1]) / 2
        points = points.joined(_Points(row, place, *path.measure(rows[row], place)))
    ends = np.stack([points.losses[points.place == end] for end in (0.0, 1.0)])
    error = float(np.sqrt(points.squared_errors().sum()))
    return points.integrals(len(rows)), ends, error, len(points.row)


def _above_zero(value: float) -> float:
    return max(abs(value), float(np.finfo(np.float32).tiny))


class _Path:
    """Losses and their slopes on the way from all gates shut (0) to all open (1)."""

    def __init__(
        self, model: Model, rows: Sequence[Row], row_loss: RowLoss, progress: HeadsDone | None
    ) -> None:
        self.model, self.table, self.progress = model, RowTable(rows), progress
        self.row_loss = row_loss
        self.longest = int(self.table.lengths.max())
        self.budget: int | None = None
        self.done = 0

    def measure(self, rows: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """([point], [point, layer, head]): the loss of each row at its place, and by how much it falls per
        unit that a gate opens."""
        losses = np.zeros(len(rows))
        slopes = np.zeros((len(rows), *self.model.spec.shape), dtype=np.float32)
        is_done = np.zeros(len(rows), dtype=bool)
        # Half-precision gates have 256 steps between 0.5 and 1, and points of an interval would coincide.
        before, gates_at = self.done, torch.from_numpy(places)

        def work(budget: int) -> None:
            left = np.flatnonzero(~is_done)  # some are done if memory ran out on the way
            for batch in self.table.passes(rows[left][:, None], budget, self.model.device):
                members = left[batch.members]
                gates = gates_at[members].view(-1, 1, 1).expand(-1, *self.model.spec.shape)
                gates = gates.clone().to(self.model.device).requires_grad_()
                reference = self.row_loss.reference(self.model, batch)
                with self.model.gates(gates):
                    loss = self.row_loss(self.model, batch, reference=reference)
                    loss.sum().backward()
                assert gates.grad is not None
                require_finite(self.model, loss.detach(), "losses with all gates partly open")
                require_finite(self.model, gates.grad, "gradients of the loss at the gates")
                losses[members] = loss.detach().double().cpu().numpy()
                slopes[members] = -gates.grad.float().cpu().numpy()
                is_done[members] = True
                self.done = before + int(is_done.sum())
                if self.progress is not None:
                    self.progress(self.done, before + len(rows))

        with fit_conditions(self.model, self.longest):
            if self.budget is None:
                self.budget = token_budget(self.model, self.table, self._trial)
            start = self.budget
            with_any_order(lambda: with_room(self.longest, start, work))
        return losses, slopes

    def _trial(self, batch: Pass) -> Tensor:
        return self.row_loss.trial(self.model, batch)

    def with_holes(self, effects: np.ndarray) -> np.ndarray:
        """NaN where the model has no head."""
        present = np.zeros(self.model.spec.shape, dtype=bool)
        for head in self.model.spec:
            present[head.layer, head.head] = True
        return np.where(present, effects, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """Points of all rows, row after row, each row's by rising place."""

    row: np.ndarray
    place: np.ndarray
    losses: np.ndarray
    slopes: np.ndarray

    def joined(self, other: _Points) -> _Points:
        parts = [np.concatenate([getattr(one, name) for one in (self, other)]) for name in self.__slots__]
        order = np.lexsort((parts[1], parts[0]))
        return _Points(*(part[order] for part in parts))

    def _widths(self) -> np.ndarray:
        """[point]: the distance to the next point of its row; 0 for the last one."""
        return np.append(np.where(np.diff(self.row) == 0, np.diff(self.place), 0), 0)

    def squared_errors(self) -> np.ndarray:
        """[point]: how far the trapezoid rule misses the fall of the loss in the interval after a point."""
        widths = self._widths()
        falls = self.slopes.sum(axis=(1, 2), dtype=np.float64)
        expected = widths * (falls + np.append(falls[1:], 0)) / 2
        missed = np.where(widths > 0, expected - (self.losses - np.append(self.losses[1:], 0)), 0)
        squares: np.ndarray = missed**2
        return squares

    def to_halve(self, tolerance: float) -> np.ndarray:
        """The points after which an interval is to be halved, the largest error first; none if the errors are
        within the tolerance."""
        squares = self.squared_errors()
        ends = self.losses[self.place == 0].sum() - self.losses[self.place == 1].sum()
        allowed = (tolerance * ends) ** 2
        if squares.sum() <= allowed:
            return np.empty(0, dtype=int)
        order = np.argsort(-squares, kind="stable")
        remaining = squares.sum() - np.cumsum(squares[order])
        return order[: 1 + int((remaining > allowed / 4).sum())]

    def integrals(self, rows: int) -> np.ndarray:
        """[row, layer, head], by the trapezoid rule."""
        widths = self._widths()
        weights = (widths + np.append(0, widths[:-1])) / 2
        sums = np.zeros((rows, *self.slopes.shape[1:]))
        np.add.at(sums, self.row, weights[:, None, None] * self.slopes)
        return sums
