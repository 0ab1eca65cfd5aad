"""Gating: every head's output times a number, just before the output projection.

A gate g leaves g · z of the output z of a head; where something else stands in for it, g · z + (1 − g) times
that.

Inside the block each output projection stands behind a small module that multiplies its input.
Standing in rather than hooking has two merits: when the block ends, however it ends, the model is
the object that it was before; and `torch.compile` notices. (Compiled code checks which module it
calls, but by default not which hooks that module has: hooks set later are silently ignored.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from inspect import signature
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from headatlas.core import GateError
from headatlas.model.anatomy import Anatomy

__all__ = ["Gating", "is_gated", "ungated"]


#: one position per row, a mask, or the same positions in all rows (from the end where negative); None: all
Positions = Int[Tensor, " row"] | Bool[Tensor, "row position"] | slice | None


class _Values:
    """The gate values in force; the stand-ins look here, so new values need no new modules."""

    tensor: Float[Tensor, "*row layer head"]
    #: where they hold; everywhere if None
    positions: Positions = None
    #: the last of these positions
    last_position = -1
    #: layer -> what a closed gate leaves in place of the heads' outputs
    replacement: Mapping[int, Tensor]
    #: False if one position of a replacement stands for itself alone, as in a text of one token
    one_position_for_all = True
    #: tokens that the key/value cache held before this pass; None if no pass has begun
    past: int | None = None
    #: tokens of the pass that began the text: positions from the end count from there
    text_length = 0
    #: True if later passes may continue this text
    cached = False

    def __init__(self) -> None:
        self._known: tuple[Any, tuple[Tensor, ...], int] | None = None
        self.replacement = {}

    def set(
        self,
        tensor: Tensor | None,
        positions: Positions = None,
        replacement: Mapping[int, Tensor] | None = None,
        one_position_for_all: bool = True,
    ) -> None:
        self._known = None
        self.one_position_for_all = one_position_for_all
        self.positions, self.replacement = positions, replacement or {}
        self.past, self.cached, self.text_length = None, False, 0
        one_each = isinstance(positions, Tensor) and positions.ndim == 1 and len(positions) > 0
        self.last_position = int(positions.max()) if one_each else -1  # type: ignore[union-attr]  # once: it syncs
        if tensor is None:
            del self.tensor
        else:
            self.tensor = tensor

    def of(
        self, layer: int, z: Float[Tensor, "*batch channel"]
    ) -> Float[Tensor, "head 1"] | Float[Tensor, "row 1 head 1"]:
        """A layer's gates, on the device of `z`.

        They are made ready for all layers at the first layer of a pass: on a GPU a small kernel per
        layer would cost more than the multiplication. A layer that is not above the last one asked
        for means a new pass, which reads the values anew.
        """
        if torch.compiler.is_compiling():  # the compiler fuses them
            return self._ready(z)[layer]
        state = (z.dtype, z.device, torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        known = self._known  # looked at once: another thread may change it
        if known is None or known[0] != state or layer <= known[2]:
            known = state, self._ready(z), layer
        self._known = known[0], known[1], layer
        return known[1][layer]

    def _ready(self, z: Tensor) -> tuple[Tensor, ...]:
        # Double-precision gates keep single precision in a half-precision model.
        dtype = torch.promote_types(z.dtype, torch.float32) if self.tensor.dtype == torch.float64 else z.dtype
        gates = self.tensor.to(device=z.device, dtype=dtype).unsqueeze(-1)
        return gates.unsqueeze(1).unbind(2) if gates.ndim == 4 else gates.unbind(0)


def _slice_text(at: slice) -> str:
    start, stop = at.start, at.stop
    if start is not None and stop == (start + 1 or None):
        return str(start)
    return f"{'' if start is None else start}:{'' if stop is None else stop}"


def _itself(value: Any) -> Any:
    return value


def _ignore_pass(module: nn.Module, args: Any, kwargs: Any) -> None:
    """A hook that does nothing."""


class _Gated(nn.Module):
    """Stands in for an output projection and gates what it is given.

    It holds the projection's own parameters under their own names, so that inside a gated block
    `parameters`, `state_dict`, `to` and the like see the model as it is.
    """

    def __init__(self, inner: nn.Module, layer: int, heads: int, head_dim: int, values: _Values) -> None:
        super().__init__()
        self._parameters, self._buffers, self._modules = inner._parameters, inner._buffers, inner._modules
        object.__setattr__(self, "inner", inner)  # not as a module of this one: names stay the same
        self.layer, self.heads, self.head_dim = layer, heads, head_dim
        self.values = values
        self.ran = False
        #: this layer's gates, made ready before the pass; then nothing else is looked at
        self.ahead: Float[Tensor, "row 1 head 1"] | None = None

    def forward(self, z: Float[Tensor, "*batch channel"], *args: Any, **kwargs: Any) -> Any:
        if self.ahead is not None:
            heads = z.unflatten(-1, (self.heads, self.head_dim)) * self.ahead.to(z.dtype)
            return self.inner(heads.flatten(-2), *args, **kwargs)
        if not torch.compiler.is_compiling():
            self._count()
        gate = self.values.of(self.layer, z)
        if gate.ndim == 4 and gate.shape[0] != z.shape[0]:
            raise GateError(
                f"gates for {gate.shape[0]} rows, but a batch of {z.shape[0]} rows (generation with "
                "beams or several answers repeats rows: repeat the gates likewise)."
            )
        if gate.shape[-2] != self.heads:  # a layer with fewer heads than others
            gate = gate[..., : self.heads, :]
        if self.values.positions is not None:
            gate = self._only_at(gate, z, self.values.positions)
        heads = (z.unflatten(-1, (self.heads, self.head_dim)) * gate).to(z.dtype)
        if self.layer in self.values.replacement:
            instead = self._stand_in(self.values.replacement[self.layer], z).to(
                device=z.device, dtype=z.dtype
            )
            heads = heads + (1 - gate) * instead.unflatten(-1, (self.heads, self.head_dim))
        return self.inner(heads.flatten(-2), *args, **kwargs)

    def _only_at(
        self, gate: Tensor, z: Tensor, at: Int[Tensor, " row"] | Bool[Tensor, "row position"] | slice
    ) -> Float[Tensor, "row position head 1"]:
        """Ones but at the chosen positions of each row."""
        if isinstance(at, slice):
            mask = self._sliced(at, z).to(z.device)
            return torch.where(mask[..., None, None], gate, torch.ones_like(gate))
        if at.ndim == 2:
            mask = self._mask(at, z).to(z.device)
            return torch.where(mask[..., None, None], gate, torch.ones_like(gate))
        if z.ndim != 3 or len(at) != z.shape[0]:
            raise GateError(
                f"gates at one position of each of {len(at)} rows, but a batch of shape {list(z.shape[:-1])}."
            )
        past = self._past()
        if self.values.last_position >= past + z.shape[1] and not self.values.cached:
            raise GateError(
                f"gates at position {self.values.last_position}, but a text of {z.shape[1]} tokens "
                "(positions count from 0; to reach tokens of later passes, pass use_cache=True or a cache)."
            )
        positions = past + torch.arange(z.shape[1], device=z.device)
        is_gated_position = positions == at.to(z.device)[:, None]
        return torch.where(is_gated_position[..., None, None], gate, torch.ones_like(gate))

    def _past(self) -> int:
        if self.values.past is None:
            raise GateError(
                "gates at positions need to know how many tokens the key/value cache holds: call the "
                "transformers model itself, uncompiled, not one of its layers."
            )
        return self.values.past

    def _sliced(self, at: slice, z: Tensor) -> Bool[Tensor, "1 new_position"]:
        """The mask of a slice for the tokens of this pass; tokens that are generated later are not gated."""
        if z.ndim != 3:
            raise GateError(f"gates at positions, but a batch of shape {list(z.shape[:-1])}.")
        past, new = self._past(), z.shape[1]
        if past == 0:
            self.values.text_length = new
        chosen = torch.zeros(1, max(self.values.text_length, past + new), dtype=torch.bool)
        chosen[:, range(*at.indices(self.values.text_length))] = True
        if not chosen.any():
            raise GateError(f"positions {_slice_text(at)}, but a text of {self.values.text_length} tokens.")
        return chosen[:, past : past + new]

    def _mask(self, at: Bool[Tensor, "row position"], z: Tensor) -> Bool[Tensor, "row new_position"]:
        """The mask for the tokens of this pass. Tokens behind it, which come with a cache, are not gated."""
        shape = list(z.shape[:-1])
        if z.ndim == 3 and len(at) == len(z) and self.values.cached:
            past, length = self._past(), z.shape[1]
            if past or at.shape[1] >= length:
                known = at[:, past : past + length]
                return nn.functional.pad(known, (0, length - known.shape[1]))
        elif list(at.shape) == shape:
            return at
        raise GateError(f"gates at positions of shape {list(at.shape)}, but a batch of {shape}.")

    def _stand_in(
        self, instead: Float[Tensor, " channel"] | Float[Tensor, "row position channel"], z: Tensor
    ) -> Float[Tensor, " channel"] | Float[Tensor, "row new_position channel"]:
        """What stands in for the tokens of this pass; 1 row stands for all, and so does 1 position unless it
        is that of a text."""
        if instead.ndim == 1:
            return instead
        rows, positions = instead.shape[:2]
        if positions > 1 or not self.values.one_position_for_all:
            past = self._past()
            exceeds = z.ndim != 3 or past + z.shape[1] > positions
            if exceeds or (not self.values.cached and z.shape[1] != positions):
                raise GateError(
                    f"the replacement in layer {self.layer} has {positions} positions, but this pass has "
                    f"positions {past} to {past + z.shape[-2] - 1}; give a replacement with as many tokens."
                )
            instead = instead[:, past : past + z.shape[1]]
        if rows not in (1, z.shape[0]):
            raise GateError(
                f"the replacement in layer {self.layer} has {rows} rows, but a batch of {z.shape[0]}."
            )
        return instead

    def _count(self) -> None:
        """Gradient checkpointing runs layers again during backward, with the gates of that moment."""
        if torch._C._current_graph_task_id() == -1:
            self.ran = True
        elif not self.ran:
            raise GateError(
                "with gradient checkpointing, call backward inside the gated block of its forward pass."
            )

    # Inside a gated block whatever is done to the projection is done to the projection.

    def train(self, mode: bool = True) -> _Gated:
        self.inner.train(mode)
        return super().train(mode)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.state_dict(*args, **kwargs)

    def register_forward_hook(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.register_forward_hook(*args, **kwargs)

    def register_forward_pre_hook(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.register_forward_pre_hook(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copied or pickled, a gated model is the plain one."""
        return _itself, (self.inner,)

    def __getattr__(self, name: str) -> Any:
        """What a model asks of its projection (`in_features`) the projection answers."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


def _cached_tokens(cache: Any) -> int:
    """Tokens that a cache holds, which may be None.

    In a hybrid model only attention layers count tokens, so ask all layers: the first one may be recurrent.
    """
    if cache is None:
        return 0
    counts = []
    for counter in (cache, *getattr(cache, "layers", ())):
        try:
            counts.append(int(counter.get_seq_length()))
        except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
            continue  # a recurrent layer does not count
    if not counts:
        raise GateError(
            f"gates at positions cannot be used with a {type(cache).__name__}, which does not tell how many "
            "tokens it holds; use a transformers Cache or use_cache=False."
        )
    return max(counts)


class _CacheWatch:
    """A hook that notes before each pass how many tokens the key/value cache holds."""

    def __init__(self, values: _Values) -> None:
        self._values = values

    def __call__(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        try:
            given = {**signature(module.forward).bind_partial(*args).arguments, **kwargs}
        except TypeError:  # too many arguments: the call itself raises it, in the model's words
            return
        cache = given.get("past_key_values")
        self._values.past = _cached_tokens(cache)
        self._values.cached = cache is not None or bool(given.get("use_cache"))

    def __reduce__(self) -> Any:
        """Copied or pickled, a gated model is the plain one."""
        return _itself, (_ignore_pass,)


def is_gated(hf: nn.Module) -> bool:
    """Is some gated block at work on this model?"""
    return any(isinstance(module, _Gated) for module in hf.modules())


def ungated(hf: nn.Module, name: str) -> nn.Module:
    """The module of that name: inside a gated block the projection itself, not its stand-in."""
    module = hf.get_submodule(name)
    return module.inner if isinstance(module, _Gated) else module


class Gating:
    """The stand-ins of one model, made once and put in place for the length of a `with` block."""

    def __init__(self, hf: PreTrainedModel, anatomy: Anatomy) -> None:
        self._values = _Values()
        self._places: list[tuple[nn.Module, str, nn.Module, _Gated]] = []
        self._made_of = hf, anatomy
        self._shape = anatomy.shape
        self._there = torch.zeros(self._shape, dtype=torch.bool)
        for found in anatomy.present():
            self._there[found.layer, : found.heads] = True
        for found in anatomy.present():
            parent, _, child = found.output.rpartition(".")
            inner = hf.get_submodule(found.output)
            gated = _Gated(inner, found.layer, found.heads, found.head_dim, self._values)
            self._places.append((hf.get_submodule(parent), child, inner, gated))

    def __reduce__(self) -> Any:
        """A copy gates the copied model, with stand-ins of its own."""
        return Gating, self._made_of

    def __call__(
        self,
        values: Any,
        positions: Any = None,
        replacement: Any = None,
        *,
        one_position_for_all: bool = True,
    ) -> AbstractContextManager[None]:
        return self._block(
            self._checked(values),
            None if positions is None else self._checked_positions(positions),
            {} if replacement is None else self._checked_stand_ins(replacement),
            one_position_for_all,
        )

    @contextmanager
    def _block(
        self,
        tensor: Tensor,
        positions: Positions,
        replacement: Mapping[int, Tensor],
        one_position_for_all: bool = True,
    ) -> Iterator[None]:
        self._require_ungated()
        self._values.set(tensor, positions, replacement, one_position_for_all)
        needs_past = positions is not None or any(output.ndim == 3 for output in replacement.values())
        hooks = self._watch_cache() if needs_past else []
        try:
            for parent, child, _, gated in self._places:
                gated.ran = False
                parent._modules[child] = gated
            yield
        finally:
            for parent, child, inner, _ in self._places:
                parent._modules[child] = inner
            for hook in hooks:
                hook.remove()
            self._values.set(None)

    def _watch_cache(self) -> list[RemovableHandle]:
        """Note before each pass how many tokens the key/value cache holds: the projections see new tokens
        only."""
        watch, whole = _CacheWatch(self._values), self._made_of[0]
        models = [whole, *([whole.base_model] if whole.base_model is not whole else [])]
        return [model.register_forward_pre_hook(watch, with_kwargs=True) for model in models]

    @contextmanager
    def ahead(self, tensor: Float[Tensor, "row layer head"]) -> Iterator[None]:
        """Gates that stay as they are for the length of the block: every layer's are made
        ready at once. Compiled code of one block then serves all of them, as no layer looks up its number."""
        with self._block(self._checked(tensor), None, {}):
            ready: dict[torch.device, tuple[Tensor, ...]] = {}
            try:
                for _, _, inner, gated in self._places:
                    device = next(inner.parameters()).device
                    if device not in ready:
                        each = tensor.to(device=device, dtype=self._made_of[0].dtype)
                        ready[device] = each[:, :, None, :, None].unbind(1)
                    gated.ahead = ready[device][gated.layer][:, :, : gated.heads]
                yield
            finally:
                for *_, gated in self._places:
                    gated.ahead = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The plain model, inside a gated block too."""
        before = [parent._modules[child] for parent, child, *_ in self._places]
        try:
            for parent, child, inner, _ in self._places:
                parent._modules[child] = inner
            yield
        finally:
            for (parent, child, *_), module in zip(self._places, before, strict=True):
                parent._modules[child] = module

    def _require_ungated(self) -> None:
        for parent, child, inner, _ in self._places:
            current = parent._modules.get(child)
            if isinstance(current, _Gated):  # by this object or by another one for the same model
                raise GateError("this model is gated already; multiply the gate sets and gate it once.")
            if current is not inner:
                raise GateError(f"{child} was replaced after the model was loaded; load it again.")

    def _checked_positions(self, at: Any) -> Positions:
        if isinstance(at, slice):
            return at
        if isinstance(at, int | np.integer) and not isinstance(at, bool):
            return slice(int(at), int(at) + 1 or None)
        try:
            positions = torch.as_tensor(at)
        except (TypeError, ValueError, RuntimeError) as error:
            raise GateError(
                "positions are one whole number, a slice, or whole numbers, one per row."
            ) from error
        if positions.ndim == 2 and positions.dtype == torch.bool:
            return positions
        whole = not (positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool)
        if positions.ndim != 1 or not whole or (positions < 0).any():
            raise GateError(
                "positions are one whole number or a slice for all rows, whole numbers from 0, one per row, "
                "or [row, position] of bools."
            )
        return positions

    def _checked_stand_ins(self, replacement: Any) -> Mapping[int, Tensor]:
        widths = {gated.layer: gated.heads * gated.head_dim for *_, gated in self._places}
        if not isinstance(replacement, Mapping) or not all(
            isinstance(output, Tensor) for output in replacement.values()
        ):
            raise GateError("what stands in for heads is a mapping from layers to tensors.")
        for layer, tensor in replacement.items():
            if layer not in widths:
                raise GateError(f"layer {layer!r} has no heads to stand in for.")
            if tensor.ndim not in (1, 3) or tensor.shape[-1] != widths[layer]:
                raise GateError(
                    f"what stands in for the heads of layer {layer} is [channel] or [row, position, channel] "
                    f"with {widths[layer]} channels, not {list(tensor.shape)}."
                )
        return replacement

    def _checked(self, values: Any) -> Tensor:
        layers, heads = self._shape
        wanted = (
            f"this model takes [layer, head] = [{layers}, {heads}] for all rows, or "
            f"[row, layer, head] = [rows, {layers}, {heads}]."
        )
        try:
            tensor = values if isinstance(values, Tensor) else torch.as_tensor(values)
        except (TypeError, ValueError, RuntimeError) as error:
            raise GateError(f"gates must be a tensor, an array or nested lists; {wanted}") from error
        if tensor.ndim not in (2, 3) or tuple(tensor.shape[-2:]) != self._shape:
            raise GateError(f"gates of shape {list(tensor.shape)}; {wanted}")
        if tensor.is_complex():
            raise GateError("gates are real numbers.")
        if tensor.device.type == "cpu" and not bool(tensor.detach()[..., self._there].isfinite().all()):
            raise GateError("a gate is NaN or infinite; only a place without a head may be.")
        return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())
