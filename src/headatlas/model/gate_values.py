"""What users write for gates, in the forms that gating takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from operator import index
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from headatlas.core import GateError, Head, ModelSpec
from headatlas.model.texts import token_ids

if TYPE_CHECKING:
    from headatlas.model.model import Model

__all__ = ["gate_tensor", "parse_heads", "replacement_outputs"]

_LAYER = re.compile(r"L(\d+)", re.IGNORECASE)
#: the mean output of a head in this text is what `replacement="mean"` leaves
_MEAN_TEXT = (
    "The museum opened in 1923, a short walk from the river. Its first rooms held maps, coins and a few "
    "paintings; later the collection grew to more than 40,000 pieces. Today most visitors come for the "
    "library, where anyone may read old letters, newspapers and scientific journals. 'We want people to ask "
    "questions,' says the director, 'and to find out for themselves.'"
)


def parse_heads(spec: ModelSpec, name: Any) -> list[Head]:
    """The head of that name, or all heads of a layer for "L5"."""
    layer = _LAYER.fullmatch(name.strip()) if isinstance(name, str) else None
    if layer is None:
        return [spec.require(name)]
    number = int(layer[1])
    spec.require((number, 0))
    return [Head(number, head) for head in range(spec.heads[number])]


def gate_tensor(spec: ModelSpec, values: Any) -> Any:
    """Gates [layer, head] or [row, layer, head] from what a user may give: a mapping from heads or layers to
    values, heads to switch off, or a labelled array. Anything else is returned as it is."""
    if isinstance(values, Mapping) and not hasattr(values, "dims"):
        return _from_mapping(spec, values)
    if hasattr(values, "dims") and hasattr(values, "transpose"):
        return _from_labelled(spec, values)
    if _is_column(values):
        values = values.tolist()
    if _is_head_name(values):
        values = [values]
    if isinstance(values, Iterable) and not isinstance(values, Tensor) and not hasattr(values, "shape"):
        values = list(values)
        if all(_is_head_name(value) for value in values):
            off = {head: 0.0 for value in values for head in parse_heads(spec, value)}
            return _from_mapping(spec, off)
    return values


def _is_head_name(value: Any) -> bool:
    """A pair of whole numbers in a tuple names a head; in a list it is two gates."""
    is_pair = isinstance(value, tuple) and len(value) == 2 and all(map(_is_whole, value))
    return isinstance(value, str | Head) or is_pair


def _is_whole(value: Any) -> bool:
    try:
        index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _is_column(values: Any) -> bool:
    """True for a one-dimensional array, Index or Series of something other than numbers."""
    if isinstance(values, Tensor) or not hasattr(values, "tolist") or getattr(values, "ndim", 0) != 1:
        return False
    return getattr(values.dtype, "kind", "O") not in "biufc"


def _from_mapping(spec: ModelSpec, values: Mapping[Any, Any]) -> Float[Tensor, "layer head"]:
    tensor = torch.ones(spec.shape)
    for name, value in values.items():
        for head in parse_heads(spec, name):
            try:
                tensor[head.layer, head.head] = float(value)
            except (TypeError, ValueError, RuntimeError) as error:
                raise GateError(f"the gate of {head} is a number, not {value!r}.") from error
    return tensor


def _from_labelled(spec: ModelSpec, values: Any) -> Tensor:
    """A labelled array, such as `atlas.gates(task).mean("seed")`; dimensions of size one are dropped."""
    drop = [dim for dim, size in values.sizes.items() if dim not in ("row", "layer", "head") and size == 1]
    values = values.squeeze(drop, drop=True)
    extra = [str(dim) for dim in values.dims if dim not in ("row", "layer", "head")]
    if extra or not {"layer", "head"} <= set(values.dims):
        fix = f"; select from {extra[0]!r} or average over it" if extra else ""
        raise GateError(
            f"gates have the dimensions layer and head, not {', '.join(map(str, values.dims))}{fix}."
        )
    for dim, size in zip(("layer", "head"), spec.shape, strict=True):
        if values.sizes[dim] != size or (
            dim in values.coords and list(values[dim].values) != list(range(size))
        ):
            raise GateError(f"the gates cover a part of the {dim}s; {spec.name} has {size} of them.")
    order = [dim for dim in ("row", "layer", "head") if dim in values.dims]
    return torch.as_tensor(values.transpose(*order).values)


def replacement_outputs(model: Model, replacement: Any) -> Mapping[int, Tensor] | None:
    """layer -> what a closed gate leaves: None for "zero", the means over a text for "mean", the outputs in
    a text, or outputs that are given, at each position or the same at all."""
    if replacement is None or (isinstance(replacement, str) and replacement == "zero"):
        return None
    if isinstance(replacement, str):
        is_mean = replacement == "mean"
        if close := () if is_mean else get_close_matches(replacement.lower(), ("zero", "mean"), 1, 0.8):
            raise GateError(f"the replacement is {replacement!r}; did you mean {close[0]!r}?")
        outputs = model.head_activations(token_ids(model, _MEAN_TEXT if is_mean else replacement))
        if not is_mean:
            return outputs
        first = len(model.first_tokens()[0])
        return {layer: output[:, first:].mean(dim=(0, 1)) for layer, output in outputs.items()}
    if hasattr(replacement, "dims"):
        return _from_head_outputs(model, replacement)
    if isinstance(replacement, Tensor) or hasattr(replacement, "__array__"):
        return _split_layers(model, torch.as_tensor(replacement))
    if not isinstance(replacement, Mapping):
        raise GateError(
            'a replacement is "zero", "mean", a text, what Model.head_outputs gives, an array [layer, '
            "head, dim], or a mapping from layers to tensors."
        )
    return replacement


def _from_head_outputs(model: Model, outputs: Any) -> Mapping[int, Tensor]:
    """The outputs of `Model.head_outputs`; without the dimension `position` the same at all positions."""
    order = [dim for dim in ("row", "position", "layer", "head", "dim") if dim in outputs.dims]
    if order[-3:] != ["layer", "head", "dim"] or len(order) != len(outputs.dims):
        raise GateError(
            "head outputs have the dimensions layer, head and dim, and may have row and position, not "
            f"{', '.join(map(str, outputs.dims))}."
        )
    for dim, size in zip(("layer", "head"), model.spec.shape, strict=True):
        if dim in outputs.coords and list(outputs[dim].values) != list(range(size)):
            raise GateError(
                f"the head outputs cover a part of the {dim}s; {model.spec.name} has {size} of them."
            )
    values = torch.as_tensor(outputs.transpose(*order).values)
    if "position" in order and "row" not in order:
        values = values[None]
    elif "row" in order and "position" not in order:
        values = values[:, None]
    return _split_layers(model, values)


def _split_layers(model: Model, values: Tensor) -> Mapping[int, Tensor]:
    """layer -> the outputs of its heads side by side, from [..., layer, head, dim]."""
    shape = (*model.spec.shape, max(model.spec.head_dim))
    if values.ndim not in (3, 5) or tuple(values.shape[-3:]) != shape:
        raise GateError(
            f"head outputs are [layer, head, dim] = {list(shape)} here, or [row, position, layer, head, "
            f"dim], not {list(values.shape)}."
        )
    return {
        found.layer: values[..., found.layer, : found.heads, : found.head_dim].flatten(-2)
        for found in model.anatomy.present()
    }
