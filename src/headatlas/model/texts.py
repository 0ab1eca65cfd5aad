"""Texts as token ids, and token ids as texts, the way a model wants them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Int
from torch import Tensor

from headatlas.core import RequestError

if TYPE_CHECKING:
    from headatlas.model.model import Model

__all__ = ["Text", "one_row", "one_token", "token_ids", "token_texts"]

#: one text, several texts of equal length in tokens, or token ids [row, position]
Text = str | Sequence[str] | Tensor


def token_ids(model: Model, text: Text) -> Int[Tensor, "row position"]:
    """Token ids of texts, with the first tokens that the model wants; ids are taken as they are."""
    if isinstance(text, Tensor):
        ids = text if text.ndim == 2 else text[None]
        if ids.ndim != 2 or ids.is_floating_point() or ids.dtype == torch.bool or not ids.numel():
            raise RequestError(
                f"token ids are whole numbers [row, position], not {text.dtype} of shape {list(text.shape)}."
            )
        wrong = ids[(ids < 0) | (ids >= model.spec.vocabulary)]
        if len(wrong):
            raise RequestError(f"token ids go from 0 to {model.spec.vocabulary - 1}, not {int(wrong[0])}.")
        return ids.to(model.device)
    texts = [text] if isinstance(text, str) or not isinstance(text, Iterable) else list(text)
    if not texts or not all(isinstance(one, str) and one for one in texts):
        raise RequestError(f"a text is a string with at least one character, not {text!r:.60}.")
    first, _ = model.first_tokens()
    rows = [[*first, *ids] for ids in model.tokenizer(texts, add_special_tokens=False)["input_ids"]]
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise RequestError(
            f"the texts have {lengths[0]} to {lengths[-1]} tokens; give texts with the same number of "
            "tokens, or call once per text."
        )
    return torch.tensor(rows, device=model.device)


def one_row(model: Model, text: Text) -> Int[Tensor, "1 position"]:
    """The token ids of one text; several texts are refused."""
    ids = token_ids(model, text)
    if len(ids) != 1:
        raise RequestError(f"this takes one text, not {len(ids)}; call it once per text.")
    return ids


def token_texts(model: Model, ids: Any) -> list[str]:
    """The text of each token id; for ids without text the tokenizer's name of the token."""
    tokenizer = model.tokenizer
    numbers = [int(token) for token in ids]
    if tokenizer is None:
        return [str(token) for token in numbers]
    return [tokenizer.decode([token]) or str(tokenizer.convert_ids_to_tokens(token)) for token in numbers]


def one_token(model: Model, token: str | int) -> int:
    """The id of a token that is given as text or as id."""
    if isinstance(token, int) and not isinstance(token, bool):
        if not 0 <= token < model.spec.vocabulary:
            raise RequestError(f"token ids go from 0 to {model.spec.vocabulary - 1}, not {token}.")
        return token
    if not isinstance(token, str) or not token:
        raise RequestError(f"a token is a text or an id, not {token!r:.60}.")
    model.first_tokens()  # refuses a model without a tokenizer
    ids = model.tokenizer(token, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        hint = ""
        if not token.startswith(" "):
            spaced = model.tokenizer(" " + token, add_special_tokens=False)["input_ids"]
            hint = f"; {' ' + token!r} is one token" if len(spaced) == 1 else ""
        raise RequestError(f"{token!r} is {len(ids)} tokens for {model.spec.name}{hint}; give one token.")
    return int(ids[0])
