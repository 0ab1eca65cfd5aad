"""Rows of token ids as the model takes them, and in which order each seed sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from headatlas.task import Row

__all__ = ["Pass", "RowTable", "Stream", "draw", "on", "round_up"]


@dataclass(frozen=True, slots=True)
class Pass:
    """Rows that go through the model together, padded on the right.

    No attention mask is needed: heads that do not look ahead (which the self-check proves) never see
    what stands behind them. `members` are places in the list that the rows were chosen by.

    A pass may be filled up to a round shape, so that few shapes are ever seen: with rows behind those of
    `members`, and with targets whose `weights` are zero. `shape` is the number of rows, their length, the
    number of target tokens, and the most target tokens of a row.
    """

    members: Int[np.ndarray, " member"]
    #: all that the properties give, one behind the other: a GPU gets it in one piece
    numbers: Int[Tensor, " number"]
    shape: tuple[int, int, int, int]
    tokens: int
    #: tokens of the longest foil of the table; 0 if no row has one
    foil_width: int = 0

    def _part(self, place: int) -> Tensor:
        rows, length, targets, _ = self.shape
        start = rows * (length + 1) + place * targets
        return self.numbers[start : start + targets]

    @property
    def ids(self) -> Int[Tensor, "row position"]:
        rows, length, *_ = self.shape
        return self.numbers[: rows * length].view(rows, length)

    @property
    def counts(self) -> Int[Tensor, " row"]:
        """The target tokens of each row."""
        rows, length, *_ = self.shape
        return self.numbers[rows * length : rows * (length + 1)]

    @property
    def rows(self) -> Int[Tensor, " target"]:
        """The row that each target is in."""
        return self._part(0)

    @property
    def positions(self) -> Int[Tensor, " target"]:
        """Where it is predicted, one position before its own."""
        return self._part(1)

    @property
    def targets(self) -> Int[Tensor, " target"]:
        """The tokens."""
        return self._part(2)

    @property
    def offsets(self) -> Int[Tensor, " target"]:
        """Its place among the targets of its row."""
        return self._part(3)

    @property
    def weights(self) -> Int[Tensor, " target"]:
        """One, or zero for those that only fill up."""
        return self._part(4)

    @property
    def foils(self) -> Int[Tensor, "row foil"]:
        """The tokens of each row's foil, -1 behind shorter ones."""
        rows = self.shape[0]
        return self.numbers[len(self.numbers) - rows * self.foil_width :].view(rows, self.foil_width)

    @property
    def width(self) -> int:
        return self.shape[3]


class RowTable:
    """Rows side by side in one array, so that passes are cut out without a loop over tokens."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.lengths = np.array([len(row.ids) for row in rows])
        self.starts = np.array([row.start for row in rows])
        self.ids = np.zeros((len(rows), int(self.lengths.max())), dtype=np.int32)
        for place, row in enumerate(rows):
            self.ids[place, : len(row.ids)] = row.ids
        self.foils = np.full((len(rows), max(len(row.foil) for row in rows)), -1, dtype=np.int32)
        for place, row in enumerate(rows):
            self.foils[place, : len(row.foil)] = row.foil

    def __len__(self) -> int:
        return len(self.ids)

    def passes(
        self,
        chosen: Int[np.ndarray, "unit width"],
        budget: int,
        device: torch.device | str,
        *,
        pieces: int = 0,
    ) -> Iterator[Pass]:
        """The chosen rows in groups of similar length, each of at most `budget` tokens with its padding.

        The rows of a unit stay together, one after the other. Repetition is allowed. `members` count through
        `chosen` row by row.

        With `pieces` there are so many groups, or more, of equally many units each, filled up to round
        shapes: whatever rows are drawn, the same few shapes come again.
        """
        lengths = self.lengths[chosen].max(axis=1)
        order = np.argsort(-lengths, kind="stable")
        width = chosen.shape[1]
        if pieces:
            most = max(1, budget // (width * int(self.lengths.max())))
            pieces = max(pieces, -(-len(order) // most))
            size = -(-len(order) // pieces)
        start = 0
        while start < len(order):
            size = size if pieces else max(1, budget // int(lengths[order[start]] * width))
            units = order[start : start + size]
            members = (units[:, None] * width + np.arange(width)).ravel()
            yield self._pass(chosen[units].ravel(), members, device, size * width if pieces else 0)
            start += size

    def _pass(self, chosen: np.ndarray, members: np.ndarray, device: torch.device | str, full: int) -> Pass:
        lengths, starts = self.lengths[chosen, None], self.starts[chosen, None]
        ids, foils = self.ids[chosen, : int(lengths.max())], self.foils[chosen]
        # a target is predicted one position before it
        position = np.arange(ids.shape[1] - 1)
        rows, positions = np.nonzero((position >= starts - 1) & (position < lengths - 1))
        tokens = ids.size
        targets: np.ndarray = ids[rows, positions + 1]
        offsets = positions - starts[rows, 0] + 1
        counts, width = (lengths - starts)[:, 0], int(offsets.max()) + 1
        weights = np.ones_like(rows)
        if full:
            spare = round_up(len(rows), 4) - len(rows)
            # never longer than the longest row: a model may have no more positions
            length = min(round_up(ids.shape[1]), int(self.lengths.max()))
            more = full - len(ids), length - ids.shape[1]
            ids = np.pad(ids, ((0, more[0]), (0, more[1])))
            counts = np.pad(counts, (0, more[0]), constant_values=1)
            foils = np.pad(foils, ((0, more[0]), (0, 0)), constant_values=-1)
            width = int((self.lengths - self.starts).max()) + 1
            offsets = np.pad(offsets, (0, spare), constant_values=width - 1)  # all in one cell: all are zero
            # the last target once more, which a model is sure to give a number to
            rows, positions, targets = (np.pad(one, (0, spare), "edge") for one in (rows, positions, targets))
            weights = np.pad(weights, (0, spare))
        parts = (ids.ravel(), counts, rows, positions, targets, offsets, weights, foils.ravel())
        numbers = torch.from_numpy(np.concatenate(parts).astype(np.int64, copy=False))
        shape = (*ids.shape, len(rows), width)
        return Pass(members, on(numbers, device), shape, tokens, foils.shape[1])


def on(numbers: Tensor, device: torch.device | str) -> Tensor:
    """The same numbers there; on a GPU without waiting for what it is at."""
    if torch.device(device).type != "cuda":
        return numbers.to(device)
    return numbers.pin_memory().to(device, non_blocking=True)


def round_up(count: int, steps: int = 8) -> int:
    """The next of so many numbers to an octave: with eight of them at most an eighth more."""
    step = 2 ** max(0, int(count).bit_length() - steps.bit_length())
    return -(-count // step) * step


class Stream(IntEnum):
    """What rows are drawn for. Draws of one seed for different streams have nothing to do with each other;
    the numbers decide which rows are drawn, so they never change."""

    FREE = 0
    PRESSED = 1
    RETAIN = 2
    FORGET = 3
    #: the other row whose outputs or prompt a row is given
    PARTNERS = 7
    #: the order in which a task's rows are chosen
    CHOICE = 9
    #: the rows that effects of heads are measured on
    EFFECTS = 11


def draw(count: int, batch: int, update: int, seed: int, stream: int) -> list[int]:
    """Which of `count` rows a seed sees at an update: epoch after epoch, each in an order of its own.

    A pure function, so that nothing has to be remembered when a run goes on after a kill.
    """
    chosen: list[int] = []
    place = update * batch
    while len(chosen) < batch:
        epoch, start = divmod(place, count)
        order = _order(count, seed, stream, epoch)
        taken = order[start : start + batch - len(chosen)]
        chosen += taken.tolist()
        place += len(taken)
    return chosen


@lru_cache(maxsize=256)  # consecutive updates share an epoch's order
def _order(count: int, seed: int, stream: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, stream, epoch]).permutation(count)
