"""What the heads read and write in a text, as the model runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.model.anatomy import Anatomy
from headatlas.model.gate_modules import ungated
from headatlas.model.trace import first_tensor, hooks, run_until

__all__ = ["head_outputs", "observe"]


@torch.no_grad()
def observe(
    hf: PreTrainedModel,
    anatomy: Anatomy,
    ids: Int[Tensor, "row position"],
    positions: Int[Tensor, " row"],
) -> dict[int, tuple[Float[Tensor, "row channel"], Float[Tensor, "row hidden"]]]:
    """layer -> (what its heads put out, side by side; what its values are made from), at position
    `positions[row]` of each row of `ids`. The latter is what `head_values` takes."""
    names = {name for found in anatomy.present() for name in (found.output, found.value.linear)}

    def at_positions(tensor: Tensor) -> Tensor:
        return tensor[torch.arange(len(ids), device=tensor.device), positions.to(tensor.device)]

    inputs = _inputs(hf, anatomy, ids, names, at_positions)
    return {found.layer: (inputs[found.output], inputs[found.value.linear]) for found in anatomy.present()}


@torch.no_grad()
def head_outputs(
    hf: PreTrainedModel, anatomy: Anatomy, ids: Int[Tensor, "row position"]
) -> dict[int, Float[Tensor, "row position channel"]]:
    """layer -> what its heads put out on texts, side by side; where gates are in force, what these leave of
    it."""
    names = {found.output for found in anatomy.present()}
    inputs = _inputs(hf, anatomy, ids, names, lambda tensor: tensor)
    return {found.layer: inputs[found.output] for found in anatomy.present()}


def _inputs(
    hf: PreTrainedModel,
    anatomy: Anatomy,
    ids: Int[Tensor, "row position"],
    names: set[str],
    keep: Callable[[Float[Tensor, "row position channel"]], Tensor],
) -> dict[str, Tensor]:
    """module -> what is kept of its input."""
    inputs: dict[str, Tensor] = {}

    def watch(name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            tensor = first_tensor(args)
            tensor = tensor if tensor is not None else first_tensor(kwargs)
            assert tensor is not None
            # some models merge rows and positions
            inputs[name] = keep(tensor.reshape(len(ids), ids.shape[1], -1))

        return hook

    handles = [
        ungated(hf, name).register_forward_pre_hook(watch(name), with_kwargs=True) for name in sorted(names)
    ]
    with hooks(*handles):
        run_until(hf, ids, anatomy.block(anatomy.present()[-1].layer))
    return inputs
