"""Small sums and products."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["records"]


def records(largest_summand: int = 30, largest_factor: int = 12) -> Iterator[dict[str, str]]:
    """{"kind", "question", "answer"}: every sum and every product up to the largest."""
    for first in range(largest_summand + 1):
        for second in range(largest_summand + 1):
            yield {"kind": "sum", "question": f"{first} + {second}", "answer": str(first + second)}
    for first in range(2, largest_factor + 1):
        for second in range(2, largest_factor + 1):
            yield {"kind": "product", "question": f"{first} * {second}", "answer": str(first * second)}
