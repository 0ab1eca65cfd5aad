"""The vectors that a token brings to the heads: its embedding, or what the first MLP makes of it.

Both are taken from the model as it runs, so that embedding scaling, norms before or after the MLP,
residual factors, parallel blocks and experts need no special cases:

*embedding*  What a token adds to the stream that enters the first block, without its position. If
             that is the embedding row times a number, it is exactly that; if the model does more
             (a norm or a projection on the embeddings), it is the stream for the token at
             position 0.
*first_mlp*  What the MLP branch of the first block adds to the stream when the stream is the
             token's embedding and nothing comes from other positions: norms inside the branch
             (before and after the MLP) included, the embedding itself not, nor branches that come
             after the MLP.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.core import ModelRefusedError
from headatlas.model.anatomy import Anatomy
from headatlas.model.linear import exact, is_linear, width_out
from headatlas.model.modes import is_dtype_error, single_precision
from headatlas.model.probe import input_device, random_ids
from headatlas.model.trace import Call, Trace, first_tensor, hooks, run_until, trace

__all__ = ["Sources"]

_SAMPLE = 16
_CHUNK = 1024


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
            rows, stream = exact(self._embed(ids)), exact(self._entering(ids))
            rows, stream = rows - rows.mean(0), stream - stream.mean(0)  # takes positions off
            if rows.shape == stream.shape:
                scale = float((rows * stream).sum() / (rows * rows).sum())
                if (stream - scale * rows).norm() <= 1e-2 * stream.norm():
                    self._scale = round(scale, 3) if abs(scale - round(scale, 3)) < 1e-4 else scale
            self._known_scale = True
        return self._scale

    @torch.no_grad()
    def embedding(self, ids: Int[Tensor, " token"]) -> Float[Tensor, "token hidden"]:
        if (scale := self.embedding_scale) is not None:
            ids = ids.to(input_device(self._hf))
            rows: Tensor = self._embed(ids)
            if rows.dtype.itemsize == 2:  # a scale in the table itself or after it: not rounded to halves
                rows, scale = self._stored(ids, rows, scale)
            return rows * scale if scale != 1 else rows
        rows = torch.cat([self._entering(part) for part in ids.split(_CHUNK)])
        if rows.shape[1] != self._hidden:
            raise ModelRefusedError(f"{self._block} takes {rows.shape[1]} channels, not one stream.")
        return rows

    def _stored(
        self, ids: Int[Tensor, " token"], rows: Float[Tensor, "token hidden"], scale: float
    ) -> tuple[Float[Tensor, "token hidden"], float]:
        """(rows, factor): the rows as stored, if the table only multiplies them, else as they come."""
        weight = getattr(self._embed, "weight", None)
        if type(getattr(weight, "data", None)) is not Tensor or weight.shape[-1] != rows.shape[-1]:  # type: ignore[union-attr]
            return rows, scale
        stored = weight[ids].detach()  # type: ignore[index]
        if stored.dtype != rows.dtype or torch.equal(stored, rows):
            return (rows, scale) if scale == 1 else (rows.float(), scale)
        factor = float((exact(stored) * exact(rows)).sum() / exact(stored).square().sum())
        if not (exact(rows) - factor * exact(stored)).norm() <= 1e-2 * exact(rows).norm():
            return rows, scale
        return stored.float(), factor * scale

    def _entering(self, ids: Int[Tensor, " token"]) -> Float[Tensor, "token channel"]:
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
    def first_mlp(self, ids: Int[Tensor, " token"]) -> Float[Tensor, "token hidden"]:
        branch = self._find_branch()
        made: dict[str, Tensor] = {}

        def keep(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: Any, output: Any) -> None:
                made[name] = first_tensor(output)  # type: ignore[assignment]

            return hook

        def run(chunk: Tensor, rows: Tensor, dtype: torch.dtype | None) -> None:
            keepers = [self._hf.get_submodule(n).register_forward_hook(keep(n)) for n, _ in branch]
            with hooks(*keepers, *self._silence(self._mixers), *self._enter(rows, dtype)):
                run_until(self._hf, chunk[:, None].to(input_device(self._hf)), self._block)

        embedded = [self.embedding(chunk) for chunk in ids.split(_CHUNK)]  # with the weights as they are

        def all_chunks(dtype: torch.dtype | None) -> Tensor:
            chunks = []
            for chunk, rows in zip(ids.split(_CHUNK), embedded, strict=True):
                run(chunk, rows, dtype)
                parts = [made[n] if factor == 1 else made[n] * factor for n, factor in branch]
                chunks.append(sum(parts[1:], start=parts[0]).reshape(len(chunk), -1))
            return torch.cat(chunks)

        try:
            # Source vectors are to be as exact as the weights that they are read from.
            with single_precision(self._hf.get_submodule(self._block)) as is_single:
                return all_chunks(torch.float32 if is_single else None)
        except torch.OutOfMemoryError:  # no reason to be less exact
            raise
        except RuntimeError as error:
            if not is_dtype_error(error):
                raise
        return all_chunks(None)  # out here the error no longer keeps the tensors of the failed pass alive

    def _find_branch(self) -> list[tuple[str, float]]:
        """(module, factor): the modules whose outputs, times the factors, the MLP branch adds."""
        if self._branch is None:
            self._mixers = self._find_mixers()
            ids = random_ids(self._hf, 1, _SAMPLE)[0]
            with hooks(*self._silence(self._mixers), *self._enter(self.embedding(ids))):
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
            and not any(mixer == call.name or mixer.startswith(call.name + ".") for mixer in self._mixers)
            and block.start < call.start < block.end
            and call.output is not None
            and call.output.numel() == block.input.numel()
        ]
        children = [c for c in inside if "." not in c.name.removeprefix(self._block + ".")]
        singles = [(call,) for call in inside]
        for parts in (*singles, *combinations(children, 2)):
            factors = _explains(block, parts)
            if factors is not None:
                found = [(call.name, factor) for call, factor in zip(parts, factors, strict=True)]
                # two branches beside each other are one MLP; of two in a row the first is it
                return found if _same(parts[0].input, parts[-1].input) else found[-1:]
        silent = max((call.end for call in seen.calls if call.name in self._mixers), default=0)
        if (call := _before_last_norm(block, [c for c in inside if c.start > silent])) is not None:
            return [(call.name, 1.0)]
        raise ModelRefusedError(
            f"what {self._block} adds to the stream is not the output of any module in it, so there "
            "are no 'first_mlp' source vectors; 'embedding' can be used."
        )

    def _find_mixers(self) -> list[str]:
        """Linears that let other positions in: the first that carries any of them, then the next."""
        one, other, same = random_ids(self._hf, 1, 3)[0]
        ids = torch.stack([torch.stack([one, same]), torch.stack([other, same])])
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

    def _enter(self, rows: Float[Tensor, "token hidden"], dtype: torch.dtype | None = None) -> list[Any]:
        """Let these embeddings, and no positions, enter the first block."""

        block = self._hf.get_submodule(self._block)

        def hook(module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
            where, key, stream = _stream(args, kwargs)
            if stream.shape != (len(rows), 1, self._hidden):
                raise ModelRefusedError(
                    f"{self._block} takes several parallel streams ({list(stream.shape)}), so there "
                    "are no 'first_mlp' source vectors; 'embedding' can be used."
                )
            replaced = rows[:, None].to(stream.device, dtype or stream.dtype)
            if dtype is not None:  # whatever else comes in (positions, biases) in the same precision
                args, kwargs = _in_dtype(args, dtype), _in_dtype(kwargs, dtype)
            if where == "kwargs":
                return args, {**kwargs, key: replaced}
            return (*args[:key], replaced, *args[key + 1 :]), kwargs

        return [block.register_forward_pre_hook(hook, with_kwargs=True)]


def _explains(block: Call, parts: tuple[Call, ...]) -> list[float] | None:
    """Factors f with: block output = a · block input + Σ f · part, a and all f well off zero.

    Ones unless other factors fit clearly better: a small branch hardly determines its factor.
    """
    target = exact(block.output).flatten()  # type: ignore[arg-type]
    stream = exact(block.input).flatten()  # type: ignore[arg-type]
    columns = [exact(call.output).flatten() for call in parts]  # type: ignore[arg-type]
    if len(target) != len(stream):
        return None
    size = float(target.norm())
    allowed = size * (1e-4 if block.output.dtype.itemsize > 2 else 1e-2)  # type: ignore[union-attr]
    matrix = torch.stack([stream, *columns], dim=1)
    ones = float((target - matrix.sum(1)).norm())
    fitted = torch.linalg.lstsq(matrix.cpu(), target.cpu()[:, None]).solution[:, 0].to(matrix)
    best = float((target - matrix @ fitted).norm())
    if ones <= min(allowed, 1.5 * best + 1e-6 * size):
        return [1.0] * len(parts)
    if best > allowed or float(fitted.abs().min()) < 1e-2 or _say_the_same(matrix):
        return None
    return [float(factor) for factor in fitted[1:]]


def _say_the_same(matrix: Float[Tensor, "number column"]) -> bool:
    """Are columns so alike that their factors mean nothing?"""
    return float(torch.linalg.cond((matrix / matrix.norm(dim=0)).cpu())) > 1e4


def _before_last_norm(block: Call, inside: list[Call]) -> Call | None:
    """Blocks that end in norm(h + branch(h)), as the first transformers: the branch's last linear."""
    leaves = [c for c in inside if not is_linear(c.module) and not any(c.module.children())]
    norm = next((c for c in leaves if _same(c.output, block.output)), None)
    linears = [c for c in inside if is_linear(c.module)]
    if norm is None or not linears or norm.input is None or norm.end < linears[0].end:
        return None
    last = linears[0]
    rest = norm.input.flatten() - last.output.flatten()  # type: ignore[union-attr]
    start = next((c for c in inside if c.end < last.end and _same(c.output, rest)), None)
    if start is None or any(c.end < start.end for c in linears):
        return None  # another branch lies between the stream and this one
    return last


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None or one.numel() != other.numel():
        return False
    precision = 1e-3 if other.dtype.itemsize > 2 else 2e-2
    one, other = exact(one).flatten(), exact(other).flatten()
    return bool((one - other).norm() <= precision * other.norm())


def _stream(args: Any, kwargs: Any) -> tuple[str, Any, Tensor]:
    """Where in a block's arguments the stream is."""
    for index, value in enumerate(args):
        if isinstance(value, Tensor) and value.is_floating_point():
            return "args", index, value
    for key in ("hidden_states", *kwargs):
        if isinstance(value := kwargs.get(key), Tensor) and value.is_floating_point():
            return "kwargs", key, value
    raise ModelRefusedError("the first block takes no stream of vectors.")


def _in_dtype(values: Any, dtype: torch.dtype) -> Any:
    """Call arguments with every half in `dtype`."""
    if isinstance(values, Tensor):
        return values.to(dtype) if values.dtype in (torch.bfloat16, torch.float16) else values
    if isinstance(values, dict):
        return {key: _in_dtype(value, dtype) for key, value in values.items()}
    if type(values) in (tuple, list):
        return type(values)(_in_dtype(value, dtype) for value in values)
    return values


def _one_stream(stream: Tensor, rows: int) -> Float[Tensor, "{rows} position hidden"]:
    """Models with several parallel streams count by their first."""
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
