"""How names, counts and errors read; and text from elsewhere, which may be hostile."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

__all__ = [
    "escape_unprintable",
    "first_line",
    "is_printable",
    "parse_json",
    "plural",
    "relation_words",
    "title_of",
]

#: levels of nesting; an atlas has fewer than ten
_DEEPEST = 100
#: names that hold a source and a target; elsewhere a hyphen is a space
_ARROWS = {
    "country-capital", "country-language", "english-french", "english-spanish", "noun-pronoun",
    "number-digit", "object-superclass", "product-company", "work-location",
}  # fmt: skip
_LANGUAGES = {"english": "English", "french": "French", "spanish": "Spanish"}


def is_printable(text: str) -> bool:
    """True if the text has neither control nor invisible characters. Unlike `str.isprintable`, every kind of
    space is allowed, such as a no-break space."""
    return text.isprintable() or all(
        char.isprintable() or unicodedata.category(char) == "Zs" for char in text
    )


def escape_unprintable(text: str) -> str:
    """The text with control and bidirectional characters as in a Python literal: \\x1b, \\u202e."""
    if is_printable(text):
        return text
    return "".join(char if is_printable(char) else char.encode("unicode_escape").decode() for char in text)


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


def first_line(error: BaseException, most: int = 200) -> str:
    """The first line of an error's message, or the name of its class if it has none."""
    return next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)[:most]


def plural(count: int, thing: str) -> str:
    """ "1 seed", "3 seeds"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def relation_words(name: str) -> str:
    """A relation's name as it stands in a sentence."""
    if name == "ing-form":
        return "-ing form"
    words = [_LANGUAGES.get(word, word) for word in name.split("-")]
    return (" → " if name in _ARROWS else " ").join(words)


def title_of(task: str) -> str:
    """A task's name as it stands in a header: `math` -> `Math`, `paper/math` -> `Paper/math`."""
    return task[:1].upper() + task[1:]
