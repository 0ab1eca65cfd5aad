"""Blocks of a model as compiled code, for long fits on a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

import torch

from headatlas.method.engine.likelihood import token_nll
from headatlas.method.engine.memory import blocks_of, is_out_of_memory
from headatlas.model import Model

__all__ = ["BlockCompiler", "is_compiler_error"]

_COMPILER = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx", "triton")
_SAID = (r"\s*Online softmax is disabled", r"The \.grad attribute of a Tensor that is not a leaf")
#: a number of rows that happens to be the number of heads is no reason to make code for that alone
_DUCKS: Any = torch.fx.experimental._config
#: several models in one process have code of their own each
_DYNAMO: Any = torch._dynamo.config
#: numbers of a stage (tokens × layers × width) from which on compiled blocks save more seconds than they take
#: to make: some 150 picoseconds for each number, on an H200, with large models and small ones
_LONG = 2e11


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
        blocks = blocks_of(model) if model.device.type in devices and numbers >= _LONG else []
        if any("forward" in block.__dict__ for block in blocks):
            blocks = []
        options = {"dynamic": True, **options}
        self._forwards = [(block, torch.compile(block.forward, **options)) for block in blocks]
        self.token_loss = torch.compile(token_nll, **options) if blocks else token_nll

    def __bool__(self) -> bool:
        return bool(self._forwards)

    def give_up(self) -> None:
        self._forwards, self.token_loss = [], token_nll

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
