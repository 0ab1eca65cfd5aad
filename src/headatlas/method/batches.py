"""Rows of token ids as the model takes them, and in which order each seed sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headatlas.task import Row

__all__ = ["Pass", "RowTable", "draw"]


@dataclass(frozen=True, slots=True)
class Pass:
    """Rows that go through the model together, padded on the right.

    No attention mask is needed: heads that do not look ahead (which the self-check proves) never see
    what stands behind them. `members` are places in the list that the rows were chosen by; `rows`,
    `positions` and `targets` say for each target token where it is predicted and what it is, `offsets`
    its place in the target; `counts` has the number of target tokens of each row.
    """

    members: Tensor
    ids: Tensor
    rows: Tensor
    positions: Tensor
    targets: Tensor
    offsets: Tensor
    counts: Tensor
    tokens: int


class RowTable:
    """Rows side by side in one array, so that passes are cut out without a loop over tokens."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.lengths = np.array([len(row.ids) for row in rows])
        self.starts = np.array([row.start for row in rows])
        self.ids = np.zeros((len(rows), int(self.lengths.max())), dtype=np.int32)
        for place, row in enumerate(rows):
            self.ids[place, : len(row.ids)] = row.ids

    def __len__(self) -> int:
        return len(self.ids)

    def passes(self, chosen: np.ndarray, budget: int, device: torch.device | str) -> Iterator[Pass]:
        """The chosen rows in groups of similar length, each of at most `budget` tokens with its padding.

        `chosen` is [unit, width]: the rows of a unit stay together, one after the other. Repetition is
        allowed. `members` count through `chosen` row by row.
        """
        lengths = self.lengths[chosen].max(axis=1)
        order = np.argsort(-lengths, kind="stable")
        width = chosen.shape[1]
        start = 0
        while start < len(order):
            size = max(1, budget // int(lengths[order[start]] * width))
            units = order[start : start + size]
            members = (units[:, None] * width + np.arange(width)).ravel()
            yield self._pass(chosen[units].ravel(), members, device)
            start += size

    def _pass(self, chosen: np.ndarray, members: np.ndarray, device: torch.device | str) -> Pass:
        lengths, starts = self.lengths[chosen, None], self.starts[chosen, None]
        ids = self.ids[chosen, : int(lengths.max())]
        # a target is predicted one position before it
        position = np.arange(ids.shape[1] - 1)
        rows, positions = np.nonzero((position >= starts - 1) & (position < lengths - 1))

        def tensor(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)).to(device, non_blocking=True)

        return Pass(
            members=tensor(members),
            ids=tensor(ids),
            rows=tensor(rows),
            positions=tensor(positions),
            targets=tensor(ids[rows, positions + 1]),
            offsets=tensor(positions - starts[rows, 0] + 1),
            counts=tensor((lengths - starts)[:, 0]),
            tokens=ids.size,
        )


def draw(count: int, batch: int, update: int, seed: int, stage: int) -> list[int]:
    """Which of `count` rows a seed sees at an update: epoch after epoch, each in an order of its own.

    A pure function, so that nothing has to be remembered when a run goes on after a kill.
    """
    chosen: list[int] = []
    place = update * batch
    while len(chosen) < batch:
        epoch, start = divmod(place, count)
        order = np.random.default_rng([seed, stage, epoch]).permutation(count)
        taken = order[start : start + batch - len(chosen)]
        chosen += taken.tolist()
        place += len(taken)
    return chosen
