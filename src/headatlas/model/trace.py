"""One forward pass, watched: which modules ran, on what, and where attention took place.

Attention is recognised by what it computes, not by what it is called: a softmax over key
positions, seen at the level of PyTorch's operators. The module that was running at that moment is
the attention module. Fused kernels show no softmax: the model has to run its plain attention code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedModel

from headatlas.core import ModelRefusedError

__all__ = ["AttentionEvent", "Call", "Trace", "first_tensor", "hooks", "logits_of", "run_until", "trace"]


@dataclass(slots=True)
class Call:
    """One call of one module; `start` and `end` order calls and attention events in time."""

    name: str
    module: nn.Module
    start: int
    input: Tensor | None
    output: Tensor | None = None
    single: bool = False  # returned one tensor and nothing else
    end: int = -1


@dataclass(slots=True)
class AttentionEvent:
    """A softmax over key positions inside module `owner`."""

    owner: str
    time: int
    heads: int
    pattern: Float[Tensor, "row head query key"]


@dataclass(slots=True)
class Trace:
    calls: list[Call] = field(default_factory=list)
    events: list[AttentionEvent] = field(default_factory=list)
    logits: Tensor | None = None

    def of(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    def last(self, name: str) -> Call:
        return self.of(name)[-1]


def first_tensor(values: Any) -> Tensor | None:
    """The first floating tensor in (nested) call arguments or results."""
    if isinstance(values, Tensor):
        return values if values.is_floating_point() else None
    if isinstance(values, dict):
        values = tuple(values.values())
    if isinstance(values, tuple | list):
        for value in values:
            if (found := first_tensor(value)) is not None:
                return found
    return None


@contextmanager
def hooks(*handles: Any) -> Iterator[None]:
    """Hold hook handles for the length of a block and remove them whatever happens."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _ReachedError(Exception):
    """No error: raised to leave a forward pass at a module."""


def logits_of(
    hf: PreTrainedModel, ids: Int[Tensor, "row position"]
) -> Float[Tensor, "row position vocabulary"]:
    """The logits for token ids, with no cache and no gradient."""
    with torch.no_grad():
        output = hf(input_ids=ids, use_cache=False)
    if not hasattr(output, "logits"):
        raise ModelRefusedError("it gives no logits: load the class that has a language-model head.")
    logits: Tensor = output.logits
    return logits


def run_until(hf: PreTrainedModel, ids: Int[Tensor, "row position"], name: str) -> None:
    """Run the model on token ids and leave it once module `name` and its other hooks are done."""

    def hook(module: nn.Module, args: Any, output: Any) -> None:
        raise _ReachedError

    with hooks(hf.get_submodule(name).register_forward_hook(hook)):
        try:
            logits_of(hf, ids)
        except _ReachedError:
            pass


class _AttentionWatch(TorchDispatchMode):
    """Reports every softmax that looks like attention."""

    def __init__(self, rows: int, positions: int, report: Any) -> None:
        super().__init__()
        self.rows, self.positions = rows, positions
        self.report = report

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in {"_softmax", "_safe_softmax"} and result.ndim in (3, 4):
            if result.shape[-2] == self.positions and result.shape[-1] >= self.positions:
                pattern = result.reshape(self.rows, -1, *result.shape[-2:])
                self.report(pattern.shape[1], pattern)
        return result


def trace(hf: PreTrainedModel, ids: Int[Tensor, "row position"], until: str | None = None) -> Trace:
    """Run `hf` on token ids and record every module call and attention event.

    With `until`, the pass ends after that module and there are no logits.
    """
    found = Trace()
    clock = iter(range(1 << 62))
    stack: list[Call] = []

    def enter(name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            tensor = first_tensor(args)
            call = Call(name, module, next(clock), tensor if tensor is not None else first_tensor(kwargs))
            found.calls.append(call)
            stack.append(call)

        return hook

    def leave(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        call = stack.pop()
        call.output, call.single = first_tensor(output), isinstance(output, Tensor)
        call.end = next(clock)

    def report(heads: int, pattern: Tensor) -> None:
        running = [call.name for call in stack if not isinstance(call.module, nn.Softmax)]
        owner = running[-1] if running else ""
        found.events.append(AttentionEvent(owner, next(clock), heads, pattern))

    handles = []
    for name, module in hf.named_modules():
        handles.append(module.register_forward_pre_hook(enter(name), with_kwargs=True))
        # prepended, so that what is recorded is what the module itself returned
        handles.append(module.register_forward_hook(leave, with_kwargs=True, prepend=True))
    with hooks(*handles), _AttentionWatch(ids.shape[0], ids.shape[1], report):
        if until is None:
            found.logits = logits_of(hf, ids)
        else:
            run_until(hf, ids, until)
    return found
