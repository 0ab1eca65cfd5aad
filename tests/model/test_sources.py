"""Source vectors against the formula of each architecture, written out with its own modules."""

from __future__ import annotations

import math
import weakref

import pytest
import torch

import headatlas.model.source_vectors
from headatlas import GateError, ModelRefusedError, RequestError, gates, load_model
from support.tiny import build_tiny

TOKENS = torch.arange(5, 35)


def llama(hf):
    block, x = hf.model.layers[0], hf.model.embed_tokens(TOKENS)
    return x, block.mlp(block.post_attention_layernorm(x))


def gpt2(hf):
    block, x = hf.transformer.h[0], hf.transformer.wte(TOKENS)  # no positions
    return x, block.mlp(block.ln_2(x))


def gemma2(hf):
    block, x = hf.model.layers[0], hf.model.embed_tokens.weight[TOKENS] * math.sqrt(48)
    return x, block.post_feedforward_layernorm(block.mlp(block.pre_feedforward_layernorm(x)))


def recurrent_gemma(hf):
    scale = torch.tensor(math.sqrt(48), dtype=torch.bfloat16)  # the model rounds it so
    block, x = hf.model.layers[0], hf.model.embed_tokens(TOKENS) * scale
    return x, block.mlp_block(block.channel_pre_norm(x))


def gptj(hf):  # parallel block: one norm for attention and MLP
    block, x = hf.transformer.h[0], hf.transformer.wte(TOKENS)
    return x, block.mlp(block.ln_1(x))


def gpt_neox(hf):  # parallel block: a norm each
    block, x = hf.gpt_neox.layers[0], hf.gpt_neox.embed_in(TOKENS)
    return x, block.mlp(block.post_attention_layernorm(x))


def falcon(hf):
    block, x = hf.transformer.h[0], hf.transformer.word_embeddings(TOKENS)
    return x, block.mlp(block.ln_mlp(x))


def olmo2(hf):  # no norm before, one after
    block, x = hf.model.layers[0], hf.model.embed_tokens(TOKENS)
    return x, block.post_feedforward_layernorm(block.mlp(x))


def granite(hf):  # factors on embedding and residual
    block, x = hf.model.layers[0], 12 * hf.model.embed_tokens(TOKENS)
    return x, 0.22 * block.mlp(block.post_attention_layernorm(x))


def mixtral(hf):
    block, x = hf.model.layers[0], hf.model.embed_tokens(TOKENS)
    return x, block.mlp(block.post_attention_layernorm(x)[:, None])[:, 0]


def granitemoeshared(hf):  # two branches side by side
    block, x = hf.model.layers[0], hf.model.embed_tokens(TOKENS)
    normed = block.post_attention_layernorm(x)[:, None]
    return x, (block.block_sparse_moe(normed) + block.shared_mlp(normed))[:, 0]


def falcon_h1(hf):  # attention and state space beside each other, both silent
    block, x = hf.model.layers[0], hf.model.embed_tokens(TOKENS)
    return x, block.feed_forward(block.pre_ff_layernorm(x))


def opt(hf):  # the MLP is no module
    block, x = hf.model.decoder.layers[0], hf.model.decoder.embed_tokens(TOKENS)
    return x, block.fc2(block.activation_fn(block.fc1(block.final_layer_norm(x))))


def gemma4_text(hf):  # a second branch follows the MLP; experts stand beside it
    block, x = hf.model.layers[0], hf.model.embed_tokens(TOKENS)
    seen = []
    handle = block.post_feedforward_layernorm.register_forward_hook(lambda m, a, out: seen.append(out))
    silence = block.self_attn.o_proj.register_forward_hook(lambda m, a, out: torch.zeros_like(out))
    hf(input_ids=TOKENS[:, None], use_cache=False)
    handle.remove()
    silence.remove()
    return x, seen[0][:, 0]


def bert(hf):  # norms after the sums; embeddings are normed, with position 0
    embedded = hf.bert.embeddings(TOKENS[:, None])[:, 0]
    block = hf.bert.encoder.layer[0]
    middle = block.attention.output.LayerNorm(embedded)
    return embedded, block.output.dense(block.intermediate(middle))


def bloom(hf):  # a norm on the embeddings
    x = hf.transformer.word_embeddings_layernorm(hf.transformer.word_embeddings(TOKENS))
    block = hf.transformer.h[0]
    hidden = block.post_attention_layernorm(x)
    return x, block.mlp(hidden, torch.zeros_like(hidden))


OPTIONS = {"granite": {"embedding_multiplier": 12.0, "residual_multiplier": 0.22}}
FORMULAS = [
    llama, gpt2, gemma2, recurrent_gemma, gptj, gpt_neox, falcon, olmo2, granite, mixtral,
    granitemoeshared, falcon_h1, opt, gemma4_text, bert, bloom,
]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
@torch.no_grad()
def test_formula(formula):
    name = formula.__name__
    model = load_model(build_tiny(name, **OPTIONS.get(name, {})))
    embedding, first_mlp = formula(model.hf)
    found = model.source_vectors(TOKENS, "embedding")
    assert found.shape == (30, 48)
    assert torch.allclose(found, embedding, atol=2e-5)
    assert torch.allclose(model.source_vectors(TOKENS), first_mlp, atol=2e-5)
    half = load_model(build_tiny(name, **OPTIONS.get(name, {})).bfloat16()).source_vectors(TOKENS)
    assert (half.float() - first_mlp).norm() < 0.05 * first_mlp.norm()
    # one token at a time gives the same
    assert torch.allclose(model.source_vectors([7], "first_mlp")[0], first_mlp[2], atol=2e-5)


@torch.no_grad()
def test_positions_do_not_enter():
    hf = build_tiny("gpt2")
    before = load_model(hf).source_vectors(TOKENS)
    hf.transformer.wpe.weight.mul_(5)
    assert torch.allclose(load_model(hf).source_vectors(TOKENS), before, atol=1e-5)


def test_a_first_block_without_mlp_has_no_such_vectors():
    model = load_model(build_tiny("nemotron_h"))
    with pytest.raises(ModelRefusedError, match="'embedding' can be used"):
        model.source_vectors(TOKENS)
    assert model.source_vectors(TOKENS, "embedding").shape == (30, 48)


def test_several_streams_have_no_such_vectors():
    model = load_model(build_tiny("gemma3n_text"))
    with pytest.raises(ModelRefusedError, match="parallel streams"):
        model.source_vectors(TOKENS)


def test_adapters_after_the_mlp_are_not_taken_for_it():
    with pytest.raises(ModelRefusedError, match="'embedding' can be used"):
        load_model(build_tiny("xmod")).source_vectors(TOKENS)


@pytest.mark.parametrize("size", [16, 72, 80, 141, 143])
@torch.no_grad()
def test_any_size_of_vocabulary(size):
    """The two texts that tell what mixes positions must differ, whichever tokens are drawn."""
    model = load_model(build_tiny("llama", vocab_size=size))
    block, ids = model.hf.model.layers[0], torch.arange(3, 9)
    expected = block.mlp(block.post_attention_layernorm(model.hf.model.embed_tokens(ids)))
    assert torch.allclose(model.source_vectors(ids), expected, atol=2e-5)


@torch.no_grad()
def test_an_mlp_that_writes_nothing():
    hf = build_tiny("llama")
    hf.model.layers[0].mlp.down_proj.weight.zero_()
    assert load_model(hf).source_vectors(TOKENS).abs().max() == 0


@torch.no_grad()
def test_half_precision():
    hf = build_tiny("granite", embedding_multiplier=12.0, residual_multiplier=0.85)
    exact = load_model(hf).source_vectors(TOKENS)
    half = load_model(hf.bfloat16()).source_vectors(TOKENS)
    assert (half.float() - exact).norm() < 0.03 * exact.norm()


def test_inside_a_gated_block_they_are_refused():
    model = load_model(build_tiny("llama"))
    with gates(model, torch.zeros(3, 4)), pytest.raises(GateError, match="outside the gates block"):
        model.source_vectors(TOKENS)
    assert model.source_vectors(TOKENS).abs().sum() > 0


def test_wrong_requests():
    model = load_model(build_tiny("llama"))
    for tokens in ([1.5], "the", [[1, 2]], 5, ["a"], None):
        with pytest.raises(RequestError, match="whole numbers"):
            model.source_vectors(tokens)
    with pytest.raises(RequestError, match="embedding and first_mlp"):
        model.source_vectors(TOKENS, "second_mlp")
    with pytest.raises(RequestError, match="from 0 to 159"):
        model.source_vectors([160])
    with pytest.raises(RequestError, match="from 0 to 159"):
        model.source_vectors([-1])
    assert model.source_vectors([]).shape == (0, 48)


def test_nothing_is_left_on_the_model():
    model = load_model(build_tiny("llama"))
    model.source_vectors(TOKENS)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.hf.modules())


def test_a_second_pass_begins_without_the_tensors_of_the_first(monkeypatch):
    """A pass that fails for its dtype is run again in the model's own; the error must not hold its memory."""
    model = load_model(build_tiny("llama").to(torch.bfloat16))
    expected = model.source_vectors(TOKENS)
    run_until, held, alive = headatlas.model.source_vectors.run_until, [], []

    def fails_once(*arguments):
        if not held:
            large = torch.zeros(1000)
            held.append(weakref.ref(large))
            raise RuntimeError("expected scalar type Float")
        alive.append(held[0]() is not None)
        return run_until(*arguments)

    monkeypatch.setattr(headatlas.model.source_vectors, "run_until", fails_once)
    again = model.source_vectors(TOKENS)
    assert alive == [False]
    torch.testing.assert_close(again.float(), expected.float(), rtol=0.05, atol=0.05)
