"""Random weights of published shapes, and random rows: what is fast does not depend on what is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from headatlas.task import Row

__all__ = ["SHAPES", "random_model", "random_rows"]

SHAPES: dict[str, dict[str, Any]] = {
    "SmolLM2-135M": {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": 49_152,
        "tie_word_embeddings": True,
    },
    "Llama-3.2-3B": {
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_hidden_layers": 28,
        "num_attention_heads": 24,
        "num_key_value_heads": 8,
        "vocab_size": 128_256,
        "tie_word_embeddings": True,
    },
    "Llama-3.1-8B": {
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128_256,
        "tie_word_embeddings": False,
    },
}


def random_model(shape: str, dtype: torch.dtype = torch.bfloat16, device: str = "cuda") -> Any:
    """A transformers model of that shape, the same weights each time."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            torch.manual_seed(0)
            made = LlamaForCausalLM(LlamaConfig(**SHAPES[shape], max_position_embeddings=4096, dtype=dtype))
    finally:
        torch.set_default_dtype(before)
    return made.eval().requires_grad_(False)


def random_rows(rows: int, tokens: int, targets: int, vocabulary: int) -> list[Row]:
    """So many rows of the same length, the last `targets` tokens of which are to be predicted."""
    ids = np.random.default_rng(0).integers(10, vocabulary - 10, size=(rows, tokens))
    return [Row(tuple(one.tolist()), tokens - targets) for one in ids]
