"""How names read: the relation country-capital as country → capital, the task math as Math in a header."""

from __future__ import annotations

__all__ = ["relation_words", "title_of"]

#: names that hold a source and a target; elsewhere a hyphen is a space
_ARROWS = {
    "country-capital", "country-language", "english-french", "english-spanish", "noun-pronoun",
    "number-digit", "object-superclass", "product-company", "work-location",
}  # fmt: skip
_LANGUAGES = {"english": "English", "french": "French", "spanish": "Spanish"}


def relation_words(name: str) -> str:
    """A relation's name as it stands in a sentence."""
    if name == "ing-form":
        return "-ing form"
    words = [_LANGUAGES.get(word, word) for word in name.split("-")]
    return (" → " if name in _ARROWS else " ").join(words)


def title_of(task: str) -> str:
    """A task's name as it stands in a header: `math` -> `Math`, `paper/math` -> `Paper/math`."""
    return task[:1].upper() + task[1:]
