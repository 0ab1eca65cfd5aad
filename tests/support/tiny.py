"""Tiny, randomly initialised causal language models of every type transformers knows.

``build_tiny("qwen3_moe")`` gives a CPU, fp32, eval-mode model with some tens of thousands of
parameters, made by ``AutoModelForCausalLM.from_config``.  The configuration comes from three
layers, later ones winning:

1. ``BASE``: one value per attribute *name*, applied to whatever fields a config class declares
   (plus a few rules for families of names: dropouts, token ids, per-layer lists);
2. ``SPECIAL``: the few attributes of a model type that the base recipe gets wrong;
3. the caller's keyword overrides (nested dicts reach nested configs).

All weights are then drawn again from a seeded generator, so that no zero bias, unit norm or tiny
initialisation can hide an error in code that examines the model.
"""

from __future__ import annotations

import copy
import dataclasses
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.pytorch_utils import Conv1D

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INTER = 48, 4, 2, 8, 64
LAYERS, VOCAB, POSITIONS, EXPERTS, TOP_K, WINDOW = 3, 160, 64, 4, 2, 16
FIRST_MEDIA_ID = 140  # ids from here up stand for images, audio and the like
MLA_KV_HEADS = HEADS  # latent attention expands one latent to all the heads


class CannotBuildError(RuntimeError):
    """The model type cannot be built here; the message says why in one sentence."""


def _same(value: Any, names: str) -> dict[str, Any]:
    """Give every one of the space-separated ``names`` the same ``value``."""
    return dict.fromkeys(names.split(), value)


BASE: dict[str, Any] = {
    **_same(HIDDEN, "hidden_size n_embd d_model emb_dim word_embed_proj_dim lru_width"),
    **_same(HIDDEN, "attention_hidden_size mm_embed_dim"),
    **_same(32, "embedding_size input_embedding_size"),
    **_same(40, "output_embedding_size"),
    **_same(HIDDEN, "hidden_size_global vision_output_dim out_hidden_size output_proj_dims"),
    **_same(HIDDEN, "projector_output_dim"),
    **_same(LAYERS, "num_hidden_layers n_layer n_layers num_layers num_blocks depth"),
    **_same(LAYERS, "decoder_layers encoder_layers num_decoder_layers num_encoder_layers"),
    **_same(HEADS, "num_attention_heads n_head n_heads num_heads attention_heads"),
    **_same(HEADS, "decoder_attention_heads encoder_attention_heads swa_num_attention_heads"),
    **_same(HEADS, "num_decoder_attention_heads num_encoder_attention_heads"),
    **_same(KV_HEADS, "num_key_value_heads num_kv_heads kv_n_heads swa_num_key_value_heads"),
    **_same(HEAD_DIM, "head_dim kv_channels swa_head_dim"),
    **_same(12, "dim_head d_head attention_head_size"),
    **_same(INTER, "intermediate_size n_inner ffn_dim decoder_ffn_dim encoder_ffn_dim d_inner"),
    **_same(INTER, "dim_ff dff ffn_hidden_size feed_forward_size mlp_dim intermediate_size_mlp"),
    **_same(INTER, "dense_intermediate_size shared_intermediate_size"),
    **_same(VOCAB, "vocab_size vocab_size_per_layer_input decoder_vocab_size"),
    **_same(POSITIONS, "max_position_embeddings n_positions n_ctx max_seq_len context_length"),
    **_same(POSITIONS, "max_target_positions model_max_length"),
    # mixtures of experts
    **_same(EXPERTS, "num_experts num_local_experts n_routed_experts moe_num_experts"),
    **_same(TOP_K, "num_experts_per_tok num_experts_per_token moe_topk moe_top_k moe_k"),
    **_same(TOP_K, "top_k_experts"),
    **_same(24, "moe_intermediate_size shared_expert_intermediate_size"),
    **_same(24, "expert_ffn_hidden_size moe_shared_expert_intermediate_size"),
    **_same(1, "n_group topk_group num_expert_group n_shared_experts num_shared_experts"),
    **_same(1, "moe_num_shared_experts first_k_dense_replace num_dense_layers"),
    # latent attention and sparse indexers
    "q_lora_rank": 20,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "index_head_dim": 8,
    "index_n_heads": 2,
    "index_topk": 32,
    # state-space and linear attention layers
    **_same(8, "mamba_d_state state_size ssm_state_size"),
    **_same(HEADS, "linear_num_value_heads"),
    **_same(KV_HEADS, "linear_num_key_heads"),
    **_same(8, "linear_key_head_dim linear_value_head_dim linear_head_dim"),
    **_same(HEADS, "linear_num_heads"),
    **_same(16, "chunk_size mamba_chunk_size block_size"),
    **_same(8, "mamba_n_heads mamba_num_heads n_mamba_heads"),
    **_same(12, "mamba_d_head mamba_head_dim mamba_headdim"),
    **_same(1, "mamba_n_groups n_groups mamba_ngroups"),
    # windows
    **_same(WINDOW, "sliding_window sliding_window_size attention_window_size window_size"),
    **_same(WINDOW, "local_attention attention_chunk_size keep_window_size"),
    "rotary_dim": 4,
    "hidden_size_per_layer_input": 8,
    # encoder types are to be decoders here
    "is_decoder": True,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "use_cache": False,
    "num_mtp_layers": 0,
    "num_nextn_predict_layers": 0,
}

#: Replaces part of BASE inside configs of vision and audio encoders.
ENCODER: dict[str, Any] = {
    **_same(12, "head_dim"),
    **_same(HEADS, "num_key_value_heads"),
    **_same(2, "num_hidden_layers depth num_layers"),
    "image_size": 8,
    "patch_size": 4,
}

#: The last two of four layers reuse keys and values of the first two.
KV_SHARING: dict[str, Any] = {
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "num_kv_shared_layers": 2,
}
SLIDING_FULL = ["sliding_attention", "full_attention", "sliding_attention"]
LINEAR_FULL = ["linear_attention", "full_attention", "linear_attention"]
CONV_FULL = ["conv", "full_attention", "conv"]
#: The default, a quarter, would rotate 3 of 12 dimensions.
HALF_ROTARY = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
#: One attention block shared by all "hybrid" layers; sharing needs two of them.
ZAMBA_LAYERS = ["linear_attention", "hybrid", "linear_attention", "hybrid", "linear_attention"]

#: Types whose configuration declares no head_dim, though the attention takes it from there.
TAKES_HEAD_DIM = (
    "apertus cohere cohere2 doge dots1 emu3_text_model ernie4_5_moe exaone4 exaone_moe flex_olmo "
    "glm4_moe granite granite_swa granitemoe granitemoe_swa granitemoeshared nanochat olmo olmo2 "
    "olmo3 olmo_hybrid phi phi3 phimoe qwen2 qwen2_moe qwen3_moe recurrent_gemma starcoder2"
)

SPECIAL: dict[str, dict[str, Any]] = {
    **{name: {"head_dim": HEAD_DIM} for name in TAKES_HEAD_DIM.split()},
    "bamba": {"attn_layer_indices": [1], "head_dim": HEAD_DIM},
    "big_bird": {"attention_type": "original_full"},  # block-sparse needs long inputs
    "bigbird_pegasus": {"attention_type": "original_full"},
    "blt": {"encoder_hash_byte_group_vocab": 50},
    "cohere_compass_text": {
        "layer_types": SLIDING_FULL,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    },
    # the attention reads rope_theta, declared nowhere, and clamps to clip_qkv, None by default
    "dbrx": {"attn_config": {"rope_theta": 1e4, "clip_qkv": 8.0}},
    "deepseek_v4": {
        "num_hidden_layers": 4,
        "layer_types": [
            "heavily_compressed_attention",
            "compressed_sparse_attention",
            "sliding_attention",
            "heavily_compressed_attention",
        ],
        "num_key_value_heads": 1,
        "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4},
        "partial_rotary_factor": 0.5,
        "o_groups": 2,
        "o_lora_rank": 8,
    },
    "falcon": {"new_decoder_architecture": True},  # the one with grouped queries
    "falcon_h1": {"mamba_d_ssm": 96, "head_dim": HEAD_DIM},
    "gemma3n_text": KV_SHARING | {"laurel_rank": 8},
    "gemma4_text": {"enable_moe_block": True, "global_head_dim": 16},
    "gemma4": {"text_config": KV_SHARING | {"enable_moe_block": False}},
    "gemma4_assistant": {
        "backbone_hidden_size": 32,
        "text_config": {
            "model_type": "gemma4_text",
            "enable_moe_block": False,
            "hidden_size_per_layer_input": 0,
            "vocab_size_per_layer_input": 0,
        },
    },
    "gemma4_unified_text": {
        "attention_k_eq_v": True,
        "num_global_key_value_heads": 1,
        "global_head_dim": 16,
    },
    "gemma4_unified_assistant": {"backbone_hidden_size": 32},
    "glm_moe_dsa": {"indexer_types": ["full", "shared", "full"]},
    "got_ocr2": {"vision_config": {"output_channels": 8}},
    "gpt_neo": {"num_layers": 4, "attention_types": [[["global", "local"], 2]]},
    "gpt_neox": {"rope_parameters": HALF_ROTARY},
    "granitemoehybrid": {"layer_types": LINEAR_FULL, "head_dim": HEAD_DIM},
    "helium": {"head_dim": 12},  # the output projection is hidden x hidden
    "inkling_text": {"logits_mup_width_multiplier": 1.0, "rel_extent": 32},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "head_dim": HEAD_DIM},
    "laguna": {"layer_types": SLIDING_FULL, "num_attention_heads_per_layer": [4, 6, 4]},
    "lfm2": {"layer_types": CONV_FULL, "head_dim": HEAD_DIM},
    "lfm2_moe": {"layer_types": CONV_FULL, "head_dim": HEAD_DIM},
    "llama4_text": {
        "num_hidden_layers": 4,  # every fourth layer attends fully, without rotary positions
        "layer_types": ["chunked_attention"] * 3 + ["full_attention"],
        "interleave_moe_layer_step": 2,
    },
    "longcat_flash": {"head_dim": 4, "zero_expert_num": 2},  # head_dim: the rotary part
    "mamba2": {"num_heads": 8, "head_dim": 12},
    "mellum": {"layer_types": SLIDING_FULL},
    "minicpm3": {"dim_model_base": HIDDEN},  # logits are divided by hidden / base
    "minimax_m3_vl_text": {
        "layer_types": ["full_attention", "minimax_m3_sparse", "full_attention"],
        "mlp_layer_types": ["dense", "sparse", "sparse"],
        "index_block_size": 4,
    },
    "ministral": {"layer_types": SLIDING_FULL},
    "mllama": {"text_config": {"cross_attention_layers": [1]}},
    "musicgen": {"decoder": {"num_codebooks": 1}},  # with n codebooks, n rows make one sample
    "musicgen_melody": {"decoder": {"num_codebooks": 1}},
    "phi4_multimodal": {
        "head_dim": HEAD_DIM,
        "audio_config": {
            "ext_pw_out_channel": HIDDEN,
            "depthwise_separable_out_channel": HIDDEN,
            "nemo_conv_channels": 16,
            "input_size": 16,
        },
    },
    "qwen4_exp_text": {
        "hc_lowrank": 8,
        "ple_layer_ids": [1],
        "ngram_vocab_size_base": 50,
        "make_ngram_vocab_size_divisible_by": 8,
        "split_ngram_parts": 2,
        "eos_token_id": 2,
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 32,
        "indexer_compress_ratio": 2,
    },
    "reformer": {
        "attn_layers": ["local", "lsh", "local"],
        "axial_pos_shape": (8, 8),
        "axial_pos_embds_dim": (16, 32),
        "local_attn_chunk_length": 8,
        "lsh_attn_chunk_length": 8,
        "num_buckets": 4,
        "hash_seed": 0,
    },
    "roc_bert": {
        "pronunciation_embed_dim": 8,
        "pronunciation_vocab_size": 20,
        "shape_embed_dim": 8,
        "shape_vocab_size": 20,
    },
    "smollm3": {"num_hidden_layers": 4, "head_dim": HEAD_DIM},  # the fourth has no rotary positions
    "stablelm": {"rope_parameters": HALF_ROTARY},
    "xlm": {"causal": True},
    "xlnet": {"attn_type": "uni"},  # "bi" sees both sides
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "attention_hidden_size": 2 * HIDDEN,  # attends over [hidden, embedding]
        "layers_block_type": ZAMBA_LAYERS,
        "num_hidden_layers": 5,
    },
    "zamba2": {"layers_block_type": ZAMBA_LAYERS, "num_hidden_layers": 5},
    "zaya": {
        "num_experts_per_tok": 1,
        "router_hidden_size": 16,
        "layer_types": ["hybrid", "hybrid_sliding", "hybrid"],
    },
}

#: Types whose mapped class takes a part of the configuration that the mapping names.
INNER_CONFIG: dict[str, str] = {"musicgen": "decoder", "musicgen_melody": "decoder"}

UNBUILDABLE: dict[str, str] = {
    "gemma3n": "Gemma3nConfig accepts only a vision tower of the timm package, which is not "
    "installed (gemma3n_text has the same text layers).",
}

_ENCODER_KEY = re.compile(r"vision|audio|text_encoder|vq_")
_DROPOUT = re.compile(r"dropout|pdrop|layerdrop|jitter")
_TOKEN = re.compile(r"token_(id|index)$")
_USUAL_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_PER_LAYER = ("layer_types", "mlp_layer_types", "layers_block_type")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the library's warnings about unusual configuration values."""
    log = logging.getLogger("transformers")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def causal_types() -> list[str]:
    """All model types that ``AutoModelForCausalLM`` knows."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def _merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Merge nested dicts, ``second`` winning."""
    merged = dict(first)
    for key, value in second.items():
        old = merged.get(key)
        nested = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merge(old or {}, value) if nested else value
    return merged


def _token_ids(defaults: dict[str, Any]) -> dict[str, int | None]:
    """Special token ids inside the vocabulary, None where the type has none by default."""
    names = [name for name in defaults if _TOKEN.search(name)]
    media = [name for name in names if name not in _USUAL_TOKENS]
    ids = {name: FIRST_MEDIA_ID + i for i, name in enumerate(media)} | _USUAL_TOKENS
    return {name: None if defaults[name] is None else ids[name] for name in names}


def _recipe(cls: type[PreTrainedConfig], special: dict[str, Any], encoder: bool) -> dict[str, Any]:
    """Keyword arguments for a tiny ``cls``; nested configs are dealt with recursively."""
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    table = BASE | ENCODER if encoder else BASE
    values = {name: table[name] for name in names if name in table}
    if "kv_lora_rank" in names and "num_key_value_heads" in names:
        values["num_key_value_heads"] = MLA_KV_HEADS
    try:
        default = cls()
    except StrictDataclassError:  # without a valid default, SPECIAL gives what is needed
        default = None
    defaults = {name: vars(default).get(name) if default else None for name in names}
    values |= {name: 0.0 for name in names if _DROPOUT.search(name) and defaults[name]}
    values |= _token_ids(defaults)

    nested = [key for key in cls.sub_configs if key in names]
    for key in nested:
        part = special.get(key, {})
        sub = defaults[key]
        if not isinstance(part, dict):
            continue
        if "model_type" in part:
            sub_cls = CONFIG_MAPPING[part["model_type"]]
        elif sub is not None:
            sub_cls = type(sub)
        else:
            continue
        part = _merge(SPECIAL.get(sub_cls.model_type, {}), part)
        part.pop("model_type", None)
        values[key] = _make(sub_cls, part, encoder or bool(_ENCODER_KEY.search(key)))

    lists = {n: list(dict.fromkeys(defaults.get(n) or [])) for n in _PER_LAYER}
    lists = {name: kinds for name, kinds in lists.items() if kinds and name not in special}
    values |= {key: value for key, value in special.items() if key not in nested}
    depth_name = next((n for n in ("num_hidden_layers", "num_layers") if n in values), None)
    if depth_name and lists:
        depth = max(values[depth_name], *(len(kinds) for kinds in lists.values()))
        values[depth_name] = depth
        values |= {name: list(islice(cycle(kinds), depth)) for name, kinds in lists.items()}
    return values


def _make(cls: type[PreTrainedConfig], special: dict[str, Any], encoder: bool) -> PreTrainedConfig:
    """A tiny config of class ``cls``."""
    return cls(**copy.deepcopy(_recipe(cls, special, encoder)))  # configs change their lists


def tiny_config(model_type: str, **overrides: Any) -> PreTrainedConfig:
    """A tiny configuration of ``model_type``; nested dicts in ``overrides`` are merged."""
    with _quiet():
        special = _merge(SPECIAL.get(model_type, {}), overrides)
        return _make(CONFIG_MAPPING[model_type], special, encoder=False)


#: Parameters of state-space and recurrent layers that need their own initialisation.
_KEEP = re.compile(r"(^|\.)(A_log|D|dt_bias|dt_proj[._]bias|time_\w+|recurrent_param|[if]gate_preact\.bias)$")


def _fan_in(module: nn.Module, weight: torch.Tensor) -> int:
    """How many inputs each output of ``weight`` sums over."""
    if isinstance(module, Conv1D):
        return weight.shape[0]
    if isinstance(module, nn.modules.conv._ConvNd):
        return weight[0].numel()
    return weight.shape[-1]


@torch.no_grad()
def randomise(model: PreTrainedModel, seed: int) -> None:
    """Draw all floating parameters again, with activations of order one, tied ones staying tied."""
    generator = torch.Generator().manual_seed(seed)
    for name, param in model.named_parameters():
        if not param.is_floating_point() or not param.numel() or _KEEP.search(name):
            continue
        parent, _, leaf = name.rpartition(".")
        module = model.get_submodule(parent)
        noise = torch.randn(param.shape, generator=generator)
        if leaf.endswith("bias"):
            param.copy_(0.3 * noise)
        elif param.ndim < 2 or bool((param == 1).all()):  # norms: around one, or around zero
            param.copy_(param.mean() + 0.2 * noise)
        elif isinstance(module, nn.Embedding):
            param.copy_(noise)
        else:
            param.copy_(noise / _fan_in(module, param) ** 0.5)


def build_tiny(
    model_type: str, seed: int = 0, attn_implementation: str | None = "eager", **overrides: Any
) -> PreTrainedModel:
    """A tiny model of ``model_type`` with weights determined by ``seed``.

    ``attn_implementation=None`` leaves the choice to the library.  Raises ``CannotBuildError`` where
    the type cannot be built on a CPU with nothing but transformers and torch.
    """
    if model_type in UNBUILDABLE:
        raise CannotBuildError(UNBUILDABLE[model_type])
    config = tiny_config(model_type, **overrides)
    chosen = {} if attn_implementation is None else {"attn_implementation": attn_implementation}
    with _quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if part := INNER_CONFIG.get(model_type):
            cls = getattr(transformers, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[model_type])
            model = cls._from_config(getattr(config, part), dtype=torch.float32, **chosen)
        else:
            model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, **chosen)
    randomise(model, seed)
    return model.eval()


def sample_ids(batch: int = 2, length: int = 7, seed: int = 0) -> torch.Tensor:
    """Random ordinary token ids: none is a padding, begin, end, image or audio token."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, FIRST_MEDIA_ID, (batch, length), generator=generator)
