"""A model whose relations are known, because its weights are set by hand.

32 words w0 … w31, embedded as unit vectors e0 … e31, and a last token that stands for anything else (a zero
vector); the unembedding reads the same channels. Two layers of four heads, each as wide as the stream, that
read all of it (W_V = 1) and write by a matrix of their own:

    head 0   1         what it reads: copying
    head 1   shift     w_i -> w_i+1
    head 2   -1        less of what it reads
    head 3   0         nothing

The first MLP makes c · e_i+2 of e_i (c > 0, up to a number of the norm). So in layer 0, and in layer 1 with
the embedding as source, head 0 copies and head 1 goes one further; with the first MLP as source, in layer 1
head 0 goes two further and head 1 three.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headatlas import load_model
from headatlas.method import relation_scores
from headatlas.method.relation.salient import salient_operations
from headatlas.method.relation.scorer import Writer, relations_for
from headatlas.method.relation.scores import scores_in_texts
from headatlas.method.relation.source_choice import choose_source
from support.planted import blank_llama, word_tokenizer
from support.relations import relation_of

WORDS = 32


def shifted(by):
    """[from, to]"""
    return torch.eye(WORDS).roll(by, dims=1)


def model_by_hand(mlp=1.0, attention=1.0):
    """`mlp` and `attention` are how strongly the first block's parts write into the stream."""
    hf = blank_llama(WORDS + 1, WORDS, 4, WORDS, layers=2, mlp=WORDS)
    hf.model.embed_tokens.weight[:WORDS] = torch.eye(WORDS)
    hf.lm_head.weight[:WORDS] = torch.eye(WORDS)
    for layer, block in enumerate(hf.model.layers):
        block.self_attn.v_proj.weight.copy_(torch.eye(WORDS).repeat(4, 1))
        strength = attention if layer == 0 else 1
        for head, writes in enumerate((torch.eye(WORDS), shifted(1), -torch.eye(WORDS))):
            block.self_attn.o_proj.weight[:, WORDS * head : WORDS * (head + 1)] = strength * writes.T
    first = hf.model.layers[0].mlp
    first.gate_proj.weight.copy_(torch.eye(WORDS))
    first.up_proj.weight.copy_(torch.eye(WORDS))
    first.down_proj.weight.copy_(mlp / WORDS * shifted(2).T)  # silu(√32) · √32 is about 32
    return load_model(hf, tokenizer=word_tokenizer(WORDS), check=False)


def further(by):
    return relation_of(f"{by} further", [(word, (word + by) % WORDS) for word in range(WORDS)])


RELATIONS = [further(by) for by in range(4)]
ROW = {name: list(map(float, name)) for name in ("1000", "0100", "0010", "0000")}


def test_the_first_mlp_goes_two_further():
    model = model_by_hand()
    found = model.source_vectors(range(WORDS))
    assert torch.allclose(found / found.max(), shifted(2), atol=1e-6) and 0.9 < found.max() < 1.1


# [by 0, 1, 2, 3][layer][head]
PROMOTED = {
    "embedding": [["1000", "1000"], ["0100", "0100"], ["0000", "0000"], ["0000", "0000"]],
    "first_mlp": [["1000", "0000"], ["0100", "0000"], ["0000", "1000"], ["0000", "0100"]],
}
SUPPRESSED = {
    "embedding": [["0010", "0010"], ["0000", "0000"], ["0000", "0000"], ["0000", "0000"]],
    "first_mlp": [["0010", "0000"], ["0000", "0000"], ["0000", "0010"], ["0000", "0000"]],
}


@pytest.mark.parametrize("k", [None, 1, 10, 31])
@pytest.mark.parametrize("source", ["embedding", "first_mlp"])
def test_scores(source, k):
    """All or nothing: every token but one has the same number in a row, and equals count against a target, so
    that k does not matter."""
    found = relation_scores(model_by_hand(), RELATIONS, source=source, k=k)
    expected = [
        [[ROW[row] for row in rows] for rows in both]
        for both in zip(PROMOTED[source], SUPPRESSED[source], strict=True)
    ]
    np.testing.assert_array_equal(found.values, np.array(expected, dtype=np.float32))
    assert found.k.values.tolist() == ([1, 10, 10, 10] if k is None else [k] * 4)
    assert found.pairs.values.tolist() == [32] * 4


def test_shares():
    """8 of 32 pairs are copies, 16 go one further, 8 two."""
    pairs = [(word, (word + (0, 1, 1, 2)[word % 4]) % WORDS) for word in range(WORDS)]
    found = relation_scores(model_by_hand(), relation_of("mixed", pairs), source="first_mlp")
    assert found.sel(direction="promote").values[0].tolist() == [[0.25, 0.5, 0, 0], [0.25, 0, 0, 0]]
    assert found.sel(direction="suppress").values[0].tolist() == [[0, 0, 0.25, 0], [0, 0, 0.25, 0]]


def test_in_texts():
    """The text is the source alone, as far as the model can tell: the words before it are unknown ones, with
    zero vectors. Forced to look at it, the heads of layer 0 do what their weights say; as they attend
    (evenly) too: nothing else is there to be seen. In layer 1 they find e_i, c · e_i+2 and little more."""
    model = model_by_hand(mlp=0.1, attention=1e-3)
    with model.measuring():
        found = scores_in_texts(Writer(model), relations_for(model, RELATIONS), k=1)
    assert list(found) == ["attending", "forced"]
    for scores in found.values():
        assert scores.sel(direction="promote").values.tolist() == [
            [ROW[row] for row in rows] for rows in PROMOTED["embedding"]
        ]


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "expected"), [(0.1, "embedding"), (10.0, "first_mlp")])
def test_the_source_that_agrees_with_texts_is_taken(strength, expected):
    """A first MLP that hardly writes leaves the embedding on top of the stream; a loud one covers it."""
    model = model_by_hand(mlp=strength, attention=1e-3)
    ready = relations_for(model, RELATIONS)
    choice = choose_source(Writer(model), ready, 1)
    other = {"embedding": "first_mlp", "first_mlp": "embedding"}[expected]
    assert choice.source == expected
    assert choice.agreement[expected] == pytest.approx(1) and choice.agreement[other] < 0.7
    assert f"{expected} 1.00" in choice.because
    scores = relation_scores(model, RELATIONS, k=1)
    assert scores.attrs["source"] == expected and scores.attrs["source_because"] == choice.because
    assert scores.attrs[f"agreement_{other}"] == pytest.approx(choice.agreement[other])
    np.testing.assert_array_equal(
        scores.values, relation_scores(model, RELATIONS, k=1, source=expected).values
    )


def test_where_there_is_no_difference_the_published_source_is_taken():
    """Heads that do nothing in texts: neither source agrees with that in any way."""
    model = model_by_hand()
    for block in model.hf.model.layers:
        block.self_attn.o_proj.weight.zero_()
    choice = choose_source(Writer(model), relations_for(model, RELATIONS), 1)
    assert choice.source == "first_mlp" and set(choice.agreement.values()) == {0.0}
    assert "hardly tell (first_mlp 0.00, embedding 0.00)" in choice.because


def test_the_source_is_judged_by_the_built_in_relations_where_they_can_be_measured(monkeypatch):
    """It is the model's, not that of what happens to be asked for. Here the "built-in" one tells the sources
    apart, and the one that is asked for would favour the other."""
    from headatlas.method.relation import source_choice as relating

    model = model_by_hand(mlp=0.1, attention=1e-3)
    plain, asked = relating.relations_for, relations_for(model, RELATIONS)
    monkeypatch.setattr(relating, "relations_for", lambda m, r: asked if r is None else plain(m, r))
    alone = choose_source(Writer(model), asked, 10)
    for some in (asked[:1], asked[2:], ()):
        assert choose_source(Writer(model), some, 1) == alone
    assert choose_source(Writer(model), ()).agreement


@pytest.mark.parametrize("order", [("published", "folded"), ("folded", "published")])
def test_the_choice_does_not_depend_on_the_norms_asked_for_before(order, monkeypatch):
    from headatlas.method.relation import source_choice

    def prepared():
        """The final norm turns half of what the heads write around."""
        model = model_by_hand(mlp=0.1, attention=1e-3)
        norm = model.hf.model.norm.weight
        norm[: len(norm) // 2] = -norm[: len(norm) // 2]
        return model

    model = prepared()
    plain, judged = source_choice.relations_for, relations_for(model, RELATIONS)
    monkeypatch.setattr(source_choice, "relations_for", lambda m, r: judged if r is None else plain(m, r))
    alone = {norms: choose_source(Writer(prepared(), norms)) for norms in order}
    assert alone["published"] != alone["folded"]
    for norms in order:
        assert choose_source(Writer(model, norms)) == alone[norms]


def test_without_any_relation_to_judge_by():
    choice = choose_source(Writer(model_by_hand()), ())
    assert choice.source == "first_mlp" and "no relation to judge by" in choice.because


def test_salient_tokens():
    """Embeddings of different lengths do not matter; what W_V makes of them does: token w5 counts double,
    w7 threefold, and the token without a vector not at all."""
    model = model_by_hand()
    model.hf.model.embed_tokens.weight[9] *= 50
    for block in model.hf.model.layers:
        block.self_attn.v_proj.weight[:, 5] *= 2
        block.self_attn.v_proj.weight[:, 7] *= 3
    found = salient_operations(Writer(model), "embedding")
    assert found.tokens.shape == (2, 4, 15) and found.mapped.shape == (2, 4, 15, 5)
    for layer in (0, 1):
        assert found.tokens[layer, :3, :2].tolist() == [[7, 5]] * 3
        np.testing.assert_allclose(found.strength[layer, :3], [[3, 2, *[1] * 13]] * 3, rtol=1e-6)
        np.testing.assert_array_equal(found.strength[layer, 3], np.zeros(15))
        assert found.mapped[layer, :2, :2, 0].tolist() == [[7, 5], [8, 6]]
        assert 7 not in found.mapped[layer, 2, 0] and 5 not in found.mapped[layer, 2, 1]
        assert WORDS not in found.tokens[layer, :3]
