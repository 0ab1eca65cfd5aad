"""What leaves this machine has no paths of it; names and texts of tasks stay."""

from __future__ import annotations

import pytest

from headatlas.core import without_local_paths


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("/home/me/tasks/words.jsonl", "words.jsonl"),
        ("/words.jsonl", "words.jsonl"),
        (
            "/home/me/my tasks/words.csv?prompt=question&target=answer",
            "words.csv?prompt=question&target=answer",
        ),
        ("relation:/home/me/my lists/pairs.csv", "relation:pairs.csv"),
        ("file:///home/me/words.jsonl", "file:words.jsonl"),
        ("~/tasks/words.jsonl", "words.jsonl"),
        ("~me/words.jsonl", "words.jsonl"),
        ("C:\\Users\\me\\words.jsonl", "words.jsonl"),
        ("C:/Users/me/words.jsonl", "words.jsonl"),
        ("\\\\server\\share\\me\\words.jsonl", "words.jsonl"),
        ("read from /home/me/words.jsonl, line 3", "read from words.jsonl, line 3"),
        ("read from '~/words.jsonl'", "read from 'words.jsonl'"),
        ("read from C:\\Users\\me\\words.jsonl", "read from words.jsonl"),
        ("me@host:/home/me/model", "me@host:model"),
    ],
)
def test_paths_are_reduced_to_their_last_part(text, shared):
    assert without_local_paths(text) == shared
    assert without_local_paths({"file": [text, 1]}) == {"file": [shared, 1]}


@pytest.mark.parametrize(
    "text",
    [
        "org/model", "data/words.jsonl", "hub:owner/name?split=train", "https://example.org/a/b",
        "s3://bucket/a/b", "a.b:function", "1/2", "and/or", "nats / token", "", "/", "G+ / G-",
        "cpu, 2 threads", "</s>", "~5 items",
    ],
)  # fmt: skip
def test_other_words_stay(text):
    assert without_local_paths(text) == text


def test_names_and_texts_of_tasks_stay():
    kept = {"name": "/a/b", "spec": {"instruction": "/no_think", "prompt": "/usr/bin/{x}", "target": "~/{y}"}}
    kept |= {"pairs": [["/usr/bin", "/usr/lib"]], "texts": {"3": "/home/"}}
    assert without_local_paths(kept) == kept


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("/r/AskReddit questions and/or answers", "AskReddit questions and/or answers"),
        ("/home/me/words.jsonl was read", "words.jsonl was read"),
        ("/words.jsonl", "words.jsonl"),
        ("/no path and no name", "/no path and no name"),
    ],
)
def test_a_sentence_that_starts_with_a_slash_is_not_one_path(text, shared):
    assert without_local_paths({"about": text, "list": [text]}) == {"about": shared, "list": [shared]}
