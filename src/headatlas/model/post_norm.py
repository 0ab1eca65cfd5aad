"""What stands between the output projection of a layer and the stream: in some models, a norm.

A norm multiplies by a positive number that depends on the position, and channel by channel by weights of its
own; some take off the mean over the channels first. The number changes no order; the rest does, so whoever
reads off a head's weights what it writes into the stream has to count it in.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.model.anatomy import Anatomy
from headatlas.model.linear import is_linear
from headatlas.model.modes import eval_mode
from headatlas.model.probe import eager, random_ids
from headatlas.model.trace import Trace, trace
from headatlas.model.weights import norm_gain

__all__ = ["NormAfter", "find_norms", "norm_after", "norm_of"]


@dataclass(frozen=True, slots=True, eq=False)
class NormAfter:
    """`gain`: the weights of a norm; `centres`: does it take off the mean?"""

    gain: Float[Tensor, " hidden"]
    centres: bool

    def __call__(self, vectors: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch hidden"]:
        """The vectors as they come out, but for the positive number and a bias."""
        if self.centres:
            vectors = vectors - vectors.mean(-1, keepdim=True)
        return vectors * self.gain.to(vectors)


@torch.no_grad()
def find_norms(hf: PreTrainedModel, anatomy: Anatomy) -> dict[int, NormAfter]:
    """layer -> the norm after its output projection, where there is one."""
    with eager(hf), eval_mode(hf):
        seen = trace(hf, random_ids(hf, 2, 6))
    norms = {}
    for found in anatomy.present():
        name = norm_after(seen, found.output)
        if name is not None:
            written = seen.last(found.output).output
            assert written is not None
            norms[found.layer] = norm_of(hf.get_submodule(name), written)
    return norms


def norm_of(module: nn.Module, like: Float[Tensor, "*batch hidden"]) -> NormAfter:
    """A norm module by what it does to its input; `like` is such an input."""
    return NormAfter(norm_gain(module, like.shape[-1]), _centres(module, like))


def _centres(norm: nn.Module, like: Tensor) -> bool:
    """Does a constant that is added to all channels leave no trace?"""
    moved = norm(like + 3 * like.abs().max())
    plain = norm(like)
    return bool((moved - plain).abs().max() < 0.05 * plain.abs().max())


def norm_after(seen: Trace, output: str) -> str | None:
    """The module that is given what the projection wrote, and nothing else, and changes it."""
    written = seen.last(output)
    for call in sorted(seen.calls, key=lambda call: call.start):
        if call.start < written.end or call.input is None or call.output is None or is_linear(call.module):
            continue
        if any(True for _ in call.module.children()) or call.input.shape != written.output.shape:  # type: ignore[union-attr]
            continue
        weights = list(call.module.parameters())
        if weights and torch.equal(call.input, written.output):  # type: ignore[arg-type]
            return call.name
    return None
