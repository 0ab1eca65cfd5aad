"""A small trained model that continues repeated segments, and what can be said of it without headatlas.

Two layers of four heads, no MLP. A row is random words in which a segment of distinct words, found nowhere
else in the row, comes twice; the second time it is to be continued from its first word. The distance between
the two varies, so that no fixed offset finds the answer. The textbook circuit: a previous-token head tells
every place which word came before it, an induction head looks for the place that came after the word it
stands on and copies what is there. `scripts/train_induction.py` made the weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from headatlas.model import Model, load_model
from headatlas.task import Row
from support.planted import word_tokenizer

__all__ = [
    "FOLDER",
    "LEFT_OUT",
    "LONGER",
    "SEEN",
    "SEGMENT",
    "WORDS",
    "accuracy",
    "first_place",
    "head_patterns",
    "induction_model",
    "induction_rows",
    "induction_weights",
    "without_heads",
]

FOLDER = Path(__file__).parent.parent / "hand" / "induction"
WORDS, SEGMENT = 64, 6
#: distances from the first occurrence to the second that training never used
LEFT_OUT = (14, 15, 16, 17, 26, 27, 28, 29)
#: those that it used
SEEN = tuple(distance for distance in range(8, 41) if distance not in LEFT_OUT)
#: beyond the longest one that it used
LONGER = tuple(range(41, 61))
_MOST_BEFORE = 8


def induction_weights() -> Any:
    """The transformers model alone, with attention that shows its patterns."""
    return LlamaForCausalLM.from_pretrained(FOLDER, attn_implementation="eager").eval()


def induction_model() -> Model:
    """The same for headatlas; w0, w1, … are the words."""
    return load_model(induction_weights(), tokenizer=word_tokenizer(WORDS))


def induction_rows(
    distances: Sequence[int], count: int, seed: int, segment: int = SEGMENT, more: int = 0
) -> list[Row]:
    """`count` rows, the distances in turn: up to 8 words, the segment, other words, the segment again. The
    target is the second segment without its first word. `more` words can be put before it all."""
    if segment > min(distances):
        raise ValueError(f"a segment of {segment} words does not fit in a distance of {min(distances)}")
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        distance = distances[number % len(distances)]
        before = int(draw.integers(_MOST_BEFORE + 1)) + more
        words = draw.permutation(WORDS)
        repeated, others = words[:segment], words[segment:]
        ids = draw.choice(others, before + distance + segment)
        ids[before : before + segment] = repeated
        ids[before + distance :] = repeated
        rows.append(Row(tuple(int(word) for word in ids), before + distance + 1))
    return rows


def first_place(row: Row) -> int:
    """Where the segment of a row first begins."""
    return row.ids.index(row.ids[row.start - 1])


@torch.no_grad()
def accuracy(hf: Any, rows: Iterable[Row]) -> float:
    """The share of target words that are the model's first choice."""
    hits = []
    for row in rows:
        choice = hf(input_ids=torch.tensor([row.ids])).logits[0].argmax(-1)
        hits += (choice[row.start - 1 : -1] == torch.tensor(row.target)).tolist()
    return float(np.mean(hits))


@torch.no_grad()
def head_patterns(hf: Any, rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Mean attention [layer, head]: "previous", of every place but the first to the one before it;
    "induction", of a repeated word to the place after its first occurrence."""
    previous, induction = [], []
    for row in rows:
        attention: Tensor = torch.stack(
            hf(input_ids=torch.tensor([row.ids]), output_attentions=True).attentions
        )
        attention = attention[:, 0]  # [layer, head, from, to]
        previous.append(attention.diagonal(-1, 2, 3).mean(-1))
        at = torch.arange(row.start - 1, len(row.ids) - 1)
        after = at - (row.start - 1) + first_place(row) + 1
        induction.append(attention[:, :, at, after].mean(-1))
    return {
        "previous": torch.stack(previous).mean(0).numpy(),
        "induction": torch.stack(induction).mean(0).numpy(),
    }


@torch.no_grad()
def without_heads(hf: Any, heads: Iterable[tuple[int, int]]) -> Any:
    """The model itself, the output weights of some (layer, head) set to nothing."""
    width = hf.config.head_dim
    for layer, head in heads:
        hf.model.layers[layer].self_attn.o_proj.weight[:, head * width : (head + 1) * width] = 0
    return hf
