"""`observe` and `norm_after` against hooks on the modules by their names, and single-precision sources."""

from __future__ import annotations

import copy

import pytest
import torch

from headatlas import gates, load_model
from support.heads import LAYOUTS, shared_model
from support.tiny import build_tiny, sample_ids

IDS = sample_ids(batch=4, length=7)
AT = torch.tensor([6, 0, 3, 5])


def inputs_of(hf, *names):
    """What modules are given, whole."""
    seen = {}
    handles = []
    for name in names:

        def keep(module, args, kwargs, name=name):
            seen[name] = args[0] if args else kwargs["hidden_states"]

        handles.append(hf.get_submodule(name).register_forward_pre_hook(keep, with_kwargs=True))
    with torch.no_grad():
        hf(input_ids=IDS, use_cache=False)
    for handle in handles:
        handle.remove()
    return [seen[name] for name in names]


PLACES = {
    "llama": ("model.layers.{}.self_attn.o_proj", "model.layers.{}.self_attn.v_proj"),
    "gemma2": ("model.layers.{}.self_attn.o_proj", "model.layers.{}.self_attn.v_proj"),
    "gpt2": ("transformer.h.{}.attn.c_proj", "transformer.h.{}.attn.c_attn"),
    "gpt_neox": ("gpt_neox.layers.{}.attention.dense", "gpt_neox.layers.{}.attention.query_key_value"),
    "deepseek_v3": ("model.layers.{}.self_attn.o_proj", "model.layers.{}.self_attn.kv_a_proj_with_mqa"),
    "olmo2": ("model.layers.{}.self_attn.o_proj", "model.layers.{}.self_attn.v_proj"),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_heads_put_out_and_what_values_are_made_from(name):
    model = load_model(build_tiny(name), check=False)
    found = model.head_activations_at(IDS, AT)
    assert list(found) == [0, 1, 2]
    for layer, (outputs, inputs) in found.items():
        written, read = inputs_of(model.hf, *(place.format(layer) for place in PLACES[name]))
        assert torch.allclose(outputs, written[torch.arange(4), AT], atol=1e-6)
        assert torch.allclose(inputs, read[torch.arange(4), AT], atol=1e-6)
    for module in model.hf.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks


@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_layer_with_heads_is_seen(kind):
    model = shared_model(kind)
    found = model.head_activations_at(IDS, AT)
    assert list(found) == [layer for layer, heads in enumerate(model.spec.heads) if heads]
    for layer, (outputs, inputs) in found.items():
        place = model.attention(layer)
        written, read = inputs_of(model.hf, place.output, place.value.linear)
        for own, whole in ((outputs, written), (inputs, read)):
            expected = whole.reshape(4, 7, -1)[torch.arange(4), AT]
            assert torch.allclose(own, expected, atol=1e-5)


@torch.no_grad()
def test_one_position_does_not_depend_on_what_follows():
    model = load_model(build_tiny("llama"), check=False)
    later = IDS.clone()
    later[:, 4:] = 7
    one, other = (model.head_activations_at(ids, torch.full((4,), 3)) for ids in (IDS, later))
    for layer in one:
        assert torch.allclose(one[layer][0], other[layer][0], atol=1e-6)


def test_inside_a_gated_block_it_sees_the_gated_model():
    model = load_model(build_tiny("llama"), check=False)
    plain = model.head_activations_at(IDS, AT)
    with gates(model, {"L0H1": 0}):
        gated = model.head_activations_at(IDS, AT)
    assert gated[0][0][:, 8:16].abs().max() == 0 and plain[0][0][:, 8:16].abs().max() > 0
    assert torch.equal(gated[0][0][:, :8], plain[0][0][:, :8])
    assert torch.equal(gated[0][1], plain[0][1]) and not torch.equal(gated[1][1], plain[1][1])


GAINS = {  # the norm after attention; Gemmas store its weights less one
    "gemma2": lambda block: 1 + block.post_attention_layernorm.weight,
    "gemma3_text": lambda block: 1 + block.post_attention_layernorm.weight,
    "olmo2": lambda block: block.post_attention_layernorm.weight,
    "glm4": lambda block: block.post_self_attn_layernorm.weight,
}


@pytest.mark.parametrize("name", GAINS)
@torch.no_grad()
def test_the_weights_of_a_norm_after_attention(name):
    model = load_model(build_tiny(name), check=False)
    for layer, block in enumerate(model.hf.model.layers):
        expected = GAINS[name](block)
        norm = model.norm_after(layer)
        assert torch.allclose(norm.gain, expected, rtol=1e-5) and not norm.centres
        assert expected.std() > 0.1  # no trivial weights


@pytest.mark.parametrize("name", ["gemma2", "olmo2"])
@torch.no_grad()
def test_the_gain_is_what_the_stream_gets(name):
    """What is added to the stream is what W_O wrote times the gain, up to one number per position."""
    model = load_model(build_tiny(name), check=False)
    gains = [model.norm_after(layer).gain for layer in range(3)]
    written, added = {}, {}
    for layer, block in enumerate(model.hf.model.layers):

        def wrote(module, args, output, layer=layer):
            written[layer] = output

        def gave(module, args, output, layer=layer):
            added[layer] = output

        block.self_attn.o_proj.register_forward_hook(wrote)
        block.post_attention_layernorm.register_forward_hook(gave)
    model.hf(input_ids=IDS, use_cache=False)
    assert len(written) == 3
    for layer, gain in enumerate(gains):
        ratio = added[layer] / (written[layer] * gain)
        assert (ratio > 0).all() and torch.allclose(ratio, ratio[..., :1].expand_as(ratio), rtol=1e-3)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox", "gptj", "mixtral", "cohere", "phi", "bert"])
def test_where_no_norm_follows_there_is_no_gain(name):
    model = load_model(build_tiny(name), check=False)
    assert [model.norm_after(layer) for layer in range(3)] == [None] * 3


@torch.no_grad()
def test_a_norm_after_attention_that_takes_off_the_mean():
    """By its own formula: what comes out is the centred vector times the weights, up to a positive number."""
    model = load_model(build_tiny("gemma2"), check=False)
    for block in model.hf.model.layers:
        old = block.post_attention_layernorm
        block.post_attention_layernorm = torch.nn.LayerNorm(48, bias=False)
        block.post_attention_layernorm.weight.copy_(1 + old.weight)
    vectors = torch.randn(5, 48, generator=torch.Generator().manual_seed(0)) + 2
    for layer, block in enumerate(model.hf.model.layers):
        norm = model.norm_after(layer)
        assert norm.centres
        ratio = block.post_attention_layernorm(vectors) / norm(vectors)
        assert (ratio > 0).all() and torch.allclose(ratio, ratio[:, :1].expand_as(ratio), rtol=1e-3)


HALVES = [
    "llama",
    "gpt2",
    "gpt_neox",
    "gptj",
    "falcon",
    "bloom",
    "opt",
    "qwen3",
    "mixtral",
    "deepseek_v3",
    "olmo2",
    "cohere",
    "phi3",
    "qwen3_next",
    "jamba",
]


#: name, attention code, dtype: both halves go the same way, so one model is enough for the second
HALF_MODELS = [
    *((name, attention, torch.bfloat16) for name in HALVES for attention in ("eager", None)),
    ("llama", None, torch.float16),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "attention", "dtype"), HALF_MODELS)
@torch.no_grad()
def test_first_mlp_of_half_precision_weights_is_single_precision(name, attention, dtype):
    """As from the same weights in single precision; the model is left in halves, its weights untouched."""
    hf = build_tiny(name, attn_implementation=attention).to(dtype)
    twin = load_model(copy.deepcopy(hf).float(), check=False)
    model = load_model(hf, check=False)
    before = {key: (id(tensor), tensor.clone()) for key, tensor in hf.named_parameters()}
    tokens = torch.arange(5, 40)
    found, expected = model.source_vectors(tokens), twin.source_vectors(tokens)
    assert found.dtype == torch.float32
    # the embeddings that bloom norms are rounded on the way; nothing else is
    rough = 5e-3 if name == "bloom" else 1e-5
    assert (found - expected).norm() < rough * expected.norm()
    for key, tensor in hf.named_parameters():
        assert tensor.dtype == dtype and id(tensor) == before[key][0]
        assert torch.equal(tensor, before[key][1])


@pytest.mark.parametrize("name", ["llama", "gptj"])
@torch.no_grad()
def test_a_half_precision_checkpoint(name, tmp_path):
    """As it is loaded from disk: some models (GPT-J) keep a table of positions in single precision then."""
    build_tiny(name).bfloat16().save_pretrained(tmp_path)
    half, single = (load_model(tmp_path, dtype=dtype, check=False) for dtype in ("bfloat16", "float32"))
    found, expected = (model.source_vectors(torch.arange(5, 40)) for model in (half, single))
    assert half.hf.dtype == torch.bfloat16
    assert (found - expected).norm() < 1e-5 * expected.norm()


@torch.no_grad()
def test_half_precision_weights_come_back_after_an_error():
    model = load_model(build_tiny("llama").bfloat16(), check=False)
    expected = model.source_vectors([5, 6])  # how it is done is known now

    def broken(module, args):
        raise KeyboardInterrupt

    handle = model.hf.model.layers[0].mlp.register_forward_pre_hook(broken)
    with pytest.raises(KeyboardInterrupt):
        model.source_vectors([5, 6])
    handle.remove()
    assert {weight.dtype for weight in model.hf.parameters()} == {torch.bfloat16}
    assert torch.equal(model.source_vectors([5, 6]), expected)


def test_double_and_single_precision_stay_as_they_are():
    for dtype in (torch.float32, torch.float64):
        model = load_model(build_tiny("llama").to(dtype), check=False)
        assert model.source_vectors([5, 6]).dtype == dtype
