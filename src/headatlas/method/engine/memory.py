"""How much goes through a model at once, and what to do when memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from headatlas.core import FitError
from headatlas.method.engine.determinism import with_any_order
from headatlas.method.engine.rows import Pass, RowTable
from headatlas.model import Model

__all__ = [
    "NO_ROOM",
    "CudaMemory",
    "DeviceMemory",
    "NoRoomError",
    "blocks_of",
    "checkpointed",
    "forward_budget",
    "is_out_of_memory",
    "token_budget",
    "usable_bytes",
    "with_room",
]

_Result = TypeVar("_Result")
NO_ROOM = (
    "one row at a time does not fit in memory; take a smaller dtype, a larger device or device_map='auto'."
)
_NO_MEMORY = ("out of memory", "can't allocate memory", "alloc_failed")
#: tokens of a pass that keeps nothing for a backward pass
_FORWARD_BUDGET = {"cpu": 1024, "cuda": 16_384}
#: tokens per pass on a CPU: larger passes are hardly faster there and need more memory
_CPU_BUDGET = 1024
#: of the free memory for one pass: a recorded pass keeps its own, beside that of the one that runs
_SHARE = 0.45
_TRIAL, _SMALLEST, _LARGEST = 1024, 256, 65_536


class NoRoomError(FitError):
    """Not even a pass of one row fits in memory."""

    def __init__(self) -> None:
        super().__init__(NO_ROOM)


def is_out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or any(w in str(error).lower() for w in _NO_MEMORY)


def forward_budget(model: Model) -> int:
    """Tokens that go through the model at once where nothing is kept for a backward pass."""
    return _FORWARD_BUDGET.get(model.device.type, _FORWARD_BUDGET["cpu"])


def with_room(longest: int, budget: int, work: Callable[[int], _Result]) -> _Result:
    """`work(budget)`, with half the budget when memory runs out; refused when that is less than a row."""
    while True:
        try:
            return work(budget)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        if budget <= longest:
            raise NoRoomError
        budget //= 2
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


@runtime_checkable
class DeviceMemory(Protocol):
    """What is known about the memory of the GPUs that a model is on."""

    def begin(self) -> None:
        """Count from here on."""

    def spent(self) -> list[int]:
        """Bytes that were needed at the same time since `begin`, per GPU."""

    def free(self) -> list[int]:
        """Bytes that this process may still use, per GPU."""


class CudaMemory:
    """`DeviceMemory` as PyTorch counts it."""

    def __init__(self, model: Model) -> None:
        weights = {weight.device for weight in model.hf.parameters() if weight.device.type == "cuda"}
        self._before = dict.fromkeys(weights | {model.device}, 0)

    def begin(self) -> None:
        for device in self._before:
            torch.cuda.synchronize(device)
            torch.cuda.reset_peak_memory_stats(device)
            self._before[device] = torch.cuda.memory_allocated(device)

    def spent(self) -> list[int]:
        return [torch.cuda.max_memory_allocated(device) - before for device, before in self._before.items()]

    def free(self) -> list[int]:
        return [
            usable_bytes(
                *torch.cuda.mem_get_info(device),
                torch.cuda.get_per_process_memory_fraction(device),
                torch.cuda.memory_reserved(device),
                torch.cuda.memory_allocated(device),
            )
            for device in self._before
        ]


def usable_bytes(free: int, total: int, fraction: float, reserved: int, used: int) -> int:
    """Bytes that a process may still use on a GPU, if it may use that fraction of it."""
    allowed = int(fraction * total) - reserved
    return max(0, min(free, allowed)) + reserved - used


def token_budget(
    model: Model,
    rows: RowTable,
    nll: Callable[[Pass], Float[Tensor, " row"]],
    gated: Callable[[Tensor], AbstractContextManager[None]] | None = None,
    memory: DeviceMemory | None = None,
) -> int:
    """How many tokens go through the model at once: on a GPU as many as the free memory allows.

    A trial pass with the rows that need most says what a token costs on each GPU that the model is on. A
    power of two, so that a little more or less free memory does not change the passes, and the last digits.
    `nll` gives the losses of a pass, `gated` sets the gates (`model.gates` by default).
    """
    if memory is None:
        if model.device.type != "cuda":
            return _CPU_BUDGET
        memory = CudaMemory(model)
    longest = int(rows.lengths.max())
    heavy = np.argsort(-(rows.lengths + 2 * (rows.lengths - rows.starts)), kind="stable")
    chosen = np.resize(heavy, max(1, _TRIAL // longest))
    gates = torch.full(model.spec.shape, 0.5, device=model.device, requires_grad=True)
    (trial,) = rows.passes(chosen[:, None], 10**9, model.device)

    def try_pass() -> None:
        with (gated or model.gates)(gates.expand(len(trial.ids), *gates.shape)):
            for _ in range(2):  # what is made at first use is not to be counted
                memory.begin()
                nll(trial).sum().backward()

    try:
        with_any_order(try_pass)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return longest
    room = [
        _SHARE * free / (max(1, spent) / trial.tokens)
        for spent, free in zip(memory.spent(), memory.free(), strict=True)
    ]
    fitting = 2 ** int(np.log2(max(min(room), 1)))
    return int(max(longest, min(max(fitting, _SMALLEST), _LARGEST)))


def blocks_of(model: Model) -> list[nn.Module]:
    """The layers of a model that can be checkpointed or compiled one by one."""
    return [module for module in model.hf.modules() if isinstance(module, GradientCheckpointingLayer)]


@contextmanager
def checkpointed(model: Model, wanted: bool) -> Iterator[None]:
    """Layers keep only their inputs and run again in the backward pass: slower, with far less memory.

    Not transformers' own switch, which works in training mode only and would bring dropout with it.
    """
    blocks = blocks_of(model) if wanted else []
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
