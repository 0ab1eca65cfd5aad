"""What a worker does: some steps of a request, in a folder of its own, handed over as they are done.

Runs in a process that may be killed at any moment, on a machine that has nothing but headatlas, the model and
the place where results are left.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any

import torch
from filelock import FileLock, Timeout

from headatlas.atlas import Store
from headatlas.core import HeadatlasError, StoreError
from headatlas.method import Step
from headatlas.model import Model, load_model
from headatlas.run.effects import measure_effects
from headatlas.run.exchange import Exchange
from headatlas.run.executing import Request
from headatlas.run.map_job import map_steps
from headatlas.run.relations_job import relate_steps
from headatlas.run.steps import Seen, Unit
from headatlas.run.validate_job import validate_steps

__all__ = ["Job", "carry_out"]

#: told what a unit is at, and what is worth a sentence
Tell = Callable[[Seen, list[str]], None]
#: seconds between two signs of life
_TELL = 0.5


@dataclass(frozen=True, slots=True)
class Job:
    """A request, as every worker gets it, with the name of the atlas, how the model is loaded, where results
    go and under which name, how many of a CPU's cores a worker has, and how often it hands over."""

    request: Request
    out: str
    load: Mapping[str, Any]
    place: str
    name: str
    threads: int
    handing_seconds: float


def _validate(model: Model, *, out: Path, resume: bool, **asked: Any) -> None:
    validate_steps(out, model=model, **asked)


CALLS: dict[str, Callable[..., Any]] = {
    "map": map_steps,
    "effects": measure_effects,
    "relations": relate_steps,
    "validate": _validate,
}
#: what this process has loaded: a worker carries out one unit after the other
_LOADED: dict[str, Model] = {}


def carry_out(job: Job, unit: Unit, tell: Tell) -> dict[str, Any]:
    """Do the steps of a unit. Gives nothing, or the sentence that stands against it."""
    began = time.monotonic()
    with _own_folder() as folder:
        try:
            _do(job, unit, tell, folder)
        except HeadatlasError as error:  # about the atlas, not about a folder that nobody knows
            return {"error": type(error).__name__, "text": str(error).replace(str(folder), job.out)}
    return {"seconds": time.monotonic() - began}


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder for this unit. Those of workers that were killed are removed: nobody holds their locks."""
    root = Path(gettempdir()) / f"headatlas-workers-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.getuid():
        raise StoreError(f"{root} belongs to somebody else; TMPDIR says where workers work.")
    with FileLock(root / "turn"):
        for left in root.glob("*.lock"):
            with suppress(Timeout), FileLock(left, timeout=0):
                shutil.rmtree(left.with_suffix(""), ignore_errors=True)
                left.unlink()
        folder = Path(mkdtemp(dir=root))
        held = FileLock(f"{folder}.lock")
        held.acquire()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        Path(held.lock_file).unlink(missing_ok=True)
        held.release()


def _do(job: Job, unit: Unit, tell: Tell, folder: Path) -> None:
    torch.set_num_threads(job.threads)
    exchange = Exchange(job.place, job.name)
    exchange.begin(unit.name, folder, unit.reads)
    progress = _Telling(unit, tell, lambda: exchange.hand_over(unit.name, folder), job)
    progress.say("loading the model")
    asked = dict(job.request.asked)
    if unit.tasks:
        asked["tasks"] = [task for task in asked["tasks"] if task.name in unit.tasks]
    asked |= {"out": folder, "resume": Store.exists(folder), "progress": progress}
    CALLS[job.request.call](_model(job), only=unit.steps, **asked)
    exchange.hand_over(unit.name, folder)


def _model(job: Job) -> Model:
    key = json.dumps([job.request.model, dict(job.load)], sort_keys=True, default=str)
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = load_model(job.request.model, **job.load)
    return _LOADED[key]


@dataclass(slots=True)
class _Telling:
    """Progress that is told to somebody else, and a chance to hand over what is new."""

    unit: Unit
    tell: Tell
    hand_over: Callable[[], None]
    job: Job
    _seen: Seen = field(init=False)
    _told: float = 0.0
    _handed: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._seen = Seen(self.unit.name, "", 0, 0, os.getpid())

    def say(self, what: str, done: int = 0, total: int = 0) -> None:
        now = time.monotonic()
        self._seen = Seen(self.unit.name, what, done, total, os.getpid())
        if now - self._told >= _TELL or done == total:
            self._told = now
            self.tell(self._seen, [])
        if now - self._handed >= self.job.handing_seconds:
            self._handed = now
            self.hand_over()

    def stage(self, task: str, stage: str, sets: int, updates: int, done: int) -> None:
        self.say(stage, done, updates)

    def step(self, step: Step) -> None:
        loss = "" if step.loss is None else f", loss {step.loss:.3f}"
        self.say(f"{step.stage}{loss}", step.update, step.updates)

    def heads(self, what: str, done: int, total: int) -> None:
        self.say(what, done, total)

    def note(self, text: str) -> None:
        self.tell(self._seen, [text])

    def units(self, running: Any, done: int, total: int) -> None: ...
