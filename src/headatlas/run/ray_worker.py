"""What a worker does: some steps of a request, in a folder of its own, handed over as they are done.

Runs in a process that may be killed at any moment, on a machine that has nothing but headatlas, the model and
the place where results are left.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any

import torch
from filelock import FileLock, Timeout

from headatlas.core import Event, HeadatlasError, Note, StoreError, Update, Worker
from headatlas.model import Model
from headatlas.request.plan import Step
from headatlas.run.exchange import Exchange
from headatlas.run.executor import carry_out as carry_out_stages
from headatlas.run.executor import load_for_run

__all__ = ["WorkerJob", "carry_out"]

#: told what a worker is at (None: as before), and notes
Tell = Callable[[Worker | None, list[Note]], None]
#: seconds between two signs of life
_TELL = 0.5


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """A request, as every worker gets it, with the name of the atlas, where results go and under which name,
    how many of a CPU's cores a worker has, and how often it hands over."""

    request: Any
    out: str
    place: str
    name: str
    threads: int
    handing_seconds: float


#: what this process has loaded: a worker carries out one step after the other
_LOADED: dict[str, Model] = {}


def carry_out(job: WorkerJob, step: Step, tell: Tell) -> dict[str, Any]:
    """Carry out a step. Gives the seconds that it took, or the kind and the text of the error."""
    began = time.monotonic()
    with _own_folder() as folder:
        try:
            _do(job, step, tell, folder)
        except HeadatlasError as error:  # about the atlas, not about a folder that nobody knows
            return {"error": type(error).__name__, "text": str(error).replace(str(folder), job.out)}
    return {"seconds": time.monotonic() - began}


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder for this step. Those of workers that were killed are removed: nobody holds their locks."""
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


def _do(job: WorkerJob, step: Step, tell: Tell, folder: Path) -> None:
    torch.set_num_threads(job.threads)
    exchange = Exchange(job.place, job.name)
    exchange.begin(step.name, folder, step.needs)
    progress = _Telling(step.name, tell, lambda: exchange.hand_over(step.name, folder), job.handing_seconds)
    progress(Update("loading the model", 0, 0))
    request = job.request.only(step.subjects) if step.subjects else job.request
    carry_out_stages(request, _model(job), folder, [[step]], progress)
    exchange.hand_over(step.name, folder)


def _model(job: WorkerJob) -> Model:
    key = json.dumps(job.request.model.options() | {"source": job.request.model.source}, sort_keys=True)
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = load_for_run(job.request.model)
    return _LOADED[key]


@dataclass(slots=True)
class _Telling:
    """Progress that is told to the driver, and a chance to hand over what is new."""

    step: str
    tell: Tell
    hand_over: Callable[[], None]
    handing_seconds: float
    _told: float = 0.0
    _handed: float = field(default_factory=time.monotonic)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note):
            self.tell(None, [event])
        elif isinstance(event, Update):
            now = time.monotonic()
            if now - self._told >= _TELL or event.done == event.total:
                self._told = now
                self.tell(Worker(self.step, os.getpid(), event), [])
            if now - self._handed >= self.handing_seconds:
                self._handed = now
                self.hand_over()
