"""Wrong requests of commands that make an atlas: exit code 2 and a sentence, before a model is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
        ((*MAP, "--dtype", "float23"), "no dtype 'float23'; allowed: auto, fast, float32"),
        ((*RELATIONS, "--device", "gpu"), "unknown device 'gpu'; use cpu, cuda, mps or"),
        ((*CONTRAST, "--device", "auto"), "is for --device-map"),
        (CONTRAST[:4], "give a model, --retain and --forget"),
        (("contrast", "--resume"), "there is no folder"),
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


@pytest.mark.parametrize("command", [MAP, CONTRAST, RELATIONS], ids=lambda command: command[0])
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc, where nobody can make a folder")
def test_a_place_that_cannot_be_written(command):
    assert_refused(invoke(*command, "--out", "/proc/self/new/atlas"), "cannot be written", "choose another")


def test_an_atlas_that_cannot_be_written(atlas, tmp_path, monkeypatch):
    """As in a folder of another user; `mkdtemp` fails there."""

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("headatlas.atlas.store.mkdtemp", refuse)
    said = invoke("map", "--resume", "--out", atlas)
    assert_refused(said, f"{atlas} cannot be written: Permission denied; choose another --out")


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        (*MAP, "--out", "/dev/null/atlas"),
        (*MAP, "--dtype", "float23"),
        ("check", "no/model", "--device", "gpu"),
        ("validate", "{atlas}", "--items", "1"),
        ("validate", "{atlas}", "--task", "sums"),
        ("export", "{atlas}", "--gates", "allways", "--out", "new"),
        ("export", "{atlas}", "--task", "sums", "--out", "new"),
        ("plot", "{atlas}", "--kind", "agrement"),
        ("plot", "{atlas}", "--kind", "agreement", "--score", "retain"),
        ("report", "{atlas}", "--out", "report.txt"),
        ("table", "{atlas}", "--out", "table.txt"),
        ("head", "{atlas}", "L99H0"),
        ("compare", "{atlas}", "{atlas}", "--task", "sums"),
        ("page", "{atlas}", "--out", "page.txt"),
        ("share", "pack", "{atlas}", "--out", "atlas.tar"),
        ("import", "table.txt", "--out", "new"),
        ("import", "table.csv", "--out", "{atlas}"),
        ("contrast", "--resume", "--out", "{atlas}"),
        ("map", "--resume", "--out", "{atlas}", "--method", "ablate"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:1] + arguments[2:3])),
)
def test_refusals_are_quick(atlas, arguments):
    """They import none of the libraries that take long."""
    code = (
        "import sys\nfrom headatlas.cli import main\n"
        f"sys.argv = ['headatlas', *{[word.format(atlas=atlas) for word in arguments]!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        "slow = {'torch', 'transformers', 'pandas', 'xarray'} & sys.modules.keys()\n"
        "print(code, sorted(slow))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2 []\n", done.stderr


def test_options_of_a_resumed_atlas(atlas):
    said = invoke("map", "--resume", "--out", atlas, "--method", "ablate")
    assert_refused(said, "has no task mapped by ablate")
    assert_refused(invoke("map", "--resume", "--out", atlas, "--batch", 5), "made with batch 4 instead of 5")
