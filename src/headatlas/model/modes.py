"""Modes of a model that hold for the length of a block: eval mode, and single precision."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["eval_mode", "is_dtype_error", "single_precision"]


@contextmanager
def eval_mode(hf: nn.Module) -> Iterator[None]:
    """Inside the block no module is in train mode: dropout would add noise to every number. Afterwards those
    that were are again, one by one, as a user may train parts of a model only."""
    training = [module for module in hf.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def single_precision(module: nn.Module) -> Iterator[bool]:
    """Inside the block all half-precision weights and buffers are in float32; afterwards they are the same
    tensors as before. Yields whether any were.

    Quantized and offloaded modules stay as they are.
    """
    tensors = [*module.parameters(), *module.buffers()]
    halves = [tensor for tensor in tensors if tensor.dtype in (torch.bfloat16, torch.float16)]
    is_plain = all(type(tensor.data) is Tensor for tensor in tensors) and not any(
        hasattr(part, "_hf_hook") for part in module.modules()
    )
    if not halves or not is_plain or any(t.dtype.itemsize < 2 for t in tensors if t.ndim > 1):
        yield False
        return
    before = [tensor.data for tensor in halves]
    try:
        for tensor in halves:
            tensor.data = tensor.data.float()
        yield True
    finally:
        for tensor, data in zip(halves, before, strict=True):
            tensor.data = data


def is_dtype_error(error: RuntimeError) -> bool:
    """True if a model mixed in numbers of another dtype, as those that make half-precision constants do under
    `single_precision`."""
    return re.search(r"dtype|(scalar|input|weight|bias) type", str(error), re.IGNORECASE) is not None
