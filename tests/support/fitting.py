"""Both stages of a fit, without files."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import xarray as xr

from headatlas.core import seed_numbers
from headatlas.method import GatingSettings
from headatlas.method.engine.gate_fit import GateFit, random_starts
from headatlas.method.engine.objective import Pressure
from headatlas.method.engine.rows import RowTable
from headatlas.model import Model
from headatlas.task import Row

__all__ = ["fitted_gates"]


def fitted_gates(model: Model, rows: Sequence[Row], settings: GatingSettings) -> xr.DataArray:
    """[seed, fit, layer, head]: G+ and G−, of all seeds side by side."""
    table, seeds, fits = RowTable(rows), seed_numbers(settings.seeds), ("retain", "remove")
    starts = random_starts(model, settings, seeds)
    sets = [(seed, "free") for seed in seeds]
    free = GateFit(model, Pressure(model, table, settings, "free", sets), starts)
    free.run()
    sets = [(seed, fit) for seed in seeds for fit in fits]
    starts = free.logits.repeat_interleave(2, 0)
    pressed = GateFit(model, Pressure(model, table, settings, "pressed", sets), starts)
    pressed.run()
    gates = torch.sigmoid(pressed.logits).unflatten(0, (-1, 2)).numpy()
    layers, heads = model.spec.shape
    coords = {"seed": list(seeds), "fit": list(fits), "layer": range(layers), "head": range(heads)}
    return xr.DataArray(gates, dims=["seed", "fit", "layer", "head"], coords=coords)
