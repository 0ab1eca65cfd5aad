"""A tiny Llama as a GGUF file, for tests of reading and converting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFWriter

__all__ = ["write_tiny_gguf"]

LAYERS, HIDDEN, HEADS, KV_HEADS, FFN = 2, 64, 4, 2, 96


def write_tiny_gguf(path: Path, seed: int = 0) -> None:
    """Two layers of four heads (two key/value heads), a byte vocabulary with one merge."""
    random = np.random.default_rng(seed)
    alphabet = [chr(code) for code in range(33, 127)] + ["Ġ", "Ċ"]
    tokens = ["<unk>", "<s>", "</s>", *alphabet, "Ġt", "he", "Ġthe"]
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (len(tokens) - 3))
    writer.add_token_merges(["Ġ t", "h e", "Ġt he"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    def norm() -> np.ndarray:
        return (1 + 0.2 * random.standard_normal(HIDDEN)).astype(np.float32)

    width = HIDDEN * KV_HEADS // HEADS
    writer.add_tensor("token_embd.weight", random.standard_normal((len(tokens), HIDDEN)).astype(np.float32))
    writer.add_tensor("output.weight", matrix(len(tokens), HIDDEN))
    writer.add_tensor("output_norm.weight", norm())
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        writer.add_tensor(f"{block}.attn_norm.weight", norm())
        writer.add_tensor(f"{block}.ffn_norm.weight", norm())
        writer.add_tensor(f"{block}.attn_q.weight", matrix(HIDDEN, HIDDEN))
        writer.add_tensor(f"{block}.attn_k.weight", matrix(width, HIDDEN))
        writer.add_tensor(f"{block}.attn_v.weight", matrix(width, HIDDEN))
        writer.add_tensor(f"{block}.attn_output.weight", matrix(HIDDEN, HIDDEN))
        writer.add_tensor(f"{block}.ffn_gate.weight", matrix(FFN, HIDDEN))
        writer.add_tensor(f"{block}.ffn_up.weight", matrix(FFN, HIDDEN))
        writer.add_tensor(f"{block}.ffn_down.weight", matrix(HIDDEN, FFN))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
