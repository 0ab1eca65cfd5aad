"""`TopK`, asked about one head alone."""

from __future__ import annotations

from torch import Tensor

from headatlas.method.relation.top_k import TopK, Vocabulary

__all__ = ["in_top"]


def in_top(
    inner: Tensor, output: Tensor, vocabulary: Vocabulary, targets: Tensor, k: Tensor
) -> tuple[Tensor, Tensor]:
    """(is each target in the top k, is it in the bottom k): the questions of one head."""
    one = TopK(vocabulary, targets, k)
    one.ask([0], [inner], [output])
    top, bottom = one.answers()[0]
    return top, bottom
