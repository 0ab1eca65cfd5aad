"""Eight bits: near the plain product, row by row, forward and backward. On a CPU, where they are imitated."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from headatlas import RequestError, load_model
from headatlas.model.float8 import Float8Linear, to_float8
from headatlas.model.linear import columns_of, rows_of
from headatlas.model.load import _prove
from method.test_gating import free
from support.tiny import build_tiny


def pair(bias: bool = False) -> tuple[nn.Linear, Float8Linear]:
    torch.manual_seed(0)
    linear = nn.Linear(128, 256, bias=bias, dtype=torch.bfloat16)
    with torch.no_grad():
        linear.weight *= torch.logspace(-3, 1, 256)[:, None]  # channels of all sizes
    return linear, Float8Linear(linear)


def relative(found, wanted, dim=None):
    return ((found - wanted).norm(dim=dim) / wanted.norm(dim=dim)).max().item()


@pytest.mark.parametrize("bias", [False, True])
def test_near_the_plain_product(bias):
    linear, eight = pair(bias)
    x = torch.randn(2, 5, 128, dtype=torch.bfloat16) * torch.logspace(-6, 6, 5)[:, None]
    x = x.to(torch.bfloat16)
    found, wanted = eight(x).float(), linear(x).float()
    assert found.shape == wanted.shape
    assert 0.005 < relative(found, wanted, dim=-1) < 0.06  # each row: rounded, and no more than that


def test_slopes_flow_back():
    linear, eight = pair()
    x = torch.randn(7, 128, dtype=torch.bfloat16, requires_grad=True)
    slope = torch.randn(7, 256, dtype=torch.bfloat16)
    (found,) = torch.autograd.grad(eight(x), x, slope)
    (wanted,) = torch.autograd.grad(linear(x), x, slope)
    assert 0.005 < relative(found.float(), wanted.float(), dim=-1) < 0.06


def test_rows_do_not_depend_on_each_other():
    _, eight = pair()
    x = torch.randn(6, 128, dtype=torch.bfloat16)
    loud = x.clone()
    loud[1:] *= 1000
    assert torch.equal(eight(x)[0], eight(loud)[0]) and torch.equal(eight(x[:1])[0], eight(x)[0])
    assert not eight(torch.zeros(2, 128, dtype=torch.bfloat16)).any()


def test_the_matrix_can_be_read():
    linear, eight = pair()
    for read, index in ((rows_of, range(3, 90)), (columns_of, torch.tensor([3, 90]))):
        assert relative(read(eight, index).float(), read(linear, index).float()) < 0.06


def wide():
    return build_tiny("llama", hidden_size=128, intermediate_size=256, head_dim=32, num_key_value_heads=4)


def test_a_model_in_eight_bits_is_proved_and_fitted():
    plain = load_model(wide().to(torch.bfloat16))
    model = _prove(wide().to(torch.bfloat16).eval(), None, "tiny", None, True, eight_bits=True)
    assert model.spec.dtype == "float8" and model.check.passed
    assert (model.spec.parameters, model.spec.content_hash) == (
        plain.spec.parameters,
        plain.spec.content_hash,
    )
    kinds = {name.rpartition(".")[2]: type(module) for name, module in model.hf.named_modules()}
    assert kinds["q_proj"] is kinds["down_proj"] is Float8Linear and kinds["lm_head"] is nn.Linear
    one, other = free(plain, [0]), free(model, [0])
    start = one.logits.clone()
    one.run()
    other.run()
    moved = [(fit.logits - start).flatten() for fit in (one, other)]
    assert 0.9 < torch.cosine_similarity(*moved, dim=0) < 1


def test_what_does_not_suit_stays():
    model = nn.Sequential(nn.Linear(128, 8), nn.Linear(8, 128), nn.Linear(128, 130), nn.LayerNorm(130))
    assert to_float8(model) == 0
    shared = nn.Linear(128, 128)
    model = nn.Sequential(shared, shared)
    assert to_float8(model) == 1 and model[0] is model[1]


def test_where_there_are_none(tmp_path):
    with pytest.raises(RequestError, match="needs a GPU that multiplies in eight bits"):
        load_model("smollm2", dtype="float8", device="cpu")
