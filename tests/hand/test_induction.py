"""A trained model with a known circuit: gating and MAPS must find the heads that its attention shows.

What is true of the model is established first, without headatlas: which heads look at the previous token,
which ones find the place after a word's first occurrence, and that those heads, alone, do the task. One head
has each role here (training made others fade), so nothing can stand in for it: its gate cannot be shut, in
no seed, and it must be called facilitating. The heads that have faded write next to nothing and must not be.

This is the case that gating promises. It is not so where heads share a role. A trial of 2,000 updates without
the penalty that makes heads fade (seed 0; its weights are not kept) had four heads with induction patterns of
0.6 to 0.9 and a main previous-token head of 0.86 with the other three adding to it. No head was called
facilitating there, in none of four seeds: remove left seven of the eight gates at 0.31 to 0.43, with accuracy
at 0.94 to 0.95, and a count asks for 0.5. Yet the loss of the main previous-token head alone takes accuracy
to 0.23. A likely reason, not tested: norms undo a stream that shrinks as a whole, so all gates can be low.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headatlas.atlas.roles import role_scores, roles_of
from headatlas.method import GatingSettings, relation_scores
from headatlas.method.engine.likelihood import evaluate
from headatlas.method.gating import Stage
from headatlas.task import Relation
from support.fitting import fitted_gates
from support.induction import (
    LEFT_OUT,
    LONGER,
    SEEN,
    WORDS,
    accuracy,
    head_patterns,
    induction_model,
    induction_rows,
    induction_weights,
    without_heads,
)

SEEDS = range(3)
LONG = Stage(500, 0.1, 0.01), Stage(500, 0.5, 0.1)
HEADS = [(layer, head) for layer in range(2) for head in range(4)]


@pytest.fixture(scope="module")
def patterns():
    return head_patterns(induction_weights(), induction_rows(SEEN, 100, seed=1))


@pytest.fixture(scope="module")
def sizes():
    """[layer, head]: how much a head writes for a word that it attends to, over all words."""
    hf = induction_weights()
    words = hf.model.embed_tokens.weight[:WORDS]
    found = np.zeros((2, 4))
    for layer, head in HEADS:
        attention, own = hf.model.layers[layer].self_attn, slice(16 * head, 16 * head + 16)
        written = words @ attention.v_proj.weight[own].T @ attention.o_proj.weight[:, own].T
        found[layer, head] = float(written.detach().norm())
    return found


@pytest.fixture(scope="module")
def circuit(patterns, sizes):
    """role -> heads: those that look there and write something."""
    alive = sizes > 0.05 * sizes.max(1, keepdims=True)
    return {
        role: [(int(layer), int(head)) for layer, head in np.argwhere(alive & (patterns[role] > 0.8))]
        for role in ("previous", "induction")
    }


# What is true of the model, without headatlas


@pytest.mark.parametrize("distances", [SEEN, LEFT_OUT, LONGER], ids=["seen", "left out", "longer"])
def test_segments_are_continued_at_distances_seen_and_unseen(distances):
    assert not set(SEEN) & {*LEFT_OUT, *LONGER}
    assert accuracy(induction_weights(), induction_rows(distances, 200, seed=2)) >= 0.97


@torch.no_grad()
def test_the_answer_follows_the_word_and_not_the_place():
    """The same text, but for its last word: a model that counts places would give the same answer."""
    hf, hits = induction_weights(), []
    for row in induction_rows(SEEN, 50, seed=3):
        segment = (row.ids[row.start - 1], *row.target)
        texts = torch.tensor([(*row.prompt[:-1], word) for word in segment[:-1]])
        hits += (hf(input_ids=texts).logits[:, -1].argmax(-1) == torch.tensor(segment[1:])).tolist()
    assert np.mean(hits) >= 0.97


@torch.no_grad()
def test_there_is_no_answer_without_a_repetition():
    """Where the last word is new to the text, what stood at the usual distance is no more likely than
    anything else."""
    hf, hits = induction_weights(), []
    for distance in SEEN:
        for row in induction_rows([distance], 8, seed=distance):
            new = min(set(range(WORDS)) - set(row.ids))
            logits = hf(input_ids=torch.tensor([(*row.prompt[:-1], new)])).logits[0, -1]
            hits.append(int(logits.argmax()) == row.target[0])
    assert np.mean(hits) <= 0.1


def test_attention_shows_one_previous_token_head_and_one_induction_head(circuit):
    assert {role: heads[0][0] for role, heads in circuit.items()} == {"previous": 0, "induction": 1}
    assert [len(heads) for heads in circuit.values()] == [1, 1]


def test_the_circuit_alone_is_enough_and_each_of_its_heads_is_needed(circuit):
    rows = induction_rows(SEEN, 100, seed=4)
    needed = [head for heads in circuit.values() for head in heads]
    others = [head for head in HEADS if head not in needed]
    assert accuracy(without_heads(induction_weights(), others), rows) >= 0.97
    for head in needed:
        assert accuracy(without_heads(induction_weights(), [head]), rows) <= 0.1


# What headatlas says


@pytest.fixture(scope="module")
def model():
    return induction_model()


def induction_gates(model):
    near = [distance for distance in SEEN if distance < 26]  # short rows: the fit is what takes time here
    settings = GatingSettings("bounded", *LONG, batch=4, seeds=len(SEEDS))
    return fitted_gates(model, induction_rows(near, 96, seed=5), settings)


@pytest.mark.slow
def test_gating_finds_the_circuit_and_nothing_else_in_every_seed(model, circuit):
    gates = induction_gates(model)
    roles = roles_of(role_scores(gates)).values
    needed = {head for heads in circuit.values() for head in heads}
    for seed in range(len(SEEDS)):
        assert {head for head in HEADS if roles[seed][head] == "facilitating"} == needed
    unseen = induction_rows((*LEFT_OUT, *LONGER), 60, seed=6)
    for seed in SEEDS:
        kept = gates.sel(seed=seed, fit="remove").values
        assert evaluate(model, unseen, kept).accuracy >= 0.9


def test_copying_is_in_the_weights_of_the_induction_head_alone(model, circuit):
    words = [f"w{number}" for number in range(WORDS)]
    copying = Relation("copying", tuple((word, word) for word in words), category="algorithmic")
    scores = relation_scores(model, copying, source="embedding", k=1).sel(relation="copying")
    promote = scores.sel(direction=scores.direction[0]).values
    for head in circuit["induction"]:
        assert promote[head] >= 0.9
    for head in circuit["previous"]:
        assert promote[head] <= 0.1
