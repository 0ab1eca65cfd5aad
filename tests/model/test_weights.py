"""Per-head weights: read by hand from each layout, and against the model's own derivative."""

from __future__ import annotations

import pytest
import torch

from headatlas import Head, HeadNameError, RequestError, gates, load_model
from support.heads import KINDS, layout_marks, model_of, shared_model
from support.tiny import build_tiny, sample_ids

#: kind -> W_V [hidden, head_dim] of a head, written down from the layout as each paper or code has it
BY_HAND = {
    "separate, full": lambda a, h: a.v_proj.weight[8 * h : 8 * h + 8].T,
    "separate, grouped, head_dim != hidden/heads": lambda a, h: a.v_proj.weight[8 * (h // 2) :][:8].T,
    "separate, multi-query": lambda a, h: a.v_proj.weight.T,
    "separate, biases": lambda a, h: a.v_proj.weight[8 * (h // 2) :][:8].T,
    "Conv1D, fused thirds": lambda a, h: a.c_attn.weight[:, 96 + 12 * h :][:, :12],
    "fused, interleaved by head": lambda a, h: a.query_key_value.weight.view(4, 3, 12, 48)[h, 2].T,
    "fused, interleaved by head, alibi": lambda a, h: a.query_key_value.weight.view(4, 3, 12, 48)[h, 2].T,
    "fused, grouped blocks": lambda a, h: a.query_key_value.weight.view(2, 4, 12, 48)[h // 2, 3].T,
    "fused, multi-query": lambda a, h: a.query_key_value.weight.view(6, 12, 48)[5].T,
    "fused, grouped thirds": lambda a, h: a.qkv_proj.weight[4 * 8 + 2 * 8 + 8 * (h // 2) :][:8].T,
    "parallel block": lambda a, h: a.v_proj.weight[12 * h : 12 * h + 12].T,
    "latent": lambda a, h: (
        a.kv_a_proj_with_mqa.weight[:16].T
        * a.kv_a_layernorm.weight
        @ a.kv_b_proj.weight.view(4, 14, 16)[h, 8:].T
    ),
    "mixture of experts": lambda a, h: a.v_proj.weight[8 * (h // 2) :][:8].T,
    "sinks": lambda a, h: a.v_proj.weight[8 * (h // 2) :][:8].T,
    "gated output": lambda a, h: a.v_proj.weight[8 * (h // 2) :][:8].T,
    "norm before the output projection": lambda a, h: a.v_proj.weight[12 * (h // 2) :][:12].T,
    "output projection outside": lambda a, h: a.value.weight[12 * h :][:12].T,
}


@pytest.mark.parametrize("kind", BY_HAND)
def test_value_weights_by_hand(kind):
    model = shared_model(kind)
    for head in model.spec:
        attention = model.hf.get_submodule(model.attention(head.layer).module)
        expected = BY_HAND[kind](attention, head.head)
        found = model.value_output(head.layer, head.head).value
        assert found.shape == (48, model.spec.head_dim[head.layer])
        assert torch.allclose(found, expected, atol=1e-5)


#: kinds in which a head's output is linear in what its values are made from
NOT_LINEAR = {
    "latent",
    "sinks",
    "gated output",
    "norm before the output projection",
    "normed values, shared between layers",
    "hybrid with linear attention",
    "heads differ from layer to layer",
}
LINEAR = [pytest.param(kind, marks=layout_marks(kind)) for kind in KINDS if kind not in NOT_LINEAR]


@pytest.mark.parametrize("kind", LINEAR)
def test_value_times_output_is_the_derivative_of_the_attention_block(kind):
    """One token attends to itself alone, so with one head open the block's derivative is W_V W_O."""
    model = shared_model(kind)
    for found in model.anatomy.present():
        for head in (0, found.heads - 1):
            seen = {}

            def enter(module, args, seen=seen):
                seen["x"] = args[0].detach().requires_grad_()
                return (seen["x"], *args[1:])

            def leave(module, args, output, seen=seen):
                seen["y"] = output

            only = torch.zeros(model.spec.shape)
            only[found.layer, head] = 1
            reader = model.hf.get_submodule(found.value.linear).register_forward_pre_hook(enter)
            writer = model.hf.get_submodule(found.output).register_forward_hook(leave)
            with gates(model, only):
                model.hf(input_ids=sample_ids(1, 1), use_cache=False)
            reader.remove()
            writer.remove()
            rows = [
                torch.autograd.grad(out, seen["x"], retain_graph=True)[0].flatten()
                for out in seen["y"].flatten()
            ]
            value, output = model.value_output(found.layer, head)
            assert torch.allclose(torch.stack(rows).T, value @ output, atol=1e-5)


def test_heads_of_a_group_share_their_values():
    model = load_model(build_tiny("llama"))
    values = [model.value_output(1, head).value for head in range(4)]
    assert torch.equal(values[0], values[1]) and torch.equal(values[2], values[3])
    assert not torch.equal(values[1], values[2])


def test_a_head_that_is_not_there():
    model = model_of("hybrid with linear attention")
    hole = model.spec.heads.index(0)
    with pytest.raises(HeadNameError, match="no attention heads"):
        model.value_output(hole, 0)
    with pytest.raises(HeadNameError, match="layers 0 to 2"):
        model.value_output(3, 0)
    with pytest.raises(HeadNameError, match="heads 0 to 3"):
        model.value_output(model.spec.heads.index(4), 4)
    with pytest.raises(HeadNameError):
        model.value_output(-1, 0)


def test_heads_can_be_named():
    model = load_model(build_tiny("llama"))
    expected = model.value_output(1, 2)
    for name in ("L1H2", Head(1, 2), "a1.h2"):
        assert torch.equal(model.value_output(name).output, expected.output)


@pytest.mark.parametrize("kind", ["separate, full", "Conv1D, fused thirds", "fused, grouped blocks"])
def test_weights_are_read_as_they_are_inside_a_gated_block(kind):
    model = shared_model(kind)
    plain = model.value_output(1, 2)
    for values in (torch.zeros(model.spec.shape), torch.zeros(9, *model.spec.shape)):
        with gates(model, values):
            found = model.value_output(1, 2)
        assert torch.equal(found.value, plain.value) and torch.equal(found.output, plain.output)


def test_unembedding():
    model = load_model(build_tiny("llama"))
    assert torch.equal(model.unembedding(), model.hf.lm_head.weight.T)
    hidden = torch.randn(2, 48)
    assert torch.allclose(hidden @ model.unembedding(), model.hf.lm_head(hidden), atol=1e-5)


def test_an_unembedding_that_does_not_read_the_stream_is_not_made_up():
    model = load_model(build_tiny("electra"))  # projects to the embedding width first
    with pytest.raises(RequestError, match="no unembedding"):
        model.unembedding()
