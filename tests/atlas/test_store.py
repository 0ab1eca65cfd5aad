"""Bad folders and bad moments: one sentence each, nothing lost, nothing half-read."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys

import pytest

from headatlas import AtlasError, RequestError, StoreError, open_atlas
from headatlas.atlas.store import SCHEMA
from support.small_run import same_numbers, small_model, small_run, write_task


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def made(model, tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    small_run(model, write_task(root / "words.jsonl"), root / "atlas")
    return root


@pytest.fixture
def copied(made, tmp_path):
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


def refuses(kind, words, run):
    with pytest.raises(kind) as caught:
        run()
    message = str(caught.value)
    for word in words:
        assert word in message, message
    assert "\n" not in message


def test_no_atlas(tmp_path):
    refuses(AtlasError, ["is not an atlas", "map_heads"], lambda: open_atlas(tmp_path))
    refuses(AtlasError, ["there is no folder"], lambda: open_atlas(tmp_path / "none"))
    (tmp_path / "file").write_text("x")
    refuses(AtlasError, ["is not an atlas"], lambda: open_atlas(tmp_path / "file"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": 1, "mod', ["damaged", "not JSON"]),
        ("{}", ["no schema number"]),
        ("[]", ["no schema number"]),
        ('{"schema": 1}', ["damaged"]),
        (
            json.dumps({"schema": SCHEMA + 1}),
            ["newer headatlas", f"schema {SCHEMA + 1}", "install the newer"],
        ),
    ],
)
def test_bad_atlas_json(model, copied, text, words):
    (copied / "atlas" / "atlas.json").write_text(text)
    refuses(AtlasError, words, lambda: open_atlas(copied / "atlas"))
    refuses(
        AtlasError, words, lambda: small_run(model, copied / "words.jsonl", copied / "atlas", resume=True)
    )
    assert (copied / "atlas" / "atlas.json").read_text() == text  # not overwritten


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "another", "nonsense"])
def test_a_damaged_fit(model, made, copied, damage):
    path = copied / "atlas" / "fits" / "gating" / "words" / "1-retain.safetensors"
    data = path.read_bytes()
    bad = {
        "truncated": data[:-7],
        "empty": b"",
        "flipped": data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
        "another": path.with_name("0-retain.safetensors").read_bytes(),
        "nonsense": b"nonsense" * 40,
    }
    path.write_bytes(bad[damage])
    words = ["1-retain.safetensors", "resume=True"]
    refuses(AtlasError, words, lambda: open_atlas(copied / "atlas"))
    refuses(
        AtlasError, words, lambda: small_run(model, copied / "words.jsonl", copied / "atlas", resume=True)
    )
    assert path.read_bytes() == bad[damage]  # the user decides
    path.unlink()
    small_run(model, copied / "words.jsonl", copied / "atlas", resume=True)
    assert open_atlas(copied / "atlas").seeds("words") == [0, 1]


def test_an_atlas_is_not_overwritten(model, copied):
    refuses(
        AtlasError,
        ["holds an atlas already", "resume=True"],
        lambda: small_run(model, copied / "words.jsonl", copied / "atlas", resume=False),
    )


def test_other_settings_are_refused_by_name(model, made, copied):
    run = lambda **changes: small_run(model, copied / "words.jsonl", copied / "atlas", resume=True, **changes)  # noqa: E731
    whole = (
        f"{copied / 'atlas'} has 'words' already, made with {{}}; choose another out=… or ask for the same."
    )
    refuses(AtlasError, [whole.format("batch 4 instead of 5")], lambda: run(batch=5))
    refuses(AtlasError, [whole.format("objective bounded instead of paper")], lambda: run(objective="paper"))
    refuses(
        AtlasError,
        ["tasks words max_tokens 64 instead of 6"],
        lambda: run(max_tokens=6),
    )
    write_task(copied / "words.jsonl", seed=9)
    refuses(AtlasError, ["'words' already, made with other items"], run)
    assert same_numbers(made / "atlas", copied / "atlas")


def test_another_model_is_refused(copied):
    from headatlas import load_model
    from support.planted import word_tokenizer
    from support.tiny import build_tiny

    other = load_model(build_tiny("llama", seed=5), tokenizer=word_tokenizer(100), check=False)
    refuses(
        AtlasError,
        ["whose weights are not those of"],
        lambda: small_run(other, copied / "words.jsonl", copied / "atlas", resume=True),
    )
    half = load_model(build_tiny("llama").bfloat16(), tokenizer=word_tokenizer(100), check=False)
    with pytest.raises(AtlasError):
        small_run(half, copied / "words.jsonl", copied / "atlas", resume=True)


@pytest.mark.process
def test_a_second_process_is_refused(model, copied):
    """Another process holds the folder; it is let go when that process dies."""
    code = (
        "import sys, time\nfrom headatlas.atlas import Store\n"
        f"store = Store.open({str(copied / 'atlas')!r})\n"
        f"with Store.writing({str(copied / 'atlas')!r}, store.spec):\n"
        "    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        refuses(
            StoreError,
            ["being written by another headatlas"],
            lambda: small_run(model, copied / "words.jsonl", copied / "atlas", resume=True, seeds=3),
        )
        assert open_atlas(copied / "atlas").seeds("words") == [0, 1]  # reading goes on
        other.kill()
    small_run(model, copied / "words.jsonl", copied / "atlas", resume=True, seeds=3)
    assert open_atlas(copied / "atlas").seeds("words") == [0, 1, 2]


def test_a_full_disk(model, made, tmp_path, monkeypatch):
    """Every file that can be written, until the disk is full; then freed and resumed."""
    plain = os.fsync
    for room in range(0, 14, 3):
        left = room
        folder = tmp_path / str(room)

        def scarce(handle):
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            plain(handle)

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", scarce)
            refuses(
                StoreError,
                ["cannot be written: No space left on device", "resume=True"],
                lambda folder=folder: small_run(model, made / "words.jsonl", folder, resume=True),
            )
        assert not list(folder.rglob(".*.tmp"))
        small_run(model, made / "words.jsonl", folder, resume=True)
        assert same_numbers(made / "atlas", folder)


def test_a_really_full_disk(model, made, tmp_path):
    """A file system of 28 kB, if this machine lets us mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=28k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine mounts no file systems for us")
    try:
        refuses(
            StoreError,
            ["cannot be written", "resume=True"],
            lambda: small_run(model, made / "words.jsonl", disk / "atlas", resume=True),
        )
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        small_run(model, made / "words.jsonl", disk / "atlas", resume=True)
        assert same_numbers(made / "atlas", disk / "atlas")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_a_read_only_folder(model, made, tmp_path):
    """Permissions mean nothing to root, a read-only file system does."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    if os.geteuid() != 0:
        folder.chmod(0o500)
    elif subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    ).returncode:
        pytest.skip("root, and this machine mounts no file systems for us")
    try:
        refuses(
            RequestError,
            ["cannot be written", "choose another out=…"],
            lambda: small_run(model, made / "words.jsonl", folder / "atlas"),
        )
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", "-l", str(folder)], check=False)
        else:
            folder.chmod(0o700)


def test_a_folder_that_is_a_file(model, made, tmp_path):
    (tmp_path / "file").write_text("x")
    refuses(
        AtlasError, ["is a file", "out=…"], lambda: small_run(model, made / "words.jsonl", tmp_path / "file")
    )


def test_files_of_others_are_left_alone(model, made, tmp_path):
    """An atlas may be put into a folder that holds other things."""
    mine = [tmp_path / ".notes.tmp", tmp_path / "sub" / ".x.1.tmp", tmp_path / "fits" / ".y.tmp"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    small_run(model, made / "words.jsonl", tmp_path)
    small_run(model, made / "words.jsonl", tmp_path, resume=True, seeds=3)
    assert all(path.read_text() == "mine" for path in mine)


def test_damage_anywhere_is_known_before_work_begins(model, copied):
    path = copied / "atlas" / "fits" / "gating" / "words" / "1-retain.safetensors"
    path.write_bytes(b"")
    other = write_task(copied / "other.jsonl", seed=3)
    refuses(AtlasError, ["1-retain"], lambda: small_run(model, other, copied / "atlas", resume=True))
    assert not (copied / "atlas" / "fits" / "gating" / "other").exists()


def test_added_seeds_are_in_the_settings(model, copied):
    small_run(model, copied / "words.jsonl", copied / "atlas", resume=True, seeds=3)
    settings = open_atlas(copied / "atlas").run("words").settings
    assert settings["resolved"]["seeds"] == 3 and settings["given"]["seeds"] == 3


def test_another_tokeniser_is_another_run(copied):
    from headatlas import load_model
    from support.planted import word_tokenizer
    from support.tiny import build_tiny

    other = load_model(build_tiny("llama"), tokenizer=word_tokenizer(50), check=False)
    refuses(
        AtlasError,
        ["made with the same items cut into other tokens"],
        lambda: small_run(other, copied / "words.jsonl", copied / "atlas", resume=True),
    )
