"""MAPS: which relations a head implements, read off its weights.

A head maps a source token s to the vocabulary by x_s · W_V · W_O · W_U, where x_s is the token's embedding
in layer 0 and above it the first MLP's output for the token (or the embedding throughout: `source`). Its
score for a relation is the share of pairs (s, t) with t among the top k of that row: it promotes; among the
bottom k: it suppresses. No norms, no biases, no positions; where a norm stands between W_O and the stream,
it counts (`Model.norm_after`), but for its scale, which changes no order. With `norms="folded"` the weights
of the final norm count likewise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headatlas.core import DIRECTIONS, Head, RequestError, UnknownNameError
from headatlas.method.relation.top_k import TopK, Vocabulary, full_precision
from headatlas.model import SOURCES, Model
from headatlas.model.labels import NORMS
from headatlas.model.linear import exact
from headatlas.task import (
    LEAST_PAIRS,
    PairTokens,
    Relations,
    RelationTokens,
    distinct_relations,
    relation_tokens,
)

__all__ = ["Writer", "choose_k", "relations_for", "sampled", "static_scores"]

#: k for copying and for other relations, in vocabularies up to `_LARGE` and above
_USUAL_K, _LARGE_K, _LARGE = (1, 10), (3, 25), 100_000


def relations_for(
    model: Model, relations: Relations | None, min_pairs: int = LEAST_PAIRS
) -> list[RelationTokens]:
    """Relations in the model's tokens; all built-in ones for None. A score needs `min_pairs`."""
    if not isinstance(model, Model):
        raise RequestError(
            f"{model!r:.60} is not a Model; give what load_model returns, or use relate_heads."
        )
    if model.tokenizer is None:
        raise RequestError(f"{model.spec.name} has no tokenizer; pass tokenizer=… to load_model.")
    return [relation_tokens(one, model.tokenizer, min_pairs) for one in distinct_relations(relations)]


def choose_k(relation: RelationTokens, vocabulary: int, asked: int | Mapping[str, int] | None = None) -> int:
    """How far down a target may be: as asked for (for all, or by name), else by the vocabulary's size.

    Where pieces stand for targets it is one: pieces are few (ten digits), and near the top of any head that
    likes their kind.
    """
    if isinstance(asked, Mapping):
        asked = asked.get(relation.name)
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, int):
            raise RequestError(f"k is {asked!r}; it is a whole number.")
        if not 1 <= asked < vocabulary:
            raise RequestError(f"k is {asked}; it lies between 1 and {vocabulary - 1} here.")
        return asked
    if not relation.measurable and not all(pair.whole for pair in relation.in_text):
        return 1
    copying, other = _LARGE_K if vocabulary > _LARGE else _USUAL_K
    return copying if relation.relation.copies else other


class Writer:
    """Asks of many heads whether what they write has certain tokens on top."""

    def __init__(self, model: Model, norms: str = "published") -> None:
        if norms not in NORMS:
            raise UnknownNameError("norms", norms, NORMS)
        self.model, self.norms = model, norms
        unembedding = model.unembedding()
        # what has no double precision cannot be exact: there the work is done on the CPU
        self.vocabulary = Vocabulary.of(
            unembedding.cpu() if unembedding.device.type == "mps" else unembedding
        )

    def output(self, layer: int, head: int) -> Float[Tensor, "head_dim hidden"]:
        """What the head writes into the stream, in double precision."""
        output = exact(self.model.output_weight(layer, head))
        norm = self.model.norm_after(layer)
        output = output if norm is None else norm(output)
        return self.model.final_norm()(output) if self.norms == "folded" else output

    def scores(
        self,
        pairs: Sequence[Sequence[PairTokens]],
        k: Sequence[int],
        inner: Callable[[int, int], Float[Tensor, "pair head_dim"]],
        progress: Callable[[int], None] | None = None,
        heads: Iterable[Head] | None = None,
    ) -> Float[np.ndarray, "relation direction layer head"]:
        """Shares of the pairs of each relation that are in its top `k`.

        `inner(layer, head)` gives what the head reads for all pairs, one relation after the other. `heads`:
        only these; the values of others are NaN.
        """
        shares = np.full((len(pairs), len(DIRECTIONS), *self.model.spec.shape), np.nan)
        device = self.vocabulary.weight.device
        counts = torch.tensor([len(some) for some in pairs])
        owner = torch.repeat_interleave(torch.arange(len(pairs)), counts)
        targets = torch.tensor([pair.target for some in pairs for pair in some], device=device)
        limits = torch.tensor(k)[owner].to(device)
        top_k = TopK(self.vocabulary, targets, limits)
        for some in self._groups(self.model.spec if heads is None else heads, top_k):
            read = (inner(head.layer, head.head).to(device) for head in some)
            written = (self.output(head.layer, head.head).to(device) for head in some)
            top_k.ask(some, read, written)
            if progress is not None:
                progress(len(some))
        answers, ends = top_k.answers(), counts.cumsum(0)
        if answers:
            sums = functional.pad(torch.stack(list(answers.values())).cpu().cumsum(2), (1, 0))
            found = (sums[:, :, ends] - sums[:, :, ends - counts]).double() / counts
            for head, share in zip(answers, found.numpy(), strict=True):
                shares[:, :, head.layer, head.head] = share.T
        return shares

    def _groups(self, heads: Iterable[Head], top_k: TopK) -> Iterator[list[Head]]:
        """Heads of a layer that are asked together."""
        for layer, some in groupby(heads, key=lambda head: head.layer):
            own, each = list(some), top_k.together(self.model.attention(layer).head_dim)
            yield from (own[start : start + each] for start in range(0, len(own), each))


def static_scores(
    writer: Writer,
    pairs: Sequence[Sequence[PairTokens]],
    k: Sequence[int],
    source: str,
    progress: Callable[[int], None] | None = None,
    heads: Iterable[Head] | None = None,
) -> Float[np.ndarray, "relation direction layer head"]:
    """Scores from weights alone, for pairs of single tokens."""
    model = writer.model
    tokens = torch.tensor([pair.source[0] for some in pairs for pair in some])
    different, places = tokens.unique(return_inverse=True)
    with full_precision():
        vectors = {kind: exact(model.source_vectors(different, kind)) for kind in {source, SOURCES[0]}}
    read: dict[Any, Tensor] = {}

    def inner(layer: int, head: int) -> Tensor:
        nonlocal places
        found = model.attention(layer)
        kind = SOURCES[0] if found.value.layer == 0 else source
        key = (layer, tuple(found.value.channels[head].tolist()))  # heads of a group read the same
        if key not in read:
            if any(other[0] != layer for other in read):
                read.clear()
            with full_precision():
                value = exact(model.value_weight(layer, head))
                places = places.to(value.device)
                read[key] = (vectors[kind].to(value.device) @ value)[places]
        return read[key]

    return writer.scores(pairs, k, inner, progress, heads)


def sampled(pairs: Sequence[PairTokens], most: int | None) -> list[PairTokens]:
    """At most so many pairs: a fair sample, always the same one, in the order of the list."""
    if most is None or len(pairs) <= most:
        return list(pairs)
    return [pairs[place] for place in sorted(random.Random(0).sample(range(len(pairs)), most))]
