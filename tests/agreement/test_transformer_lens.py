"""Head outputs, OV products and ablations against TransformerLens, on the same tiny weights.

TransformerLens has its own transformer code and its own reading of checkpoints, so that an error in
either tool shows. The library downloads nothing here: its configuration is written out below.
"""

from __future__ import annotations

import pytest
import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig
from transformer_lens.pretrained.weight_conversions import (
    convert_gpt2_weights,
    convert_llama_weights,
    convert_neox_weights,
)

from headatlas import gates, load_model
from headatlas.method.engine.ablate import ablate
from headatlas.task import Row
from support.tiny import build_tiny, sample_ids

pytestmark = pytest.mark.slow

COMMON = {"n_layers": 3, "d_model": 48, "n_heads": 4, "d_vocab": 160, "n_ctx": 64, "seed": 0}


def llama():
    hf = build_tiny("llama")
    config = hf.config
    lens = HookedTransformerConfig(
        **COMMON,
        d_head=config.head_dim,
        n_key_value_heads=config.num_key_value_heads,
        d_mlp=config.intermediate_size,
        act_fn="silu",
        normalization_type="RMS",
        eps=config.rms_norm_eps,
        positional_embedding_type="rotary",
        rotary_adjacent_pairs=False,
        rotary_dim=config.head_dim,
        rotary_base=int(config.rope_parameters["rope_theta"]),
        gated_mlp=True,
        final_rms=True,
        original_architecture="LlamaForCausalLM",
    )
    return hf, lens, convert_llama_weights(hf, lens)


def gpt2():
    hf = build_tiny("gpt2")
    lens = HookedTransformerConfig(
        **COMMON,
        d_head=12,
        d_mlp=hf.config.n_inner or 4 * 48,
        act_fn="gelu_new",
        normalization_type="LN",
        eps=hf.config.layer_norm_epsilon,
        original_architecture="GPT2LMHeadModel",
    )
    return hf, lens, convert_gpt2_weights(hf, lens)


def gpt_neox():
    hf = build_tiny("gpt_neox")
    lens = HookedTransformerConfig(
        **COMMON,
        d_head=12,
        d_mlp=hf.config.intermediate_size,
        act_fn="gelu",
        normalization_type="LN",
        eps=hf.config.layer_norm_eps,
        positional_embedding_type="rotary",
        rotary_adjacent_pairs=False,
        rotary_dim=6,
        parallel_attn_mlp=hf.config.use_parallel_residual,
        original_architecture="GPTNeoXForCausalLM",
    )
    return hf, lens, convert_neox_weights(hf, lens)


@pytest.fixture(scope="module", params=[llama, gpt2, gpt_neox], ids=lambda make: make.__name__)
def both(request):
    hf, config, state = request.param()
    lens = HookedTransformer(config)
    lens.load_and_process_state_dict(
        state, fold_ln=False, center_unembed=False, center_writing_weights=False, fold_value_biases=False
    )
    return load_model(hf), lens.eval()


def close(ours, theirs):
    assert torch.allclose(ours, theirs, atol=3e-5, rtol=3e-5), (ours - theirs).abs().max()


def test_the_two_models_are_the_same(both):
    ours, lens = both
    ids = sample_ids()
    with torch.no_grad():
        close(ours.hf(ids).logits, lens(ids))


def test_value_and_output_weights(both):
    ours, lens = both
    repeat = (
        ours.spec.heads[0] // lens.blocks[0].attn.W_V.shape[0]
        if lens.cfg.ungroup_grouped_query_attention
        else 1
    )
    for head in ours.spec:
        value, output = ours.value_output(head.layer, head.head)
        block = lens.blocks[head.layer].attn
        close(value, block.W_V[head.head // repeat])
        close(output, block.W_O[head.head])
        close(value @ output, block.W_V[head.head // repeat] @ block.W_O[head.head])


def test_unembedding_and_embedding(both):
    ours, lens = both
    close(ours.unembedding(), lens.W_U)
    close(ours.source_vectors(range(160), "embedding"), lens.W_E)


def test_head_outputs(both):
    """What arrives at our gate points is their `hook_z`."""
    ours, lens = both
    ids = sample_ids()
    _, cache = lens.run_with_cache(ids)
    seen = {}
    handles = []
    for found in ours.anatomy.present():

        def keep(module, args, layer=found.layer):
            seen[layer] = args[0]

        handles.append(ours.hf.get_submodule(found.output).register_forward_pre_hook(keep))
    with torch.no_grad():
        ours.hf(ids)
    for handle in handles:
        handle.remove()
    for layer, z in seen.items():
        close(z.unflatten(-1, (4, -1)), cache["z", layer])


def test_gated_logits(both):
    """Random gates here, the same numbers multiplied onto `hook_z` there."""
    ours, lens = both
    ids = sample_ids()
    values = torch.rand(ours.spec.shape, generator=torch.Generator().manual_seed(3))

    def scale(z, hook):
        return z * values[hook.layer(), :, None]

    with torch.no_grad(), gates(ours, values):
        gated = ours.hf(ids).logits
    with torch.no_grad():
        theirs = lens.run_with_hooks(ids, fwd_hooks=[(lambda name: name.endswith("hook_z"), scale)])
    close(gated, theirs)


def test_attention_patterns(both):
    """`Model.patterns` against `hook_pattern`."""
    ours, lens = both
    ids = sample_ids(batch=2, length=7)
    with torch.no_grad():
        _, cache = lens.run_with_cache(ids)
    patterns = ours.patterns(ids)
    for layer in range(3):
        close(torch.from_numpy(patterns.sel(layer=layer).values), cache["pattern", layer])


def test_labelled_head_outputs(both):
    """`Model.head_outputs` against `hook_z`."""
    ours, lens = both
    ids = sample_ids(batch=2, length=7)
    with torch.no_grad():
        _, cache = lens.run_with_cache(ids)
    outputs = ours.head_outputs(ids)
    for layer in range(3):
        close(torch.from_numpy(outputs.sel(layer=layer).values), cache["z", layer])


def test_logit_attribution(both):
    """The direct contributions of all heads, with the final norm as it is at that position."""
    ours, lens = both
    ids = sample_ids(batch=1, length=7)
    lens.set_use_attn_result(True)
    with torch.no_grad():
        _, cache = lens.run_with_cache(ids)
        results = torch.stack([cache["result", layer][0, -1] for layer in range(3)])  # [layer, head, hidden]
    scaled = results - results.mean(-1, keepdim=True) if lens.cfg.normalization_type == "LN" else results
    scaled = scaled / cache["ln_final.hook_scale"][0, -1]
    weight = lens.ln_final.w.detach()
    direction = (lens.W_U[:, 5] - lens.W_U[:, 9]).detach()
    expected = (scaled * weight) @ direction
    found = ours.logit_attribution(ids, 5, 9).sel(component=[str(head) for head in ours.spec])
    close(torch.from_numpy(found.values).float().reshape(3, 4), expected)


def test_mean_ablation(both):
    """The effects of `ablate-mean`: their loss with `hook_z` of a head set to its mean over all tokens."""
    ours, lens = both
    ids = sample_ids(batch=6, length=8, seed=5)
    rows = [Row(tuple(row), 6) for row in ids.tolist()]
    effects = ablate(ours, rows, "mean").values

    def loss(hooks):
        with torch.no_grad():
            logits = lens.run_with_hooks(ids, fwd_hooks=hooks)
        log_probabilities = logits[:, 5:7].log_softmax(-1)
        return float(-log_probabilities.gather(-1, ids[:, 6:8, None]).mean())

    with torch.no_grad():
        _, cache = lens.run_with_cache(ids)
    plain = loss([])
    for head in ours.spec:
        mean = cache["z", head.layer][:, :, head.head].mean((0, 1))

        def replace(z, hook, head=head, mean=mean):
            z[:, :, head.head] = mean
            return z

        changed = loss([(f"blocks.{head.layer}.attn.hook_z", replace)])
        assert effects[head.layer, head.head] == pytest.approx(changed - plain, abs=2e-5)
