"""Is a token among the top k of the vocabulary? Exactly, for millions of questions, mostly without looking
at the vocabulary.

A head gives every vocabulary token v the number a · W_O · u_v. A target t is among the top k if fewer than
k other tokens reach its number; among the bottom k likewise. **A tie counts against the target**, so a head
that writes nothing has nothing on top.

Most answers are no, and a no needs only k witnesses. So the vocabulary is asked in blocks, shuffled once, and
a row is dropped as soon as k tokens above its target and k below it are found. Numbers are single precision
with a bound on their error; what the bound leaves open at the end is worked out again with a smaller
bound, and then in double precision. Nothing is estimated: the answers are those of double precision
throughout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headatlas.core import FitError
from headatlas.model.linear import exact

__all__ = ["TopK", "Vocabulary", "full_precision", "in_top"]

#: tokens of the first blocks, and of all later ones: most rows are gone after few
_FIRST_BLOCKS, _BLOCK = (1024, 3072, 8192), 16_384
#: relative rounding error of single precision
_ROUND = 2.0**-24
#: numbers that are made at once: on a CPU what its cache holds
_CELLS = {"cpu": 1 << 21, "cuda": 1 << 27}
#: rows that are worked out again at once
_TOGETHER = 1024


@contextmanager
def full_precision() -> Iterator[None]:
    """No shortened products (TF32, autocast), whatever the caller's settings are: the bounds need that."""
    plain = (torch.autocast(device, enabled=False) for device in ("cpu", "cuda"))
    with _single_products(), torch.no_grad(), next(plain), next(plain):
        yield


@contextmanager
def _single_products() -> Iterator[None]:
    """PyTorch has two ways to say it, and refuses the older one after the newer was used."""
    places: list[Any] = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]  # type: ignore[attr-defined]
    newer = False
    try:
        before: Any = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
    except RuntimeError:
        newer, before = True, [place.fp32_precision for place in places]
        for place in places:
            place.fp32_precision = "ieee"
    try:
        yield
    finally:
        if newer:
            for place, precision in zip(places, before, strict=True):
                place.fp32_precision = precision
        else:
            torch.set_float32_matmul_precision(before)


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The unembedding [hidden, token] made ready for many questions."""

    weight: Tensor  # in the weights' own dtype
    blocks: tuple[Tensor, ...]  # times `scale`, in single precision, shuffled: counting needs no order
    order: Tensor  # the tokens in the order of the blocks
    scale: float
    longest: float  # the largest norm of a column of a block

    def top(self, rows: Tensor, count: int) -> Tensor:
        """[row, count]: the tokens with the highest numbers of each row [row, hidden], the highest first, in
        single precision."""
        best, which = torch.empty(len(rows), 0, device=rows.device), self.order[:0].expand(len(rows), 0)
        start = 0
        for block in self.blocks:
            numbers = torch.cat([best, rows @ block], dim=1)
            tokens = self.order[start : start + block.shape[1]].expand(len(rows), -1)
            tokens = torch.cat([which, tokens], dim=1)
            places = numbers.topk(min(count, numbers.shape[1]), dim=1).indices
            best, which = numbers.gather(1, places), tokens.gather(1, places)
            start += block.shape[1]
        return which

    def columns(self, tokens: Tensor) -> Tensor:
        """[hidden, token] of these tokens, scaled, in double precision."""
        return exact(self.weight[:, tokens]) * self.scale

    @classmethod
    def of(cls, unembedding: Tensor) -> Vocabulary:
        size = unembedding.shape[1]
        order = torch.randperm(size, generator=torch.Generator().manual_seed(0)).to(unembedding.device)
        sizes: list[int] = []
        rest = size
        while rest:
            sizes.append(min(rest, _FIRST_BLOCKS[len(sizes)] if len(sizes) < len(_FIRST_BLOCKS) else _BLOCK))
            rest -= sizes[-1]
        longest = max(float(exact(part).norm(dim=0).max()) for part in unembedding.split(_BLOCK, dim=1))
        if not 0 < longest < torch.inf:
            raise FitError("the unembedding holds no numbers, or nothing but zeros.")
        scale = 2.0 ** -round(math.log2(longest))  # exact, and far from what single precision can hold
        blocks = tuple(
            (exact(unembedding[:, part]) * scale).float().contiguous() for part in order.split(sizes)
        )
        return cls(unembedding, blocks, order, scale, longest * scale * (1 + 1e-5))

    @property
    def size(self) -> int:
        return int(self.weight.shape[1])


class TopK:
    """Answers, head by head, whether targets are in the top k and in the bottom k of what heads write.

    `targets` and `k` have one entry per row.
    """

    def __init__(self, vocabulary: Vocabulary, targets: Tensor, k: Tensor) -> None:
        self._vocabulary, self._targets, self._k = vocabulary, targets, k
        different, self._target = targets.unique(return_inverse=True)
        self._vectors = vocabulary.columns(different).float()
        self._cells = _CELLS.get(targets.device.type, _CELLS["cpu"])
        self._answers: dict[Any, Tensor] = {}
        self._waiting: list[tuple[Any, Tensor, Tensor]] = []

    @full_precision()
    def ask(self, key: Any, inner: Tensor, output: Tensor) -> None:
        """Rows of numbers inner · output · unembedding: `inner` is [row, head_dim], `output` [head_dim,
        hidden]; both are taken in double precision."""
        inner, output = _sized(exact(inner), 1), _sized(exact(output), (0, 1))
        self._answers[key] = torch.zeros(2, len(inner), dtype=torch.bool, device=inner.device)
        if not bool(output.any()):
            return  # nothing is written: all tie
        left, above, below = self._compared(inner, output)
        verdict, unsure = _verdict(above[left], below[left], self._k[left], self._vocabulary.size - 1)
        self._answers[key][:, left] = verdict
        left = left[unsure]
        if len(left):
            self._waiting.append((key, left, inner[left] @ output))
        if sum(len(rows) for _, rows, _ in self._waiting) >= _TOGETHER:
            self._settle()

    @full_precision()
    def answers(self) -> dict[Any, Tensor]:
        """key -> [top or bottom, row] for all that was asked."""
        self._settle()
        return self._answers

    def _compared(self, inner: Tensor, output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(rows that were compared with all tokens, and for all rows how many of the tokens that they were
        compared with are surely above and surely below the target)."""
        single, written = inner.float(), output.float()
        own = torch.linalg.vecdot(single, (written @ self._vectors).T[self._target]).double()
        # A product of three is wrong by at most so many roundings of the sizes that go into it: that of the
        # target is, and that of another token; and as much again for safety.
        roundings = 4 * (len(output) + output.shape[1] + 8)
        error = roundings * _ROUND * inner.norm(dim=1) * output.norm() * self._vocabulary.longest
        low, high = _around(own, error)
        above, below = torch.zeros(2, len(inner), device=inner.device)
        left = inner.any(1).nonzero()[:, 0]  # a row of zeros ties with all
        for block in self._vocabulary.blocks:
            some, factor = single[left], written @ block if len(left) >= len(written) else block
            if factor is block:  # few rows: the cheaper order of the three factors
                some = some @ written
            each = max(1, self._cells // block.shape[1])
            for rows, part in zip(left.split(each), some.split(each), strict=True):
                numbers = part @ factor
                above[rows] += _count(torch.gt, numbers, high[rows])
                below[rows] += _count(torch.lt, numbers, low[rows])
            left = left[torch.minimum(above[left], below[left]) < self._k[left]]
            if not len(left):
                break
        return left, above, below

    def _settle(self) -> None:
        """Work out the rows that wait, of many heads together."""
        if not self._waiting:
            return
        rows = torch.cat([vectors for _, _, vectors in self._waiting])
        places = torch.cat([left for _, left, _ in self._waiting])
        parts = zip(rows.split(_TOGETHER), places.split(_TOGETHER), strict=True)
        each = [
            _settled(some, self._vocabulary, self._targets[place], self._k[place]) for some, place in parts
        ]
        found, start = torch.cat(each, dim=1), 0
        for key, left, _ in self._waiting:
            self._answers[key][:, left] = found[:, start : start + len(left)]
            start += len(left)
        self._waiting = []


def in_top(
    inner: Tensor, output: Tensor, vocabulary: Vocabulary, targets: Tensor, k: Tensor
) -> tuple[Tensor, Tensor]:
    """(is each target in the top k, is it in the bottom k): the questions of one head."""
    one = TopK(vocabulary, targets, k)
    one.ask(0, inner, output)
    top, bottom = one.answers()[0]
    return top, bottom


def _verdict(above: Tensor, below: Tensor, k: Tensor, others: int) -> tuple[Tensor, Tensor]:
    """([top or bottom, row], [row]: is one of them not sure?) from how many of the other tokens are surely
    above the target and surely below it."""
    top, bottom = others - below < k, others - above < k
    return torch.stack([top, bottom]), (~top & (above < k)) | (~bottom & (below < k))


def _settled(rows: Tensor, vocabulary: Vocabulary, targets: Tensor, k: Tensor) -> Tensor:
    """[top or bottom, row] from the whole vocabulary; `rows` is [row, hidden] in double precision."""
    own = torch.linalg.vecdot(rows, vocabulary.columns(targets).T)
    size = rows.norm(dim=1) * vocabulary.longest
    low, high = _around(own, (rows.shape[1] + 8) * _ROUND * size)
    single = rows.float()
    above, below = torch.zeros(2, len(rows), device=rows.device)
    for block in vocabulary.blocks:
        numbers = single @ block
        above += _count(torch.gt, numbers, high)
        below += _count(torch.lt, numbers, low)
    verdict, open_ = _verdict(above, below, k, vocabulary.size - 1)
    unsure = open_.nonzero()[:, 0]
    if len(unsure):
        tie = 4 * rows.shape[1] * 2.0**-53 * size[unsure]
        verdict[:, unsure] = _exactly(rows[unsure], vocabulary, own[unsure], tie) - 1 < k[unsure]
    return verdict


def _exactly(rows: Tensor, vocabulary: Vocabulary, own: Tensor, tie: Tensor) -> Tensor:
    """[top or bottom, row]: how many tokens, the target among them, reach its number from above and from
    below, in double precision; numbers that differ by no more than `tie`, its rounding, are the same."""
    counts = torch.zeros(2, len(rows), dtype=torch.long, device=rows.device)
    for part in vocabulary.weight.split(_BLOCK, dim=1):
        numbers = rows @ (exact(part) * vocabulary.scale)
        counts[0] += (numbers >= (own - tie)[:, None]).sum(1)
        counts[1] += (numbers <= (own + tie)[:, None]).sum(1)
    return counts


def _sized(values: Tensor, axes: int | tuple[int, int]) -> Tensor:
    """Values times powers of two that bring their norm near one: no order changes, nothing overflows."""
    norm = values.norm(dim=axes, keepdim=True)
    if not bool(norm.isfinite().all()):
        raise FitError("a head's weights or what it reads are no numbers (NaN or infinite).")
    return values * torch.exp2(-norm.clamp(min=1e-300).log2().round())


def _count(compare: Any, numbers: Tensor, bound: Tensor) -> Tensor:
    """[row]: how many numbers lie beyond the row's bound. Ones and zeros as floats are added many times
    faster than truth values are, and exactly."""
    found: Tensor = compare(numbers, bound, out=torch.empty_like(numbers)).sum(1)
    return found


def _around(own: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
    """Single-precision bounds below and above `own`, rounded outwards."""
    low, high = (own - error).float()[:, None], (own + error).float()[:, None]
    return low.nextafter(torch.full_like(low, -torch.inf)), high.nextafter(torch.full_like(high, torch.inf))
