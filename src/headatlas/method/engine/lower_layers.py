"""The layers below a changed head, which compute the same as without the change: they run once, not once per
head.

A block is a decoder layer of transformers. While the heads of a block are changed, the blocks below it return
the residual stream that was recorded at its input. The blocks that still run get the same numbers in the same
shapes, so results are the same bit for bit. `KeptStream.works` tests that on each model, because a model
may pass something from layer to layer beside the residual stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from headatlas.method.engine.memory import blocks_of
from headatlas.model import Model

__all__ = ["KeptStream", "can_keep_stream"]

#: rows and tokens of the test
_ROWS, _TOKENS = 1, 4


class _ReachedError(Exception):
    """Ends a pass after the last block that is needed."""


class KeptStream:
    """Keeps the residual stream at the input of one block at a time."""

    def __init__(self, model: Model) -> None:
        self._model = model
        #: the decoder layers in the order in which they run
        self._blocks = blocks_of(model)
        self._block_of_layer = _block_of_layer(model, self._blocks)
        self._base = 0
        self._output: Any = None

    def move_to(self, layer: int, run: Callable[[], object]) -> None:
        """Record the input of the block of `layer`; `run` runs the model as it is on the texts of the pass.
        Layers are visited from the lowest to the highest."""
        base = self._block_of_layer[layer]
        if base <= self._base:
            return
        last = self._blocks[base - 1]

        def keep(module: nn.Module, args: Any, output: Any) -> None:
            self._output = output
            raise _ReachedError

        handle = last.register_forward_hook(keep)
        try:
            with self.skipped():
                run()
        except _ReachedError:
            self._base = base
        finally:
            handle.remove()

    @contextmanager
    def skipped(self) -> Iterator[None]:
        """Inside the block the decoder layers below the recorded input do not run."""
        blocks, output = self._blocks[: self._base], self._output

        def recorded(*args: Any, **kwargs: Any) -> Any:
            return output

        forwards = [block.__dict__.get("forward") for block in blocks]  # offloaded models have their own
        try:
            for block in blocks:
                block.forward = recorded  # type: ignore[method-assign]
            yield
        finally:
            for block, forward in zip(blocks, forwards, strict=True):
                del block.forward
                if forward is not None:
                    block.forward = forward  # type: ignore[method-assign]

    def works(self) -> bool:
        """True if every layer with heads gives the same logits, bit for bit, when the blocks below it are
        skipped."""
        generator = torch.Generator().manual_seed(0)
        vocabulary = self._model.spec.vocabulary
        ids = torch.randint(vocabulary, (_ROWS, _TOKENS), generator=generator).to(self._model.device)
        rows = torch.arange(_ROWS, device=ids.device)
        last = torch.full_like(rows, _TOKENS - 1)

        def run() -> Tensor:
            return self._model.logits_at(ids, rows, last)

        plain = run()
        for layer in self._block_of_layer:
            self.move_to(layer, run)
            with self.skipped():
                if not torch.equal(run(), plain):
                    return False
        return True


def can_keep_stream(model: Model) -> bool:
    """True if blocks below a head can be skipped in this model; tested once per model and its weights."""
    key = "keeps the residual stream"
    if key not in model.remembered:
        try:
            stream = KeptStream(model)
            model.remembered[key] = stream.works()
        except (ValueError, RuntimeError, TypeError, AttributeError, LookupError, AssertionError):
            model.remembered[key] = False  # the layers are not plain blocks in a row
    return bool(model.remembered[key])


def _block_of_layer(model: Model, blocks: list[nn.Module]) -> dict[int, int]:
    """layer -> index of the block that holds its heads, for every layer with heads, in rising order.

    Raises ValueError if the layers are not in separate blocks that run in their order."""
    names = {module: name for name, module in model.hf.named_modules()}
    prefixes = [f"{names[block]}." for block in blocks]
    indices: dict[int, int] = {}
    for attention in model.anatomy.present():
        holding = [index for index, prefix in enumerate(prefixes) if attention.output.startswith(prefix)]
        if len(holding) != 1:
            raise ValueError(f"{attention.output} is in {len(holding)} blocks")
        indices[attention.layer] = holding[0]
    order = [indices[layer] for layer in sorted(indices)]
    if any(right <= left for left, right in pairwise(order)):
        raise ValueError("layers are not in separate blocks")
    return {layer: indices[layer] for layer in sorted(indices)}
