"""What the heads read and write in a text, as the model runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.model.anatomy import Anatomy
from headatlas.model.gate_modules import ungated
from headatlas.model.trace import first_tensor, hooks, run_until

__all__ = ["head_outputs", "observe"]


@torch.no_grad()
def observe(
    hf: PreTrainedModel, anatomy: Anatomy, ids: Tensor, positions: Tensor
) -> dict[int, tuple[Tensor, Tensor]]:
    """layer -> (what its heads put out [row, head * head_dim], what its values are made from [row, hidden]),
    at position `positions[row]` of each row of `ids`. The latter is what `head_values` takes."""
    names = {name for found in anatomy.present() for name in (found.output, found.value.linear)}

    def there(tensor: Tensor) -> Tensor:
        return tensor[torch.arange(len(ids), device=tensor.device), positions.to(tensor.device)]

    given = _inputs(hf, anatomy, ids, names, there)
    return {found.layer: (given[found.output], given[found.value.linear]) for found in anatomy.present()}


@torch.no_grad()
def head_outputs(hf: PreTrainedModel, anatomy: Anatomy, ids: Tensor) -> dict[int, Tensor]:
    """layer -> [row, position, head * head_dim]: what its heads put out on texts; where gates are in
    force, what these leave of it."""
    names = {found.output for found in anatomy.present()}
    given = _inputs(hf, anatomy, ids, names, lambda tensor: tensor)
    return {found.layer: given[found.output] for found in anatomy.present()}


def _inputs(
    hf: PreTrainedModel, anatomy: Anatomy, ids: Tensor, names: set[str], keep: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """module -> what is kept of its input [row, position, channel]."""
    given: dict[str, Tensor] = {}

    def watch(name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            tensor = first_tensor(args)
            tensor = tensor if tensor is not None else first_tensor(kwargs)
            assert tensor is not None
            # some models merge rows and positions
            given[name] = keep(tensor.reshape(len(ids), ids.shape[1], -1))

        return hook

    handles = [
        ungated(hf, name).register_forward_pre_hook(watch(name), with_kwargs=True) for name in sorted(names)
    ]
    with hooks(*handles):
        run_until(hf, ids, anatomy.block(anatomy.present()[-1].layer))
    return given
