"""What a fit borrows from the model and the machine, and gives back: frozen weights, fixed order, memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from traceback import walk_tb
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from headatlas.method.engine.likelihood import is_out_of_memory, row_nll, token_nll
from headatlas.method.engine.rows import RowTable
from headatlas.model import Model

__all__ = [
    "BlockCompiler",
    "allow_any_order",
    "can_checkpoint",
    "checkpointed",
    "fit_conditions",
    "is_compiler_error",
    "token_budget",
    "with_any_order",
]

_Result = TypeVar("_Result")
_COMPILER = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx", "triton")
_SAID = (r"\s*Online softmax is disabled", r"The \.grad attribute of a Tensor that is not a leaf")
#: a number of rows that happens to be the number of heads is no reason to make code for that alone
_DUCKS: Any = torch.fx.experimental._config
#: several models in one process have code of their own each
_DYNAMO: Any = torch._dynamo.config
_DETERMINISTIC: Any = torch.utils.deterministic
#: tokens per pass on a CPU: larger passes are hardly faster there and need more memory
_CPU_BUDGET = 1024
#: up to this length the plain attention code beats PyTorch's fused one on a CPU, mostly going backward
_SHORT = 256
#: of the free memory for one pass: a recorded pass keeps its own, beside that of the one that runs
_SHARE = 0.45
#: numbers of a stage (tokens × layers × width) from which on compiled blocks save more seconds than they take
#: to make: some 150 picoseconds for each number, on an H200, with large models and small ones
_LONG = 2e11
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


def token_budget(
    model: Model,
    rows: RowTable,
    gated: Callable[[Tensor], AbstractContextManager[None]] | None = None,
    each_nll: Callable[[Tensor, Tensor], Tensor] = token_nll,
) -> int:
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

    def try_pass() -> None:
        with (gated or model.gates)(gates.expand(len(trial.ids), *gates.shape)):
            for _ in range(2):  # what is made at first use is not to be counted
                for device in devices:
                    torch.cuda.synchronize(device)
                    torch.cuda.reset_peak_memory_stats(device)
                    before[device] = torch.cuda.memory_allocated(device)
                row_nll(model, trial, each_nll=each_nll).sum().backward()

    try:
        with_any_order(try_pass)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return longest
    room = []
    for device in devices:
        each = max(1, torch.cuda.max_memory_allocated(device) - before[device]) / trial.tokens
        room.append(_SHARE * _free(device) / each)
    fitting = 2 ** int(np.log2(max(min(room), 1)))
    return int(max(longest, min(max(fitting, _SMALLEST), _LARGEST)))


def _free(device: torch.device) -> int:
    """Bytes that this process may still use there."""
    reserved, used = torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)
    free, total = torch.cuda.mem_get_info(device)
    allowed = int(torch.cuda.get_per_process_memory_fraction(device) * total) - reserved
    return max(0, min(free, allowed)) + reserved - used


def _blocks(model: Model) -> list[nn.Module]:
    return [module for module in model.hf.modules() if isinstance(module, GradientCheckpointingLayer)]


def can_checkpoint(model: Model) -> bool:
    return bool(_blocks(model))


class BlockCompiler:
    """Blocks of a model as compiled code: one block is compiled and its code serves all that are like it, so
    that the first update comes in seconds.

    For long work on a GPU, and only where blocks are as the model made them (those of offloaded models are
    not). The gates must be `Model.fixed_gates`. Whatever goes wrong while code is made, `give_up` turns it
    off.
    """

    def __init__(
        self, model: Model, numbers: float, devices: tuple[str, ...] = ("cuda",), **options: Any
    ) -> None:
        blocks = _blocks(model) if model.device.type in devices and numbers >= _LONG else []
        if any("forward" in block.__dict__ for block in blocks):
            blocks = []
        options = {"dynamic": True, **options}
        self._forwards = [(block, torch.compile(block.forward, **options)) for block in blocks]
        self.each_nll = torch.compile(token_nll, **options) if blocks else token_nll

    def __bool__(self) -> bool:
        return bool(self._forwards)

    def give_up(self) -> None:
        self._forwards, self.each_nll = [], token_nll

    @contextmanager
    def __call__(self) -> Iterator[None]:
        forwards = self._forwards
        try:
            for block, forward in forwards:
                block.forward = forward
            quiet = warnings.catch_warnings()
            with quiet, _DUCKS.patch(use_duck_shape=False), _DYNAMO.patch(recompile_limit=256):
                for said in _SAID:  # of the compiler's own doings
                    warnings.filterwarnings("ignore", message=said)
                yield
        finally:
            for block, _ in forwards:
                del block.forward


def is_compiler_error(error: Exception) -> bool:
    """Did no code come of it (as against: the code, or the model, failed)?"""
    if isinstance(error, RuntimeError) and (is_out_of_memory(error) or "deterministic" in str(error)):
        return False
    frames = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    made = frames[-1].startswith("torch._inductor.runtime.compile_tasks")  # the code that came of it
    return not made and any(name.startswith(_COMPILER) for name in (type(error).__module__, frames[-1]))


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
