"""What every experiment on a model needs: token ids to run it on, and its plain attention code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from transformers import PreTrainedModel

from headatlas.core import ModelRefusedError

__all__ = ["POSITIONS", "eager", "input_device", "random_ids", "rows_first"]

POSITIONS = 11  # length of the probe text


def _configs(config: Any) -> Iterator[Any]:
    yield config
    for key in getattr(config, "sub_configs", {}):
        if (part := getattr(config, key, None)) is not None:
            yield from _configs(part)


@contextmanager
def eager(hf: PreTrainedModel) -> Iterator[None]:
    """The plain attention code inside the block (its softmax can be seen), the former one after.

    The parts of a model that is put together from several may each have their own.
    """
    configs = [
        part for module in hf.modules() if hasattr(module, "config") for part in _configs(module.config)
    ]
    before = [(config, getattr(config, "_attn_implementation", None)) for config in configs]
    try:
        for config in configs:
            config._attn_implementation = "eager"
        yield
    finally:
        for config, implementation in before:  # setting one sets its parts: from the outside in
            config._attn_implementation = implementation


def _special_ids(config: Any) -> set[int]:
    ids: set[int] = set()
    for key, value in config.to_dict().items():
        if isinstance(value, dict):
            continue
        if key.endswith(("token_id", "token_index", "token_ids")):
            ids.update(v for v in (value if isinstance(value, list) else [value]) if isinstance(v, int))
    return ids


def input_device(hf: PreTrainedModel) -> torch.device:
    """Where token ids go in; an offloaded embedding has its weights nowhere until it is called."""
    embedding = hf.get_input_embeddings()
    runs_on = getattr(getattr(embedding, "_hf_hook", None), "execution_device", None)
    return torch.device(runs_on) if runs_on is not None else embedding.weight.device


def random_ids(
    hf: PreTrainedModel, rows: int, positions: int, seed: int = 0
) -> Int[Tensor, "{rows} {positions}"]:
    """Random ordinary token ids: no special tokens, none twice in a row if possible."""
    embedding = hf.get_input_embeddings()
    config = hf.config.get_text_config(decoder=True)
    vocabulary = min(embedding.weight.shape[0], getattr(config, "vocab_size", 1 << 62))
    special = _special_ids(config) | _special_ids(hf.config)
    tokens = [token for token in range(min(vocabulary, 50_000)) if token not in special]
    ordinary = torch.tensor(tokens or range(vocabulary))
    ordinary = ordinary.repeat(-(-positions // len(ordinary)))  # a toy vocabulary may be too small
    generator = torch.Generator().manual_seed(seed)
    picks = [torch.randperm(len(ordinary), generator=generator)[:positions] for _ in range(rows)]
    return ordinary[torch.stack(picks)].to(input_device(hf))


def rows_first(tensor: Tensor, rows: int, positions: int) -> Shaped[Tensor, "{rows} {positions} channel"]:
    """View a module's tensor as [row, position, channel], however the model lays it out."""
    shape = tensor.shape
    if shape[0] == rows and tensor.ndim >= 3 and shape[1] == positions:
        return tensor.reshape(rows, positions, -1)
    if tensor.ndim == 4 and shape[0] == rows and shape[2] == positions:
        return tensor.transpose(1, 2).reshape(rows, positions, -1)
    if shape[0] == rows * positions:
        return tensor.reshape(rows, positions, -1)
    if tensor.ndim == 3 and shape[0] == positions and shape[1] == rows:
        return tensor.transpose(0, 1)
    raise ModelRefusedError(f"a tensor of shape {tuple(shape)} has no rows and positions in it.")
