"""What a fit borrows from the model and the machine, and gives back: frozen weights, fixed order, memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch

from headatlas.method.batches import RowTable
from headatlas.method.likelihood import row_nll
from headatlas.model import Model

__all__ = ["checkpointed", "fit_conditions", "is_out_of_memory", "token_budget"]

#: tokens per pass on a CPU: larger passes are hardly faster there and need more memory
_CPU_BUDGET = 1024
#: up to this length the plain attention code beats PyTorch's fused one on a CPU, mostly going backward
_SHORT = 256
_TRIAL, _LARGEST = 1024, 65_536


@contextmanager
def fit_conditions(model: Model, longest: int) -> Iterator[None]:
    """Weights that take no gradient; on a GPU algorithms that add in a fixed order, on a CPU attention
    code that is quick for rows of at most `longest` tokens."""
    learning = [weight for weight in model.hf.parameters() if weight.requires_grad]
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    on_gpu = model.device.type == "cuda"
    try:
        for weight in learning:
            weight.requires_grad_(False)
        if on_gpu:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True, warn_only=True)
        plain = model.device.type == "cpu" and longest <= _SHORT and _uses_fused_attention(model)
        with warnings.catch_warnings(), model.plain_attention() if plain else nullcontext():
            if on_gpu:  # an operation without a deterministic form is used all the same
                warnings.filterwarnings("ignore", message=".*deterministic.*")
            yield
    finally:
        if on_gpu:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        for weight in learning:
            weight.requires_grad_(True)


def _uses_fused_attention(model: Model) -> bool:
    return getattr(model.hf.config, "_attn_implementation", None) == "sdpa"


def is_out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def token_budget(model: Model, rows: RowTable) -> int:
    """How many tokens go through the model at once: on a GPU as many as the free memory allows."""
    if model.device.type != "cuda":
        return _CPU_BUDGET
    chosen = np.resize(np.argsort(-rows.lengths, kind="stable"), max(1, _TRIAL // int(rows.lengths.max())))
    gates = torch.full(model.spec.shape, 0.5, device=model.device, requires_grad=True)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    (trial,) = rows.passes(chosen[:, None], 10**9, model.device)
    try:
        with model.gates(gates):
            row_nll(model, trial).sum().backward()
    except torch.OutOfMemoryError:
        return int(rows.lengths.max())
    each = max(1, torch.cuda.max_memory_allocated() - before) / trial.tokens
    free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return int(min(max(0.6 * free / each, int(rows.lengths.max())), _LARGEST))


@contextmanager
def checkpointed(model: Model, wanted: bool) -> Iterator[None]:
    """Layers keep only their inputs and run again in the backward pass: slower, with far less memory.

    transformers does that in training mode only, which would bring dropout with it; so only the layers
    themselves are put into that mode, nothing inside them.
    """
    if not wanted:
        yield
        return
    layers = [
        module for module in model.hf.modules() if getattr(module, "gradient_checkpointing", None) is not None
    ]
    before = [(module.gradient_checkpointing, module.training) for module in layers]
    try:
        model.hf.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        for module in layers:
            module.training = True
        yield
    finally:
        for module, (flag, training) in zip(layers, before, strict=True):
            module.gradient_checkpointing, module.training = flag, training
