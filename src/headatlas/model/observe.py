"""What the heads read and write at one position of a text, as the model runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.model.anatomy import Anatomy
from headatlas.model.gating import ungated
from headatlas.model.trace import first_tensor, hooks, run_until

__all__ = ["observe"]


@torch.no_grad()
def observe(
    hf: PreTrainedModel, anatomy: Anatomy, ids: Tensor, positions: Tensor
) -> dict[int, tuple[Tensor, Tensor]]:
    """layer -> (what its heads put out [row, head * head_dim], what its values are made from [row, hidden]),
    at position `positions[row]` of each row of `ids`. The latter is what `head_values` takes."""
    given: dict[str, Tensor] = {}
    names = {name for found in anatomy.present() for name in (found.output, found.value.linear)}

    def watch(name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            tensor = first_tensor(args)
            tensor = tensor if tensor is not None else first_tensor(kwargs)
            assert tensor is not None
            tensor = tensor.reshape(len(ids), ids.shape[1], -1)  # some models merge rows and positions
            rows = torch.arange(len(ids), device=tensor.device)
            given[name] = tensor[rows, positions.to(tensor.device)]

        return hook

    handles = [
        ungated(hf, name).register_forward_pre_hook(watch(name), with_kwargs=True) for name in sorted(names)
    ]
    with hooks(*handles):
        run_until(hf, ids, anatomy.block(anatomy.present()[-1].layer))
    return {found.layer: (given[found.output], given[found.value.linear]) for found in anatomy.present()}
