"""A model whose weights are set by hand, so that the role of every head is known.

One layer. Token 0..7 are answers, token 8 asks. A text is an answer and the question, and the answer is
to be repeated. All heads look at all positions alike, and their values tell the answer. By `writes`:

    copy       the head writes the answer                        facilitating
    mistake    the head writes the next answer, a wrong one      interfering
    nothing    the head writes nothing                           irrelevant
    whisper    the head writes a wrong answer, very faintly      irrelevant: it does not matter
"""

from __future__ import annotations

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from headatlas.model import Model, load_model
from headatlas.task import Row

__all__ = ["ANSWERS", "ASK", "planted_model", "planted_rows", "word_tokenizer"]

ANSWERS, ASK, WIDTH = 8, 8, 8
_STRENGTH = {"copy": 0.5, "mistake": 0.5, "nothing": 0.0, "whisper": 1e-2}


def planted_model(*writes: str) -> Model:
    """One layer with a head for each word of `writes`."""
    heads = len(writes)
    hidden = 9 + ANSWERS + (-(9 + ANSWERS)) % WIDTH + WIDTH * max(0, heads - 3)
    config = LlamaConfig(
        vocab_size=ANSWERS + 2,
        hidden_size=hidden,
        head_dim=WIDTH,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        num_hidden_layers=1,
        intermediate_size=8,
        max_position_embeddings=16,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    hf = LlamaForCausalLM(config).eval()
    answers, out = torch.arange(ANSWERS), 9 + torch.arange(ANSWERS)
    with torch.no_grad():
        for weight in hf.parameters():
            weight.zero_()
        hf.model.norm.weight.fill_(1)
        block = hf.model.layers[0]
        block.input_layernorm.weight.fill_(1)
        block.post_attention_layernorm.weight.fill_(1)
        hf.model.embed_tokens.weight[answers, answers] = 1
        hf.model.embed_tokens.weight[ASK, ASK] = 1
        for head, kind in enumerate(writes):
            rows = head * WIDTH + answers
            block.self_attn.v_proj.weight[rows, answers] = 1
            target = 9 + (answers + (kind != "copy")) % ANSWERS
            block.self_attn.o_proj.weight[target, rows] = _STRENGTH[kind]
        hf.lm_head.weight[answers, out] = 2
    return load_model(hf, tokenizer=word_tokenizer(ANSWERS + 1), check=False)


def planted_rows() -> list[Row]:
    """Every answer once."""
    return [Row((answer, ASK, answer), 2) for answer in range(ANSWERS)]


def word_tokenizer(words: int) -> PreTrainedTokenizerFast:
    """Words w0, w1, … are the tokens 0, 1, …"""
    vocabulary = {f"w{number}": number for number in range(words)} | {"?": words}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?")
