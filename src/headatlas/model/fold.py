"""Gates made part of the weights: the model then needs no gates, and no headatlas.

A gate multiplies what a head gives to the output projection; multiplying the part of W_O that reads the head
is the same. Heads that are off can be removed, not only silenced: by key/value groups, as queries of a group
share their keys and values, and equally many in every layer, as a checkpoint has one number of heads for all.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Real
from torch import Tensor
from transformers import PreTrainedModel
from transformers.initialization import no_init_weights
from transformers.pytorch_utils import Conv1D

from headatlas.core import ModelRefusedError, RequestError
from headatlas.model.anatomy import Anatomy, Attention
from headatlas.model.gate_modules import is_gated
from headatlas.model.linear import has_plain_weight
from headatlas.model.model import Model

__all__ = ["fold_gates", "without_groups"]


@torch.no_grad()
def fold_gates(model: Model, gates: Real[np.ndarray, "layer head"]) -> None:
    """Multiply W_O of every head with its gate. The model is another one afterwards."""
    require_foldable(model)
    values = torch.from_numpy(np.nan_to_num(np.asarray(gates, dtype=np.float64), nan=1.0))
    if tuple(values.shape) != model.spec.shape:
        raise RequestError(f"gates of shape {list(values.shape)}; this model has {list(model.spec.shape)}.")
    for found in model.anatomy.present():
        module: Any = model.hf.get_submodule(found.output)
        each = values[found.layer, : found.heads].repeat_interleave(found.head_dim).to(module.weight.device)
        factor = each[:, None] if isinstance(module, Conv1D) else each
        module.weight.copy_(module.weight.double() * factor)


def require_foldable(model: Model) -> None:
    if is_gated(model.hf):
        raise RequestError("gates are folded into the plain model; leave the gated block first.")
    for found in model.anatomy.present():
        if not has_plain_weight(model.hf.get_submodule(found.output)):
            raise ModelRefusedError(
                f"{model.spec.name} has quantised, offloaded or adapted weights at {found.output}, into "
                "which gates cannot be folded; load the plain weights on one device (adapters merged)."
            )


@torch.no_grad()
def without_groups(model: Model, off: Bool[np.ndarray, "layer head"]) -> tuple[PreTrainedModel | None, str]:
    """(the model without key/value groups of which all heads are `off`, what was done); None with the reason
    where that cannot be. Gates are to be folded before: what is removed is silent."""
    hf, anatomy = model.hf, model.anatomy
    present = anatomy.present()
    sizes = {(found.heads, found.kv_heads, found.head_dim) for found in present}
    if len(sizes) > 1 or len(present) < anatomy.layers:
        return None, "layers have different numbers of heads"
    ((heads, kv_heads, head_dim),) = sizes
    groups = {found.layer: _groups(found) for found in present}
    idle = {
        layer: [group for group, own in enumerate(of) if off[layer, own].all()]
        for layer, of in groups.items()
    }
    fewest = min(idle, key=lambda layer: len(idle[layer]))
    count = min(len(idle[fewest]), kv_heads - 1)
    if not count:
        return None, (
            f"layer {fewest} has no {'head' if heads == kv_heads else 'key/value group'} that is off as a "
            "whole, and every layer must lose equally many"
        )
    kept = {
        layer: [group for group in range(kv_heads) if group not in gone[:count]]
        for layer, gone in idle.items()
    }
    queries = {layer: np.concatenate([groups[layer][group] for group in kept[layer]]) for layer in kept}
    smaller = _smaller(hf, heads - count * heads // kv_heads, kv_heads - count, head_dim)
    if smaller is None or _shapes(smaller) == _shapes(hf):
        return None, f"{hf.config.model_type} models tie the number of heads to other sizes"
    weights = _sliced(hf, smaller, anatomy, (heads, kv_heads, head_dim), queries, kept)
    if weights is None:
        return None, f"{hf.config.model_type} models keep heads in matrices of a form that is not known here"
    smaller.load_state_dict(weights, assign=True)
    smaller.tie_weights()
    smaller.generation_config = hf.generation_config
    smaller = smaller.to(model.device).eval()  # weights have their dtype; other numbers keep theirs
    gap = _deviation(hf, smaller, model.spec.vocabulary)
    if not gap <= (0.05 if hf.dtype.itemsize < 4 else 1e-3):
        return None, f"{hf.config.model_type} models change when heads are removed that are off"
    what = "heads" if heads == kv_heads else "key/value groups"
    return smaller, f"{count} of {kv_heads} {what} removed in each of {anatomy.layers} layers"


def _shapes(hf: PreTrainedModel) -> list[torch.Size]:
    return [tensor.shape for tensor in hf.state_dict().values()]


def _groups(found: Attention) -> list[np.ndarray]:
    """The query heads of each key/value head, in the order of the value channels."""
    firsts = found.value.channels[:, 0].numpy()
    return [np.flatnonzero(firsts == first) for first in np.unique(firsts)]


def _smaller(hf: PreTrainedModel, heads: int, kv_heads: int, head_dim: int) -> PreTrainedModel | None:
    """A model with that many heads and no weights yet; None if its config does not allow that."""
    config = deepcopy(hf.config)
    own = config.get_text_config()
    try:
        own.head_dim = head_dim
        own.num_attention_heads = heads
        if getattr(own, "num_key_value_heads", None) is not None:
            own.num_key_value_heads = kv_heads
        with no_init_weights():
            return type(hf)(config)
    except Exception:  # whatever a model says of sizes that do not fit together
        return None


def _sliced(
    hf: PreTrainedModel,
    smaller: PreTrainedModel,
    anatomy: Anatomy,
    sizes: tuple[int, int, int],
    queries: dict[int, np.ndarray],
    groups: dict[int, list[int]],
) -> dict[str, Tensor] | None:
    """The weights of the smaller model, cut out of those of the larger by their shapes."""
    heads, kv_heads, head_dim = sizes
    wanted = smaller.state_dict()
    found: dict[str, Tensor] = {}
    for name, whole in hf.state_dict().items():
        if name not in wanted:
            return None
        tensor = whole
        layer = next((one for one in queries if name.startswith(anatomy.block(one) + ".")), None)
        for axis, (before, after) in enumerate(zip(whole.shape, wanted[name].shape, strict=True)):
            if before == after:
                continue
            per_channel = {heads * head_dim: head_dim, heads: 1}
            per_group = {kv_heads * head_dim: head_dim, kv_heads: 1}
            if layer is None or (before not in per_channel and before not in per_group):
                return None
            own, width = (
                (queries[layer], per_channel[before])
                if before in per_channel
                else (np.array(groups[layer]), per_group[before])
            )
            index = torch.from_numpy((own[:, None] * width + np.arange(width)).ravel()).to(tensor.device)
            if len(index) != after:
                return None
            tensor = tensor.index_select(axis, index)
        if tensor.shape != wanted[name].shape:
            return None
        found[name] = tensor.contiguous()
    return found if found.keys() == wanted.keys() else None


def _deviation(one: PreTrainedModel, other: PreTrainedModel, vocabulary: int) -> float:
    """How far logits on random tokens are apart, against their size."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, vocabulary, (2, 12), generator=generator).to(one.device)
    logits = [hf(input_ids=ids, use_cache=False).logits.float() for hf in (one, other)]
    return float((logits[0] - logits[1]).abs().max() / logits[0].abs().max())
