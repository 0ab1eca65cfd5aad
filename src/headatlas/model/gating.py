"""Gating: every head's output times a number, just before the output projection.

Inside the block each output projection stands behind a small module that multiplies its input.
Standing in rather than hooking has two merits: when the block ends, however it ends, the model is
the object that it was before; and `torch.compile` notices. (Compiled code checks which module it
calls, but by default not which hooks that module has: hooks set later are silently ignored.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.core import GateError
from headatlas.model.anatomy import Anatomy

__all__ = ["Gating"]


class _Values:
    """The gate values in force; the stand-ins look here, so new values need no new modules."""

    tensor: Tensor


class _Gated(nn.Module):
    """Stands in for an output projection and gates what it is given."""

    def __init__(self, inner: nn.Module, layer: int, heads: int, head_dim: int, values: _Values) -> None:
        super().__init__()
        self.inner = inner
        self.layer, self.heads, self.head_dim = layer, heads, head_dim
        self.values = values

    def forward(self, z: Tensor, *args: Any, **kwargs: Any) -> Any:
        gate = self.values.tensor[..., self.layer, : self.heads].to(device=z.device, dtype=z.dtype)
        if gate.ndim == 2:  # one gate set per row
            if gate.shape[0] != z.shape[0]:
                gate = self._spread(gate, z)
            elif z.ndim == 3:
                gate = gate.unsqueeze(1)
        heads = z.unflatten(-1, (self.heads, self.head_dim))
        return self.inner((heads * gate.unsqueeze(-1)).flatten(-2), *args, **kwargs)

    def _spread(self, gate: Tensor, z: Tensor) -> Tensor:
        """Some models fold rows and positions into one axis before the output projection."""
        if z.ndim != 2 or z.shape[0] % gate.shape[0]:
            raise GateError(f"gates for {gate.shape[0]} rows, but a batch of {z.shape[0]} rows.")
        return gate.repeat_interleave(z.shape[0] // gate.shape[0], dim=0)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The names of a checkpoint that is saved inside a gated block are the model's own."""
        return self.inner.state_dict(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """What a model asks of its projection (`weight`, `in_features`) the projection answers."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)


class Gating:
    """The stand-ins of one model, made once and put in place for the length of a `with` block."""

    def __init__(self, hf: PreTrainedModel, anatomy: Anatomy) -> None:
        self._values = _Values()
        self._places: list[tuple[nn.Module, str, nn.Module, _Gated]] = []
        self._shape = (anatomy.layers, max(found.heads for found in anatomy.present()))
        for found in anatomy.present():
            parent, _, child = found.output.rpartition(".")
            inner = hf.get_submodule(found.output)
            gated = _Gated(inner, found.layer, found.heads, found.head_dim, self._values)
            self._places.append((hf.get_submodule(parent), child, inner, gated))

    @contextmanager
    def __call__(self, values: Any) -> Iterator[None]:
        tensor = self._checked(values)
        self._require_ungated()
        self._values.tensor = tensor
        try:
            for parent, child, _, gated in self._places:
                parent._modules[child] = gated
            yield
        finally:
            for parent, child, inner, _ in self._places:
                parent._modules[child] = inner
            del self._values.tensor

    def _require_ungated(self) -> None:
        for parent, child, inner, _ in self._places:
            current = parent._modules.get(child)
            if isinstance(current, _Gated):  # by this object or by another one for the same model
                raise GateError("this model is gated already; multiply the gate sets and gate it once.")
            if current is not inner:
                raise GateError(f"{child} was replaced after the model was loaded; load it again.")

    def _checked(self, values: Any) -> Tensor:
        tensor = values if isinstance(values, Tensor) else torch.as_tensor(values)
        if tensor.ndim not in (2, 3) or tuple(tensor.shape[-2:]) != self._shape:
            layers, heads = self._shape
            raise GateError(
                f"gates of shape {list(tensor.shape)}; this model takes [layer, head] = [{layers}, {heads}]"
                f" for all rows, or [row, layer, head] = [rows, {layers}, {heads}]."
            )
        if not tensor.is_floating_point():
            tensor = tensor.to(torch.get_default_dtype())
        return tensor
