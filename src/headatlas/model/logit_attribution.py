"""Direct logit attribution: the part of a logit that each head writes into the residual stream itself.

The residual stream before the final norm is a sum: the embedding, what every head writes, what the rest of
every layer adds. The final norm divides this sum by one number per position (some norms subtract the mean
over channels first). With that number held at its value in the text the norm is linear, so the logit of a
token is a sum of contributions, one per component.

How an attention output enters the stream differs between architectures (a norm after W_O, a multiplier,
parallel blocks), so it is found by experiment: some tensor that the model computes must equal the block's
input plus a multiple of the attention output. A model in which there is none is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.core import GateError, HeadatlasError
from headatlas.model.anatomy import Anatomy, Attention
from headatlas.model.gate_modules import is_gated
from headatlas.model.linear import bias_of, exact, is_linear
from headatlas.model.modes import eval_mode, single_precision
from headatlas.model.post_norm import NormAfter, norm_after, norm_of
from headatlas.model.probe import random_ids
from headatlas.model.trace import Call, Trace, trace

if TYPE_CHECKING:
    from headatlas.model.model import Model

__all__ = ["Contributions", "contributions", "find_final_norm"]

#: relative deviations that rounding may cause, in single and in half precision
_TOLERANCE, _HALF_TOLERANCE = 1e-3, 4e-2
#: the key of the multipliers in `Model.remembered`
_MULTIPLIERS = "attention multipliers"


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """Additive parts of a logit, or of a difference of two.

    `heads` is NaN where there is no head; `rest` is what each layer adds besides its heads (its MLP and
    biases). `capped`: the model caps its logits, and the parts sum to the logit before the cap.
    """

    heads: Float[Tensor, "layer head"]
    rest: Float[Tensor, " layer"]
    embedding: float
    bias: float
    capped: bool

    @property
    def total(self) -> float:
        return float(self.heads.nansum() + self.rest.sum()) + self.embedding + self.bias


@torch.no_grad()
def contributions(
    model: Model, ids: Int[Tensor, " position"], position: int, target: int, foil: int | None
) -> Contributions:
    """The contributions to the logit of `target` (minus that of `foil`) at a position of one text."""
    if is_gated(model.hf):
        raise GateError("logit attribution is that of the plain model; call it outside the gates block.")
    with eval_mode(model.hf):
        seen = trace(model.hf, ids[None])
    readout = _Readout.of(model, seen, position, target, foil)
    layers = model.anatomy.layers
    blocks = [_last(seen, model.anatomy.block(layer)) for layer in range(layers)]
    heads = torch.full(model.spec.shape, torch.nan, dtype=torch.float64)
    rest = torch.zeros(layers, dtype=torch.float64)
    for layer, block in enumerate(blocks):
        assert block.input is not None and block.output is not None
        added = readout(_at(block.output, position)) - readout(_at(block.input, position))
        found = model.anatomy.attention[layer]
        if found is not None:
            written = _written(model, found, seen, position)
            heads[layer, : found.heads] = readout(written)
            added = added - heads[layer, : found.heads].sum()
        rest[layer] = added
    assert blocks[0].input is not None and blocks[-1].output is not None
    # the embedding, and what happens to the stream between blocks
    embedding = readout(_at(blocks[-1].output, position)) - heads.nansum() - rest.sum()
    return Contributions(heads, rest, float(embedding), readout.bias, readout.capped)


def _last(seen: Trace, name: str) -> Call:
    """The last call of a module that takes and returns the residual stream."""
    calls = seen.of(name)
    if not calls or calls[-1].input is None or calls[-1].output is None:
        raise HeadatlasError(
            f"{name} does not pass on a residual stream; logits cannot be attributed to heads."
        )
    return calls[-1]


def _at(tensor: Tensor, position: int) -> Float[Tensor, " hidden"]:
    return tensor.reshape(-1, tensor.shape[-1])[position].double().cpu()


def _tolerance(tensor: Tensor) -> float:
    return _HALF_TOLERANCE if tensor.dtype.itemsize < 4 else _TOLERANCE


@dataclass(frozen=True, slots=True, eq=False)
class _Readout:
    """The linear map from the stream at one position to the logit, with the final norm's number as it is."""

    direction: Float[Tensor, " hidden"]
    centres: bool
    bias: float
    capped: bool

    def __call__(self, vectors: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        if self.centres:
            vectors = vectors - vectors.mean(-1, keepdim=True)
        return vectors @ self.direction

    @classmethod
    def of(cls, model: Model, seen: Trace, position: int, target: int, foil: int | None) -> _Readout:
        name = _final_norm_name(model.hf, seen, model.anatomy.block(model.anatomy.layers - 1))
        call = seen.last(name)
        assert call.input is not None and call.output is not None and seen.logits is not None
        norm = norm_of(call.module, call.input)
        stream, normed = _at(call.input, position), _at(call.output, position)
        shift = _at(call.module(torch.zeros_like(call.input)), 0)
        plain = norm(stream)
        factor = _factor(
            normed - shift, plain, _tolerance(call.output), f"the final norm of {model.spec.name}"
        )
        unembedding = exact(model.unembedding()).cpu()
        offsets = bias_of(model.hf.get_output_embeddings())
        logits = normed @ unembedding + (0 if offsets is None else offsets.double().cpu())
        actual = seen.logits[0, position].double().cpu()[: len(logits)]
        scale = float(actual @ logits / (logits @ logits))
        allowed = _tolerance(call.output) * float(actual.abs().max())
        capped = float((actual - scale * logits).abs().max()) > allowed
        if capped:
            if float(actual[logits.argsort()].diff().min()) < -allowed:  # a cap keeps the order of the logits
                raise HeadatlasError(
                    f"the logits of {model.spec.name} are not a linear function of its final norm, so they "
                    "cannot be attributed to heads."
                )
            scale = 1.0
        vector = unembedding[:, target] - (0 if foil is None else unembedding[:, foil])
        gain = norm.gain.double().cpu()
        bias = shift @ vector
        if offsets is not None:
            bias = bias + float(offsets[target]) - (0.0 if foil is None else float(offsets[foil]))
        return cls(scale * factor * gain * vector, norm.centres, scale * float(bias), capped)


@torch.no_grad()
def find_final_norm(hf: PreTrainedModel, anatomy: Anatomy) -> NormAfter:
    """The norm before the unembedding, as what it does to its input."""
    with eval_mode(hf):
        seen = trace(hf, random_ids(hf, 2, 6))
    call = seen.last(_final_norm_name(hf, seen, anatomy.block(anatomy.layers - 1)))
    assert call.input is not None
    return norm_of(call.module, call.input)


def _final_norm_name(hf: nn.Module, seen: Trace, last_block: str) -> str:
    """The name of the norm that reads the stream after the last block."""
    block = seen.last(last_block)
    for call in sorted(seen.calls, key=lambda call: call.start):
        if call.start < block.end or call.input is None or call.output is None or is_linear(call.module):
            continue
        if any(True for _ in call.module.children()) or call.input.shape != call.output.shape:
            continue
        if block.output is None or call.input.numel() != block.output.numel():
            continue
        if torch.equal(call.input.flatten(), block.output.flatten().to(call.input)):
            if not torch.equal(call.input, call.output):  # not a dropout
                return call.name
    raise HeadatlasError(f"no norm was found between the last layer of {type(hf).__name__} and its logits.")


def _factor(wanted: Tensor, vector: Tensor, tolerance: float, what: str) -> float:
    """The number that makes `wanted` of `vector`."""
    factor = float(wanted @ vector / (vector @ vector).clamp(min=1e-300))
    if float((wanted - factor * vector).norm()) > tolerance * max(float(wanted.norm()), 1e-30):
        raise HeadatlasError(
            f"{what} is not a norm that is linear at a position; logits cannot be attributed."
        )
    return factor


def _written(model: Model, found: Attention, seen: Trace, position: int) -> Float[Tensor, "head hidden"]:
    """What each head of a layer adds to the stream at a position."""
    projection = seen.last(found.output)
    assert projection.input is not None and projection.output is not None
    outputs = _at(projection.input, position).unflatten(-1, (found.heads, found.head_dim))
    weights = torch.stack(
        [exact(model.output_weight(found.layer, head)).cpu() for head in range(found.heads)]
    )
    written = torch.einsum("hd,hdm->hm", outputs, weights)
    name = norm_after(seen, found.output)
    if name is not None:
        call = seen.last(name)
        assert call.input is not None and call.output is not None
        norm = norm_of(call.module, call.input)
        shift = _at(call.module(torch.zeros_like(call.input)), 0)
        whole = norm(_at(call.input, position))
        factor = _factor(
            _at(call.output, position) - shift,
            whole,
            _tolerance(call.output),
            f"the norm after layer {found.layer}",
        )
        written = factor * norm(written)
    return _multipliers(model)[found.layer] * written


@torch.no_grad()
def _multipliers(model: Model) -> dict[int, float]:
    """layer -> the number by which its attention output is multiplied before it is added to the stream.

    Measured on random tokens in single precision where possible: in half precision the stream is rounded by
    more than a head writes.
    """
    if _MULTIPLIERS not in model.remembered:
        with eval_mode(model.hf), single_precision(model.hf):
            seen = trace(model.hf, random_ids(model.hf, 1, 6))
        model.remembered[_MULTIPLIERS] = {
            found.layer: _multiplier(model, found, seen) for found in model.anatomy.present()
        }
    multipliers: dict[int, float] = model.remembered[_MULTIPLIERS]
    return multipliers


def _multiplier(model: Model, found: Attention, seen: Trace) -> float:
    block, projection = _last(seen, model.anatomy.block(found.layer)), seen.last(found.output)
    name = norm_after(seen, found.output)
    added = (projection if name is None else seen.last(name)).output
    assert added is not None
    assert block.input is not None and block.output is not None
    start, attention = (
        tensor.reshape(-1, tensor.shape[-1]).double().cpu() for tensor in (block.input, added)
    )
    tolerance, size = _tolerance(added), float(attention.norm())
    if size == 0:
        return 1.0
    inside = [call for call in seen.calls if block.start < call.start and call.end < block.end]
    later = [call.input for call in inside if call.input is not None and call.start > projection.end]
    changes = [
        (tensor.reshape(start.shape).double().cpu() - start).flatten()
        for tensor in [*later, block.output]
        if tensor.numel() == start.numel()
    ]
    # Parallel blocks add something else at the same time, such as the output of an MLP.
    others = [
        call.output.reshape(start.shape).double().cpu().flatten()
        for call in inside
        if call.name.count(".") == block.name.count(".") + 1
        and call.output is not None
        and call.output.numel() == start.numel()
    ]
    # Falcon adds the attention output to that of the MLP in place.
    others += [other - attention.flatten() for other in others]
    for extra in ([], *([other] for other in others)):
        basis = torch.stack([attention.flatten(), *extra], dim=1)
        for change in changes:
            factors = torch.linalg.lstsq(basis, change[:, None]).solution[:, 0]
            deviation = float((change - basis @ factors).norm())
            if abs(float(factors[0])) > 1e-6 and deviation <= tolerance * float(change.norm()):
                return float(factors[0])
    raise HeadatlasError(
        f"layer {found.layer} of {model.spec.name} does not add its attention output to the residual stream "
        "in a known way, so logits cannot be attributed to heads."
    )
