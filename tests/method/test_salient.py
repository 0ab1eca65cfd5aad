"""Salient operations against brute force over the whole vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headatlas import load_model
from headatlas.method.relation.salient import salient_operations
from headatlas.method.relation.scorer import Writer
from support.relations import words
from support.tiny import build_tiny

NAMES = [
    "llama",
    "gpt2",
    "gemma2",
    "gpt_neox",
    "falcon",
    "olmo2",
    "deepseek_v3",
    "gemma4",
    "qwen3_next",
    "laguna",
]


def by_brute_force(model, source):
    """(layer, head) -> (strength of every token, what it writes of every token [token, token])."""
    every = torch.arange(model.spec.vocabulary)
    vectors = {kind: model.source_vectors(every, kind).double() for kind in {source, "embedding"}}
    found = {}
    for head in model.spec:
        x = vectors["embedding" if model.attention(head.layer).value.layer == 0 else source]
        value, output = (weight.double() for weight in model.value_output(head.layer, head.head))
        norm = model.norm_after(head.layer)
        written = x @ value @ (output if norm is None else output * norm.gain.double())
        strength = (written.norm(dim=1) / x.norm(dim=1)).nan_to_num(0)
        found[head.layer, head.head] = (
            strength.detach().numpy(), (written @ model.unembedding().double()).detach().numpy(),
        )  # fmt: skip
    return found


@pytest.mark.parametrize("source", ["embedding", "first_mlp"])
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_the_strongest_tokens_and_what_is_made_of_them(name, source):
    model = load_model(build_tiny(name), tokenizer=words(), check=False)
    found = salient_operations(Writer(model), source)
    expected = by_brute_force(model, source)
    assert found.tokens.shape == (*model.spec.shape, 15) and found.mapped.shape == (*model.spec.shape, 15, 5)
    for (layer, head), (strength, numbers) in expected.items():
        tokens, own = found.tokens[layer, head], found.strength[layer, head]
        assert len(set(tokens.tolist())) == 15
        np.testing.assert_allclose(own, np.sort(strength)[::-1][:15], rtol=1e-4)
        np.testing.assert_allclose(own, strength[tokens], rtol=1e-4)
        for token, made in zip(tokens, found.mapped[layer, head], strict=True):
            row = numbers[token]
            assert len(set(made.tolist())) == 5
            np.testing.assert_allclose(row[made], np.sort(row)[::-1][:5], rtol=1e-4, atol=1e-4 * row.max())
    there = np.zeros(model.spec.shape, dtype=bool)
    there[tuple(zip(*expected, strict=True))] = True
    for array, nothing in ((found.tokens, -1), (found.mapped, -1)):
        assert (array[there] >= 0).all() and (array[~there] == nothing).all()
    assert (np.isnan(found.strength) == ~there[..., None]).all()


@torch.no_grad()
def test_first_mlp_only_above_layer_zero():
    model = load_model(build_tiny("llama"), tokenizer=words(), check=False)
    one, other = (salient_operations(Writer(model), source) for source in ("embedding", "first_mlp"))
    np.testing.assert_array_equal(one.tokens[0], other.tokens[0])
    assert (one.tokens[1:] != other.tokens[1:]).any()


def test_a_vocabulary_smaller_than_the_list():
    model = load_model(build_tiny("llama", vocab_size=12), check=False)
    found = salient_operations(Writer(model), "embedding")
    assert found.tokens.shape == (3, 4, 12) and sorted(found.tokens[1, 2].tolist()) == list(range(12))
    assert found.mapped.shape == (3, 4, 12, 5)


def test_half_precision_weights():
    hf = build_tiny("llama").bfloat16()
    model = load_model(hf, check=False)
    found = salient_operations(Writer(model), "first_mlp")
    for (layer, head), (strength, _) in by_brute_force(model, "first_mlp").items():
        np.testing.assert_allclose(found.strength[layer, head], np.sort(strength)[::-1][:15], rtol=1e-4)


def test_progress_counts_heads():
    model = load_model(build_tiny("qwen3_next"), check=False)
    done = []
    salient_operations(Writer(model), "embedding", done.append)
    assert sum(done) == len(model.spec)
