"""Passes that are recorded once and played again.

On a GPU the time of a small model goes into starting kernels one by one from Python, not into running them. A
CUDA graph holds all kernels of a pass, forward and backward, and starts them at once: the same kernels on the
same numbers, hence the same results to the last bit. Passes come in few shapes (`RowTable.passes` with
`pieces`), and each shape is recorded when it is seen for the second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from transformers import masking_utils

from headatlas.method.engine.rows import Pass
from headatlas.model import Model

__all__ = ["Recorder"]

#: recordings that are kept: the shapes that come first come most
_MOST = 64
#: of a pass, and of tensors whose shapes follow from that of the pass
_Work = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class _Recording:
    graph: Any
    group: Pass
    inputs: tuple[Tensor, ...]
    results: tuple[Tensor, Tensor]

    def play(self, group: Pass, inputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        self.group.numbers.copy_(group.numbers)
        for held, new in zip(self.inputs, inputs, strict=True):
            held.copy_(new)
        self.graph.replay()
        return self.results


class Recorder:
    """Does the work of passes, by playing a recording where there is one.

    For models that are on one GPU as a whole. A model that cannot be recorded (one that looks at numbers on
    its way) is run as always. What a pass gives is to be used before the next one.
    """

    def __init__(self, model: Model) -> None:
        devices = {weight.device for weight in model.hf.parameters()}
        self._device = model.device
        self.on = model.device.type == "cuda" and len(devices) == 1
        self._seen: set[tuple[int, int, int, int]] = set()
        self._recordings: dict[tuple[int, int, int, int], _Recording] = {}
        self._pool: Any = None

    def __call__(self, work: _Work, group: Pass, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """`work(group, *inputs)`."""
        if not self.on:
            return work(group, *inputs)
        with torch.cuda.device(self._device):
            return self._played(work, group, inputs)

    def _played(self, work: _Work, group: Pass, inputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        key = group.shape
        if key not in self._recordings and key in self._seen and len(self._recordings) < _MOST:
            self._record(work, key, group, inputs)
        if key in self._recordings:
            return self._recordings[key].play(group, inputs)
        self._seen.add(key)
        with _as_rows_are():
            return work(group, *inputs)

    def stop(self) -> None:
        """Forget all recordings, and make no more: their memory is needed, or none can be made."""
        self.on = False
        self._recordings.clear()
        self._pool = None

    def _record(
        self, work: _Work, key: tuple[int, int, int, int], group: Pass, inputs: tuple[Tensor, ...]
    ) -> None:
        held = replace(group, numbers=group.numbers.clone())
        inputs = tuple(tensor.detach().clone() for tensor in inputs)
        graph = torch.cuda.CUDAGraph()
        before = torch.cuda.current_stream()
        try:
            with _as_rows_are():
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    work(held, *inputs)  # what is made at first use is made now
                torch.cuda.current_stream().wait_stream(side)
                with torch.cuda.graph(graph, pool=self._pool):
                    results = work(held, *inputs)
        except RuntimeError:  # an operation that cannot be recorded, or too little memory for it
            torch.cuda.set_stream(before)  # which a recording that broke off does not give back
            torch.cuda.synchronize()
            self.stop()
            return
        self._pool = self._pool or graph.pool()
        self._recordings[key] = _Recording(graph, held, inputs, results)


_OWN = masking_utils.find_packed_sequence_indices, masking_utils.is_tracing
_LOCK, _depth = Lock(), 0


@contextmanager
def _as_rows_are() -> Iterator[None]:
    """No row holds several texts. transformers would look for that on the GPU at every pass, and wait for the
    answer; while a pass is recorded it cannot. Several threads may be at it: the last puts things back."""
    global _depth  # noqa: PLW0603
    with _LOCK:
        _depth += 1
        masking_utils.find_packed_sequence_indices = lambda *_, **__: None
        masking_utils.is_tracing = lambda *_, **__: False
    try:
        yield
    finally:
        with _LOCK:
            _depth -= 1
            if not _depth:
                masking_utils.find_packed_sequence_indices, masking_utils.is_tracing = _OWN
