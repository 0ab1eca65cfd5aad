"""Reading the matrix of anything that acts as a linear layer.

`nn.Linear` stores [out, in], `Conv1D` stores [in, out], quantised layers store neither, adapters
add to what they wrap, and offloaded layers hold no weight until they are called. A linear map is
known by what it does to unit vectors, so that is the way for every kind that is not plain.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Float64, Int, Shaped
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

__all__ = [
    "bias_of",
    "columns_of",
    "exact",
    "has_plain_weight",
    "is_linear",
    "is_plain",
    "rows_of",
    "width_in",
    "width_out",
]

_BLOCK = 1024


def is_linear(module: nn.Module) -> bool:
    """A module that maps the last axis linearly: Linear, Conv1D, or a quantised or adapted one."""
    if isinstance(module, nn.Linear | Conv1D):
        return True
    sizes = (getattr(module, "in_features", None), getattr(module, "out_features", None))
    return all(isinstance(size, int) for size in sizes)


def has_plain_weight(module: nn.Module) -> bool:
    """True for a Linear or Conv1D, or a subclass, whose weight is an ordinary tensor of floats in memory."""
    if not isinstance(module, nn.Linear | Conv1D) or hasattr(module, "_hf_hook"):
        return False
    weight: Any = module.weight
    return bool(
        type(weight.data) is Tensor
        and weight.is_floating_point()
        and weight.dtype.itemsize >= 2
        and weight.device.type != "meta"
    )


def is_plain(module: nn.Module) -> bool:
    """True where the matrix can be sliced straight out of `module.weight`."""
    return type(module) in (nn.Linear, Conv1D) and has_plain_weight(module)


def width_in(module: nn.Module) -> int:
    if isinstance(module, Conv1D):
        return int(module.nx)
    return int(module.in_features)  # type: ignore[arg-type]


def exact(tensor: Shaped[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
    """In double precision, on the CPU where the device has none."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def width_out(module: nn.Module) -> int:
    if isinstance(module, Conv1D):
        return int(module.nf)
    return int(module.out_features)  # type: ignore[arg-type]


def _compute_dtype(module: nn.Module) -> torch.dtype:
    if isinstance(dtype := getattr(module, "compute_dtype", None), torch.dtype):
        return dtype
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point() and tensor.dtype.itemsize >= 2:
            return tensor.dtype
    return torch.get_default_dtype()


def _device(module: nn.Module) -> torch.device:
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.device.type != "meta":
            return tensor.device
    return torch.device("cpu")


@torch.no_grad()
def _on_units(module: nn.Module, index: Int[Tensor, " channel"]) -> Float[Tensor, "channel out"]:
    """What the module gives for the unit vectors of the input channels `index`, bias taken off."""
    device, dtype = _device(module), _compute_dtype(module)
    units = torch.zeros(len(index) + 1, width_in(module), device=device, dtype=dtype)
    units[torch.arange(len(index), device=device), index.to(device)] = 1
    out: Tensor = module.forward(units)  # not through __call__: hooks may be what is asking
    return out[:-1] - out[-1:]


@torch.no_grad()
def rows_of(module: nn.Module, channels: range) -> Float[Tensor, "channel out"]:
    """The matrix rows that read these input channels, a copy."""
    if is_plain(module):
        weight: Any = module.weight
        some = slice(channels.start, channels.stop)
        return weight[some].clone() if isinstance(module, Conv1D) else weight[:, some].clone().T
    return _on_units(module, torch.arange(channels.start, channels.stop))


@torch.no_grad()
def columns_of(module: nn.Module, index: Int[Tensor, " channel"]) -> Float[Tensor, "in channel"]:
    """The matrix columns that write the output channels `index`."""
    if is_plain(module):
        weight: Any = module.weight
        index = index.to(weight.device)
        return weight[:, index] if isinstance(module, Conv1D) else weight[index].T
    blocks = torch.arange(width_in(module)).split(_BLOCK)
    return torch.cat([_on_units(module, block)[:, index] for block in blocks])


@torch.no_grad()
def bias_of(module: nn.Module) -> Float[Tensor, " out"] | None:
    """What the module adds whatever its input, or None where that is nothing."""
    if is_plain(module):
        return module.bias  # type: ignore[return-value]
    zero = torch.zeros(1, width_in(module), device=_device(module), dtype=_compute_dtype(module))
    bias: Tensor = module.forward(zero)[0]
    return bias if bias.any() else None
