"""Relation scores against brute force: the whole vocabulary × vocabulary matrix of every head, sorted.

For four architectures the matrices are made from the weights by their names in transformers and the
model's own modules in double precision; for the others from what the model room reads.
"""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from headatlas import load_model
from headatlas.method import relation_scores
from support.relations import brute_scores, by_helpers, clear_pairs, relation_of, words
from support.tiny import build_tiny

KS = (1, 3, 10, 80, 159)
SOURCES = ("embedding", "first_mlp")


def llama(hf):  # grouped queries: two heads to a value head; heads are 8 wide, not 48 / 4
    x, block = hf.model.embed_tokens.weight, hf.model.layers[0]
    heads = {}
    for layer, block_ in enumerate(hf.model.layers):
        for head in range(4):
            value = block_.self_attn.v_proj.weight[8 * (head // 2) :][:8].T
            heads[layer, head] = value @ block_.self_attn.o_proj.weight[:, 8 * head : 8 * head + 8].T
    return x, block.mlp(block.post_attention_layernorm(x)), heads, hf.lm_head.weight.T


def gpt2(hf):  # Conv1D holds [in, out]; the last third of c_attn are the values
    x, block = hf.transformer.wte.weight, hf.transformer.h[0]
    heads = {}
    for layer, block_ in enumerate(hf.transformer.h):
        for head in range(4):
            part = slice(12 * head, 12 * head + 12)
            value = block_.attn.c_attn.weight[:, 96:][:, part]
            heads[layer, head] = value @ block_.attn.c_proj.weight[part]
    return x, block.mlp(block.ln_2(x)), heads, hf.lm_head.weight.T


def gemma2(hf):  # a norm after attention: its weights (stored less one) count
    x, block = hf.model.embed_tokens.weight * math.sqrt(48), hf.model.layers[0]
    heads = {}
    for layer, block_ in enumerate(hf.model.layers):
        gain = 1 + block_.post_attention_layernorm.weight
        for head in range(4):
            value = block_.self_attn.v_proj.weight[8 * (head // 2) :][:8].T
            output = block_.self_attn.o_proj.weight[:, 8 * head : 8 * head + 8].T
            heads[layer, head] = value @ output * gain
    mlp = block.post_feedforward_layernorm(block.mlp(block.pre_feedforward_layernorm(x)))
    return x, mlp, heads, hf.lm_head.weight.T


def gpt_neox(hf):  # parallel blocks; query, key and value of a head side by side
    x, block = hf.gpt_neox.embed_in.weight, hf.gpt_neox.layers[0]
    heads = {}
    for layer, block_ in enumerate(hf.gpt_neox.layers):
        value = block_.attention.query_key_value.weight.view(4, 3, 12, 48)[:, 2]
        for head in range(4):
            output = block_.attention.dense.weight[:, 12 * head : 12 * head + 12].T
            heads[layer, head] = value[head].T @ output
    return x, block.mlp(block.post_attention_layernorm(x)), heads, hf.lm_head.weight.T


BY_NAME = [llama, gpt2, gemma2, gpt_neox]


@torch.no_grad()
def matrices_by_name(formula, hf):
    """kind of source -> matrices, from a twin in double precision."""
    embedding, first_mlp, heads, unembedding = formula(copy.deepcopy(hf).double())
    return {
        kind: {
            name: ((embedding if name[0] == 0 else x) @ weights @ unembedding).numpy()
            for name, weights in heads.items()
        }
        for kind, x in zip(SOURCES, (embedding, first_mlp), strict=True)
    }


def check(model, matrices, pairs):
    """Scores of the same pairs for several k, exactly."""
    relations = [relation_of(f"top {k}", pairs) for k in KS]
    limits = {relation.name: k for relation, k in zip(relations, KS, strict=True)}
    for source, own in matrices.items():
        expected = brute_scores(own, model.spec.shape, relations, KS)
        found = relation_scores(model, relations, k=limits, source=source)
        assert found.dims == ("relation", "direction", "layer", "head")
        assert found.direction.values.tolist() == ["promote", "suppress"]
        assert found.kind.values.tolist() == ["static"] * len(KS)
        np.testing.assert_array_equal(found.values, expected)
        # it says something: heads differ, in both directions, and neither all nor nothing is on top
        assert np.nanstd(expected[2, 0]) > 0 and np.nanstd(expected[2, 1]) > 0
        assert np.nanmax(expected[0]) > 0 and np.nanmin(expected[-1]) < 1


@pytest.mark.parametrize("formula", BY_NAME, ids=lambda formula: formula.__name__)
def test_weights_by_their_names(formula):
    hf = build_tiny(formula.__name__)
    matrices = matrices_by_name(formula, hf)
    assert not np.allclose(matrices["embedding"][1, 0], matrices["first_mlp"][1, 0])
    np.testing.assert_array_equal(matrices["embedding"][0, 0], matrices["first_mlp"][0, 0])
    check(load_model(hf, tokenizer=words()), matrices, clear_pairs(*matrices.values()))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("formula", BY_NAME, ids=lambda formula: formula.__name__)
def test_half_precision_weights_are_read_exactly(formula, dtype):
    """The scores are those of the weights as they are stored, not of a half-precision computation."""
    hf = build_tiny(formula.__name__, seed=1).to(dtype)
    matrices = matrices_by_name(formula, hf)
    check(load_model(hf, tokenizer=words(), check=False), matrices, clear_pairs(*matrices.values()))


OTHERS = {
    "gptj": {},
    "codegen": {},
    "gemma": {},
    "gemma3_text": {},
    "gemma4": {},  # values shared between layers
    "opt": {},
    "bloom": {},
    "falcon": {},
    "falcon, multi-query": {"new_decoder_architecture": False, "multi_query": True, "num_kv_heads": 1},
    "phi": {},
    "phi3": {},
    "mistral": {},
    "qwen2": {},
    "qwen3": {},  # norms on queries and keys
    "olmo2": {},  # a norm after attention, none before
    "glm4": {},  # norms on both sides
    "deepseek_v2": {},  # latent values
    "deepseek_v3": {},
    "cohere": {},
    "mixtral": {},
    "qwen3_next": {},  # layers without heads
    "jamba": {},
    "laguna": {},  # layers with different numbers of heads
    "granite": {
        "embedding_multiplier": 12.0,
        "residual_multiplier": 0.22,
        "attention_multiplier": 0.3,
        "logits_scaling": 8.0,
    },
    "bert": {},
    "bitnet": {},  # a norm before the output projection
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_kind_of_architecture(name):
    model = load_model(build_tiny(name.split(",")[0], **OTHERS[name]), tokenizer=words(), check=False)
    matrices = {source: by_helpers(model, source) for source in SOURCES}
    check(model, matrices, clear_pairs(*matrices.values(), count=90))


def test_places_without_a_head_have_no_score():
    model = load_model(build_tiny("laguna"), tokenizer=words(), check=False)
    pairs = clear_pairs(by_helpers(model, "embedding"))
    found = relation_scores(model, relation_of("r", pairs), source="embedding")
    there = np.array([[head < heads for head in range(6)] for heads in (4, 6, 4)])
    assert model.spec.heads == (4, 6, 4)
    np.testing.assert_array_equal(~np.isnan(found.values), np.broadcast_to(there, found.shape))


@pytest.mark.parametrize("seed", range(4))
def test_relations_of_different_sizes_and_k_at_once(seed):
    """Many relations share one look at the vocabulary; each has its own pairs and its own k."""
    model = load_model(build_tiny("llama", seed=seed), tokenizer=words(), check=False)
    matrices = by_helpers(model, "first_mlp")
    chance = np.random.default_rng(seed)
    pool = clear_pairs(matrices, seed=seed, count=400)
    relations, limits = [], []
    for number in range(6):
        size = int(chance.integers(30, 60))
        pairs = [pool[place] for place in chance.choice(len(pool), size, replace=False)]
        relations.append(relation_of(f"r{number}", pairs))
        limits.append(int(chance.integers(1, 160)))
    found = relation_scores(
        model, relations, source="first_mlp", k={f"r{n}": k for n, k in enumerate(limits)}
    )
    assert found.pairs.values.tolist() == [len(relation.pairs) for relation in relations]
    assert found.k.values.tolist() == limits
    np.testing.assert_array_equal(found.values, brute_scores(matrices, model.spec.shape, relations, limits))
