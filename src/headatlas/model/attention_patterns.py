"""The attention patterns of all heads in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headatlas.core import GateError, HeadatlasError
from headatlas.model.gate_modules import is_gated
from headatlas.model.modes import eval_mode
from headatlas.model.probe import eager
from headatlas.model.trace import trace

if TYPE_CHECKING:
    from headatlas.model.model import Model

__all__ = ["attention_patterns"]


@torch.no_grad()
def attention_patterns(
    model: Model, ids: Int[Tensor, "row position"]
) -> Float[Tensor, "row layer head query key"]:
    """What every head looks at: each row over the keys sums to one (less where a model has attention sinks).
    NaN where the model has no head."""
    if is_gated(model.hf):
        raise GateError("attention patterns are those of the plain model; call it outside the gates block.")
    rows, length = ids.shape
    with eager(model.hf), eval_mode(model.hf):
        seen = trace(model.hf, ids)
    patterns = torch.full((rows, *model.spec.shape, length, length), torch.nan)
    for found in model.anatomy.present():
        events = [event for event in seen.events if event.owner == found.module]
        if not events or events[-1].heads != found.heads:
            raise HeadatlasError(
                f"{model.spec.name} shows no attention pattern in layer {found.layer} for {length} tokens."
            )
        pattern = events[-1].pattern[..., :length]  # attention sinks are further columns
        patterns[:, found.layer, : found.heads] = pattern.float().cpu()
    return patterns
