"""A method: how large is what a head puts out?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headatlas.method import EffectOptions, Method


@dataclass(frozen=True)
class NormOptions(EffectOptions):
    power: int = 2


def output_norm(model: Any, rows: Any, *, options: NormOptions, seed: int, progress: Any) -> Any:
    import numpy as np
    import torch

    from headatlas.method import HeadEffects

    layers, heads = model.spec.shape
    norms = np.full((len(rows), layers, heads), np.nan, np.float32)
    for number, row in enumerate(rows):
        outputs = model.head_activations(torch.tensor([row.ids], device=model.device))
        for layer, values in outputs.items():
            count = model.spec.heads[layer]
            by_head = values[0].detach().float().unflatten(-1, (count, -1))
            norms[number, layer, :count] = by_head.norm(p=options.power, dim=-1).mean(0).cpu().numpy()
        progress(number + 1, len(rows))
    mean, error = norms.mean(0), norms.std(0) / np.sqrt(len(rows))
    return HeadEffects(mean, error, norms)


PROVIDES = [
    Method(
        "output-norm", "Output norm", "mean norm of a head's output", NormOptions, output_norm, unit="norm"
    )
]
