"""Engines that fit gates, side by side: ours in each of its ways, and the authors'."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headatlas.method import GatingSettings
from headatlas.method.engine.block_compiler import BlockCompiler
from headatlas.method.engine.determinism import fit_conditions
from headatlas.method.engine.gate_fit import GateFit, random_starts
from headatlas.method.engine.objective import Batch, Pressure
from headatlas.method.engine.rows import RowTable
from headatlas.method.gating import PRESETS
from headatlas.task import Row

__all__ = ["SameRows", "authors", "ours", "schedule", "set_way", "update_of"]


class SameRows(Pressure):
    """All rows in every update, the same for all sets."""

    def draw(self, update: int) -> Batch:
        return Batch(np.tile(np.arange(len(self.rows)), len(self.sets))[:, None])


def schedule(rows: Sequence[Row]) -> GatingSettings:
    return replace(PRESETS["paper"], batch=len(rows))


def ours(
    model: Any, rows: Sequence[Row], sets: int, *, recorded: bool | None = None, compiled: bool | None = None
) -> GateFit:
    """Our engine as users get it; or with passes recorded or not, blocks compiled or not."""
    settings = schedule(rows)
    names = [(seed, "free") for seed in range(sets)]
    objective = SameRows(model, RowTable(rows), settings, "free", names)
    fit = GateFit(model, objective, random_starts(model, settings, range(sets)))
    set_way(fit, recorded, compiled)
    return fit


def set_way(fit: GateFit, recorded: bool | None, compiled: bool | None) -> None:
    if compiled is not None:
        fit.runner.compiler = BlockCompiler(fit.model, 1e30 if compiled else 0)
    if recorded is not None:
        fit.runner.recorder.on &= recorded


def update_of(fit: GateFit) -> Callable[[], None]:
    def update() -> None:
        if fit.runner.budget is None:
            with fit.runner.ready():  # measures the budget
                pass
        with fit_conditions(fit.model, int(fit.objective.rows.lengths.max())):
            fit.step()

    return update


def authors(folder: Path, hf: Any, rows: Sequence[Row], sets: int) -> Callable[[], None]:
    """An update of the engine in nam-causal-head-gating 0.1.0, unpacked in `folder`."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    trainer_of = importlib.import_module("causal_head_gating.core.trainer").CHGTrainer
    longest = max(len(row.ids) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long, device=hf.device)
    wanted = torch.zeros_like(ids, dtype=torch.bool)
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = torch.tensor(row.ids)
        wanted[place, row.start : len(row.ids)] = True

    class Batches:
        def to_iterator(self, **_: Any) -> Any:
            while True:
                yield {"input_ids": ids, "loss_masks": wanted}

    trainer = trainer_of(hf, Batches(), num_masks=sets, batch_size=len(rows), lr=0.1, lr_end=0.01)
    trainer._reset_optimizer(trainer.mask_logits, 0.1, 0.01, 500)
    trainer._zero_grad()
    return lambda: trainer._train_step(trainer.mask_logits, 0.0)
