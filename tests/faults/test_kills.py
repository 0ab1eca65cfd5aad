"""Kill a run at any moment and go on with it: nothing is lost or made twice, the numbers are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from headatlas.atlas import Store, store
from support.small_run import numbers, same_numbers, small_model, small_run, write_task
from support.watching import Watch, is_step

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """The run that nothing happens to."""
    root = tmp_path_factory.mktemp("whole")
    small_run(model, write_task(root / "words.jsonl"), root / "atlas")
    return root


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_moments(tmp_path, seed):
    """With both seeds, and those of test_ray, more than fifty; every run that was killed is resumed until it
    ends."""
    result = subprocess.run(
        [sys.executable, "-m", "support.killing", str(tmp_path), "24", str(seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TOKENIZERS_PARALLELISM": "false"},
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["killed"] == 24 and found["finished"] >= 1
    assert all(found["same"]) and len(found["same"]) == found["finished"] + 1
    assert found["left"] == []  # no draft, no work in progress stays behind
    assert found["moments"] > 1 and found["inside_a_fit"] > 1  # the kills came at different moments


class KilledError(BaseException):
    """Not an Exception: nothing in the code under test may catch it, as nothing catches SIGKILL."""


def test_a_kill_before_and_after_every_single_write(model, whole, tmp_path, monkeypatch):
    """Not by chance: the run is stopped at each moment at which the folder changes."""
    plain = store.write_whole
    counted = 0

    def counting(*arguments):
        nonlocal counted
        counted += 1
        plain(*arguments)

    monkeypatch.setattr(store, "write_whole", counting)
    small_run(model, whole / "words.jsonl", tmp_path / "count")
    total = counted
    assert total > 15
    for moment in range(total):
        for late in (False, True):
            done = 0

            def deadly(path, content, advice, moment=moment, late=late):
                nonlocal done
                if done == moment and not late:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.with_name(f".{path.name}.1.tmp").write_bytes(b"half of a fil")  # a draft is left
                    raise KilledError
                plain(path, content)
                done += 1
                if done == moment + 1 and late:
                    raise KilledError

            monkeypatch.setattr(store, "write_whole", deadly)
            folder = tmp_path / f"{moment}-{late}"
            with pytest.raises(KilledError):
                small_run(model, whole / "words.jsonl", folder, resume=True)
            monkeypatch.setattr(store, "write_whole", plain)
            small_run(model, whole / "words.jsonl", folder, resume=True)
            assert same_numbers(whole / "atlas", folder), (moment, late)
            assert not list(folder.rglob(".*.tmp"))


@pytest.mark.parametrize("every", [2, 3, 4])
def test_a_kill_some_updates_after_the_last_checkpoint(model, whole, tmp_path, monkeypatch, every):
    """The updates since then are made again, with the same rows."""
    plain, ticks = time.monotonic, iter(range(10**6))
    monkeypatch.setattr("headatlas.run.fitter.time.monotonic", lambda: float(next(ticks)))
    watch = Watch(lambda event: is_step(event) and len(watch.steps) in (4, 8, 13), KilledError)
    for _ in range(3):
        with pytest.raises(KilledError):
            small_run(
                model, whole / "words.jsonl", tmp_path / "atlas", resume=True, progress=watch,
                checkpoint_seconds=2 * every,
            )  # fmt: skip
    small_run(model, whole / "words.jsonl", tmp_path / "atlas", resume=True, checkpoint_seconds=2 * every)
    assert same_numbers(whole / "atlas", tmp_path / "atlas")
    assert plain() > 0


def test_fits_that_were_written_before_the_kill_are_left_alone(model, whole, tmp_path, monkeypatch):
    plain, written = Store.write, []

    def deadly(self, fit):
        plain(self, fit)
        written.append((fit.seed, fit.fit))
        if len(written) == 4:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", deadly)
        with pytest.raises(KilledError):
            small_run(model, whole / "words.jsonl", tmp_path / "atlas")
    with monkeypatch.context() as patch:
        again = []
        patch.setattr(Store, "write", lambda self, fit: (again.append((fit.seed, fit.fit)), plain(self, fit)))
        small_run(model, whole / "words.jsonl", tmp_path / "atlas", resume=True)
    assert len(again) == 2 and not set(again) & set(written)
    assert same_numbers(whole / "atlas", tmp_path / "atlas")


def test_finished_work_is_not_done_again(model, whole, tmp_path, monkeypatch):
    small_run(model, whole / "words.jsonl", tmp_path / "atlas")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}

    def never(self, after=None):
        raise AssertionError("fitted again")

    with monkeypatch.context() as patch:
        patch.setattr("headatlas.method.engine.gate_fit.GateFit.run", never)
        small_run(model, whole / "words.jsonl", tmp_path / "atlas", resume=True)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} == before


def test_seeds_can_be_added(model, whole, tmp_path):
    """What is there stays as it is; the new seed is what it would have been in a larger run."""
    small_run(model, whole / "words.jsonl", tmp_path / "atlas")
    old = numbers(tmp_path / "atlas")
    small_run(model, whole / "words.jsonl", tmp_path / "atlas", resume=True, seeds=3)
    new = numbers(tmp_path / "atlas")
    assert len(new) == 9 and all((new[key]["logits"] == old[key]["logits"]).all() for key in old)
    small_run(model, whole / "words.jsonl", tmp_path / "three", seeds=3)
    three = numbers(tmp_path / "three")
    for key in three:
        assert abs(three[key]["logits"] - new[key]["logits"]).max() < 1e-2


def test_a_fit_that_is_deleted_is_made_again(model, whole, tmp_path):
    small_run(model, whole / "words.jsonl", tmp_path / "atlas")
    for name in ("0-retain", "1-free"):
        next((tmp_path / "atlas").rglob(f"{name}.safetensors")).unlink()
    small_run(model, whole / "words.jsonl", tmp_path / "atlas", resume=True)
    first, second = numbers(whole / "atlas"), numbers(tmp_path / "atlas")
    assert first.keys() == second.keys()
    for key in first:
        assert abs(first[key]["logits"] - second[key]["logits"]).max() < 1e-2


def test_work_in_progress_that_is_damaged_costs_only_time(model, whole, tmp_path):
    watch = Watch(lambda event: is_step(event) and len(watch.steps) == 3, KilledError)
    with pytest.raises(KilledError):
        small_run(model, whole / "words.jsonl", tmp_path / "atlas", progress=watch)
    (work,) = (tmp_path / "atlas" / "work").iterdir()
    work.write_bytes(work.read_bytes()[:-20])
    small_run(model, whole / "words.jsonl", tmp_path / "atlas", resume=True)
    assert same_numbers(whole / "atlas", tmp_path / "atlas")
