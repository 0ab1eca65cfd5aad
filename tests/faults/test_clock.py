"""The clock of the machine jumps: no decision hangs on it."""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path

import pytest

import headatlas
from headatlas.atlas import Store
from headatlas.run.exchange import Exchange
from support.small_run import same_numbers, small_model, small_run, write_task


class StopError(BaseException):
    """As a kill: nothing in the code under test may catch it."""


def jump(monkeypatch, seed):
    """From now on the clock is somewhere else whenever it is asked."""
    chance = random.Random(seed)
    monkeypatch.setattr(time, "time", lambda: chance.uniform(0, 2**32))
    monkeypatch.setattr(time, "time_ns", lambda: chance.randrange(2**62))


def redate(folder, seed):
    """Files of all ages, some from years to come."""
    chance = random.Random(seed)
    for path in [folder, *folder.rglob("*")]:
        moment = chance.choice([1, 2**31, 2**32])
        os.utime(path, (moment, moment))


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_and_resumed_on_a_jumping_clock(tmp_path, monkeypatch, seed):
    task = write_task(tmp_path / "words.jsonl")
    model = small_model()
    small_run(model, task, tmp_path / "whole")
    jump(monkeypatch, seed)
    saves, save = [], Store.write_work

    def stopping(store, *given, **named):
        save(store, *given, **named)
        saves.append(1)
        if len(saves) == 2 + 2 * seed:
            raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write_work", stopping)
        with pytest.raises(StopError):
            small_run(model, task, tmp_path / "killed")
    redate(tmp_path / "killed", seed)
    small_run(model, task, tmp_path / "killed", resume=True)
    assert same_numbers(tmp_path / "whole", tmp_path / "killed")
    redate(tmp_path / "killed", seed + 10)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "write_work", lambda *given, **named: pytest.fail("made again"))
        small_run(model, task, tmp_path / "killed", resume=True)


def test_files_of_the_same_moment_are_told_apart_at_the_exchange(tmp_path):
    """A worker writes a checkpoint anew, and the clock has gone back to when the first was written."""
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    exchange = Exchange(str(tmp_path / "exchange"), "it")
    exchange.publish(own)
    for text in ("{}", '{"later": 1}'):
        draft = own / "draft"
        draft.write_text(text)
        os.utime(draft, (1, 1))
        draft.replace(own / "atlas.json")
        exchange.hand_over("unit", own)
    other.mkdir()
    assert exchange.fetch("unit", other)
    assert (other / "atlas.json").read_text() == '{"later": 1}'


def test_no_code_asks_for_the_time_of_day():
    """What is timed is timed by clocks that do not jump."""
    asks = re.compile(r"\btime\.time\(|\btime_ns\(|datetime\.|st_[mac]time\b|getmtime")
    found = [
        f"{path.name}: {line.strip()}"
        for path in Path(headatlas.__file__).parent.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if asks.search(line)
    ]
    assert found == []
