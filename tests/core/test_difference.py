"""Identities, and in words where two of them differ."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from headatlas.core import difference, identity_of


def test_the_order_of_keys_does_not_matter():
    text = '{"a": {"b": 1, "c": [2, "\\u00e9"]}, "d": null}'
    swapped = {"d": None, "a": {"c": [2, "é"], "b": 1}}
    assert identity_of(swapped) == identity_of(json.loads(text)) == sha256(text.encode()).hexdigest()


def test_a_new_algorithm_says_nothing_about_the_weights():
    """Algorithm 2 hashes the same weights in another way than algorithm 1."""

    old, new = ({"dtype": "float32", "algorithm": n, "weights": name} for n, name in ((1, "a"), (2, "b")))
    assert difference(old, new) == "algorithm 1 instead of 2"
    assert difference(new | {"weights": "a"}, new) == "other weights"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_tokens": 8}, "task max_tokens 6 instead of 8"),
        ({"content": "z", "tokens": "z"}, "other items (the task, or the file behind it, has changed since)"),
        ({"tokens": "z"}, "the same items cut into other tokens"),
        ({"tokens": "z", "max_tokens": 8}, "task max_tokens 6 instead of 8"),
        ({}, "other settings"),
    ],
)
def test_differences_in_words(changes, words):
    task = {"content": "c", "tokens": "t", "max_tokens": 6}
    known = {"task": task}
    assert difference(known, {"task": task | changes}) == words
    assert "the other imported" in difference(known, {})
