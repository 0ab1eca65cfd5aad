"""Conditions of work with gradients: frozen weights and, on a GPU, a fixed order of addition."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import torch

from headatlas.model import Model

__all__ = ["allow_any_order", "fit_conditions", "with_any_order"]

_Result = TypeVar("_Result")
_DETERMINISTIC: Any = torch.utils.deterministic
#: up to this length the plain attention code beats PyTorch's fused one on a CPU, mostly going backward
_SHORT = 256


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
            if on_gpu:  # `PassRunner.any_order` says it, not a warning at every update
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


def with_any_order(work: Callable[[], _Result]) -> _Result:
    """`work()`; again without a fixed order of addition if the model has an operation that needs that.

    The second call comes after the `except` block: inside it the traceback would keep the tensors of the
    first call alive.
    """
    try:
        return work()
    except RuntimeError as error:
        if not allow_any_order(error):
            raise
    return work()
