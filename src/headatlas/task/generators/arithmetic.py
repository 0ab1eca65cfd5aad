"""Small sums and products."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["records"]


def records(largest_summand: int = 30, largest_factor: int = 12) -> Iterator[dict[str, str]]:
    """{"kind", "question", "answer", "operands"}: every sum and every product up to the largest.

    A question and its commuted twin have the same `operands`.
    """
    for kind, sign, smallest, largest in (
        ("sum", "+", 0, largest_summand),
        ("product", "*", 2, largest_factor),
    ):
        for first in range(smallest, largest + 1):
            for second in range(smallest, largest + 1):
                answer = first + second if kind == "sum" else first * second
                low, high = sorted((first, second))
                yield {
                    "kind": kind,
                    "question": f"{first} {sign} {second}",
                    "answer": str(answer),
                    "operands": f"{low} {sign} {high}",
                }
