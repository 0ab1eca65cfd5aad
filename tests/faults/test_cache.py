"""The converted copy of an embedded model: killed, raced and damaged, it is whole or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from headatlas import HeadatlasError, load_model
from headatlas.model import embedded
from headatlas.model.embedded import EMBEDDED, Embedded, is_sound
from headatlas.model.gguf import read_gguf
from support.tiny_gguf import write_tiny_gguf

TINY = Embedded("tiny", "no-such-wheel", "0", "no/such-model", "for tests")

#: A process that prints "ready" when everything is imported, then gets the tiny model.
WORKER = """
import sys, time
from pathlib import Path
import headatlas.model.gguf, headatlas.model.load
from headatlas.model.embedded import Embedded
Embedded.gguf = lambda self: Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(Embedded("tiny", "no-such-wheel", "0", "no/such-model", "for tests").folder(), flush=True)
"""


@pytest.fixture
def gguf(tmp_path, monkeypatch):
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    monkeypatch.setenv("HEADATLAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Embedded, "gguf", lambda self: path)
    return path


def start(gguf):
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(gguf)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout.readline() == "ready\n"
    return process


def go(process):
    process.stdin.write("\n")
    process.stdin.flush()


def finished(process):
    return process.communicate(timeout=300)[0].strip()


def kept(models):
    return [path.name for path in models.iterdir() if path.suffix != ".lock"]


def copies(tmp_path):
    return sorted(path.name for path in (tmp_path / "cache" / "models").glob("[!.]*"))


def test_a_copy_is_made_once(gguf, tmp_path, monkeypatch):
    first = TINY.folder()
    assert is_sound(first) and first.parent == tmp_path / "cache" / "models"
    assert kept(first.parent) == [first.name]  # no draft is left
    manifest = json.loads((first / "headatlas.json").read_text())
    assert manifest["source"] == "tiny.gguf" and "model.safetensors" in manifest["sha256"]
    monkeypatch.setattr(embedded, "_convert", None)
    assert TINY.folder() == first
    model = load_model(first)
    assert model.spec.heads == (4, 4) and model.spec.kv_heads == (2, 2) and model.check.passed
    assert model.tokenizer.tokenize(" the") == ["Ġthe"]


def test_another_file_is_another_copy(gguf, tmp_path):
    first = TINY.folder()
    write_tiny_gguf(gguf, seed=1)
    second = TINY.folder()
    assert first != second and is_sound(first) and is_sound(second)


def test_a_damaged_copy_is_made_anew(gguf):
    copy = TINY.folder()
    whole = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(whole[:1000])
    assert TINY.folder() == copy
    assert (copy / "model.safetensors").read_bytes() == whole
    (copy / "tokenizer.json").unlink()
    assert TINY.folder() == copy and is_sound(copy)


@pytest.mark.process
def test_processes_at_once(gguf, tmp_path):
    """All start with nothing; all end with the same whole copy."""
    workers = [start(gguf) for _ in range(3)]
    for worker in workers:
        go(worker)
    answers = {finished(worker) for worker in workers}
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(answers) == 1 and copies(tmp_path) == [answers.pop().split("/")[-1]]
    assert is_sound(TINY.folder())


@pytest.mark.process
def test_processes_at_once_on_a_damaged_copy(gguf, tmp_path):
    copy = TINY.folder()
    (copy / "config.json").write_text("{}")
    workers = [start(gguf) for _ in range(3)]
    for worker in workers:
        go(worker)
    assert {finished(worker) for worker in workers} == {str(copy)}
    assert is_sound(copy) and copies(tmp_path) == [copy.name]


#: Forks one child per step: the child makes the copy and kills itself, -9, at that step.
KILLER = """
import os, signal, sys
from pathlib import Path
import headatlas.model.gguf, headatlas.model.load
from headatlas.model.embedded import Embedded, cache_folder, is_sound
Embedded.gguf = lambda self: Path(sys.argv[1])
TINY = Embedded("tiny", "no-such-wheel", "0", "no/such-model", "for tests")
steps = 0

def watch(event, arguments):
    # every touch of a file system, as the interpreter reports it
    global steps
    if event.split(".")[0] in ("open", "os", "shutil", "tempfile"):
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

def in_child(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1]

def copy():
    return [path for path in (cache_folder() / "models").glob("[!.]*")]

def killed_at(step):
    global last
    last = step
    sys.addaudithook(watch)
    TINY.folder()
    print("steps", steps, flush=True)

for step in range(1, 10_000):
    ended = in_child(lambda: killed_at(step))
    left = copy()
    assert all(is_sound(path) for path in left), f"step {step} left a broken copy"
    print("killed" if ended == signal.SIGKILL else "finished", step, len(left), flush=True)
    assert ended in (0, signal.SIGKILL)
    in_child(lambda: TINY.folder())
    (whole,) = copy()
    assert is_sound(whole), f"after step {step} no copy can be made"
    if ended == 0:
        break
    import shutil
    shutil.rmtree(whole)
"""


@pytest.mark.process
def test_killed_at_every_step(gguf):
    """Wherever kill -9 strikes, there is a sound copy or none, and the next call makes it."""
    process = subprocess.run(
        [sys.executable, "-c", KILLER, str(gguf)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error"},
    )
    assert process.returncode == 0, process.stderr[-2000:]
    lines = [line.split() for line in process.stdout.splitlines()]
    kills = [line for line in lines if line[0] == "killed"]
    assert len(kills) >= 30, process.stdout
    assert {line[2] for line in kills} == {"0", "1"}, "kills must fall before and after the rename"
    assert lines[-1][0] == "finished"


def test_drafts_of_killed_processes_do_not_pile_up(gguf, tmp_path):
    models = tmp_path / "cache" / "models"
    for moment in (1, 2**31, None):  # made long ago, in years to come, now: the clock does not matter
        draft = models / f".tiny-draft-{moment}"
        draft.mkdir(parents=True)
        (draft / "model.safetensors").touch()
        os.utime(draft, moment and (moment, moment))
    copy = TINY.folder()
    assert kept(models) == [copy.name]


def test_a_draft_at_work_is_left_alone(gguf, tmp_path, monkeypatch):
    """The clock jumps by a year while one process converts: another one waits, and makes nothing."""
    begun, go_on = threading.Event(), threading.Event()
    drafts = []

    def slowly(file):
        drafts.extend((tmp_path / "cache" / "models").glob(f".{TINY.name}-*"))
        os.utime(drafts[-1], (0, 0))
        begun.set()
        assert go_on.wait(60)
        return read_gguf(file)

    monkeypatch.setattr("headatlas.model.gguf.read_gguf", slowly)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(TINY.folder)
        assert begun.wait(60)
        second = pool.submit(TINY.folder)
        done, _ = wait([second], timeout=1)
        assert not done and drafts[0].is_dir()
        go_on.set()
        assert first.result(60) == second.result(60)
    assert len(drafts) == 1


def test_a_full_disk(gguf, monkeypatch, tmp_path):
    """Writing fails half-way: one sentence, no copy, no draft."""

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(HeadatlasError, match=r"cannot be written.*No space left.*HEADATLAS_CACHE"):
        TINY.folder()
    assert kept(tmp_path / "cache" / "models") == []


@pytest.mark.process
def test_two_processes_convert_the_real_model(tmp_path):
    """Nothing in the cache, two commands at the same time, both pass."""
    env = os.environ | {"HEADATLAS_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "headatlas", "check", "smollm2", "--json"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert [err for _, err in answers] == ["", ""]  # no bars, no notes
    hashes = {json.loads(out)["model"]["content_hash"] for out, _ in answers}
    assert len(hashes) == 1
    (name,) = kept(tmp_path / "models")
    copy = tmp_path / "models" / name
    assert is_sound(copy) and copy.name.startswith(EMBEDDED["smollm2"].name)
