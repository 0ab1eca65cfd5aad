"""The weights of one head: what it reads (W_V) and what it writes (W_O)."""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.model.anatomy import Attention
from headatlas.model.gate_modules import ungated
from headatlas.model.linear import bias_of, columns_of, exact, rows_of

__all__ = ["ValueOutput", "head_values", "norm_gain", "output_slice", "read_head", "value_slice"]


class ValueOutput(NamedTuple):
    """W_V and W_O of one head.

    A head moves `x @ value @ output` from where it looks to where it is. Left out are biases, norms
    (before attention, on the values, over all heads before W_O, after W_O) and positive factors
    that the model itself puts on head outputs. In latent attention `value` is the product of both
    projections, the norm between them reduced to the norm's own weights.
    """

    value: Float[Tensor, "hidden head_dim"]
    output: Float[Tensor, "head_dim hidden"]


def output_slice(hf: PreTrainedModel, found: Attention, head: int) -> Float[Tensor, "head_dim hidden"]:
    """The part of W_O that reads this head."""
    width = found.head_dim
    return rows_of(ungated(hf, found.output), range(head * width, (head + 1) * width))


def value_slice(hf: PreTrainedModel, found: Attention, head: int) -> Float[Tensor, "hidden head_dim"]:
    """The part of W_V that makes this head's values."""
    path = found.value
    last = columns_of(hf.get_submodule(path.last_linear), path.channels[head])
    if path.expand is None:
        return last
    assert path.latent is not None and path.latent_norm is not None
    first = columns_of(hf.get_submodule(path.linear), path.latent)
    gain = norm_gain(hf.get_submodule(path.latent_norm), first.shape[1])
    device = exact(first).device
    product = (exact(first) * exact(gain).to(device)) @ exact(last).to(device)
    return product.to(first.device, torch.promote_types(first.dtype, torch.float32))


def read_head(hf: PreTrainedModel, found: Attention, head: int) -> ValueOutput:
    return ValueOutput(value_slice(hf, found, head), output_slice(hf, found, head))


@torch.no_grad()
def norm_gain(norm: nn.Module, width: int) -> Float[Tensor, " {width}"]:
    """The per-channel factor of a norm, measured: some store it as weight, some as weight − 1.

    A vector of ±1 has mean square one (and mean zero, for the norms that take the mean off), so
    what comes out is the factor itself, up to the norm's epsilon.
    """
    tensors = [*norm.parameters(), *norm.buffers()]
    if any(tensor.dtype in (torch.bfloat16, torch.float16) for tensor in tensors):
        norm = deepcopy(norm).float()  # 1 + w has more digits than a half
        tensors = [*norm.parameters(), *norm.buffers()]
    like = tensors[0] if tensors else torch.zeros(())
    signs = torch.ones(width, device=like.device, dtype=like.dtype)
    signs[1::2] = -1
    both = norm(torch.stack([signs, -signs]))
    gain: Tensor = (both[0] - both[1]) / 2 * signs
    return gain


@torch.no_grad()
def head_values(
    hf: PreTrainedModel, found: Attention, head: int, x: Float[Tensor, "*batch hidden"]
) -> Float[Tensor, "*batch head_dim"]:
    """The values that this head mixes, from what its value projection was given.

    Unlike `value_slice` this keeps biases and norms: it is what the model itself computes.
    """
    path = found.value
    if path.expand is not None:
        assert path.latent is not None and path.latent_norm is not None
        x = hf.get_submodule(path.latent_norm)(_apply(hf.get_submodule(path.linear), path.latent, x))
    values = _apply(hf.get_submodule(path.last_linear), path.channels[head], x)
    return hf.get_submodule(path.norm)(values) if path.norm else values  # type: ignore[no-any-return]


def _apply(
    module: nn.Module, channels: Int[Tensor, " channel"], x: Float[Tensor, "*batch hidden"]
) -> Float[Tensor, "*batch channel"]:
    out = exact(x) @ exact(columns_of(module, channels)).to(exact(x).device)
    bias = bias_of(module)
    if bias is not None:
        out = out + exact(bias[channels.to(bias.device)]).to(out.device)
    return out.to(x)
