"""A hash that tells two sets of weights apart, fast enough to be taken at every run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

__all__ = ["fingerprint"]

_VALUES = 1 << 16
#: values that are summed at once
_PIECE = 1 << 22
#: integers of the same size as a value, for the checksum over all bits
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@torch.no_grad()
def fingerprint(hf: PreTrainedModel, exact: bool = False) -> str | None:
    """SHA-256 over every tensor's name, shape and up to 65,536 evenly spaced values, floats as bfloat16: a
    checkpoint that is loaded in single precision has the hash that it has in bfloat16. With `exact` the
    values are taken as they are, with a checksum over all of them: a change of one value changes the hash.

    Offloaded weights are read from where accelerate keeps them, so an offloaded model has the hash of the
    model in memory. None if some weights cannot be read; None equals no other hash.
    The step between values is odd, so that it does not run along the rows or columns of the usual matrix
    sizes.
    """
    digest = hashlib.sha256()
    offloaded = _OffloadedWeights(hf)
    for name, held in hf.state_dict().items():
        tensor = offloaded.read(name, held) if held.device.type == "meta" else held
        if tensor is None:
            return None
        floats = tensor.is_floating_point() and tensor.dtype.itemsize >= 2
        kind = "float" if floats and not exact else str(tensor.dtype)
        digest.update(f"{name} {list(tensor.shape)} {kind};".encode())
        flat = tensor.detach()
        if type(flat) is not Tensor:  # packed (torchao): by what it stands for
            flat = flat.dequantize()
        flat = flat.reshape(-1) if flat.is_contiguous() else flat.contiguous().reshape(-1)
        step = max(1, flat.numel() // _VALUES) | 1
        values = flat[::step].contiguous().cpu()
        values = values.to(torch.bfloat16) if floats and not exact else values
        digest.update(values.view(torch.uint8).numpy().tobytes())
        if exact and step > 1 and flat.dtype.itemsize in _INTEGERS and not flat.is_complex():
            # Integers add up to the same sum in any order, on any device. In pieces, because a sum in another
            # dtype first copies its input to that dtype.
            pieces = flat.view(_INTEGERS[flat.dtype.itemsize]).split(_PIECE)
            checksum = torch.stack([piece.sum(dtype=torch.int64) for piece in pieces]).sum()
            digest.update(str(int(checksum)).encode())
    return digest.hexdigest()


class _OffloadedWeights:
    """The weights that accelerate's hooks load when a module runs, by their name in the model."""

    def __init__(self, hf: nn.Module) -> None:
        #: prefix of a module's names -> the weights of that module and, for some hooks, of modules below it
        self._maps: dict[str, Mapping[str, Tensor]] = {}
        for name, module in hf.named_modules():
            for hook in _hooks(getattr(module, "_hf_hook", None)):
                if getattr(hook, "offload", False) and hook.weights_map is not None:
                    self._maps[f"{name}." if name else ""] = hook.weights_map

    def read(self, name: str, held: Tensor) -> Tensor | None:
        """The tensor that stands behind `held`, in its dtype; None if it cannot be read."""
        for prefix, weights in self._maps.items():
            if not name.startswith(prefix):
                continue
            try:
                tensor = weights[name.removeprefix(prefix)]
            except (KeyError, OSError):  # another hook may have it
                continue
            if isinstance(tensor, Tensor) and tensor.device.type != "meta" and tensor.shape == held.shape:
                return tensor.to(held.dtype)
        return None


def _hooks(hook: Any) -> Iterator[Any]:
    """A hook, or those that a SequentialHook holds."""
    if hook is not None:
        yield from getattr(hook, "hooks", (hook,))
