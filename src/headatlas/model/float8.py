"""Matrix products in eight bits, for a model whose weights stand still: quicker where a GPU has them.

A matrix is rounded once, with a scale for every channel; what it is multiplied with is rounded row by row on
the way, so that a row does not depend on the rows beside it. Gradients flow back through products of the same
kind, for which the matrix is kept a second time, with the scales of the other side: a matrix takes as much
memory as it does in bfloat16. Embeddings, the unembedding, norms and narrow matrices stay as they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from headatlas.model.linear import is_plain

__all__ = ["Float8Linear", "computes_in_float8", "to_float8"]

_KIND = torch.float8_e4m3fn
#: what the products ask of the sides of a matrix, and below which width they are not worth it
_MULTIPLE, _NARROW = 16, 128


def computes_in_float8(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 9)


def to_float8(hf: nn.Module) -> int:
    """Put the wide matrices of a model into eight bits; how many there were."""
    unembedding = getattr(hf, "get_output_embeddings", lambda: None)()
    wide = [
        (parent, name, child)
        for parent in hf.modules()
        for name, child in parent._modules.items()
        if type(child) is nn.Linear and child is not unembedding and is_plain(child) and _suits(child)
    ]
    made: dict[int, Float8Linear] = {}
    for parent, name, child in wide:
        key = id(child)  # `wide` holds on to it
        if key not in made:
            made[key] = Float8Linear(child)
            child.weight = None  # type: ignore[assignment]  # one matrix at a time is there twice
        setattr(parent, name, made[key])
    return len(made)


def _suits(linear: nn.Linear) -> bool:
    return all(side % _MULTIPLE == 0 and side >= _NARROW for side in linear.weight.shape)


class Float8Linear(nn.Module):
    """Stands in for a linear layer."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.compute_dtype = linear.weight.dtype
        self.weight, self.scale = map(_still, _rounded(linear.weight.detach()))
        self.back, self.back_scale = map(_still, _rounded(linear.weight.detach().T.contiguous()))
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        own = self.weight, self.scale, self.back, self.back_scale
        out: Tensor = _linear(x, *_rounded(x.detach()), *own).to(x.dtype)
        return out if self.bias is None else out + self.bias.to(out.dtype)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def _rounded(values: Tensor) -> tuple[Tensor, Tensor]:
    """([..., channel] in eight bits, [..., 1]: what to multiply with)."""
    # 448 is the largest number of the kind; not by name: the compiler takes a named number for a variable
    size = values.float().abs().amax(dim=-1, keepdim=True).clamp(min=1e-30) / 448.0
    return (values.float() / size).to(_KIND), size


def _still(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


# Operations of our own, which the compiler leaves alone: how slopes flow here it would not find out. Rounding
# is left to the compiler, which makes it part of whatever comes before.


@torch.library.custom_op("headatlas::float8_product", mutates_args=())
def _product(rows: Tensor, sizes: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    """[..., channel out] in bfloat16: rows · weightᵀ."""
    if rows.device.type != "cuda":  # the same, slowly
        return ((rows.float() @ weight.float().T) * sizes * scale.T).to(torch.bfloat16)
    flat, each = rows.reshape(-1, rows.shape[-1]), sizes.reshape(-1, 1)
    found = torch._scaled_mm(
        flat, weight.T, scale_a=each, scale_b=scale.T, out_dtype=torch.bfloat16, use_fast_accum=True
    )
    return found.view(*rows.shape[:-1], len(weight))


@_product.register_fake
def _(rows: Tensor, sizes: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return rows.new_empty(*rows.shape[:-1], len(weight), dtype=torch.bfloat16)


@torch.library.custom_op("headatlas::float8_linear", mutates_args=())
def _linear(
    x: Tensor, rows: Tensor, sizes: Tensor, weight: Tensor, scale: Tensor, back: Tensor, back_scale: Tensor
) -> Tensor:
    """The product for `rows`, which are `x` in eight bits; the slope is that of `x`."""
    return _product(rows, sizes, weight, scale)


@_linear.register_fake
def _(
    x: Tensor, rows: Tensor, sizes: Tensor, weight: Tensor, scale: Tensor, back: Tensor, back_scale: Tensor
) -> Tensor:
    return rows.new_empty(*rows.shape[:-1], len(weight), dtype=torch.bfloat16)


def _remember(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[-2:])
    ctx.kind = inputs[0].dtype


def _slopes(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
    found = _product(*_rounded(slope.contiguous()), *ctx.saved_tensors).to(ctx.kind)
    return (found, *[None] * 6)


_linear.register_autograd(_slopes, setup_context=_remember)
