"""What stands between the output projection of a layer and the stream: in some models, a norm.

A norm multiplies by a positive number that depends on the position, and channel by channel by weights of its
own. The number changes no order; the weights do, so whoever reads off a head's weights what it writes into
the stream has to count them in. A norm that also takes off the mean is taken as one that does not.
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headatlas.model.anatomy import Anatomy
from headatlas.model.find import eager, random_ids
from headatlas.model.linear import is_linear
from headatlas.model.trace import Trace, trace
from headatlas.model.weights import norm_gain

__all__ = ["find_gains"]


@torch.no_grad()
def find_gains(hf: PreTrainedModel, anatomy: Anatomy) -> dict[int, Tensor]:
    """layer -> [hidden]: the weights of the norm after its output projection, where there is one."""
    with eager(hf):
        seen = trace(hf, random_ids(hf, 2, 6))
    gains = {}
    for found in anatomy.present():
        name = _norm_after(seen, found.output)
        if name is not None:
            written = seen.last(found.output).output
            assert written is not None
            gains[found.layer] = norm_gain(hf.get_submodule(name), written.shape[-1])
    return gains


def _norm_after(seen: Trace, output: str) -> str | None:
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
