"""The token before every text: the tokeniser's, or the one that the model is lost without."""

from __future__ import annotations

import pytest
import torch
from accelerate import cpu_offload
from tokenizers.processors import TemplateProcessing

from headatlas import RequestError, load_model
from headatlas.model import model as model_module
from headatlas.model.first_tokens import first_tokens
from support.planted import word_tokenizer
from support.tiny import build_tiny


class Lost(torch.nn.Module):
    """Sure of every next token behind token 3, clueless otherwise: stands for a converted Gemma."""

    def __init__(self, needs_it):
        super().__init__()
        self.needs_it = needs_it
        self.embedding = torch.nn.Embedding(200, 4)

    def get_input_embeddings(self):
        return self.embedding

    @property
    def device(self):
        return self.embedding.weight.device

    def forward(self, input_ids, use_cache):
        logits = torch.zeros(*input_ids.shape, 200)
        if not self.needs_it or int(input_ids[0, 0]) == 3:
            logits[0, torch.arange(input_ids.shape[1] - 1), input_ids[0, 1:]] = 9.0
        return type("Output", (), {"logits": logits})()


def with_bos(tokenizer):
    tokenizer.add_special_tokens({"bos_token": "w3"})
    return tokenizer


def test_what_the_tokeniser_does_is_right():
    tokenizer = with_bos(word_tokenizer(100))
    tokenizer._tokenizer.post_processor = TemplateProcessing(single="w3 $A", special_tokens=[("w3", 3)])
    assert first_tokens(Lost(False), tokenizer) == ((3,), "the tokeniser puts it there")


def test_several_tokens_before_a_text_are_all_used():
    tokenizer = word_tokenizer(100)
    tokenizer._tokenizer.post_processor = TemplateProcessing(
        single="w4 w3 $A", special_tokens=[("w4", 4), ("w3", 3)]
    )
    assert first_tokens(Lost(False), tokenizer)[0] == (4, 3)


def test_offloaded_models_are_asked_too():
    """Their weights are elsewhere; what goes in goes to the device that computes."""
    hf = cpu_offload(build_tiny("llama"), execution_device="cpu")
    tokens, why = load_model(hf, tokenizer=with_bos(word_tokenizer(100)), check=False).first_tokens()
    assert tokens in ((), (3,)) and "likelier" in why


def test_a_model_that_is_lost_without_it_gets_it():
    token, why = first_tokens(Lost(True), with_bos(word_tokenizer(100)))
    assert token == (3,) and "likelier behind it" in why


def test_a_model_that_can_do_without_it_does_not():
    token, why = first_tokens(Lost(False), with_bos(word_tokenizer(100)))
    assert token == () and "hardly likelier" in why
    assert first_tokens(Lost(True), word_tokenizer(100)) == ((), "the tokeniser has none")


def test_no_tokeniser():
    with pytest.raises(RequestError, match="has no tokenizer; pass tokenizer"):
        load_model(build_tiny("llama"), check=False).first_tokens()


@pytest.mark.slow
def test_smollm2_has_none():
    token, why = load_model("smollm2", check=False).first_tokens()
    assert token == () and "hardly likelier" in why


def test_a_model_is_asked_once_until_it_changes(monkeypatch):
    """Every relation and every task asks for them."""
    asked = []
    monkeypatch.setattr(
        model_module, "first_tokens", lambda hf, tokenizer: (asked.append(tokenizer), ((), ""))[1]
    )
    model = load_model(build_tiny("llama"), tokenizer=word_tokenizer(100), check=False)
    for _ in range(3):
        model.first_tokens()
    assert len(asked) == 1
    model.tokenizer = word_tokenizer(100)
    model.first_tokens()
    assert len(asked) == 2
    with torch.no_grad():
        model.hf.lm_head.weight.mul_(2)
    model.identify_weights()
    model.first_tokens()
    assert len(asked) == 3
