"""A model whose weights are set by hand, so that the role of every head is known.

One layer. Token 0..7 are answers, token 8 asks. A text is an answer and the question, and the answer is
to be repeated. All heads look at all positions alike, and their values tell the answer. By `writes`:

    copy       the head writes the answer                        facilitating
    mistake    the head writes the next answer, a wrong one      interfering
    nothing    the head writes nothing                           irrelevant
    whisper    the head writes a wrong answer, very faintly      irrelevant: it does not matter
"""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from headatlas.model import Model, load_model
from headatlas.task import Row

__all__ = ["ANSWERS", "ASK", "blank_llama", "planted_model", "planted_rows", "word_tokenizer"]

ANSWERS, ASK, WIDTH = 8, 8, 8
_STRENGTH = {"copy": 0.5, "mistake": 0.5, "nothing": 0.0, "whisper": 1e-2}


def planted_model(*writes: str) -> Model:
    """One layer with a head for each word of `writes`."""
    heads = len(writes)
    hidden = 9 + ANSWERS + (-(9 + ANSWERS)) % WIDTH + WIDTH * max(0, heads - 3)
    hf = blank_llama(ANSWERS + 2, hidden, heads, WIDTH)
    answers, out = torch.arange(ANSWERS), 9 + torch.arange(ANSWERS)
    hf.model.embed_tokens.weight[answers, answers] = 1
    hf.model.embed_tokens.weight[ASK, ASK] = 1
    attention = hf.model.layers[0].self_attn
    for head, kind in enumerate(writes):
        rows = head * WIDTH + answers
        attention.v_proj.weight[rows, answers] = 1
        target = 9 + (answers + (kind != "copy")) % ANSWERS
        attention.o_proj.weight[target, rows] = _STRENGTH[kind]
    hf.lm_head.weight[answers, out] = 2
    return load_model(hf, tokenizer=word_tokenizer(ANSWERS + 1), check=False)


def blank_llama(
    words: int, hidden: int, heads: int, width: int, layers: int = 1, mlp: int = 8, **options: Any
) -> Any:
    """A Llama whose weights are zero, with norms that have a gain of one, and without special tokens."""
    config = LlamaConfig(
        vocab_size=words, hidden_size=hidden, head_dim=width, num_attention_heads=heads,
        num_key_value_heads=heads, num_hidden_layers=layers, intermediate_size=mlp, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=None, pad_token_id=None, **{"max_position_embeddings": 16, **options},
    )  # fmt: skip
    hf = LlamaForCausalLM(config).eval().requires_grad_(False)
    for name, weight in hf.named_parameters():
        weight.fill_("norm" in name)
    return hf


def planted_rows() -> list[Row]:
    """Every answer once."""
    return [Row((answer, ASK, answer), 2) for answer in range(ANSWERS)]


def word_tokenizer(words: int) -> PreTrainedTokenizerFast:
    """Words w0, w1, … are the tokens 0, 1, …"""
    vocabulary = {f"w{number}": number for number in range(words)} | {"?": words}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?")
