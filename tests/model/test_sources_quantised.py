"""Source vectors of a model whose linears hold whole numbers, as quantised ones do."""

from __future__ import annotations

import torch
from torch import nn

from headatlas import load_model
from support.tiny import build_tiny


class Whole(nn.Module):
    """A linear layer that stores bytes and a scale."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        scale = weight.abs().max() / 127
        self.weight = nn.Parameter((weight / scale).round().to(torch.int8), requires_grad=False)
        self.register_buffer("scale", scale)
        self.compute_dtype = torch.float32

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (self.weight.to(x.dtype) * self.scale.to(x.dtype)).T


def test_embeddings_are_not_rounded_to_whole_numbers():
    plain, bytes_ = build_tiny("llama"), build_tiny("llama")
    block = bytes_.model.layers[0]
    for part, names in (
        (block.self_attn, "q_proj k_proj v_proj o_proj"),
        (block.mlp, "gate_proj up_proj down_proj"),
    ):
        for name in names.split():
            setattr(part, name, Whole(getattr(part, name)))
    assert next(block.parameters()).dtype == torch.int8
    one, other = (load_model(hf, check=False).source_vectors(range(5, 40)) for hf in (plain, bytes_))
    assert other.dtype == torch.float32
    close = torch.nn.functional.cosine_similarity(one, other)
    assert float(close.min()) > 0.999
