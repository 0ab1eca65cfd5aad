"""MAPS by brute force, written from the definition: a head's whole matrix over the vocabulary, in double
precision, and every row of it sorted. Nothing here calls `headatlas.method`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from headatlas.model import Model
from headatlas.task import Relation
from support.planted import word_tokenizer

__all__ = [
    "WORDS",
    "Matrices",
    "brute_scores",
    "by_helpers",
    "clear_pairs",
    "ids_of",
    "in_top_by_sorting",
    "relation_of",
    "shares",
    "words",
]  # fmt: skip

#: (layer, head) -> [source token, token]: the rows that a head makes of the vocabulary
Matrices = Mapping[tuple[int, int], np.ndarray]
#: tokens that are words; the next one stands for whatever is no word
WORDS = 150


def words(first: bool = False) -> Any:
    """A tokeniser of the words w0 to w149 for the tiny models; with `first`, w0 goes before every text."""
    tokenizer = word_tokenizer(WORDS)
    if first:
        tokenizer._tokenizer.post_processor = TemplateProcessing(single="w0 $A", special_tokens=[("w0", 0)])
    return tokenizer


def relation_of(
    name: str, pairs: Sequence[tuple[int, ...]], category: str = "other", **options: Any
) -> Relation:
    """Pairs of token ids as a relation of words; all but the last of an entry are its source."""
    written = tuple((" ".join(f"w{token}" for token in pair[:-1]), f"w{pair[-1]}") for pair in pairs)
    return Relation(name, written, category=category, **options)


def ids_of(relation: Relation) -> list[tuple[int, int]]:
    """The token ids of a relation of single words."""
    return [(int(source[1:]), int(target[1:])) for source, target in relation.pairs]


def in_top_by_sorting(rows: np.ndarray, targets: Sequence[int], k: Any) -> np.ndarray:
    """[top or bottom, row]: every row sorted, the target at the last place among its equals."""
    found = []
    for signed in (rows, -rows):
        own = signed[np.arange(len(rows)), targets][:, None]
        falling = -np.sort(-signed, axis=1)
        found.append((falling >= own).sum(axis=1) <= k)
    return np.stack(found)


def shares(rows: np.ndarray, targets: Sequence[int], k: int) -> np.ndarray:
    """[direction]: the share of targets among the top and the bottom `k` of their rows."""
    return in_top_by_sorting(rows, targets, k).mean(axis=1)


def brute_scores(
    matrices: Matrices, shape: tuple[int, int], relations: Sequence[Relation], k: Sequence[int]
) -> np.ndarray:
    """[relation, direction, layer, head], as single precision."""
    found = np.full((len(relations), 2, *shape), np.nan)
    for place, (relation, limit) in enumerate(zip(relations, k, strict=True)):
        sources, targets = zip(*ids_of(relation), strict=True)
        for (layer, head), matrix in matrices.items():
            found[place, :, layer, head] = shares(matrix[list(sources)], targets, limit)
    return found.astype(np.float32)


def clear_pairs(
    *alternatives: Matrices, seed: int = 0, count: int = 80, margin: float = 1e-5
) -> list[tuple[int, int]]:
    """Random pairs of tokens, a third of them copies and a third what some head has on top, without those
    whose target lies so near another token, in any head, that single precision could not tell them apart."""
    chance = np.random.default_rng(seed)
    names = list(alternatives[0])
    pairs = set()
    for number in range(count):
        source, target = (int(token) for token in chance.integers(0, WORDS, 2))
        if number % 3 == 0:
            target = source
        elif number % 3 == 1:
            chosen = alternatives[number % len(alternatives)][names[number % len(names)]]
            target = int(np.argsort(-chosen[source, :WORDS])[number % 4])
        pairs.add((source, target))
    kept = []
    for source, target in sorted(pairs):
        for matrices in alternatives:
            rows = np.stack([matrix[source] for matrix in matrices.values()])
            apart = np.abs(rows - rows[:, target, None])
            apart[:, target] = np.inf
            if (apart.min(axis=1) <= margin * np.abs(rows).max(axis=1)).any():
                break
        else:
            kept.append((source, target))
    assert len(kept) >= 40, "too few pairs are clear"
    return kept


def by_helpers(model: Model, source: str) -> dict[tuple[int, int], np.ndarray]:
    """The matrices from what the model room reads off a model (it has tests of its own)."""
    every = torch.arange(model.spec.vocabulary)
    vectors = {kind: model.source_vectors(every, kind).double() for kind in {source, "embedding"}}
    unembedding = model.unembedding().double()
    found = {}
    for head in model.spec:
        lowest = model.attention(head.layer).value.layer == 0
        value, output = (weight.double() for weight in model.value_output(head.layer, head.head))
        norm = model.norm_after(head.layer)
        factor: Tensor | float = 1.0 if norm is None else norm.gain.double()
        x = vectors["embedding" if lowest else source]
        found[head.layer, head.head] = (x @ value @ (output * factor) @ unembedding).detach().numpy()
    return found
