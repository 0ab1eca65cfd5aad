"""The self-check must refuse an anatomy that is wrong, in every way that we can think of."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
import torch

from headatlas import ModelRefusedError, load_model
from headatlas.model import gate_modules as gating_module
from headatlas.model import proof as proof_module
from headatlas.model import weights as weights_module
from headatlas.model.anatomy import Anatomy
from headatlas.model.gate_modules import Gating
from headatlas.model.proof import self_check
from support.heads import KINDS, layout_marks
from support.tiny import build_tiny

ONE_ATTENTION_LAYER = {"hybrid with linear attention", "hybrid with state space"}
GROUPED = {
    "separate, grouped, head_dim != hidden/heads",
    "separate, biases",
    "fused, grouped blocks",
    "fused, grouped thirds",
    "mixture of experts",
    "hybrid with linear attention",
    "hybrid with state space",
    "attention beside state space",
    "sinks",
    "gated output",
    "normed values, shared between layers",
    "norm before the output projection",
    "heads differ from layer to layer",
}


@functools.cache
def built(kind, dtype=torch.float32):
    model_type, overrides = KINDS[kind]
    return load_model(build_tiny(model_type, **overrides).to(dtype))


def pytest_generate_tests(metafunc):
    """Each sabotage is tried on every kind that it can be done to, also where rounding is coarse."""
    if "model" in metafunc.fixturenames:
        kinds = getattr(metafunc.function, "kinds", list(KINDS))
        half = [
            pytest.param((kind, torch.bfloat16), id=f"{kind}, bf16", marks=pytest.mark.slow) for kind in kinds
        ]
        full = [pytest.param((kind, torch.float32), id=kind, marks=layout_marks(kind)) for kind in kinds]
        metafunc.parametrize("model", full + half, indirect=True)


def on(kinds):
    def mark(function):
        function.kinds = [kind for kind in KINDS if kind in kinds]
        assert function.kinds
        return function

    return mark


@pytest.fixture
def model(request):
    return built(*request.param)


def test_the_lists_of_kinds_are_right():
    for kind in KINDS:
        assert built(kind).check.passed
        present = built(kind).anatomy.present()
        assert (kind in ONE_ATTENTION_LAYER) == (len(present) == 1)
        assert (kind in GROUPED) == any(1 < found.kv_heads < found.heads for found in present)


def outcome(model, anatomy):
    return self_check(model.hf, anatomy, Gating(model.hf, anatomy))


def refused(model, anatomy):
    """By a verdict; where layers differ in width, shapes that do not fit at all are a refusal too."""
    try:
        return not outcome(model, anatomy).passed
    except RuntimeError:
        return len({found.heads * found.head_dim for found in model.anatomy.present()}) > 1


def with_values(model, change):
    """The anatomy with `change` applied to every layer's value channels [head, d]."""
    layers = [
        found and replace(found, value=replace(found.value, channels=change(found.value.channels, found)))
        for found in model.anatomy.attention
    ]
    return Anatomy(model.anatomy.blocks, tuple(layers))


def test_swapped_value_slices(model):
    if all(found.kv_heads == 1 for found in model.anatomy.present()):
        # one value head for all: swap components instead, there is no other slice to take
        wrong = with_values(model, lambda channels, _: channels.roll(1, dims=1))
    else:
        wrong = with_values(model, lambda channels, _: channels.roll(channels.shape[0] // 2, dims=0))
    found = outcome(model, wrong)
    assert not found.passed
    assert any("rebuild" in failure for failure in found.failures)


@on(GROUPED)
def test_wrong_group_order(model):
    """Value head = head % groups instead of head // group size."""

    def strided(channels, found):
        if not 1 < found.kv_heads < found.heads:
            return channels
        size = found.heads // found.kv_heads
        firsts = channels[::size]
        return firsts[torch.arange(found.heads) % found.kv_heads]

    assert not outcome(model, with_values(model, strided)).passed


def test_values_taken_from_elsewhere(model):
    """From the keys where they are a module of the same shape, else from the wrong channels."""
    layers, changed = [], 0
    for found in model.anatomy.attention:
        layers.append(found)
        if found and found.value.linear.endswith(".v_proj") and not found.value.norm:
            keys = found.value.linear.replace(".v_proj", ".k_proj")
            if (
                model.hf.get_submodule(keys).weight.shape
                == model.hf.get_submodule(found.value.linear).weight.shape
            ):
                layers[-1] = replace(found, value=replace(found.value, linear=keys))
                changed += 1
    if changed:
        wrong = Anatomy(model.anatomy.blocks, tuple(layers))
    else:
        wrong = with_values(model, lambda channels, _: channels.roll(1, dims=1))
    assert refused(model, wrong)


def test_swapped_output_slices(model, monkeypatch):
    true = weights_module.output_slice

    def swapped(hf, found, head):
        return true(hf, found, {0: 1, 1: 0}.get(head, head))

    monkeypatch.setattr(proof_module, "output_slice", swapped)
    found = outcome(model, model.anatomy)
    assert not found.passed
    assert any("slice out of W_O" in failure for failure in found.failures)


def test_off_by_one_layer(model):
    """All layers renamed by one: gates, weights and attention move together."""
    present = model.anatomy.present()
    if len(present) == 1:
        shifted = [None] * model.anatomy.layers
        shifted[(present[0].layer + 1) % model.anatomy.layers] = replace(
            present[0], layer=(present[0].layer + 1) % model.anatomy.layers
        )
    else:
        shifted = [None] * model.anatomy.layers
        for found, target in zip(present, present[1:] + present[:1], strict=True):
            shifted[target.layer] = replace(found, layer=target.layer)
    assert refused(model, Anatomy(model.anatomy.blocks, tuple(shifted)))


@on(KINDS.keys() - ONE_ATTENTION_LAYER)
def test_gate_point_of_another_layer(model):
    """Only the gate point is off by one; weights and patterns are the layer's own."""
    present = model.anatomy.present()
    layers = list(model.anatomy.attention)
    for found, other in zip(present, present[1:] + present[:1], strict=True):
        layers[found.layer] = replace(found, output=other.output)
    assert refused(model, Anatomy(model.anatomy.blocks, tuple(layers)))


@on(KINDS.keys() - ONE_ATTENTION_LAYER)
def test_values_of_another_layer(model):
    first, *others = model.anatomy.present()
    other = next(o for o in others if o.value.linear != first.value.linear)
    layers = list(model.anatomy.attention)
    layers[first.layer] = replace(first, value=other.value)
    assert refused(model, Anatomy(model.anatomy.blocks, tuple(layers)))


def test_twice_as_many_heads_of_half_the_width(model):
    layers = [
        found
        and replace(
            found,
            heads=2 * found.heads,
            head_dim=found.head_dim // 2,
            value=replace(found.value, channels=found.value.channels.reshape(2 * found.heads, -1)),
        )
        for found in model.anatomy.attention
    ]
    assert refused(model, Anatomy(model.anatomy.blocks, tuple(layers)))


def test_gates_in_the_wrong_order(model, monkeypatch):
    true = gating_module._Gated.forward

    def reversed_gates(self, z, *args, **kwargs):
        values = self.values.tensor
        self.values.set(values.flip(-1))
        try:
            return true(self, z, *args, **kwargs)
        finally:
            self.values.set(values)

    monkeypatch.setattr(gating_module._Gated, "forward", reversed_gates)
    assert not outcome(model, model.anatomy).passed


def test_a_forgotten_bias(model, monkeypatch):
    """Value biases left out of the reading: refused where the model has any."""
    monkeypatch.setattr(weights_module, "bias_of", lambda module: None)
    biased = any(
        getattr(model.hf.get_submodule(found.value.last_linear), "bias", None) is not None
        for found in model.anatomy.present()
    )
    assert outcome(model, model.anatomy).passed is not biased


# --- what a first version of the check let pass ---


def many_heads(dtype, heads=64, **changes):
    sizes = {
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 4,
        "head_dim": 4,
        "hidden_size": 64,
    }
    tiny = build_tiny("llama", **sizes)
    for change in changes.values():
        change(tiny)
    return load_model(tiny.to(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_any_two_of_many_heads_swapped(dtype, monkeypatch):
    """With 64 heads, one pair is a small part of the whole: each head must be looked at alone."""
    model = many_heads(dtype)
    true_slice, true_forward = weights_module.output_slice, gating_module._Gated.forward
    random = torch.Generator().manual_seed(0)
    for _ in range(8):
        one, other = torch.randperm(64, generator=random)[:2].tolist()
        swap = {one: other, other: one}
        with monkeypatch.context() as patch:
            patch.setattr(
                proof_module,
                "output_slice",
                lambda hf, found, head, swap=swap: true_slice(hf, found, swap.get(head, head)),
            )
            assert not outcome(model, model.anatomy).passed
        order = torch.arange(64)
        order[[one, other]] = order[[other, one]]

        def swapped_gates(self, z, order=order):
            values = self.values.tensor
            self.values.set(values[..., order])
            try:
                return true_forward(self, z)
            finally:
                self.values.set(values)

        with monkeypatch.context() as patch:
            patch.setattr(gating_module._Gated, "forward", swapped_gates)
            assert not outcome(model, model.anatomy).passed


def test_layers_off_by_one_where_most_heads_are_dead():
    """As in a pruned checkpoint: only head 0 of each layer writes anything."""

    @torch.no_grad()
    def prune(tiny):
        for layer in tiny.model.layers:
            layer.self_attn.o_proj.weight[:, 4:] = 0

    model = many_heads(torch.float32, heads=8, prune=prune)
    assert outcome(model, model.anatomy).passed
    first, *rest = model.anatomy.attention
    shifted = [replace(found, layer=layer) for layer, found in enumerate([*rest, first])]
    assert not outcome(model, Anatomy(model.anatomy.blocks, tuple(shifted))).passed


def test_what_is_no_number_does_not_pass(monkeypatch):
    """NaN compares false with everything, also with what is allowed."""
    model = many_heads(torch.float32, heads=8)
    true = weights_module.head_values
    monkeypatch.setattr(proof_module, "head_values", lambda *given: true(*given) * float("nan"))
    found = outcome(model, model.anatomy)
    assert not found.passed and found.layers[0].rebuild == float("inf")
    assert found.to_json()["layers"][0]["rebuild"] is None


def test_values_with_the_wrong_sign(monkeypatch):
    """A model that turns its values round would be read as writing the opposite."""
    import transformers.models.llama.modeling_llama as code

    true = code.eager_attention_forward
    monkeypatch.setattr(
        code, "eager_attention_forward", lambda m, q, k, v, *args, **more: true(m, q, k, -v, *args, **more)
    )
    with pytest.raises(ModelRefusedError, match="fails the self-check"):
        load_model(build_tiny("llama"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_deep_experts_in_half_precision_are_not_refused(seed):
    """Rounding sends tokens to other experts; what is compared must not depend on that."""
    tiny = build_tiny("mixtral", seed=seed, num_hidden_layers=24, num_local_experts=8)
    assert load_model(tiny.bfloat16()).check.passed


def test_faint_attention_in_half_precision_is_not_refused():
    tiny = build_tiny("llama")
    for layer in tiny.model.layers:
        layer.self_attn.o_proj.weight.data.mul_(1e-4)
    assert load_model(tiny.bfloat16()).check.passed


def test_as_many_layers_as_streams():
    """Rows of the probe must not be taken for the parallel streams of a model, or the other way."""
    for layers in (2, 4):
        kinds = ["sliding_attention", "full_attention"] * (layers // 2)
        tiny = build_tiny("gemma3n_text", num_hidden_layers=layers, layer_types=kinds, num_kv_shared_layers=0)
        assert load_model(tiny).check.passed
