"""`gates`: what it does to a model, and that it leaves nothing behind."""

from __future__ import annotations

import copy
import os
import pickle
import shutil

import numpy as np
import pytest
import torch

from headatlas import GateError, Head, HeadNameError, ModelRefusedError, gates, load_model
from support.heads import LAYOUTS, logits, model_of, shared_model
from support.tiny import build_tiny, sample_ids

IDS = sample_ids(batch=3, length=6)


@pytest.fixture(scope="module")
def llama():
    return load_model(build_tiny("llama"))


def random_gates(model, *rows, seed=0):
    return torch.rand(*rows, *model.spec.shape, generator=torch.Generator().manual_seed(seed))


def state(model):
    """Everything that gating could leave changed: which modules are where, and their hooks."""
    return [
        (name, id(module), len(module._forward_hooks), len(module._forward_pre_hooks))
        for name, module in model.hf.named_modules()
    ]


@pytest.mark.parametrize("kind", LAYOUTS)
@torch.no_grad()
def test_ones_change_nothing_bit_for_bit(kind):
    model = shared_model(kind)
    plain = logits(model, IDS)
    with gates(model, torch.ones(model.spec.shape)):
        assert torch.equal(logits(model, IDS), plain)
    with gates(model, torch.ones(3, *model.spec.shape)):
        assert torch.equal(logits(model, IDS), plain)
    assert torch.equal(logits(model, IDS), plain)


@pytest.mark.parametrize("kind", LAYOUTS)
@torch.no_grad()
def test_a_zero_gate_equals_a_zeroed_slice_of_the_weights(kind):
    """Against the weights themselves: the slice of W_O is overwritten in the checkpoint."""
    model = shared_model(kind)
    for found in model.anatomy.present():
        values = torch.ones(model.spec.shape)
        values[found.layer, 1] = 0
        with gates(model, values):
            gated = logits(model, IDS)
        weight = model.hf.get_submodule(found.output).weight
        kept = weight.clone()
        width = found.head_dim
        if type(model.hf.get_submodule(found.output)).__name__ == "Conv1D":
            weight[width : 2 * width] = 0
        else:
            weight[:, width : 2 * width] = 0
        assert not torch.equal(weight, kept)
        zeroed = logits(model, IDS)
        weight.copy_(kept)
        assert torch.allclose(gated, zeroed, atol=2e-5)
        assert not torch.allclose(gated, logits(model, IDS), atol=1e-3)


@pytest.mark.parametrize("kind", LAYOUTS)
@torch.no_grad()
def test_each_row_has_its_own_gates(kind):
    model = shared_model(kind)
    values = random_gates(model, 3)
    with gates(model, values):
        together = logits(model, IDS)
    for row in range(3):
        with gates(model, values[row]):
            alone = logits(model, IDS[row : row + 1])
        assert torch.allclose(together[row], alone[0], atol=2e-5)


def test_rows_folded_into_positions_are_refused():
    """A projection on [row · position, channel]: nothing there says which row is whose."""

    class Fold(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.linear = inner

        def forward(self, z):
            return self.linear(z.flatten(0, 1)).unflatten(0, z.shape[:2])

    hf = build_tiny("llama")
    for layer in hf.model.layers:
        layer.self_attn.o_proj = Fold(layer.self_attn.o_proj)
    with pytest.raises(ModelRefusedError, match=r"as \[row, position, channel\]"):
        load_model(hf)


def test_gradient_against_finite_differences():
    model = load_model(build_tiny("gpt2").double())
    values = random_gates(model).double().requires_grad_()
    ids = IDS[:1]

    def loss(values):
        with gates(model, values):
            return logits(model, ids).logsumexp(-1).sum()

    loss(values).backward()
    step = 1e-6
    for layer, head in [(0, 0), (1, 3), (2, 2)]:
        with torch.no_grad():
            shift = torch.zeros_like(values)
            shift[layer, head] = step
            slope = (loss(values + shift) - loss(values - shift)) / (2 * step)
        assert values.grad[layer, head].item() == pytest.approx(slope.item(), rel=1e-5)


def test_gradients_of_rows_do_not_mix():
    model = load_model(build_tiny("llama"))
    values = random_gates(model, 3).requires_grad_()
    with gates(model, values):
        logits(model, IDS)[1].sum().backward()
    assert values.grad[1].abs().sum() > 0
    assert values.grad[0].abs().sum() == values.grad[2].abs().sum() == 0


def test_an_exception_leaves_the_model_as_it_was(llama):
    before, plain = state(llama), logits(llama, IDS)

    def work():
        with gates(llama, random_gates(llama)):
            assert state(llama) != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert state(llama) == before
    assert torch.equal(logits(llama, IDS), plain)

    def broken(module, args):
        raise KeyboardInterrupt

    handle = llama.hf.model.layers[1].mlp.register_forward_pre_hook(broken)
    with pytest.raises(KeyboardInterrupt), gates(llama, random_gates(llama)):
        logits(llama, IDS)
    handle.remove()
    assert state(llama) == before
    with gates(llama, torch.ones(llama.spec.shape)):  # not "gated already"
        assert torch.equal(logits(llama, IDS), plain)


def test_gating_twice_is_refused(llama):
    before = state(llama)
    with gates(llama, random_gates(llama)):
        inside = logits(llama, IDS)
        with pytest.raises(GateError, match="gated already"), gates(llama, random_gates(llama)):
            pass
        assert torch.equal(logits(llama, IDS), inside)  # the outer gates still hold
    assert state(llama) == before


@pytest.mark.parametrize("name", ["L1H2", (1, 2), Head(1, 2), ["L1H2"]])
def test_a_head_is_named_in_every_spelling(llama, name):
    text = IDS[:1]
    expected = torch.ones(llama.spec.shape)
    expected[1, 2] = 0
    with llama.gates(expected):
        wanted = llama(text)
    with llama.gates(name):
        assert torch.equal(llama(text), wanted)
    assert torch.equal(llama.value_weight("L1H2"), llama.value_weight(1, 2))
    assert torch.equal(llama.output_weight((1, 2)), llama.value_output("L1H2").output)


def test_two_handles_on_one_model_do_not_gate_over_each_other(llama):
    other = load_model(llama.hf, check=False)
    before = state(llama)
    with gates(llama, random_gates(llama)):
        inside = logits(llama, IDS)
        with pytest.raises(GateError, match="gated already"), gates(other, random_gates(other)):
            pass
        assert torch.equal(logits(llama, IDS), inside)
    assert state(llama) == before


def test_a_projection_that_was_replaced_is_noticed():
    model = load_model(build_tiny("llama"))
    attention = model.hf.model.layers[1].self_attn
    attention.o_proj = torch.nn.Linear(32, 48, bias=False)
    with pytest.raises(GateError, match="o_proj was replaced"), gates(model, random_gates(model)):
        pass


@torch.no_grad()
def test_inside_a_block_the_model_keeps_its_names(llama, tmp_path):
    names, plain = list(llama.hf.state_dict()), logits(llama, IDS)
    parameters = [(name, id(parameter)) for name, parameter in llama.hf.named_parameters()]
    with gates(llama, random_gates(llama)):
        assert list(llama.hf.state_dict()) == names
        assert [(name, id(parameter)) for name, parameter in llama.hf.named_parameters()] == parameters
        llama.hf.load_state_dict(llama.hf.state_dict())
        llama.hf.save_pretrained(tmp_path)
        copied = copy.deepcopy(llama.hf)
    assert torch.equal(copied(input_ids=IDS, use_cache=False).logits, plain)
    again = load_model(tmp_path)
    assert again.spec.content_hash == llama.spec.content_hash


def test_values_that_change_inside_a_block_count(llama):
    """An optimiser that steps inside the block."""
    values = random_gates(llama).requires_grad_()
    with gates(llama, values):
        first = logits(llama, IDS)
        first.sum().backward()
        with torch.no_grad():
            values -= 0.1 * values.grad.sign()
        second = logits(llama, IDS)
    with gates(llama, values):
        assert torch.equal(logits(llama, IDS), second)
    assert not torch.equal(first, second)


@pytest.fixture(scope="module")
def half():
    """Half precision: the values are cast, and the cast is kept during a pass."""
    return load_model(build_tiny("llama").bfloat16())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_after_a_pass_without(half, mode):
    values = random_gates(half).requires_grad_()
    with gates(half, values):
        with mode():
            plain = logits(half, IDS)
        found = logits(half, IDS)
        found.float().square().sum().backward()
        with mode():
            assert torch.equal(logits(half, IDS), plain)
    assert torch.equal(found, plain) and values.grad.abs().sum() > 0


def test_autocast_on_and_off_in_one_block(llama):
    with torch.no_grad(), gates(llama, random_gates(llama)):
        plain = logits(llama, IDS)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cast = logits(llama, IDS)
        assert torch.equal(logits(llama, IDS), plain)
    assert cast.dtype == torch.bfloat16 and not torch.equal(cast.float(), plain)


def test_several_backward_passes_in_one_block(half):
    values = random_gates(half).requires_grad_()
    with gates(half, values):
        for _ in range(2):  # no retained graph
            logits(half, IDS).float().square().sum().backward()
        both, values.grad = values.grad, None
        logits(half, IDS).float().square().sum().backward()
    assert torch.allclose(both, 2 * values.grad, rtol=1e-3)


@pytest.mark.parametrize("change", [
    lambda values: values.data.mul_(0.1),
    lambda values: setattr(values, "data", values.data * 0.1),
    lambda values: values.detach().numpy().__imul__(0.1),
], ids=["data in place", "new data", "as an array"])  # fmt: skip
@torch.no_grad()
def test_values_are_read_at_each_pass(half, change):
    values = random_gates(half)
    with gates(half, values):
        before = logits(half, IDS)
        change(values)
        after = logits(half, IDS)
    with gates(half, values):
        assert torch.equal(logits(half, IDS), after)
    assert not torch.equal(before, after)


def test_gradients_asked_for_inside_the_block(half):
    values = random_gates(half)
    with gates(half, values):
        logits(half, IDS)
        values.requires_grad_()
        logits(half, IDS).float().sum().backward()
    assert values.grad.abs().sum() > 0


@torch.no_grad()
def test_a_copy_of_a_model_has_gates_of_its_own():
    model = load_model(build_tiny("llama"))
    plain = logits(model, IDS)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.hf is not model.hf
        with gates(twin, torch.zeros(twin.spec.shape)):
            assert not torch.equal(logits(twin, IDS), plain)
            assert torch.equal(logits(model, IDS), plain)
        assert torch.equal(logits(twin, IDS), plain)


@torch.no_grad()
def test_what_is_done_to_a_projection_inside_a_block_lasts(llama):
    plain = logits(llama, IDS)
    calls = []
    with gates(llama, torch.zeros(llama.spec.shape)):
        llama.hf.train()
        pickled = pickle.loads(pickle.dumps(llama.hf))
        handle = llama.hf.model.layers[0].self_attn.o_proj.register_forward_hook(lambda *a: calls.append(1))
    assert {module.training for module in llama.hf.modules()} == {True}
    llama.hf.eval()
    logits(llama, IDS)
    handle.remove()
    assert calls == [1]
    assert torch.equal(pickled.eval()(input_ids=IDS, use_cache=False).logits, plain)


@torch.inference_mode()
def test_inference_mode(llama):
    with gates(llama, torch.ones(llama.spec.shape)):
        ones = logits(llama, IDS)
    assert torch.equal(ones, logits(llama, IDS))


def test_gradient_checkpointing(llama):
    """The pass that is computed again must be gated too: backward belongs into the block."""
    model = load_model(build_tiny("llama"))
    values = random_gates(model).requires_grad_()
    with gates(model, values):
        logits(model, IDS).square().sum().backward()
    expected, values.grad = values.grad, None
    model.hf.enable_input_require_grads()
    model.hf.train()  # transformers checkpoints in training mode only; the tiny model has no dropout
    for reentrant in (True, False):
        model.hf.gradient_checkpointing_enable({"use_reentrant": reentrant})
        values.grad = None
        with gates(model, values):
            logits(model, IDS).square().sum().backward()
        assert torch.allclose(values.grad, expected, rtol=1e-4, atol=1e-4)
    values.grad = None
    with gates(model, values):
        loss = logits(model, IDS).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
    assert torch.allclose(values.grad, 2 * expected, rtol=1e-4, atol=1e-4)
    with gates(model, values):
        loss = logits(model, IDS).square().sum()
    with pytest.raises(torch.utils.checkpoint.CheckpointError):
        loss.backward()  # outside: noticed, not silently wrong
    with gates(model, values):
        loss = logits(model, IDS).square().sum()
    with gates(model, random_gates(model, seed=1)), pytest.raises(GateError, match="inside the gated block"):
        loss.backward()  # in another block: it would be computed again with other gates


@pytest.mark.parametrize("shape", [(4, 3), (3,), (3, 5), (2, 2, 3, 4), (2, 4, 3)])
def test_wrong_shapes_name_the_right_one(llama, shape):
    with (
        pytest.raises(GateError, match=r"\[layer, head\] = \[3, 4\]"),
        gates(llama, torch.ones(shape)),
    ):
        pass


def test_wrong_number_of_rows(llama):
    before = state(llama)
    with pytest.raises(GateError, match="2 rows"), gates(llama, torch.ones(2, 3, 4)):
        logits(llama, IDS)
    assert state(llama) == before


@torch.no_grad()
def test_lists_arrays_and_integers_are_gates_too(llama):
    values = torch.tensor([[1, 0, 1, 1], [1, 1, 1, 0], [0, 1, 1, 1]])
    with gates(llama, values.float()):
        expected = logits(llama, IDS)
    for same in (values, values.tolist(), values.numpy(), values.numpy().astype(np.float64), values.bool()):
        with gates(llama, same):
            assert torch.equal(logits(llama, IDS), expected)


@torch.no_grad()
def test_heads_by_name(llama):
    values = torch.ones(llama.spec.shape)
    values[1, 2], values[0, 3] = 0, 0.5
    with gates(llama, values):
        expected = logits(llama, IDS)
    for named in ({"L1H2": 0, "0.3": 0.5}, {Head(1, 2): 0, (0, 3): 0.5}):
        with gates(llama, named):
            assert torch.equal(logits(llama, IDS), expected)
    with pytest.raises(HeadNameError, match="heads 0 to 3"):
        gates(llama, {"L1H9": 0})
    for value in (None, "x", [1, 2], 1j, torch.ones(3)):
        with pytest.raises(GateError, match="the gate of L1H2 is a number"):
            gates(llama, {"L1H2": value})


@pytest.mark.parametrize("values", [None, [[1, 2], [3]], object()])
def test_what_are_no_gates(llama, values):
    with pytest.raises(GateError, match=r"must be a tensor.*\[layer, head\] = \[3, 4\]"):
        gates(llama, values)


def test_gates_are_real_and_go_on_a_model(llama):
    for wrong in (float("nan"), float("inf")):
        values = torch.ones(3, 4)
        values[1, 2] = wrong
        with pytest.raises(GateError, match="NaN or infinite"), gates(llama, values):
            pass
    with pytest.raises(GateError, match="real numbers"):
        gates(llama, torch.ones(3, 4, dtype=torch.complex64))
    with pytest.raises(GateError, match="the Model that load_model gives, not a LlamaForCausalLM"):
        gates(llama.hf, torch.ones(3, 4))
    with pytest.raises(GateError, match="shape"):
        gates(llama, torch.ones(3))  # at once, also without `with`


@torch.no_grad()
def test_values_at_holes_are_ignored():
    model = model_of("hybrid with linear attention")
    assert 0 in model.spec.heads
    values = torch.ones(model.spec.shape)
    for layer, heads in enumerate(model.spec.heads):
        if not heads:
            values[layer] = torch.nan
    plain = logits(model, IDS)
    with gates(model, values):
        assert torch.equal(logits(model, IDS), plain)


@pytest.mark.parametrize("rows", [1, 2, 7])
@torch.no_grad()
def test_any_batch_size(llama, rows):
    values = random_gates(llama)
    with gates(llama, values):
        many = logits(llama, IDS[:1].expand(rows, -1))
        one = logits(llama, IDS[:1])
    assert torch.allclose(many, one.expand_as(many), atol=1e-5)


@torch.no_grad()
def test_with_a_cache_as_without(llama):
    """Generation feeds one token at a time."""
    with gates(llama, random_gates(llama)):
        whole = logits(llama, IDS)
        first = llama.hf(IDS[:, :-1], use_cache=True)
        last = llama.hf(IDS[:, -1:], past_key_values=first.past_key_values)
    assert torch.allclose(last.logits[:, 0], whole[:, -1], atol=1e-5)


def test_under_autocast(llama):
    values = random_gates(llama).requires_grad_()
    plain_values = values.detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = logits(llama, IDS)
        with gates(llama, torch.ones(llama.spec.shape)):
            assert torch.equal(logits(llama, IDS), plain)
        with gates(llama, values):
            gated = logits(llama, IDS)
    gated.float().sum().backward()
    assert values.grad is not None and torch.isfinite(values.grad).all()
    with torch.no_grad(), gates(llama, plain_values):
        exact = logits(llama, IDS)
    assert torch.allclose(gated.float(), exact, atol=0.15)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_model(dtype):
    model = load_model(build_tiny("llama").to(dtype))
    values = random_gates(model).requires_grad_()  # float32 gates on a half-precision model
    with gates(model, values):
        found = logits(model, IDS)
    assert found.dtype == dtype
    found.float().square().sum().backward()
    assert values.grad.dtype == torch.float32 and values.grad.abs().sum() > 0


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_before_the_gates_are_set(backend):
    """Hooks set after compilation would be ignored without a word; gates are not."""
    check_compiled(backend)


@pytest.mark.slow
def test_compiled_to_machine_code():
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("torch.compile's default backend needs a C++ compiler")
    if " " in torch.__file__:
        pytest.skip("torch.compile's default backend cannot link from a path with a space in it")
    check_compiled("inductor")


def check_compiled(backend):
    torch._dynamo.reset()
    hf = build_tiny("llama", attn_implementation="sdpa").requires_grad_(False)
    compiled = torch.compile(hf, backend=backend)
    plain = compiled(input_ids=IDS, use_cache=False).logits
    model = load_model(hf)
    for seed in range(3):
        values = random_gates(model, seed=seed).requires_grad_()
        with gates(model, values):
            expected = logits(model, IDS)
            found = compiled(input_ids=IDS, use_cache=False).logits
        assert torch.allclose(found, expected, atol=1e-5)
        assert not torch.allclose(found, plain, atol=1e-2)
        (one,) = torch.autograd.grad(found.square().sum(), values)
        (other,) = torch.autograd.grad(expected.square().sum(), values)
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-3)
    again = compiled(input_ids=IDS, use_cache=False).logits
    assert torch.allclose(again, plain, atol=1e-5)


@pytest.mark.slow
def test_new_values_do_not_compile_again():
    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    model = load_model(build_tiny("llama", attn_implementation="sdpa").requires_grad_(False))
    compiled = torch.compile(model.hf, backend=backend)
    for seed in range(4):
        with gates(model, random_gates(model, seed=seed)):
            compiled(input_ids=IDS, use_cache=False)
        if seed == 0:
            first = len(graphs)
    assert len(graphs) == first > 0


@pytest.mark.slow
def test_a_compiled_model_can_be_loaded():
    torch._dynamo.reset()
    hf = build_tiny("llama", attn_implementation="sdpa")
    model = load_model(torch.compile(hf, backend="eager"))
    assert model.hf is hf


@torch.no_grad()
def test_double_precision_gates_keep_their_value_in_a_half_precision_model():
    """0.750 and 0.751 are one number in bfloat16; integrated gradients need to tell them apart."""
    model = load_model(build_tiny("llama").bfloat16())
    near = [torch.full(model.spec.shape, value, dtype=torch.float64) for value in (0.750, 0.751)]
    outputs = []
    for values in near:
        with gates(model, values):
            outputs.append(logits(model, IDS))
    assert not torch.equal(*outputs)
    rounded = []
    for values in near:
        with gates(model, values.float()):
            rounded.append(logits(model, IDS))
    assert torch.equal(*rounded)
