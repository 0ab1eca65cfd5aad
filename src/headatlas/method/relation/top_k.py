"""Is a token among the top k of the vocabulary? Exactly, for millions of questions, mostly without looking
at the vocabulary.

A head gives every vocabulary token v the number a · W_O · u_v. A target t is among the top k if fewer than
k other tokens reach its number; among the bottom k likewise. **A tie counts against the target**, so a head
that writes nothing has nothing on top.

Most answers are no, and a no needs only k witnesses. So the vocabulary is asked in blocks, shuffled once, and
a row is dropped as soon as k tokens above its target and k below it are found. First all rows of a head are
asked together, by a matrix of the head and the block; then the few that are left, of many heads together, by
what they write into the stream, which is more work for a row and has a smaller error. Numbers are single
precision with a bound on their error; what the bound leaves open at the end is worked out in double
precision. Nothing is estimated: the answers are those of double precision throughout.

On a GPU the heads of a layer are asked at once, and blocks are made when they are needed: what counts there
is how often something is started, and memory. On a CPU it is what the cache holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headatlas.core import FitError
from headatlas.model.linear import exact

__all__ = ["TopK", "Vocabulary", "full_precision"]

#: tokens of the first blocks, and of all later ones: most rows are gone after few
_FIRST_BLOCKS, _BLOCK = (1024, 3072, 8192), 8192
#: relative rounding error of single precision
_ROUND = 2.0**-24
#: numbers that are made at once
_CELLS = {"cpu": 1 << 21, "cuda": 1 << 24}
#: rows of several heads that are asked at once
_TOGETHER = {"cpu": 1024, "cuda": 4096}
#: rows whose targets are looked up at once
_FEW = 1024
#: blocks that are kept (all of them on a CPU)
_KEPT = {"cuda": len(_FIRST_BLOCKS)}
#: where double precision costs little
_DOUBLE = {"cuda"}
#: numbers that the heads of one question may read
_READ = 1 << 23


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
    """The unembedding made ready for many questions."""

    weight: Float[Tensor, "hidden token"]  # in the weights' own dtype
    kept: tuple[Tensor, ...]  # the first blocks
    parts: tuple[Tensor, ...]  # the tokens of each block
    scale: float
    longest: float  # the largest norm of a column of a block

    def blocks(self) -> Iterator[Float[Tensor, "hidden token"]]:
        """The unembedding times `scale`, in single precision, tokens shuffled: counting needs no order."""
        yield from self.kept
        yield from self.others()

    def others(self) -> Iterator[Float[Tensor, "hidden token"]]:
        """The blocks that are not kept."""
        for part in self.parts[len(self.kept) :]:
            yield _scaled(self.weight.T[part], self.scale).T

    def top(self, rows: Float[Tensor, "row hidden"], count: int) -> Int[Tensor, "row count"]:
        """The tokens with the highest numbers of each row, the highest first, in single precision."""
        best, which = torch.empty(len(rows), 0, device=rows.device), self.parts[0][:0].expand(len(rows), 0)
        for block, part in zip(self.blocks(), self.parts, strict=True):
            numbers = torch.cat([best, rows @ block], dim=1)
            tokens = torch.cat([which, part.expand(len(rows), -1)], dim=1)
            places = numbers.topk(min(count, numbers.shape[1]), dim=1).indices
            best, which = numbers.gather(1, places), tokens.gather(1, places)
        return which

    def columns(self, tokens: Int[Tensor, " token"]) -> Float[Tensor, "hidden token"]:
        """Those of these tokens, scaled, in double precision."""
        return exact(self.weight[:, tokens]) * self.scale

    @classmethod
    def of(cls, unembedding: Float[Tensor, "hidden token"]) -> Vocabulary:
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
        parts = order.split(sizes)
        kept = tuple(
            _scaled(unembedding[:, part], scale).contiguous()
            for part in parts[: _KEPT.get(unembedding.device.type)]
        )
        return cls(unembedding, kept, parts, scale, longest * scale * (1 + 1e-5))

    @property
    def size(self) -> int:
        return int(self.weight.shape[1])


@dataclass(frozen=True, slots=True)
class _Open:
    """Rows that are not answered yet, of any heads: their places among all that was asked, what is written
    into the stream [row, hidden] in double precision, and how many tokens are surely above the target and
    below it."""

    place: Tensor
    written: Tensor
    above: Tensor
    below: Tensor

    def __getitem__(self, some: Tensor) -> _Open:
        return _Open(self.place[some], self.written[some], self.above[some], self.below[some])

    def __len__(self) -> int:
        return len(self.place)

    @classmethod
    def all(cls, parts: list[_Open]) -> _Open:
        return cls(
            torch.cat([part.place for part in parts]),
            torch.cat([part.written for part in parts]),
            torch.cat([part.above for part in parts]),
            torch.cat([part.below for part in parts]),
        )


class TopK:
    """Answers, for some heads at a time, whether targets are in the top k and in the bottom k of what they
    write."""

    def __init__(self, vocabulary: Vocabulary, targets: Int[Tensor, " row"], k: Int[Tensor, " row"]) -> None:
        self._vocabulary, self._targets, self._k = vocabulary, targets, k
        different, self._target = targets.unique(return_inverse=True)
        self._kind = targets.device.type if targets.device.type in _CELLS else "cpu"
        self._double = self._kind in _DOUBLE
        vectors = vocabulary.columns(different)
        self._vectors = vectors if self._double else vectors.float()
        self._keys: list[Any] = []
        self._hits: list[tuple[Tensor, Tensor]] = []
        # rows that have seen no block of the vocabulary yet, the kept ones, all of them and are not sure
        self._new: list[_Open] = []
        self._half: list[_Open] = []
        self._unsure: list[_Open] = []

    def together(self, head_dim: int) -> int:
        """How many heads are best asked at once."""
        return 1 if self._kind == "cpu" else max(1, _READ // max(1, len(self._targets) * head_dim))

    @full_precision()
    def ask(
        self,
        keys: Sequence[Any],
        inners: Iterable[Float[Tensor, "row head_dim"]],
        outputs: Iterable[Float[Tensor, "head_dim hidden"]],
    ) -> None:
        """Rows of numbers inner · output · unembedding, for some heads: of each a name, what it reads, and
        what it writes for that; taken in double precision."""
        inner = _sized_in_place(torch.stack([exact(one) for one in inners]), 2)
        output = _sized_in_place(torch.stack([exact(one) for one in outputs]), (1, 2))
        heads, rows = inner.shape[:2]
        start = len(self._keys) * rows
        self._keys += keys
        for left in self._left(inner, output).split(_TOGETHER[self._kind]):
            if not len(left):
                continue
            each = torch.bincount(left // rows, minlength=heads).tolist()
            parts = [
                inner[head, some] @ output[head]
                for head, some in enumerate((left % rows).split(each))
                if len(some)
            ]
            none = torch.zeros(len(left), device=left.device)
            self._new.append(_Open(start + left, torch.cat(parts), none, none.clone()))
            if sum(map(len, self._new)) >= _TOGETHER[self._kind]:
                self._go_on()

    @full_precision()
    def answers(self) -> dict[Any, Bool[Tensor, "2 row"]]:
        """By key whether targets are in the top and in the bottom, for all that was asked."""
        self._go_on(finish=True)
        found = torch.zeros(2, len(self._keys) * len(self._k), dtype=torch.bool, device=self._targets.device)
        for place, verdict in self._hits:
            found[:, place] = verdict
        parts = found.unflatten(1, (len(self._keys), len(self._k))).unbind(1)
        return dict(zip(self._keys, parts, strict=True))

    def _left(self, inner: Tensor, output: Tensor) -> Tensor:
        """Places in [head, row] of those for which the first block of the vocabulary, or as many as make
        sense in this way, do not hold enough tokens above the target and enough below."""
        single, sizes = inner.float(), inner.norm(dim=2)
        factor, unit = self._products(output, self._vectors)
        factor = factor.mT[:, self._target]
        own = torch.linalg.vecdot(inner if self._double else single, factor).double()
        above, below = torch.zeros(2, *own.shape, device=inner.device)
        left = (inner.any(2) & output.any(2).any(1)[:, None]).flatten().nonzero()[:, 0]  # zeros tie with all
        for block in self._vocabulary.blocks():
            factor, other = self._products(output, block)
            bounds = _around(own, sizes * (unit + other)[:, None])
            # of one head the rows that are left; of several, which differ in these, all rows
            rows = left if len(own) == 1 else torch.arange(own.shape[1], device=left.device)
            self._ask(rows, single, factor.float(), bounds, (above, below))
            found = torch.minimum(above, below).flatten()
            left = left[found[left] < self._k[left % own.shape[1]]]
            if len(left) < output.shape[1] or len(own) > 1:  # the other way is the better one
                break
        return left

    def _products(self, output: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """([head, head_dim, token]: what is written for a unit of each channel; [head]: how wrong at most, in
        units of what is read, is a number that is made from it in single precision).

        A sum of n products is wrong by at most n roundings of the sizes that go into it; twice that is
        allowed for, as a matrix product may add up in any way.
        """
        dim, hidden = output.shape[1:]
        if self._double:
            found = output @ columns.double()
            # columns of weights in double precision were rounded on the way
            rounded = columns.dtype == torch.float32 and self._vocabulary.weight.dtype == torch.float64
            first = float(rounded) * output.norm(dim=(1, 2)) * self._vocabulary.longest
        else:
            found = output.float() @ columns
            first = hidden * output.norm(dim=(1, 2)) * self._vocabulary.longest
        second = (dim + 4) * found.norm(dim=1).amax(dim=1).double() * (1 + 1e-3) + hidden * 1e-30
        return found, 2 * _ROUND * (first + second)

    def _ask(
        self,
        rows: Tensor,
        single: Tensor,
        factor: Tensor,
        bounds: tuple[Tensor, Tensor],
        counts: tuple[Tensor, Tensor],
    ) -> None:
        (low, high), (above, below) = bounds, counts
        for some in rows.split(max(1, _CELLS[self._kind] // factor[:, 0].numel())):
            numbers = single[:, some] @ factor
            above[:, some] += _count(torch.gt, numbers, high[:, some])
            below[:, some] += _count(torch.lt, numbers, low[:, some])

    def _go_on(self, finish: bool = False) -> None:
        """Ask the rows that wait, of many heads together: what is made for them is made seldom."""
        if self._new:
            some, self._new = _Open.all(self._new), []
            self._half.append(self._asked(some, iter(self._vocabulary.kept)))
        if self._half and (finish or sum(map(len, self._half)) >= _TOGETHER[self._kind]):
            some, self._half = _Open.all(self._half), []
            some = self._asked(some, self._vocabulary.others())
            k = self._k[some.place % len(self._k)]
            verdict, unsure = _verdict(some.above, some.below, k, self._vocabulary.size - 1)
            self._hits.append((some.place, verdict))
            self._unsure.append(some[unsure])
        if self._unsure and finish:
            some = _Open.all(self._unsure)
            for part in torch.arange(len(some), device=some.place.device).split(_TOGETHER[self._kind]):
                place, written = some.place[part], some.written[part]
                row = place % len(self._k)
                counts = _exactly(written, self._vocabulary, self._targets[row])
                self._hits.append((place, counts - 1 < self._k[row]))
            self._unsure = []

    def _asked(self, some: _Open, blocks: Iterator[Tensor]) -> _Open:
        """The rows that are left after these blocks, with what was counted."""
        row = some.place % len(self._k)
        k, targets = self._k[row], self._targets[row]
        own = torch.cat(
            [
                torch.linalg.vecdot(written, self._vocabulary.columns(tokens).T)
                for written, tokens in zip(some.written.split(_FEW), targets.split(_FEW), strict=True)
            ]
        )
        size = some.written.norm(dim=1) * self._vocabulary.longest
        low, high = _around(own, (some.written.shape[1] + 8) * _ROUND * size)
        single, above, below = some.written.float(), some.above, some.below
        left = torch.arange(len(some), device=row.device)
        for block in blocks:
            for part in left.split(max(1, _CELLS[self._kind] // block.shape[1])):
                numbers = single[part] @ block
                above[part] += _count(torch.gt, numbers, high[part])
                below[part] += _count(torch.lt, numbers, low[part])
            left = left[torch.minimum(above[left], below[left]) < k[left]]
            if not len(left):
                break
        return some[left]


def _verdict(above: Tensor, below: Tensor, k: Tensor, others: int) -> tuple[Tensor, Tensor]:
    """([top or bottom, row], [row]: is one of them not sure?) from how many of the other tokens are surely
    above the target and surely below it."""
    top, bottom = others - below < k, others - above < k
    return torch.stack([top, bottom]), (~top & (above < k)) | (~bottom & (below < k))


def _exactly(rows: Tensor, vocabulary: Vocabulary, targets: Tensor) -> Tensor:
    """[top or bottom, row]: how many tokens, the target among them, reach its number from above and from
    below, in double precision; numbers that differ by no more than its rounding are the same."""
    own = torch.linalg.vecdot(rows, vocabulary.columns(targets).T)
    tie = 4 * rows.shape[1] * 2.0**-53 * rows.norm(dim=1) * vocabulary.longest
    counts = torch.zeros(2, len(rows), dtype=torch.long, device=rows.device)
    for part in vocabulary.weight.split(_BLOCK, dim=1):
        numbers = rows @ (exact(part) * vocabulary.scale)
        counts[0] += (numbers >= (own - tie)[:, None]).sum(1)
        counts[1] += (numbers <= (own + tie)[:, None]).sum(1)
    return counts


def _sized_in_place(values: Tensor, axes: int | tuple[int, int]) -> Tensor:
    """Values times powers of two that bring their norm near one: no order changes, nothing overflows."""
    norm = values.norm(dim=axes, keepdim=True)
    if not bool(norm.isfinite().all()):
        raise FitError("a head's weights or what it reads are no numbers (NaN or infinite).")
    return values.mul_(torch.exp2(-norm.clamp(min=1e-300).log2().round()))


def _scaled(columns: Tensor, scale: float) -> Tensor:
    """`columns`, a copy, in single precision; the scale is a power of two, so that nothing is lost to it."""
    return (columns * scale).float() if columns.dtype == torch.float64 else columns.float().mul_(scale)


def _count(compare: Any, numbers: Tensor, bound: Tensor) -> Tensor:
    """[row]: how many numbers lie beyond the row's bound. Ones and zeros as floats are added many times
    faster than truth values are, and exactly."""
    found: Tensor = compare(numbers, bound, out=torch.empty_like(numbers)).sum(-1)
    return found


def _around(own: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
    """Single-precision bounds below and above `own`, rounded outwards."""
    low, high = (own - error).float()[..., None], (own + error).float()[..., None]
    return low.nextafter(torch.full_like(low, -torch.inf)), high.nextafter(torch.full_like(high, torch.inf))
