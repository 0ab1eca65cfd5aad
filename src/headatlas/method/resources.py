"""What a fit borrows from the model and the machine, and gives back: frozen weights, fixed order, memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from headatlas.method.batches import RowTable
from headatlas.method.likelihood import is_out_of_memory, row_nll
from headatlas.model import Model

__all__ = [
    "allow_any_order",
    "can_checkpoint",
    "checkpointed",
    "fit_conditions",
    "token_budget",
]

_DETERMINISTIC: Any = torch.utils.deterministic
#: tokens per pass on a CPU: larger passes are hardly faster there and need more memory
_CPU_BUDGET = 1024
#: up to this length the plain attention code beats PyTorch's fused one on a CPU, mostly going backward
_SHORT = 256
_TRIAL, _SMALLEST, _LARGEST = 1024, 256, 65_536


@contextmanager
def fit_conditions(model: Model, longest: int) -> Iterator[None]:
    """Weights that take no gradient; on a GPU algorithms that add in a fixed order, on a CPU attention
    code that is quick for rows of at most `longest` tokens."""
    learning = [weight for weight in model.hf.parameters() if weight.requires_grad]
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    filling = _DETERMINISTIC.fill_uninitialized_memory
    on_gpu = model.device.type == "cuda"
    plain = model.device.type == "cpu" and longest <= _SHORT and _uses_fused_attention(model)
    try:
        for weight in learning:
            weight.requires_grad_(False)
        if on_gpu:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True)
            # hundreds of small kernels per pass, for memory that is written to anyway
            _DETERMINISTIC.fill_uninitialized_memory = False
        with warnings.catch_warnings(), model.plain_attention() if plain else nullcontext():
            if on_gpu:  # `GateFit.any_order` says it, not a warning at every update
                warnings.filterwarnings("ignore", message=".*deterministic.*")
            yield
    finally:
        if on_gpu:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            _DETERMINISTIC.fill_uninitialized_memory = filling
        for weight in learning:
            weight.requires_grad_(True)


def _uses_fused_attention(model: Model) -> bool:
    return getattr(model.hf.config, "_attn_implementation", None) == "sdpa"


def allow_any_order(error: RuntimeError) -> bool:
    """If a model uses an operation that has no form with a fixed order, let it: the last digits of its
    gates may then differ from run to run."""
    if "deterministic" not in str(error) or torch.is_deterministic_algorithms_warn_only_enabled():
        return False
    torch.use_deterministic_algorithms(True, warn_only=True)
    return True


def token_budget(model: Model, rows: RowTable) -> int:
    """How many tokens go through the model at once: on a GPU as many as the free memory allows.

    A trial pass with the rows that need most says what a token costs on each GPU that the model is on. A
    power of two, so that a little more or less free memory does not change the passes, and the last digits.
    """
    if model.device.type != "cuda":
        return _CPU_BUDGET
    longest = int(rows.lengths.max())
    heavy = np.argsort(-(rows.lengths + 2 * (rows.lengths - rows.starts)), kind="stable")
    chosen = np.resize(heavy, max(1, _TRIAL // longest))
    gates = torch.full(model.spec.shape, 0.5, device=model.device, requires_grad=True)
    devices = {weight.device for weight in model.hf.parameters() if weight.device.type == "cuda"} | {
        model.device
    }
    (trial,) = rows.passes(chosen[:, None], 10**9, model.device)
    before = {}
    try:
        with model.gates(gates):
            with torch.no_grad():  # what is tried once per model is not to be counted
                row_nll(model, trial)
            for device in devices:
                torch.cuda.synchronize(device)
                torch.cuda.reset_peak_memory_stats(device)
                before[device] = torch.cuda.memory_allocated(device)
            row_nll(model, trial).sum().backward()
    except RuntimeError as error:
        if allow_any_order(error):
            return token_budget(model, rows)
        if not is_out_of_memory(error):
            raise
        return longest
    room = []
    for device in devices:
        each = max(1, torch.cuda.max_memory_allocated(device) - before[device]) / trial.tokens
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        room.append(0.6 * (torch.cuda.mem_get_info(device)[0] + unused) / each)
    fitting = 2 ** int(np.log2(max(min(room), 1)))
    return int(max(longest, min(max(fitting, _SMALLEST), _LARGEST)))


def _blocks(model: Model) -> list[nn.Module]:
    return [module for module in model.hf.modules() if isinstance(module, GradientCheckpointingLayer)]


def can_checkpoint(model: Model) -> bool:
    return bool(_blocks(model))


@contextmanager
def checkpointed(model: Model, wanted: bool) -> Iterator[None]:
    """Layers keep only their inputs and run again in the backward pass: slower, with far less memory.

    Not transformers' own switch, which works in training mode only and would bring dropout with it.
    """
    blocks = _blocks(model) if wanted else []
    own = [block.__dict__.get("forward") for block in blocks]  # of offloaded models, for one
    try:
        for block in blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)  # type: ignore[method-assign]
        yield
    finally:
        for block, before in zip(blocks, own, strict=True):
            del block.forward
            if before is not None:
                block.forward = before  # type: ignore[method-assign]
