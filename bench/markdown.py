"""What the scripts that make pages share."""

from __future__ import annotations

__all__ = ["table"]


def table(head: list[str], lines: list[list[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    return ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)]
