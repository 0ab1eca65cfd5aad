"""The vectors that a token brings to the heads: its embedding, or what the first MLP makes of it.

Both are taken from the model as it runs, so that embedding scaling, norms before or after the MLP,
residual factors, parallel blocks and experts need no special cases:

*embedding*  What a token adds to the stream that enters the first block, without its position. If
             that is the embedding row times a number, it is exactly that; if the model does more
             (a norm or a projection on the embeddings), it is the stream for the token at
             position 0.
*first_mlp*  What the MLP branch of the first block adds to the stream when the stream is the
             token's embedding and nothing comes from other positions: norms inside the branch
             included, the embedding itself not.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.core import ModelRefusedError
from headatlas.model.anatomy import Anatomy
from headatlas.model.find import input_device, random_ids
from headatlas.model.linear import is_linear, width_out
from headatlas.model.trace import Call, Trace, first_tensor, hooks, run_until, trace

__all__ = ["Sources"]

_SAMPLE = 16
_CHUNK = 4096


class Sources:
    """Source vectors of one model; how they come about is found out on first use."""

    def __init__(self, hf: PreTrainedModel, anatomy: Anatomy) -> None:
        self._hf = hf
        self._block = anatomy.block(0)
        self._embed = hf.get_input_embeddings()
        self._hidden = width_out(hf.get_submodule(anatomy.present()[0].output))
        self._scale: float | None = None
        self._known_scale = False
        self._branch: list[tuple[str, float]] | None = None
        self._mixers: list[str] = []

    # --- embedding ---

    @property
    @torch.no_grad()
    def embedding_scale(self) -> float | None:
        """The factor on embedding rows, or None where the model does more than multiply."""
        if not self._known_scale:
            ids = random_ids(self._hf, 1, _SAMPLE)[0]
            rows, stream = self._embed(ids).double(), self._entering(ids).double()
            rows, stream = rows - rows.mean(0), stream - stream.mean(0)  # takes positions off
            if rows.shape == stream.shape:
                scale = float((rows * stream).sum() / (rows * rows).sum())
                if (stream - scale * rows).norm() <= 1e-2 * stream.norm():
                    self._scale = round(scale, 3) if abs(scale - round(scale, 3)) < 1e-4 else scale
            self._known_scale = True
        return self._scale

    @torch.no_grad()
    def embedding(self, ids: Tensor) -> Tensor:
        """[token, hidden]"""
        if (scale := self.embedding_scale) is not None:
            rows: Tensor = self._embed(ids.to(input_device(self._hf)))
            return rows * scale if scale != 1 else rows
        rows = torch.cat([self._entering(part) for part in ids.split(_CHUNK)])
        if rows.shape[1] != self._hidden:
            raise ModelRefusedError(f"{self._block} takes {rows.shape[1]} channels, not one stream.")
        return rows

    def _entering(self, ids: Tensor) -> Tensor:
        """The stream that enters the first block for each token as a text of its own."""
        seen: list[Tensor] = []

        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            seen.append(_one_stream(_stream(args, kwargs)[2], len(ids)))

        block = self._hf.get_submodule(self._block)
        with hooks(block.register_forward_pre_hook(hook, with_kwargs=True)):
            run_until(self._hf, ids[:, None].to(input_device(self._hf)), self._block)
        return seen[0][:, 0]

    # --- first MLP ---

    @torch.no_grad()
    def first_mlp(self, ids: Tensor) -> Tensor:
        """[token, hidden]"""
        branch = self._find_branch()
        made: dict[str, Tensor] = {}

        def keep(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: Any, output: Any) -> None:
                made[name] = first_tensor(output)  # type: ignore[assignment]

            return hook

        chunks = []
        for chunk in ids.split(_CHUNK):
            keepers = [self._hf.get_submodule(n).register_forward_hook(keep(n)) for n, _ in branch]
            silence, enter = self._silence(self._mixers), self._enter(chunk)
            with hooks(*keepers, *silence, *enter):
                run_until(self._hf, chunk[:, None].to(input_device(self._hf)), self._block)
            parts = [made[n] if factor == 1 else made[n] * factor for n, factor in branch]
            chunks.append(sum(parts[1:], start=parts[0]).reshape(len(chunk), -1))
        return torch.cat(chunks)

    def _find_branch(self) -> list[tuple[str, float]]:
        """(module, factor): the modules whose outputs, times the factors, the MLP branch adds."""
        if self._branch is None:
            self._mixers = self._find_mixers()
            ids = random_ids(self._hf, 1, _SAMPLE)[0]
            with hooks(*self._silence(self._mixers), *self._enter(ids)):
                seen = trace(self._hf, ids[:, None], until=self._block)
            self._branch = self._added(seen)
        return self._branch

    def _added(self, seen: Trace) -> list[tuple[str, float]]:
        block = seen.of(self._block)[0]
        assert block.input is not None and block.output is not None
        inside = [
            call
            for call in sorted(seen.calls, key=lambda call: -call.end)
            if call.name.startswith(self._block + ".")
            and call.name not in self._mixers
            and block.start < call.start < block.end
            and call.output is not None
            and call.output.numel() == block.input.numel()
        ]
        children = [c for c in inside if "." not in c.name.removeprefix(self._block + ".")]
        singles = [(call,) for call in inside]
        for parts in (*singles, *combinations(children, 2)):
            factors = _explains(block, parts)
            if factors is not None:
                return [(call.name, factor) for call, factor in zip(parts, factors, strict=True)]
        if (call := _before_last_norm(block, inside)) is not None:
            return [(call.name, 1.0)]
        raise ModelRefusedError(
            f"what {self._block} adds to the stream is not the output of any module in it, so there "
            "are no 'first_mlp' source vectors; 'embedding' can be used."
        )

    def _find_mixers(self) -> list[str]:
        """Linears that let other positions in: the first that carries any of them, then the next."""
        ids = random_ids(self._hf, 2, 2)
        ids[:, 1] = ids[0, 1]  # the texts differ in their first token only
        mixers: list[str] = []
        while True:
            with hooks(*self._silence(mixers)):
                seen = trace(self._hf, ids, until=self._block)
            name = next(
                (
                    call.name
                    for call in sorted(seen.calls, key=lambda call: call.end)
                    if call.name.startswith(self._block + ".")
                    and is_linear(call.module)
                    and call.name not in mixers
                    and _differs(call.output)
                ),
                None,
            )
            if name is None:
                return mixers
            mixers.append(name)

    # --- hooks ---

    def _silence(self, names: list[str]) -> list[Any]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            return torch.zeros_like(output)

        return [self._hf.get_submodule(name).register_forward_hook(hook) for name in names]

    def _enter(self, ids: Tensor) -> list[Any]:
        """Let the embeddings of these tokens, and no positions, enter the first block."""
        rows = self.embedding(ids)

        def hook(module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
            where, key, stream = _stream(args, kwargs)
            if stream.shape != (len(rows), 1, self._hidden):
                raise ModelRefusedError(
                    f"{self._block} takes several parallel streams ({list(stream.shape)}), so there "
                    "are no 'first_mlp' source vectors; 'embedding' can be used."
                )
            replaced = rows[:, None].to(stream)
            if where == "kwargs":
                return args, {**kwargs, key: replaced}
            return (*args[:key], replaced, *args[key + 1 :]), kwargs

        block = self._hf.get_submodule(self._block)
        return [block.register_forward_pre_hook(hook, with_kwargs=True)]


def _explains(block: Call, parts: tuple[Call, ...]) -> list[float] | None:
    """Factors f with: block output = a · block input + Σ f · part, a and all f well off zero."""
    columns = [block.input, *(call.output for call in parts)]
    matrix = torch.stack([column.double().flatten() for column in columns], dim=1)  # type: ignore[union-attr]
    target = block.output.double().flatten()  # type: ignore[union-attr]
    if target.numel() != len(matrix):
        return None
    gram = matrix.T @ matrix
    if float(torch.linalg.cond(gram)) > 1e8:  # two columns say the same
        return None
    found = torch.linalg.solve(gram, matrix.T @ target)
    precision = 1e-4 if block.output.dtype.itemsize > 2 else 2e-2  # type: ignore[union-attr]
    if (target - matrix @ found).norm() > precision * target.norm() or found.abs().min() < 1e-2:
        return None
    return [1.0 if abs(float(f) - 1) < 10 * precision else float(f) for f in found[1:]]


def _before_last_norm(block: Call, inside: list[Call]) -> Call | None:
    """Blocks that end in norm(h + branch(h)), as the first transformers: the branch's last linear."""
    leaves = [c for c in inside if not is_linear(c.module) and not any(c.module.children())]
    norm = next((c for c in leaves if _same(c.output, block.output)), None)
    last = next((c for c in inside if is_linear(c.module)), None)
    if norm is None or last is None or norm.input is None or norm.end < last.end:
        return None
    rest = norm.input.flatten() - last.output.flatten()  # type: ignore[union-attr]
    return last if any(_same(c.output, rest) for c in inside if c.end < last.end) else None


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None or one.numel() != other.numel():
        return False
    one, other = one.double().flatten(), other.double().flatten()
    return bool((one - other).norm() <= 1e-3 * other.norm())


def _stream(args: Any, kwargs: Any) -> tuple[str, Any, Tensor]:
    """Where in a block's arguments the stream is."""
    for index, value in enumerate(args):
        if isinstance(value, Tensor) and value.is_floating_point():
            return "args", index, value
    for key in ("hidden_states", *kwargs):
        if isinstance(value := kwargs.get(key), Tensor) and value.is_floating_point():
            return "kwargs", key, value
    raise ModelRefusedError("the first block takes no stream of vectors.")


def _one_stream(stream: Tensor, rows: int) -> Tensor:
    """[row, position, hidden]; models with several parallel streams count by their first."""
    while stream.ndim > 3 and stream.shape[0] != rows:
        stream = stream[0]
    return stream if stream.ndim == 3 else stream[:, :, 0]


def _differs(output: Tensor | None) -> bool:
    """Do the two texts differ at their last position, where their tokens are the same?"""
    if output is None:
        return False
    if output.ndim >= 3 and output.shape[:2] == (2, 2):
        here = output[:, -1]
    elif output.shape[0] == 4:
        here = output.reshape(2, 2, -1)[:, -1]
    else:
        return False
    return bool((here[0] - here[1]).norm() > 1e-4 * here.norm())
