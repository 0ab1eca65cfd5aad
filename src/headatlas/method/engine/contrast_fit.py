"""Contrastive gating: one gate set that keeps one task and destroys another.

For a row of the task to retain and one of the task to forget, with log-likelihoods R and F (means over
their target tokens), the loss is -R + max(F - R, -5): once the forgotten row is five nats less likely
than the retained one, only the retained one counts. Gates are pushed towards 1, so that a gate that is low
in the end is one that had to be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headatlas.method.engine.gate_fit import GateFit
from headatlas.method.engine.rows import RowTable, draw
from headatlas.method.gating import GatingSettings, Stage
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["MARGIN", "ContrastFit"]

MARGIN = 5.0


class ContrastFit(GateFit):
    """Gate sets named (seed, "retain"), each fitted on pairs of rows."""

    def __init__(
        self,
        model: Model,
        retain: Sequence[Row],
        forget: Sequence[Row],
        settings: GatingSettings,
        sets: Sequence[tuple[int, str]],
        starts: Tensor,
        *,
        name: str = "contrast",
        budget: int | None = None,
    ) -> None:
        table = RowTable([*retain, *forget])
        super().__init__(model, table, settings, "contrast", sets, starts, name=name, budget=budget)
        self._counts = len(retain), len(forget)

    _drawn_width = 2

    @property
    def schedule(self) -> Stage:
        return self.settings.free

    def _drawn(self) -> np.ndarray:
        kept, dropped = self._counts
        batch = self._batch
        pairs = [
            np.stack(
                [
                    draw(kept, batch, self.update, seed, 2),
                    kept + np.array(draw(dropped, batch, self.update, seed, 3)),
                ],
                axis=1,
            )
            for seed, _ in self.sets
        ]
        return np.concatenate(pairs)

    def _loss(self, nll: Tensor) -> Tensor:
        retain, forget = -nll[:, 0], -nll[:, 1]
        return -retain + torch.clamp(forget - retain, min=-MARGIN)
