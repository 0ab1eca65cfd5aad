"""Text from elsewhere: JSON that may be hostile, characters that a terminal must not interpret."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["escape_unprintable", "parse_json"]

#: levels of nesting; an atlas has fewer than ten
_DEEPEST = 100


def escape_unprintable(text: str) -> str:
    """The text with control and bidirectional characters as in a Python literal: \\x1b, \\u202e."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def parse_json(text: str | bytes) -> Any:
    """`json.loads`, which raises a ValueError for deeply nested data too."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level, depth = [data], 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth += 1
        if depth > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
        level = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
    return data
