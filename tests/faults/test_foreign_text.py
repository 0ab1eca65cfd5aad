"""Text of a foreign atlas: nested JSON, escape sequences; and terminals that have few characters."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from headatlas import (
    AtlasError,
    HeadatlasError,
    ModelSourceError,
    RequestError,
    TaskError,
    load_model,
    load_task,
    open_atlas,
)
from headatlas.atlas import Run, ScoreMap, Store, atlases_in, import_table, reading_words, unpack_atlas
from headatlas.atlas.store import is_sound_file
from headatlas.core import escape_unprintable, parse_json
from support.atlases import contrast_atlas, spec_of
from support.planted import word_tokenizer
from support.small_run import small_model, small_run, write_task
from support.tiny import build_tiny

ROOT = Path(__file__).parents[2]
DEEP = 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    small_run(small_model(), write_task(root / "words.jsonl"), root / "atlas")
    return root / "atlas"


@pytest.mark.parametrize("depth", [101, 900, DEEP])
def test_deeply_nested_json_is_one_sentence(folder, tmp_path, depth):
    nested = '{"a":' * depth + "1" + "}" * depth
    (tmp_path / "atlas.json").write_text(nested)
    with pytest.raises(AtlasError, match="nested"):
        open_atlas(tmp_path)
    data = json.loads((folder / "atlas.json").read_text())
    data["runs"][0]["task_facts"]["extra"] = 0
    (tmp_path / "atlas.json").write_text(json.dumps(data).replace('"extra": 0', f'"extra": {nested}'))
    with pytest.raises(AtlasError, match="nested"):
        open_atlas(tmp_path)
    save_file({}, tmp_path / "note.safetensors", metadata={"headatlas": nested})
    assert not is_sound_file(tmp_path / "note.safetensors")


def test_deeply_nested_yaml_is_one_sentence(tmp_path):
    (tmp_path / "task.yaml").write_text("name: " + "[" * 5000 + "]" * 5000)
    with pytest.raises(TaskError):
        load_task(tmp_path / "task.yaml")


def test_ordinary_json_is_read():
    assert parse_json('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    assert parse_json("[" * 100 + "]" * 100)


ODD = ["\x1b[2J", "\x9b31m", "a\u202eb", "two\nlines", "zero\u200bwidth", "\x07"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "where",
    ["model name", "model dtype", "task", "method", "category", "made_with"],
)
def test_names_that_are_not_printable_are_refused(folder, tmp_path, odd, where):
    data = json.loads((folder / "atlas.json").read_text())
    run = data["runs"][0]
    if where.startswith("model "):
        data["model"][where.removeprefix("model ")] = odd
    elif where == "category":
        run["task_facts"]["category"] = odd
    elif where == "made_with":
        run["made_with"][odd] = "1"
    else:
        run[where] = odd
    (tmp_path / "atlas.json").write_text(json.dumps(data))
    with pytest.raises(AtlasError, match="printable characters only") as refused:
        open_atlas(tmp_path)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u3000"])
def test_every_kind_of_space_is_printable(folder, tmp_path, space):
    data = json.loads((folder / "atlas.json").read_text())
    data["model"]["name"] = f"tiny{space}llama"
    (tmp_path / "atlas.json").write_text(json.dumps(data))
    assert open_atlas(tmp_path).spec.name == f"tiny{space}llama"
    assert escape_unprintable(f"a{space}b\x1b\u2028") == f"a{space}b\\x1b\\u2028"
    assert str(HeadatlasError(f"10{space}heads")) == f"10{space}heads"


def test_the_name_of_a_table_is_checked_before_it_is_read(tmp_path, monkeypatch):
    file = tmp_path / "a\u202eb.csv"
    file.write_text("task,layer,head,score\nmine,0,0,1\n")
    monkeypatch.setattr("headatlas.atlas.score_table._from_csv", None)
    with pytest.raises(RequestError, match=r"file name 'a\\u202eb.csv' holds control or invisible"):
        import_table(file, tmp_path / "atlas")
    lines = pd.DataFrame({"task": ["mine"], "layer": [0], "head": [0], "score": [1.0]})
    with pytest.raises(RequestError, match=r"model is .*; a name has printable characters only"):
        import_table(lines, tmp_path / "atlas", model="a\x1b[2J")


def test_the_name_of_a_model_is_checked_before_it_is_read(tmp_path, monkeypatch):
    odd = tmp_path / "a\u202eb"
    model = build_tiny("llama")
    model.save_pretrained(odd)
    with monkeypatch.context() as patch:
        patch.setattr("headatlas.model.load._read", None)
        with pytest.raises(
            ModelSourceError, match="holds control or invisible characters; rename its folder"
        ):
            load_model(odd)
    model.config.name_or_path = "a\x1b[2J"
    with pytest.raises(ModelSourceError, match="name_or_path"):
        load_model(model, tokenizer=word_tokenizer(100), check=False)


def test_names_that_are_not_printable_are_not_written(tmp_path):
    spec = spec_of(2, 2)
    object.__setattr__(spec, "name", "a\x1b[31m")
    with pytest.raises(AtlasError, match="printable"), Store.writing(tmp_path / "atlas", spec):
        pass
    assert not (tmp_path / "atlas" / "atlas.json").exists()


def test_the_tasks_of_a_contrast_are_printable(tmp_path):
    atlas = contrast_atlas()
    run = atlas.run("sums without words", "contrast")
    run.task_facts["parts"]["retain"]["task"] = "a\x9b31m"
    with Store.writing(tmp_path / "atlas", atlas.spec) as store, pytest.raises(AtlasError, match="printable"):
        store.add(run)


def test_columns_of_a_foreign_table_are_shown_as_text(tmp_path, capsys):
    odd = "note\x1b[2J\x9b\u202e"
    lines = pd.DataFrame({"task": ["mine"], "layer": [0], "head": [0], "score": [1.0], odd: ["x"]})
    atlas = import_table(lines, tmp_path / "atlas", model="m")
    text = atlas.report().markdown() + " ".join(reading_words(atlas.run("mine", "imported").task_facts))
    assert text.count(r"note\x1b[2j\x9b\u202e") == 2 and not set("\x1b\x9b\u202e") & set(text)


@pytest.mark.process
def test_tokens_and_pairs_of_a_foreign_atlas_are_shown_as_text(tmp_path):
    """Salient tokens and the words of a relation may be anything, so they are escaped when they are shown."""
    odd, spec = "\x1b[2J\x9b\u202e", spec_of(1)
    values = np.full((2, 1, 1), 0.5, np.float32)
    run = Run("relations", "next", "id", {"category": "other"})
    facts = {"category": "other", "kind": "static", "pairs": 30, "listed": 31, "k": 1}
    facts["left_out"] = {"several tokens": [[odd, "b"]]}
    with Store.writing(tmp_path / "atlas", spec) as store:
        store.add(run)
        store.write(ScoreMap("relations", "next", "id", values, facts))
        tokens = {"tokens": np.zeros((1, 1, 1), int), "strength": np.ones((1, 1, 1))}
        tokens["mapped"] = np.ones((1, 1, 1, 1), int)  # token 1 has no text
        store.write_note("salient", tokens, {"texts": {"0": odd}, "identity": "id"})
    for given in (("head", tmp_path / "atlas", "L0H0"), ("report", tmp_path / "atlas")):
        found = headatlas(*given, COLUMNS="200", PYTHONIOENCODING="utf-8", FORCE_COLOR="")
        assert found.returncode == 0, found.stderr
        assert not set("\x1b\x9b\u202e") & set(found.stdout.decode() + found.stderr.decode())


def test_every_error_can_be_printed():
    assert str(HeadatlasError("no \x1b[31mred\u202e\n x")) == "no \\x1b[31mred\\u202e x"
    assert escape_unprintable("plain, Müller → Ω") == "plain, Müller → Ω"


def test_file_names_of_a_zip_can_be_printed(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        packed.writestr("atlas.json", "{}")
        packed.writestr("fits/\x1b[31m.safetensors", "")
    with pytest.raises(AtlasError) as refused:
        unpack_atlas(tmp_path / "x.zip", tmp_path / "out")
    assert str(refused.value).isprintable()


def headatlas(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "headatlas", *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("command", ["head L0H0", "report", "table", "page", "list tasks"])
def test_a_finished_command_ends_well_in_every_encoding(folder, tmp_path, encoding, command):
    name, *rest = command.split()
    given = (name, *rest) if name == "list" else (name, folder, *rest)
    if name == "page":
        given += ("--out", tmp_path / "x.html")
    found = headatlas(*given, PYTHONIOENCODING=encoding)
    assert found.returncode == 0 and found.stdout, found.stderr


@pytest.mark.process
def test_a_folder_name_with_escape_sequences_is_listed_as_text(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "a\x1b[31mb")
    assert atlases_in(tmp_path)
    found = headatlas("list", "atlases", tmp_path, COLUMNS="300")
    assert found.returncode == 0 and b"\x1b" not in found.stdout and b"\\x1b[31mb" in found.stdout


def test_files_are_read_and_written_as_utf_8():
    """Without an encoding Python takes that of the locale."""
    for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("scripts/*.py"), *ROOT.glob("bench/*.py")]:
        text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        for call in re.finditer(r"\.(read_text|write_text)\(", text):
            level, end = 1, call.end()
            while level:
                level += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            assert (
                re.search("utf-8|encoding=", text[call.start() : end])
                or "/proc/" in text[call.start() - 40 : end]
            ), path
