"""Small tools that several tests share."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from headatlas.model import Model, load_model
from support.tiny import build_tiny, sample_ids

__all__ = ["KINDS", "LAYOUTS", "layout_marks", "model_of", "sample_ids", "shared_model"]

#: One model type for each way in which heads can be laid out, and overrides that bring it about.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "separate, full": ("llama", {"num_key_value_heads": 4}),
    "separate, grouped, head_dim != hidden/heads": ("llama", {}),
    "separate, multi-query": ("llama", {"num_key_value_heads": 1}),
    "separate, biases": ("qwen2", {}),
    "Conv1D, fused thirds": ("gpt2", {}),
    "fused, interleaved by head": ("gpt_neox", {}),
    "fused, interleaved by head, alibi": ("bloom", {}),
    "fused, grouped blocks": ("falcon", {}),
    "fused, multi-query": (
        "falcon",
        {"new_decoder_architecture": False, "multi_query": True, "num_kv_heads": 1},
    ),
    "fused, grouped thirds": ("phi3", {}),
    "fused, model-parallel order": ("codegen", {}),
    "parallel block": ("gptj", {}),
    "latent": ("deepseek_v3", {}),
    "mixture of experts": ("mixtral", {}),
    "hybrid with linear attention": ("qwen3_next", {}),
    "hybrid with state space": ("jamba", {}),
    "attention beside state space": ("falcon_h1", {}),
    "sinks": ("gpt_oss", {}),
    "gated output": ("afmoe", {}),
    "normed values, shared between layers": ("gemma4", {}),
    "norm before the output projection": ("bitnet", {}),
    "heads differ from layer to layer": ("laguna", {}),
    "output projection outside": ("bert", {}),
}

_QUICK = {
    "separate, grouped, head_dim != hidden/heads",
    "Conv1D, fused thirds",
    "fused, interleaved by head",
    "fused, grouped blocks",
    "latent",
    "hybrid with state space",
}


def layout_marks(kind: str) -> tuple[pytest.MarkDecorator, ...]:
    """`make check` covers six kinds, `make test` all."""
    return () if kind in _QUICK else (pytest.mark.slow,)


#: The kinds as parameters of a test.
LAYOUTS = [pytest.param(kind, marks=layout_marks(kind)) for kind in KINDS]


def model_of(kind: str, **options: Any) -> Model:
    """A proved tiny model of one of the `KINDS`."""
    model_type, overrides = KINDS[kind]
    return load_model(build_tiny(model_type, **overrides), **options)


@functools.cache
def shared_model(kind: str) -> Model:
    """The same for all tests of a process, which leave it as it is; the self-check is left out."""
    return model_of(kind, check=False)


def logits(model: Model, ids: torch.Tensor) -> torch.Tensor:
    """With gradients, without cache."""
    found: torch.Tensor = model.hf(input_ids=ids, use_cache=False).logits
    return found
