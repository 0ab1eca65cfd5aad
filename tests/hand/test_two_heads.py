"""A model small enough to work out on paper.

One layer, two heads of width 2, a stream of width 4, five tokens, no MLP effect (down projection
zero), rotary positions silenced by zero queries (so every token attends evenly to itself and all
tokens before it). Tokens 0 to 3 embed as unit vectors e0 … e3, token 4 as e0 + e1.

The norm before attention divides by the root mean square: e_i has mean square 1/4, so it becomes
2·e_i (the norm's weights are one, epsilon is 0); e0 + e1 has 1/2, so it becomes √2·(e0 + e1).

Head 0 reads stream channels (0, 1) as its values and writes them to channels (2, 3).
Head 1 reads channels (2, 3) and writes them, times 10, to channels (0, 1).
So with the text (0, 2), gates g0 and g1, the attention block adds
  at position 0:  g0·(0, 0, 2, 0)                     [head 0 sees 2·e0; head 1 sees nothing]
  at position 1:  g0·(0, 0, 1, 0) + g1·(10, 0, 0, 0)  [both average: half of 2·e0, half of 2·e2]
"""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from headatlas import gates, load_model


@pytest.fixture(scope="module")
def model():
    config = LlamaConfig(
        vocab_size=5, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        head_dim=2, intermediate_size=4, max_position_embeddings=16, rms_norm_eps=0.0,
        pad_token_id=None, bos_token_id=None, eos_token_id=None, tie_word_embeddings=False,
    )  # fmt: skip
    hf = LlamaForCausalLM(config).eval().requires_grad_(False)
    hf.model.embed_tokens.weight.copy_(
        torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
    )
    attention = hf.model.layers[0].self_attn
    attention.q_proj.weight.zero_()
    attention.v_proj.weight.copy_(torch.eye(4))
    output = torch.zeros(4, 4)
    output[2, 0] = output[3, 1] = 1  # head 0
    output[0, 2] = output[1, 3] = 10  # head 1
    attention.o_proj.weight.copy_(output)
    hf.model.layers[0].mlp.down_proj.weight.zero_()
    return load_model(hf)


def added(model, ids, values):
    """What the attention block adds to the stream."""
    seen = []
    handle = model.hf.model.layers[0].self_attn.register_forward_hook(lambda m, a, out: seen.append(out[0]))
    with gates(model, values):
        model.hf(input_ids=torch.tensor([ids]), use_cache=False)
    handle.remove()
    return seen[0][0]


@pytest.mark.parametrize("gate", [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.25, 0.5)])
def test_what_the_heads_add(model, gate):
    first, second = gate
    found = added(model, [0, 2], torch.tensor([gate]))
    expected = torch.tensor([[0, 0, 2 * first, 0], [10 * second, 0, first, 0]])
    assert torch.allclose(found, expected, atol=1e-6)


def test_a_longer_text(model):
    """(4, 1, 3): the norm gives √2(e0+e1), 2·e1, 2·e3; position 2 has a third of each."""
    found = added(model, [4, 1, 3], torch.ones(1, 2))
    root = 2**0.5
    expected = torch.tensor([0, 20 / 3, root / 3, (root + 2) / 3])
    assert torch.allclose(found[2], expected, atol=1e-6)


def test_the_weights(model):
    value, output = model.value_output(0, 1)
    assert torch.equal(value, torch.tensor([[0.0, 0], [0, 0], [1, 0], [0, 1]]))
    assert torch.equal(output, torch.tensor([[10.0, 0, 0, 0], [0, 10, 0, 0]]))
    assert torch.equal((value @ output)[2], torch.tensor([10.0, 0, 0, 0]))


def test_the_spec(model):
    assert model.spec.heads == (2,) and model.spec.kv_heads == (2,) and model.spec.head_dim == (2,)
    assert model.attention(0).value.channels.tolist() == [[0, 1], [2, 3]]
    assert model.check.passed
