"""What workers hand over: a folder as it is at one moment, whatever happens on the way."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from headatlas import StoreError
from headatlas.atlas import EffectMap, Store
from headatlas.request import MapRequest
from headatlas.run import execute
from headatlas.run.exchange import Exchange
from headatlas.run.ray_executor import _named
from headatlas.run.ray_worker import WorkerJob, carry_out
from support.planted import word_tokenizer
from support.small_run import same_numbers, small_run, write_task
from support.tiny import build_tiny


class KilledError(BaseException):
    """Nothing in the code under test may catch it."""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("exchange")
    build_tiny("llama").save_pretrained(root / "model")
    word_tokenizer(100).save_pretrained(root / "model")
    write_task(root / "words.jsonl")
    write_task(root / "others.jsonl", seed=1)
    small_run(str(root / "model"), root / "words.jsonl", root / "whole", seeds=3)
    return root


def request_for(root, method="gating", **options):
    tasks = [str(root / name) for name in ("words.jsonl", "others.jsonl")]
    return MapRequest.of(str(root / "model"), tasks, method, checkpoint_seconds=0.0, **options)


def job_for(root, place, request=None):
    request = request or request_for(root, seeds=3, updates=5, batch=4)
    return WorkerJob(request, "atlas", str(place), "it", torch.get_num_threads(), 0.0)


@pytest.fixture(scope="module")
def step(root):
    """The fits of the first of the two tasks."""
    first, _ = request_for(root, seeds=3).plan().stages[0]
    return first


def published(place):
    exchange = Exchange(str(place), "it")
    (place / "nothing").mkdir(parents=True)
    exchange.publish(place / "nothing")
    return exchange


def fetched(exchange, folder, step):
    folder.mkdir()
    assert exchange.fetch(step.name, folder)
    return folder


@pytest.mark.process
def test_a_worker_killed_at_any_moment_of_a_hand_over(root, step, tmp_path, monkeypatch):
    """Before and in the middle of every single file; every second one, for time."""
    plain, count = Exchange._put, 0

    def counting(self, data, name):
        nonlocal count
        count += 1
        plain(self, data, name)

    monkeypatch.setattr(Exchange, "_put", counting)
    exchange = published(tmp_path / "count")
    assert carry_out(job_for(root, tmp_path / "count"), step, lambda *told: None).keys() == {"seconds"}
    assert same_numbers(root / "whole", fetched(exchange, tmp_path / "counted", step))
    assert count > 40
    for moment in range(1, count - 1, 2):
        done, half = 0, moment % 4 == 1

        def deadly(self, data, name, moment=moment, half=half):
            nonlocal done
            if done == moment:
                if half:  # a file system that shows what is half written
                    self._files.pipe_file(f"{self._root}/{name}", data[: len(data) // 2])
                raise KilledError
            plain(self, data, name)
            done += 1

        place = tmp_path / f"{moment}"
        monkeypatch.setattr(Exchange, "_put", plain)
        exchange = published(place)
        monkeypatch.setattr(Exchange, "_put", deadly)
        with pytest.raises(KilledError):
            carry_out(job_for(root, place), step, lambda *told: None)
        monkeypatch.setattr(Exchange, "_put", plain)
        carry_out(job_for(root, place), step, lambda *told: None)
        assert same_numbers(root / "whole", fetched(exchange, place / "made", step)), moment


def test_what_is_damaged_is_made_again_and_not_taken_over(root, step, tmp_path):
    exchange = published(tmp_path)
    carry_out(job_for(root, tmp_path), step, lambda *told: None)
    one = max((tmp_path / "it").glob("unit-*/*"), key=lambda path: path.stat().st_size)
    one.write_bytes(one.read_bytes()[:100])
    (tmp_path / "half").mkdir()
    assert not exchange.fetch(step.name, tmp_path / "half")
    carry_out(job_for(root, tmp_path), step, lambda *told: None)
    assert same_numbers(root / "whole", fetched(exchange, tmp_path / "made", step))


def test_a_step_has_to_do_with_its_own_task_alone(root, step, tmp_path, monkeypatch):
    """Tasks that others see to are neither read nor measured."""
    measured = []
    plain = Store.update
    monkeypatch.setattr(
        Store, "update", lambda store, run, **what: measured.append(run.task) or plain(store, run, **what)
    )
    exchange = published(tmp_path)
    carry_out(job_for(root, tmp_path), step, lambda *told: None)
    assert measured == ["words"]
    assert [task for _, task in Store.open(fetched(exchange, tmp_path / "made", step)).runs] == ["words"]


@pytest.mark.parametrize("handed_over", [True, False])
def test_what_was_handed_over_before_the_first_step_was_done_stays(step, tmp_path, handed_over):
    """Stopped by Ctrl-C: the request keeps its name and its parts, if it has any."""
    out = tmp_path / "atlas"
    out.mkdir()
    names = []

    def stopped():
        with _named(str(out / "parts"), out) as exchange:
            names.append(exchange.name)
            exchange.publish(out)
            if handed_over:
                (tmp_path / "atlas.json").write_text("{}")
                exchange.hand_over(step.name, tmp_path)
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            stopped()
    assert (names[0] == names[1]) is handed_over
    assert (out / "parts").exists() is handed_over and (out / "exchange.id").exists() is handed_over


def test_effects_step_by_step(root, tmp_path):
    """As measured here in one go."""
    request = request_for(root, "ablate-zero", seeds=2, items=6)
    exchange = published(tmp_path)
    (steps,) = request.plan().stages
    assert len(steps) == 4
    execute(request, tmp_path / "here")
    here = Store.open(tmp_path / "here")
    for number, step in enumerate(steps):
        assert "error" not in carry_out(job_for(root, tmp_path, request), step, lambda *told: None)
        there = Store.open(fetched(exchange, tmp_path / f"made{number}", step))
        (run,) = there.runs.values()
        (effect,) = there.read_all(EffectMap, run)
        same = here.read(EffectMap, here.runs[run.method, run.task], seed=effect.seed)
        assert np.array_equal(effect.values, same.values)


def test_a_step_reads_of_the_atlas_what_it_needs(root, step, tmp_path):
    """Of an atlas with two tasks the files of one; seeds are added to it."""
    tasks = [str(root / name) for name in ("words.jsonl", "others.jsonl")]
    small_run(str(root / "model"), tasks[0], tmp_path / "atlas", seeds=2)
    small_run(str(root / "model"), tasks[1], tmp_path / "atlas", seeds=2, resume=True)
    exchange = Exchange(str(tmp_path / "place"), "it")
    exchange.publish(tmp_path / "atlas")
    (tmp_path / "seen").mkdir()
    exchange.begin(step.name, tmp_path / "seen", step.needs)
    seen = {path.parent.name for path in (tmp_path / "seen").rglob("*.safetensors")}
    assert seen == {"words"} and (tmp_path / "seen" / "atlas.json").exists()
    found = carry_out(job_for(root, tmp_path / "place"), step, lambda *told: None)
    assert "error" not in found
    made = {path.name for path in fetched(exchange, tmp_path / "made", step).rglob("*.safetensors")}
    assert made == {"2-free.safetensors", "2-retain.safetensors", "2-remove.safetensors"}


def test_others_at_the_same_place_are_left_alone(tmp_path):
    (tmp_path / "place" / "base").mkdir(parents=True)
    (tmp_path / "place" / "base" / "thesis.txt").write_text("mine")
    one, other = (Exchange(str(tmp_path / "place"), name) for name in ("one", "other"))
    for exchange in (one, other):
        (tmp_path / "nothing").mkdir(exist_ok=True)
        exchange.publish(tmp_path / "nothing")
    one.clear()
    assert (tmp_path / "place" / "base" / "thesis.txt").read_text() == "mine"
    other.begin("unit", tmp_path / "nothing", lambda name: True)


def test_a_place_that_only_the_driver_reaches_is_known_at_once(tmp_path):
    with pytest.raises(StoreError, match="driver and workers reach"):
        Exchange(str(tmp_path / "elsewhere"), "it").begin("unit", tmp_path, lambda name: True)


@pytest.mark.parametrize("name", ["../out.safetensors", "/etc/passwd", "fits/../../x.safetensors", "run.sh"])
def test_nothing_is_written_outside_the_folder(tmp_path, name):
    exchange = published(tmp_path / "place")
    (tmp_path / "place" / "it" / "base.json").write_text(json.dumps({name: "0" * 64}))
    with pytest.raises(StoreError, match="not one of an atlas"):
        exchange.begin("unit", tmp_path / "own", lambda name: True)


def test_folders_of_killed_workers_are_removed(root, step, tmp_path, monkeypatch):
    monkeypatch.setattr("headatlas.run.ray_worker.gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    published(tmp_path / "place")

    def stop(*told):
        raise KilledError

    def killed(folder, ignore_errors=True):
        pass  # nothing is tidied up by a process that is gone

    with monkeypatch.context() as patch:
        patch.setattr("headatlas.run.ray_worker.shutil.rmtree", killed)
        with pytest.raises(KilledError):
            carry_out(job_for(root, tmp_path / "place"), step, stop)
    (workers,) = (tmp_path / "tmp").iterdir()
    (left,) = [path for path in workers.iterdir() if path.is_dir()]
    (workers / f"{left.name}.lock").touch()  # as a killed process leaves it: there, and held by nobody
    carry_out(job_for(root, tmp_path / "place"), step, lambda *told: None)
    assert [path.name for path in workers.iterdir()] == ["turn"]
