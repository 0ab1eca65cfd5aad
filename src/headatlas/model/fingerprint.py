"""A hash that tells two sets of weights apart, fast enough to be taken at every load."""

from __future__ import annotations

import hashlib

import torch
from transformers import PreTrainedModel

__all__ = ["fingerprint"]

_VALUES = 1 << 16


@torch.no_grad()
def fingerprint(hf: PreTrainedModel, exact: bool = False) -> str | None:
    """SHA-256 over every tensor's name, shape and up to 65,536 evenly spaced values, floats as bfloat16: a
    checkpoint that is loaded in single precision has the hash that it has in bfloat16. With `exact` the
    values are taken as they are, which tells apart what differs in single precision alone.

    None where some weights are not in memory (offloaded models). The step between values is odd, so
    that it does not run along the rows or columns of the usual matrix sizes.
    """
    digest = hashlib.sha256()
    for name, tensor in hf.state_dict().items():
        if tensor.device.type == "meta":
            return None
        floats = tensor.is_floating_point() and tensor.dtype.itemsize >= 2
        kind = "float" if floats and not exact else str(tensor.dtype)
        digest.update(f"{name} {list(tensor.shape)} {kind};".encode())
        flat = tensor.detach()
        if type(flat) is not torch.Tensor:  # packed (torchao): by what it stands for
            flat = flat.dequantize()
        flat = flat.reshape(-1) if flat.is_contiguous() else flat.contiguous().reshape(-1)
        step = max(1, flat.numel() // _VALUES) | 1
        values = flat[::step].contiguous().cpu()
        values = values.to(torch.bfloat16) if floats and not exact else values
        digest.update(values.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
