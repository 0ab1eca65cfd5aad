"""What gates are fitted for: which rows an update draws, what the rows lose, which way gates are pressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headatlas.method.engine.rows import RowTable, Stream, draw
from headatlas.method.gating import GatingSettings, Stage
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["Batch", "Contrast", "Objective", "Pressure", "heads_present"]

_STREAM = {"free": Stream.FREE, "pressed": Stream.PRESSED}
#: which way the pressure goes
_SIGN = {"free": 0.0, "retain": 1.0, "remove": -1.0}
#: nats by which a forgotten row is at most made less likely than a retained one
_MARGIN = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The rows of an update: places in the objective's table, the units of one set after those of another.

    Rows of a unit stay together in a pass. `extras` have one entry per row, counted through `rows` row by
    row: whatever else `Objective.row_gates` needs to know about a row.
    """

    rows: Int[np.ndarray, "unit width"]
    extras: tuple[Tensor, ...] = ()


@runtime_checkable
class Objective(Protocol):
    """What `GateFit` asks. Draws are pure in (seed, stage, update), so that a fit can go on after a kill.

    `row_gates` and `loss` run inside recorded passes: they work on tensors of their arguments alone, in the
    same way at every update, and wait for no result.
    """

    #: the name of the stage, also that of its work file
    stage: str
    #: each gate set by (seed, fit)
    sets: list[tuple[int, str]]
    rows: RowTable
    settings: GatingSettings
    #: units of each set per update, and rows of a unit
    batch: int
    width: int

    @property
    def schedule(self) -> Stage: ...

    def draw(self, update: int) -> Batch: ...

    def row_gates(
        self,
        parameters: Float[Tensor, "set layer head"],
        owned: Float[Tensor, "row set"],
        extras: tuple[Tensor, ...],
    ) -> Float[Tensor, "row layer head"]:
        """The gates of every row of a pass; `owned` is 1 where a row is drawn for a set, and 0 elsewhere.
        `extras` are those of the batch for these rows."""

    def loss(self, nll: Float[Tensor, "unit width"]) -> Float[Tensor, " unit"]:
        """From the losses of each unit's rows: by default mean negative log-likelihoods of their targets, or
        what the metric of the settings gives."""

    def add_pressure(
        self,
        gradient: Float[Tensor, "set layer head"],
        parameters: Float[Tensor, "set layer head"],
        update: int,
    ) -> Float[Tensor, "set layer head"]:
        """The gradient of the whole loss, from that of the rows. Where there is no head it is not used."""

    def project(self, parameters: Float[Tensor, "set layer head"]) -> None:
        """Bring parameters back into their bounds, in place."""


def heads_present(model: Model) -> Float[Tensor, "layer head"]:
    """Ones where the model has a head, zeros elsewhere; on the model's device."""
    present = torch.zeros(model.spec.shape)
    for head in model.spec:
        present[head.layer, head.head] = 1
    return present.to(model.device)


class Pressure:
    """Gates that leave a low loss, pressed towards 1 (retain), towards 0 (remove) or not at all (free).

    Rows that a set sees, and their order, depend on its seed and the stage alone.
    """

    width = 1

    def __init__(
        self,
        model: Model,
        rows: RowTable,
        settings: GatingSettings,
        stage: str,
        sets: Sequence[tuple[int, str]],
    ) -> None:
        self.rows, self.stage, self.sets = rows, stage, list(sets)
        self.settings = settings.for_targets(float((rows.lengths - rows.starts).mean()))
        assert self.settings.batch is not None
        self.batch = self.settings.batch
        self._heads = heads_present(model).sum()

    @property
    def schedule(self) -> Stage:
        return self.settings.free if self.stage == "free" else self.settings.pressed

    def draw(self, update: int) -> Batch:
        stream, count = _STREAM[self.stage], len(self.rows)
        drawn = [draw(count, self.batch, update, seed, stream) for seed, _ in self.sets]
        return Batch(np.concatenate(drawn)[:, None])

    def row_gates(
        self,
        parameters: Float[Tensor, "set layer head"],
        owned: Float[Tensor, "row set"],
        extras: tuple[Tensor, ...],
    ) -> Float[Tensor, "row layer head"]:
        """Each row has the gates of its set."""
        gates = torch.sigmoid(parameters).flatten(1).to(owned.dtype)
        return (owned @ gates).unflatten(1, parameters.shape[1:]).float()

    def loss(self, nll: Float[Tensor, "unit width"]) -> Float[Tensor, " unit"]:
        return nll[:, 0]

    def add_pressure(
        self,
        gradient: Float[Tensor, "set layer head"],
        parameters: Float[Tensor, "set layer head"],
        update: int,
    ) -> Float[Tensor, "set layer head"]:
        # The bound itself is included: pressure can lead back.
        inside = parameters.abs() <= self.settings.limit
        return gradient - self._pressures(update, parameters.device) * inside / self._heads

    def _pressures(self, update: int, device: torch.device) -> Float[Tensor, "set 1 1"]:
        """Pulls logits up where it is positive."""
        left = 1 - update / max(1, self.schedule.updates - 1)
        pushes = {"remove": 1 + (self.settings.push - 1) * left}
        pressures = [_SIGN[fit] * self.settings.pressure * pushes.get(fit, 1.0) for _, fit in self.sets]
        return torch.tensor(pressures, device=device).view(-1, 1, 1)

    def project(self, parameters: Float[Tensor, "set layer head"]) -> None:
        if self.settings.objective == "bounded":
            parameters.clamp_(-self.settings.limit, self.settings.limit)


class Contrast(Pressure):
    """Gate sets, named (seed, "retain"), that keep one task and destroy another.

    For a row of the task to retain and one of the task to forget, with log-likelihoods R and F (means over
    their target tokens), the loss is -R + max(F - R, -5): once the forgotten row is five nats less likely
    than the retained one, only the retained one counts. Gates are pushed towards 1, so that a gate that is
    low in the end is one that had to be.
    """

    width = 2

    def __init__(
        self,
        model: Model,
        retain: Sequence[Row],
        forget: Sequence[Row],
        settings: GatingSettings,
        sets: Sequence[tuple[int, str]],
    ) -> None:
        super().__init__(model, RowTable([*retain, *forget]), settings, "contrast", sets)
        self._retained, self._forgotten = len(retain), len(forget)

    @property
    def schedule(self) -> Stage:
        return self.settings.free

    def draw(self, update: int) -> Batch:
        pairs = [
            np.stack(
                [
                    draw(self._retained, self.batch, update, seed, Stream.RETAIN),
                    self._retained + np.array(draw(self._forgotten, self.batch, update, seed, Stream.FORGET)),
                ],
                axis=1,
            )
            for seed, _ in self.sets
        ]
        return Batch(np.concatenate(pairs))

    def loss(self, nll: Float[Tensor, "unit width"]) -> Float[Tensor, " unit"]:
        retain, forget = -nll[:, 0], -nll[:, 1]
        return -retain + torch.clamp(forget - retain, min=-_MARGIN)
