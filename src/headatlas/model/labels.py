"""What a model does with a text, as labelled arrays and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
import xarray as xr

from headatlas.core import Head, RequestError, UnknownNameError, require_whole
from headatlas.model.attention_patterns import attention_patterns
from headatlas.model.linear import exact
from headatlas.model.logit_attribution import contributions
from headatlas.model.texts import Text, one_row, one_token, token_ids, token_texts

if TYPE_CHECKING:
    from headatlas.model.model import Model

__all__ = ["NORMS", "labelled_head_outputs", "logit_attribution", "next_tokens", "patterns", "top_tokens"]

#: what is done with the final norm when weights are read
NORMS = ("published", "folded")


def next_tokens(model: Model, text: Text, k: int) -> pd.DataFrame:
    probabilities = model(one_row(model, text))[0, -1].double().softmax(0).cpu()
    best = probabilities.topk(require_whole("k", k, 1, len(probabilities)))
    return pd.DataFrame({"token": token_texts(model, best.indices), "probability": best.values.numpy()})


def patterns(model: Model, text: Text) -> xr.DataArray:
    ids = token_ids(model, text)
    layers, heads = model.spec.shape
    array = xr.DataArray(
        attention_patterns(model, ids).numpy(),
        dims=["row", "layer", "head", "query", "key"],
        coords={"layer": np.arange(layers), "head": np.arange(heads)},
        name="pattern",
    )
    return _with_tokens(model, array, ids, {"query_token": "query", "key_token": "key"}, text)


def labelled_head_outputs(model: Model, text: Text) -> xr.DataArray:
    ids = token_ids(model, text)
    layers, heads = model.spec.shape
    values = np.full((*ids.shape, layers, heads, max(model.spec.head_dim)), np.nan, dtype=np.float32)
    for layer, output in model.head_activations(ids).items():
        found = model.attention(layer)
        split = output.unflatten(-1, (found.heads, found.head_dim)).float().cpu().numpy()
        values[:, :, layer, : found.heads, : found.head_dim] = split
    array = xr.DataArray(
        values,
        dims=["row", "position", "layer", "head", "dim"],
        coords={"layer": np.arange(layers), "head": np.arange(heads)},
        name="head_output",
    )
    return _with_tokens(model, array, ids, {"token": "position"}, text)


def _with_tokens(
    model: Model, array: xr.DataArray, ids: torch.Tensor, coordinates: dict[str, str], text: Text
) -> xr.DataArray:
    """The array with its tokens; without the dimension `row` for one text."""
    if isinstance(text, str) or (isinstance(text, torch.Tensor) and text.ndim == 1):
        tokens = token_texts(model, ids[0])
        return array.isel(row=0).assign_coords({name: (dim, tokens) for name, dim in coordinates.items()})
    tokens_of_rows = [token_texts(model, row) for row in ids]
    return array.assign_coords({name: (("row", dim), tokens_of_rows) for name, dim in coordinates.items()})


def logit_attribution(
    model: Model, text: Text, target: str | int, foil: str | int | None, position: int
) -> xr.DataArray:
    ids = one_row(model, text)
    length = ids.shape[1]
    if not -length <= position < length:
        raise RequestError(f"position is {position}; the text has {length} tokens.")
    tokens = [one_token(model, token) for token in (target, *([] if foil is None else [foil]))]
    parts = contributions(
        model, ids[0], position % length, tokens[0], tokens[1] if foil is not None else None
    )
    heads = list(model.spec)
    layers = range(len(parts.rest))
    names = [*map(str, heads), *(f"L{layer} rest" for layer in layers), "embedding", "bias"]
    values = [
        *(float(parts.heads[head.layer, head.head]) for head in heads),
        *parts.rest.tolist(),
        parts.embedding,
        parts.bias,
    ]
    layer_of = [*(head.layer for head in heads), *layers, -1, -1]
    head_of = [*(head.head for head in heads), *(-1 for _ in layers), -1, -1]
    capped = {"note": "before the model caps its logits"} if parts.capped else {}
    return xr.DataArray(
        values,
        dims=["component"],
        coords={"component": names, "layer": ("component", layer_of), "head": ("component", head_of)},
        name="logit" if foil is None else "logit_difference",
        attrs={"target": str(target), **({} if foil is None else {"foil": str(foil)}), **capped},
    )


@torch.no_grad()
def top_tokens(
    model: Model,
    head: str | tuple[int, int] | Head,
    token: str | int,
    k: int,
    *,
    norms: str,
    source: str,
    suppressed: bool,
) -> pd.DataFrame:
    if norms not in NORMS:
        raise UnknownNameError("norms", norms, NORMS)
    name = model.spec.require(head)
    vector = model.source_vectors([one_token(model, token)], "embedding" if name.layer == 0 else source)
    weights = model.value_output(name)
    written = (
        exact(vector[0]) @ exact(weights.value).to(vector.device) @ exact(weights.output).to(vector.device)
    )
    norm = model.norm_after(name.layer)
    written = written if norm is None else norm(written)
    written = model.final_norm()(written) if norms == "folded" else written
    scores = written.cpu() @ exact(model.unembedding()).cpu()
    best = scores.topk(require_whole("k", k, 1, len(scores)), largest=not suppressed)
    return pd.DataFrame({"token": token_texts(model, best.indices), "score": best.values.numpy()})
