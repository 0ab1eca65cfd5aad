"""ABA and ABB: lines of three words in a pattern, the last word of the last line to be told.

The words are single tokens of the model's own tokeniser, drawn anew for every line: what is asked is the
pattern, nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from headatlas.core import TaskError
from headatlas.task.encode import has_unknown, tokens_of, unknown_token

__all__ = ["records", "single_token_words"]


def records(
    tokenizer: Any, pattern: str = "aba", lines: int = 4, size: int = 4000, seed: int = 0
) -> Iterator[dict[str, str]]:
    """{"question", "answer"}: `lines` whole lines and one without its last word."""
    words = single_token_words(tokenizer)
    if len(words) < 100:
        raise TaskError(f"this tokeniser has only {len(words)} words of one token; {pattern} needs 100.")
    chance = random.Random(seed)
    for _ in range(size):
        drawn = chance.sample(words, 2 * (lines + 1))
        made = []
        for first, second in zip(drawn[::2], drawn[1::2], strict=True):
            made.append("".join(f" {first if letter == 'a' else second}" for letter in pattern))
        question, _, answer = "\n".join(made).rpartition(" ")
        yield {"question": question, "answer": answer}


def single_token_words(tokenizer: Any) -> list[str]:
    """Words that are one token after a space, in small letters and with a capital: so they are words
    rather than pieces of words."""
    if tokenizer is None:
        raise TaskError("this task takes its words from the model's tokeniser; give one.")
    pieces = {str(piece) for piece in tokenizer.get_vocab()}
    words = []
    for piece in sorted(pieces):
        word = piece[1:]
        if piece[:1] not in ("Ġ", "▁", " ") or not (3 <= len(word) <= 8):
            continue
        if word.isascii() and word.isalpha() and word.islower() and piece[0] + word.capitalize() in pieces:
            words.append(word)
    texts, unknown = [f" {word}" for word in words], unknown_token(tokenizer)
    return [
        word
        for word, text, ids in zip(words, texts, tokens_of(tokenizer, texts), strict=True)
        if len(ids) == 1 and not has_unknown(text, ids, unknown)
    ]
