"""Salient operations: the tokens that a head amplifies most, and what it makes of them.

For every token of the vocabulary ‖x · W_V · W_O‖ / ‖x‖ says how strongly the head responds to it, x being
what the token brings (see `relations`). The strongest fifteen are kept, each with the five tokens that the
head then promotes most; all in single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headatlas.method.relation.scorer import Writer
from headatlas.method.relation.top_k import full_precision
from headatlas.model import SOURCES
from headatlas.model.linear import exact

__all__ = ["MAPPED", "SALIENT", "Salient", "salient_operations"]

SALIENT, MAPPED = 15, 5
#: vocabulary tokens that are looked at together
_BLOCK = 16_384


@dataclass(frozen=True, slots=True, eq=False)
class Salient:
    """Tokens by falling strength (fifteen), and those that each of them promotes, the most first (five).
    Where the model has no head, -1 and NaN."""

    tokens: Int[np.ndarray, "layer head salient"]
    strength: Float[np.ndarray, "layer head salient"]
    mapped: Int[np.ndarray, "layer head salient promoted"]


@full_precision()
def salient_operations(writer: Writer, source: str, progress: Callable[[int], None] | None = None) -> Salient:
    """For every head of the model."""
    model = writer.model
    layers, heads = model.spec.shape
    size = model.spec.vocabulary
    count, mapped_count = min(SALIENT, size), min(MAPPED, size)
    tokens = np.full((layers, heads, count), -1, dtype=np.int32)
    strength = np.full((layers, heads, count), np.nan, dtype=np.float32)
    mapped = np.full((layers, heads, count, mapped_count), -1, dtype=np.int32)
    kind, x = "", torch.empty(0)
    for found in model.anatomy.present():
        wanted = SOURCES[0] if found.value.layer == 0 else source
        if wanted != kind:  # one kind at a time: they are as large as the vocabulary
            del x
            kind, x = wanted, _units(writer, wanted)
        read: dict[tuple[int, ...], Tensor] = {}
        for head in range(found.heads):
            output = writer.output(found.layer, head).to(x.device)
            channels = tuple(found.value.channels[head].tolist())
            if channels not in read:  # heads of a group read the same
                value = exact(model.value_weight(found.layer, head)).to(x.device)
                read[channels] = torch.cat([part @ value.float() for part in x.split(_BLOCK)])
            inner = read[channels]
            # ‖a · W_O‖² = a · (W_O · W_Oᵀ) · aᵀ: a matrix of the head's own small size
            gram = (output @ output.T).float()
            sizes = torch.cat([((part @ gram) * part).sum(1) for part in inner.split(_BLOCK)])
            best = sizes.clamp(min=0).sqrt().topk(count)
            top = writer.vocabulary.top(inner[best.indices] @ output.float(), mapped_count)
            tokens[found.layer, head] = best.indices.cpu().numpy()
            strength[found.layer, head] = best.values.cpu().numpy()
            mapped[found.layer, head] = top.cpu().numpy()
            if progress is not None:
                progress(1)
    return Salient(tokens, strength, mapped)


def _units(writer: Writer, kind: str) -> Float[Tensor, "token hidden"]:
    """What every token brings, at length one (zero where it brings nothing)."""
    every = torch.arange(writer.model.spec.vocabulary)
    device = writer.vocabulary.weight.device
    units = torch.empty(len(every), writer.model.spec.hidden, device=device)
    tiny = torch.finfo(torch.float32).tiny
    for part in every.split(_BLOCK):
        vectors = writer.model.source_vectors(part, kind).to(device).float()
        units[part] = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=tiny)
    return units
