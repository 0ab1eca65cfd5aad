"""Dynamic scores: what heads write about a source while the model reads it in a text.

The model runs on short texts that end in the source. *attending*: what the head puts out there, as it
attends. *forced*: what it would put out if it looked at the source alone, which is the value of the source
in that run; no other head is touched by this. Either is sent through W_O and the unembedding and scored as
weights are. With these texts a source may have several tokens (it is looked at where it ends).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headatlas.core import DIRECTIONS
from headatlas.method.engine.memory import with_room
from headatlas.method.relation.scorer import Writer
from headatlas.model.weights import head_values
from headatlas.task import PairTokens, tokens_of

__all__ = ["TEMPLATES", "text_scores"]

#: texts that a source is put behind
TEMPLATES = ("This is a document about", "Here is a short note on", "We were just talking about")
#: tokens that go through the model at once
_TOKENS = 4096


def text_scores(
    writer: Writer,
    pairs: Sequence[Sequence[PairTokens]],
    k: Sequence[int],
    templates: Sequence[str] = TEMPLATES,
    kinds: Sequence[str] = ("attending", "forced"),
    progress: Callable[[int], None] | None = None,
) -> dict[str, Float[np.ndarray, "relation direction layer head"]]:
    """Scores of each kind, averaged over the templates."""
    if not any(pairs):
        return {
            kind: np.full((len(pairs), len(DIRECTIONS), *writer.model.spec.shape), np.nan) for kind in kinds
        }
    found: dict[str, list[np.ndarray]] = {kind: [] for kind in kinds}
    for template in templates:
        seen = _read(writer, [pair.source for some in pairs for pair in some], template)
        for kind in kinds:
            inner = partial(_inner, writer, seen, kind)
            found[kind].append(writer.scores(pairs, k, inner, progress))
    return {kind: np.mean(parts, axis=0) for kind, parts in found.items()}


def _read(
    writer: Writer, sources: Sequence[tuple[int, ...]], template: str
) -> dict[int, tuple[Float[Tensor, "source channel"], Float[Tensor, "source hidden"]]]:
    """By layer (head outputs, inputs of the values) at the end of each source."""
    model = writer.model
    first, _ = model.first_tokens()
    before = (*first, *tokens_of(model.tokenizer, [template])[0])
    different = sorted(set(sources), key=lambda source: (len(source), source))
    places = {source: place for place, source in enumerate(different)}
    width = len(before) + len(different[-1])

    def observe(budget: int) -> dict[int, list[tuple[Tensor, Tensor]]]:
        parts: dict[int, list[tuple[Tensor, Tensor]]] = {}
        for start in range(0, len(different), max(1, budget // width)):
            some = different[start : start + max(1, budget // width)]
            longest = max(map(len, some))
            rows = [
                [*before, *source, *[source[-1]] * (longest - len(source))] for source in some
            ]  # not looked at
            ends = torch.tensor([len(before) + len(source) - 1 for source in some])
            for layer, both in model.head_activations_at(
                torch.tensor(rows, device=model.device), ends
            ).items():
                parts.setdefault(layer, []).append(both)
        return parts

    parts = with_room(width, _TOKENS, observe)
    order = torch.tensor([places[source] for source in sources])
    seen = {}
    for layer, pieces in parts.items():
        outputs, inputs = (torch.cat(column) for column in zip(*pieces, strict=True))
        seen[layer] = outputs[order.to(outputs.device)], inputs[order.to(inputs.device)]
    return seen


def _inner(
    writer: Writer, seen: dict[int, tuple[Tensor, Tensor]], kind: str, layer: int, head: int
) -> Tensor:
    found = writer.model.attention(layer)
    outputs, inputs = seen[layer]
    if kind == "forced":
        return head_values(writer.model.hf, found, head, inputs)
    return outputs[:, head * found.head_dim : (head + 1) * found.head_dim]
