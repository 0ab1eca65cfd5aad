"""Two users of one machine: what the one made serves the other, or a sentence says why not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headatlas.model.embedded import Embedded, is_sound
from support.small_run import small_model, small_run, write_task
from support.tiny_gguf import write_tiny_gguf

pytestmark = pytest.mark.process

TINY = Embedded("tiny", "no-such-wheel", "0", "no/such-model", "for tests")

#: Takes each step once where it may do all (so that everything is imported), then becomes another user.
OTHER = """
import json, os, shutil, sys
from pathlib import Path
from headatlas import HeadatlasError, open_atlas
from headatlas.model.embedded import Embedded
from support.small_run import small_model, small_run
root, own = Path(sys.argv[1]), Path(sys.argv[2])
Embedded.gguf = lambda self: root / "tiny.gguf"
tiny, model = Embedded("tiny", "no-such-wheel", "0", "no/such-model", "for tests"), small_model()

def cache(folder):
    os.environ["HEADATLAS_CACHE"] = str(folder)
    return tiny.folder().name

def open_one(folder):
    return open_atlas(folder).tasks

def add_to(folder, seeds=3):
    return small_run(model, root / "words.jsonl", folder, resume=True, seeds=seeds).tasks

shutil.copytree(root / "readable", own / "atlas")
cache(own / "cache"), add_to(own / "atlas")
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
for name, step, place in [
    ("a cache that has it", cache, "full"),
    ("a cache to read only", cache, "empty"),
    ("a cache that is not for us", cache, "hidden"),
    ("a cache for both", cache, "shared"),
    ("an atlas to read", open_one, "readable"),
    ("an atlas to read only", add_to, "readable"),
    ("an atlas that is not for us", open_one, "hidden"),
    ("a place that is not for us", add_to, "hidden/new"),
]:
    try:
        said = "done", step(root / place)
    except HeadatlasError as error:
        said = "refused", str(error)
    except BaseException as error:
        said = "failed", repr(error)
    print(json.dumps([name, *said]), flush=True)
"""


@pytest.fixture(scope="module")
def place():
    """A folder that all users reach, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="headatlas-users-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def found(place, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Embedded, "gguf", lambda self: place / "tiny.gguf")
        write_tiny_gguf(place / "tiny.gguf")
        for name in ("full", "shared"):
            patch.setenv("HEADATLAS_CACHE", str(place / name))
            TINY.folder()
    (damaged,) = (place / "shared" / "models").glob("tiny-*")
    (damaged / "config.json").write_text("{}")  # the other user makes it anew
    (place / "shared" / "models").chmod(0o777)
    small_run(small_model(), write_task(place / "words.jsonl"), place / "readable")
    for name in ("empty", "hidden"):
        (place / name).mkdir()
    if os.geteuid() != 0:  # nobody else to try it with: what only others may not do
        for name in ("full", "empty", "readable"):
            for path in [place / name, *(place / name).rglob("*")]:
                path.chmod(0o555 if path.is_dir() else 0o444)
    (place / "hidden").chmod(0o700 if os.geteuid() == 0 else 0o000)
    made = subprocess.run(
        [sys.executable, "-c", OTHER, str(place), str(tmp_path_factory.mktemp("own"))],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert made.returncode == 0, made.stderr
    return {name: (how, said) for name, how, said in map(json.loads, made.stdout.splitlines())}


def test_what_one_user_made_the_other_reads(found):
    assert found["a cache that has it"][0] == "done"
    assert found["an atlas to read"] == ("done", ["words"])


def test_both_write_to_a_cache_for_both(found, place):
    how, name = found["a cache for both"]
    assert how == "done" and is_sound(place / "shared" / "models" / name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a cache to read only", "HEADATLAS_CACHE"),
        ("a cache that is not for us", "HEADATLAS_CACHE"),
        ("an atlas to read only", "cannot be written"),
        ("an atlas that is not for us", "Permission denied"),
        ("a place that is not for us", "Permission denied"),
    ],
)
def test_what_is_not_allowed_is_said_in_a_sentence(found, name, words):
    how, said = found[name]
    assert how == "refused" and words in said and "\n" not in said
