"""Logits only where they are wanted.

A vocabulary is wide, and a task has targets at few positions. For the length of one forward pass a small
module stands in for the unembedding and hands it those positions alone; all that a model does to its
logits afterwards (soft caps, scales) happens as always. Whether a model allows that is tried once, and
if not, all logits are made and the wanted ones taken.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

__all__ = ["Readout"]


class _Picking(nn.Module):
    """Stands in for the unembedding."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        object.__setattr__(self, "inner", inner)
        self.wanted: tuple[Tensor, Tensor] | None = None

    def forward(
        self, hidden: Float[Tensor, "row position hidden"], *args: Any, **kwargs: Any
    ) -> Float[Tensor, "1 wanted vocabulary"]:
        assert self.wanted is not None
        rows, positions = (index.to(hidden.device) for index in self.wanted)
        places = rows * hidden.shape[1] + positions
        return self.inner(hidden.flatten(0, 1).index_select(0, places).unsqueeze(0), *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


#: parent, name in it, unembedding
_Place = tuple[nn.Module, str, nn.Module]


class Readout:
    """Logits of a model at chosen places."""

    def __init__(self, hf: Any) -> None:
        self._hf = hf
        self._place: _Place | None = None
        self._tried = False

    @property
    def tried(self) -> bool:
        """Is it known whether this model allows it?"""
        return self._tried

    def __call__(
        self,
        ids: Int[Tensor, "row position"],
        rows: Int[Tensor, " wanted"],
        positions: Int[Tensor, " wanted"],
    ) -> Float[Tensor, "wanted vocabulary"]:
        """The logits at `positions[i]` of row `rows[i]` of `ids`."""
        if not self._tried:
            self.find_out(ids)
        if self._place is None:
            return self._all(ids, rows, positions)
        return self._picked(self._place, ids, rows, positions)

    def _all(self, ids: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        logits = self._hf(input_ids=ids, use_cache=False).logits
        return logits[rows.to(logits.device), positions.to(logits.device)]

    def _picked(self, place: _Place, ids: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        parent, child, inner = place
        picking = _Picking(inner)
        picking.wanted = rows, positions
        parent._modules[child] = picking
        try:
            return self._hf(input_ids=ids, use_cache=False).logits[0]
        finally:
            parent._modules[child] = inner

    def find_out(self, like: Int[Tensor, "row position"]) -> None:
        """Two positions of a few rows, once picked and once taken from all logits. No gates are in force that
        have to do with rows or positions: these are others."""
        output = self._hf.get_output_embeddings()
        name = next((name for name, module in self._hf.named_modules() if module is output), None)
        if output is None or not name:
            self._tried = True
            return
        parent, _, child = name.rpartition(".")
        place = self._hf.get_submodule(parent), child, output
        ids = like[:4, :8]
        rows = torch.arange(len(ids), device=ids.device).repeat(2)
        positions = torch.arange(len(rows), device=ids.device) % ids.shape[1]
        with torch.no_grad():
            wanted = self._all(ids, rows, positions)
            try:
                found = self._picked(place, ids, rows, positions)
            except torch.OutOfMemoryError:  # says nothing about the model: tried again next time
                raise
            except (RuntimeError, IndexError, TypeError, ValueError, AttributeError):
                found = wanted[:0]
        exact = wanted.dtype in (torch.float32, torch.float64)
        close = found.shape == wanted.shape and bool(
            (found - wanted).abs().max() <= (1e-3 if exact else 5e-2) * wanted.abs().max().clamp(min=1e-6)
        )
        self._tried, self._place = True, place if close else None
