"""Which tokens a model expects before every text: usually one, or none.

Most tokenisers put it there themselves. Some forget to (converted ones, above all), although the model is
lost without it; so where there is such a token but the tokeniser does not use it, the model is asked:
does an ordinary text become much likelier behind it?
"""

from __future__ import annotations

from typing import Any

import torch

from headatlas.model.probe import input_device

__all__ = ["first_tokens"]

#: nats per token by which the text must become likelier
_CLEAR_GAIN = 0.5
_TEXT = (
    "The morning train was late again, so we waited on the platform and talked about the weather. "
    "After a while an old man with a small dog sat down next to us and began to read his newspaper."
)


def first_tokens(hf: Any, tokenizer: Any) -> tuple[tuple[int, ...], str]:
    """(token ids, how that is known)."""
    plain = list(tokenizer(_TEXT, add_special_tokens=False)["input_ids"])
    usual = list(tokenizer(_TEXT)["input_ids"])
    for count in range(1, len(usual) - len(plain) + 1):
        if usual[count : count + len(plain)] == plain:
            return tuple(int(token) for token in usual[:count]), "the tokeniser puts it there"
    candidate = tokenizer.bos_token_id
    if candidate is None:
        return (), "the tokeniser has none"
    without, behind = (_nll(hf, ids, len(plain) - 1) for ids in (plain, [candidate, *plain]))
    if behind + _CLEAR_GAIN < without:
        return (int(candidate),), f"text is {without - behind:.1f} nats per token likelier behind it"
    return (), f"text is hardly likelier behind it ({without - behind:+.1f} nats per token)"


@torch.no_grad()
def _nll(hf: Any, ids: list[int], last: int) -> float:
    """Mean negative log-likelihood of the last tokens, which both variants share."""
    tokens = torch.tensor([ids], device=input_device(hf))
    logits = hf(input_ids=tokens, use_cache=False).logits[0, -last - 1 : -1].float()
    return float(torch.nn.functional.cross_entropy(logits, tokens[0, -last:].to(logits.device)))
