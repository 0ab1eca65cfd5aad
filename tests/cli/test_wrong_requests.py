"""Wrong requests of commands that make an atlas: exit code 2 and a sentence, before a model is loaded."""

from __future__ import annotations

import pytest

from support.cli import assert_refused, invoke

CONTRAST = ("contrast", "no/model", "--retain", "syntax", "--forget", "math")
MAP, RELATIONS = ("map", "no/model", "--task", "syntax"), ("relations", "no/model")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*CONTRAST, "--retain", "sintax"), "did you mean 'syntax'"),
        ((*CONTRAST, "--preset", "fast"), "no preset named 'fast'"),
        ((*CONTRAST, "--seeds", 0), "seeds is 0"),
        ((*RELATIONS, "-r", "antonyms"), "did you mean 'antonym'"),
        ((*RELATIONS, "--source", "embeddings"), "did you mean 'embedding'"),
        ((*RELATIONS, "-k", 0), "k is 0"),
        ((*RELATIONS, "-r", "antonym", "--causal", "synonym"), "no relation among those that are scored"),
        (("map", "no/model"), "give a task (--task)"),
        (("map", "--task", "syntax"), "give a model"),
        (("map", "--resume"), "there is no folder"),
        (("relations",), "give a model"),
        (("relations", "--resume"), "there is no folder"),
    ],
)
def test_wrong_requests(tmp_path, arguments, words):
    assert_refused(invoke(*arguments, "--out", tmp_path / "new"), words)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", [MAP, CONTRAST, RELATIONS], ids=lambda command: command[0])
def test_a_place_where_no_atlas_can_be(atlas, tmp_path, command):
    (tmp_path / "file").write_text("mine")
    assert_refused(invoke(*command, "--out", tmp_path / "file"), "is a file", "--out")
    assert_refused(invoke(*command, "--out", atlas), "holds an atlas already; --resume")


def test_options_of_a_resumed_atlas(atlas):
    said = invoke("map", "--resume", "--out", atlas, "--method", "ablate")
    assert_refused(said, "has no task mapped by ablate")
    assert_refused(invoke("map", "--resume", "--out", atlas, "--batch", 5), "made with batch 4 instead of 5")
