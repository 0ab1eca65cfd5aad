"""Quantised weights (bitsandbytes, on the CPU): gated, read one head at a time, proved."""

from __future__ import annotations

import logging

import pytest
import torch
from bitsandbytes.functional import dequantize_4bit, quantize_4bit
from transformers import BitsAndBytesConfig

from headatlas import gates, load_model
from support.tiny import build_tiny, sample_ids

FOUR = {"load_in_4bit": True, "bnb_4bit_compute_dtype": torch.float32}
EIGHT = {"load_in_8bit": True}


@pytest.fixture(scope="module")
def original():
    return build_tiny("llama", hidden_size=64, head_dim=16, intermediate_size=128)


@pytest.fixture(scope="module")
def folder(original, tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny")
    original.save_pretrained(path)
    return path


@pytest.fixture(scope="module", params=[FOUR, EIGHT], ids=["4bit", "8bit"])
def quantised(request, folder):
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    return load_model(folder, quantization_config=BitsAndBytesConfig(**request.param))


@pytest.mark.filterwarnings("ignore:MatMul8bitLt")
def test_it_is_quantised_and_proved(quantised):
    assert quantised.check.passed
    projection = quantised.hf.get_submodule(quantised.attention(0).output)
    assert projection.weight.dtype in (torch.uint8, torch.int8)


def dequantised(weight, bits):
    """The same matrix, quantised and dequantised by the library, with no model around it."""
    if bits == 4:
        packed, quant_state = quantize_4bit(weight.contiguous(), quant_type="fp4")
        return dequantize_4bit(packed, quant_state).float()
    scale = weight.abs().amax(dim=1, keepdim=True) / 127
    return (weight / scale).round() * scale


@pytest.mark.filterwarnings("ignore:MatMul8bitLt")
def test_head_weights_are_slices_of_the_dequantised_matrix(quantised, original):
    bits = 4 if quantised.hf.config.quantization_config.load_in_4bit else 8
    for layer, head in [(0, 0), (1, 3), (2, 1)]:
        attention = original.model.layers[layer].self_attn
        value, output = quantised.value_output(layer, head)
        whole_v = dequantised(attention.v_proj.weight.detach(), bits)
        whole_o = dequantised(attention.o_proj.weight.detach(), bits)
        group = head // 2
        assert value.shape == (64, 16) and output.shape == (16, 64)
        assert torch.allclose(value.float(), whole_v[16 * group : 16 * group + 16].T, atol=4e-3)
        assert torch.allclose(output.float(), whole_o[:, 16 * head : 16 * head + 16].T, atol=4e-3)


@pytest.mark.filterwarnings("ignore:MatMul8bitLt")
@torch.no_grad()
def test_gates_on_quantised_weights(quantised):
    ids = sample_ids()
    plain = quantised.hf(ids).logits
    with gates(quantised, torch.ones(quantised.spec.shape)):
        assert torch.equal(quantised.hf(ids).logits, plain)
    with gates(quantised, torch.zeros(quantised.spec.shape)):
        assert not torch.allclose(quantised.hf(ids).logits, plain, atol=0.1)


@pytest.mark.filterwarnings("ignore:MatMul8bitLt")
def test_gradients_through_eight_bits(folder):
    """Four bits on a CPU are for inference only in bitsandbytes; on a GPU both have gradients."""
    model = load_model(folder, quantization_config=BitsAndBytesConfig(**EIGHT))
    values = torch.rand(model.spec.shape).requires_grad_()
    with gates(model, values):
        model.hf(sample_ids()).logits.float().square().sum().backward()
    assert values.grad.abs().min() > 0


def test_reading_one_head_needs_no_whole_matrix(quantised, monkeypatch):
    """The output slice of a head is made from as many unit vectors as it has components, plus one."""
    calls = []
    projection = quantised.hf.get_submodule(quantised.attention(0).output)
    true = projection.forward
    monkeypatch.setattr(projection, "forward", lambda x: calls.append(x.shape) or true(x))
    quantised.value_output(0, 2)
    assert calls == [(17, 64)]
