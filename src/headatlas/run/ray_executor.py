"""Steps of a plan on a Ray cluster, one that is there or one of this machine.

The driver holds the atlas and no model. Workers leave what they make at the exchange; when a step is done
the driver takes it over. A worker that is killed takes nothing with it but the time since it last handed
something over: its step goes to another one. A driver that is killed goes on when it is called again.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headatlas import core
from headatlas.atlas import Store, gathering, open_atlas, put_in_order
from headatlas.core import (
    FitError,
    HeadatlasError,
    ModelRef,
    Note,
    Progress,
    RequestError,
    Worker,
    Workers,
    first_line,
    write_whole,
)
from headatlas.request.origin import model_ref
from headatlas.request.plan import Step
from headatlas.run.exchange import Exchange

if TYPE_CHECKING:
    from headatlas.run.ray_worker import WorkerJob

__all__ = ["Ray", "require_ray"]

#: in the atlas folder while its work is handed out
_NAME = "exchange.id"

#: how often a step may lose its worker
_LOST = 20
#: seconds between two looks
_LOOK = 0.5
#: … while workers are started
_START = 0.1
#: seconds in which a cluster is to answer
_CONNECT = 10.0


def require_ray() -> Any:
    """The package, or a sentence."""
    try:
        import ray
    except ImportError:
        raise RequestError(
            "the executor 'ray' needs the package ray (extra 'ray'): pip install 'headatlas[ray]'."
        ) from None
    return ray


@dataclass(frozen=True)
class Ray:
    """Where and how: `address` of a cluster (of the environment's, else one of this machine is started),
    `exchange`, a folder or fsspec URL that driver and workers reach (default: `parts` in the atlas folder),
    `gpus` of a worker (default: one if the cluster has any, all of a machine with a `device_map`), and how
    workers load the model (`load`: what `load_model` takes). They hand over what they have every
    `handing_seconds`."""

    address: str | None = None
    exchange: str | None = None
    gpus: int | None = None
    load: Mapping[str, Any] = field(default_factory=dict)
    handing_seconds: float = 30.0

    def __post_init__(self) -> None:
        require_ray()

    def carry_out(self, request: Any, out: Path, progress: Progress) -> None:
        """Carry out the plan of a request into the atlas folder `out`."""
        ray = require_ray()
        if self.gpus is not None and self.gpus != int(self.gpus):
            raise RequestError("a worker takes whole GPUs: shared ones would change the numbers.")
        model = self._model(request.model)
        request = replace(request, model=model)
        plan = request.plan(open_atlas(out) if Store.exists(out) else None)
        place = self.exchange or str(out.resolve() / "parts")
        place = place if "://" in place or "::" in place else str(Path(place).resolve())
        with gathering(out) as take, self._cluster(ray):
            with _named(place, out) as exchange, self._pool(ray, request, out, exchange) as pool:
                for stage in plan.stages:
                    exchange.publish(out)
                    _stage(pool, plan.to_check(stage, out), exchange, take, out, progress)
            put_in_order(out, plan.runs)
            for path in plan.temporary:
                (out / path).unlink(missing_ok=True)

    @contextmanager
    def _cluster(self, ray: Any) -> Iterator[None]:
        if ray.is_initialized():  # the user's own
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        where = self.address or os.environ.get("RAY_ADDRESS")
        try:
            if where:
                _require_listening(where)
                ray.init(address=where, **quiet)
            else:
                ray.init(address="local", include_dashboard=False, object_store_memory=100_000_000, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            raise RequestError(f"no Ray cluster at {where or 'this machine'}: {first_line(error)}") from None
        try:
            yield
        finally:
            ray.shutdown()

    def _model(self, ref: ModelRef) -> ModelRef:
        """How workers load the model: as the request says, changed by `load`."""
        return model_ref(ref.source, **{**ref.options(), **self.load})

    def _pool(self, ray: Any, request: Any, out: Path, exchange: Exchange) -> _Pool:
        import torch

        from headatlas.run.ray_worker import WorkerJob

        # as many threads as here: how numbers are added up depends on it
        threads = torch.get_num_threads()
        job = WorkerJob(request, str(out), exchange.place, exchange.name, threads, self.handing_seconds)
        most = max((node.get("GPU", 0.0) for node in _machines(ray)), default=0.0)
        gpus = self.gpus
        if gpus is None and request.model.device == "cpu":
            gpus = 0
        if gpus is None:
            gpus = int(most) if request.model.device_map else int(most > 0)
        pool = _Pool(ray, job, {"CPU": 1.0 if gpus else float(threads), "GPU": float(gpus)})
        for name, need in pool.needs.items():
            most = max((node.get(name, 0.0) for node in _machines(ray)), default=0.0)
            if need > most:
                fix = "gpus=… takes fewer" if name == "GPU" else "set OMP_NUM_THREADS to fewer"
                raise RequestError(
                    f"a worker takes {need:g} {name}s, and no machine of the cluster has more than "
                    f"{most:g}; {fix}."
                )
        return pool


def _machines(ray: Any) -> list[dict[str, float]]:
    """What each machine of the cluster has."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


class _Pool:
    """Workers, as many as the machines of the cluster hold; each has the model and takes one step after the
    other."""

    def __init__(self, ray: Any, job: WorkerJob, needs: dict[str, float]) -> None:
        self.ray, self.job, self.needs = ray, job, needs
        self.board = ray.remote(num_cpus=0, max_restarts=-1)(_Board).remote()
        self._kind = ray.remote(num_cpus=needs["CPU"], num_gpus=needs["GPU"])(_Worker)
        self._starting: dict[Any, Any] = {}
        self._idle: list[Any] = []
        self._busy: list[Any] = []

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in [*self._starting.values(), *self._idle, *self._busy]:
            self.ray.kill(worker)

    def room(self) -> int:
        """How many workers the machines that are there now would hold."""
        return sum(
            int(min(node.get(name, 0.0) // need for name, need in self.needs.items() if need))
            for node in _machines(self.ray)
        )

    def submit(self, steps: deque[Step]) -> Iterator[tuple[Any, Step, Any]]:
        """Steps go to idle workers; as many workers are started as there is room and work for."""
        starting = list(self._starting)
        ready = self.ray.wait(starting, num_returns=len(starting), timeout=0)[0] if starting else []
        for one in ready:
            worker = self._starting.pop(one)
            with suppress(self.ray.exceptions.RayError):  # gone before it began
                self.ray.get(one)
                self._idle.append(worker)
        there = len(self._starting) + len(self._idle) + len(self._busy)
        waiting = len(steps) - len(self._starting) - len(self._idle)
        for _ in range(min(self.room() - there, waiting)):
            worker = self._kind.remote()
            self._starting[worker.ready.remote()] = worker
        while steps and self._idle:
            step, worker = steps.popleft(), self._idle.pop()
            self._busy.append(worker)
            yield worker.carry_out.remote(self.job, step, self.board), step, worker

    def give_back(self, worker: Any, alive: bool = True) -> None:
        self._busy.remove(worker)
        if alive:
            self._idle.append(worker)


def _stage(
    pool: _Pool,
    steps: Sequence[Step],
    exchange: Exchange,
    take: Callable[[Path], None],
    out: Path,
    progress: Progress,
) -> None:
    ray, waiting = pool.ray, deque(steps)
    at_work: dict[Any, tuple[Step, Any]] = {}
    lost = dict.fromkeys((step.name for step in steps), 0)
    said = False

    def again(step: Step, why: str) -> None:
        lost[step.name] += 1
        if lost[step.name] > _LOST:
            raise FitError(
                f"{step.name}: lost {_LOST + 1} times ({why}). What is finished is safe; resume=True goes on."
            )
        progress(Note(f"{step.name}: {why}; another worker continues it"))
        waiting.append(step)

    while waiting or at_work:
        at_work |= {one: (step, worker) for one, step, worker in pool.submit(waiting)}
        if not at_work:
            if not said and not pool.room():
                said = True
                progress(Note("no machine of the cluster has room for a worker; waiting for one"))
            time.sleep(_START)
            continue
        ready, _ = ray.wait(list(at_work), timeout=_LOOK)
        _look(pool, [step.name for step, _ in at_work.values()], len(waiting), len(steps), progress)
        for one in ready:
            step, worker = at_work.pop(one)
            try:
                found = ray.get(one)
            except ray.exceptions.RayTaskError as error:  # ours, not the cluster's
                raise FitError(f"{step.name}: a worker failed: {_last_line(error)}") from error
            except ray.exceptions.RayError:
                pool.give_back(worker, alive=False)
                again(step, "its worker was lost")
                continue
            pool.give_back(worker)
            if "error" in found:
                raise _error(found)
            if not _take_over(step, exchange, take, out):
                again(step, f"what it made did not arrive whole at {exchange.place}")
    _look(pool, [], 0, len(steps), progress)


def _look(pool: _Pool, at_work: Sequence[str], waiting: int, total: int, progress: Progress) -> None:
    try:
        seen, notes = pool.ray.get(pool.board.read.remote(), timeout=10 * _LOOK)
    except pool.ray.exceptions.RayError:  # only what it shows is lost
        return
    for note in notes:
        progress(note)
    running = tuple(worker for worker in seen if worker.step in at_work)
    progress(Workers(running, total - len(at_work) - waiting, total))


class _Worker:
    """A process of its own, with its GPUs, from the first step to the last."""

    def ready(self) -> None: ...

    def carry_out(self, job: WorkerJob, step: Step, board: Any) -> dict[str, Any]:
        from headatlas.run.ray_worker import carry_out

        def tell(worker: Worker | None, notes: list[Note]) -> None:
            board.tell.remote(worker, notes)

        return carry_out(job, step, tell)


class _Board:
    """What all workers are at. Lives in a process of its own."""

    def __init__(self) -> None:
        self._seen: dict[str, Worker] = {}
        self._notes: dict[Note, bool] = {}

    def tell(self, worker: Worker | None, notes: list[Note]) -> None:
        if worker is not None:
            self._seen[worker.step] = worker
        for note in notes:
            self._notes.setdefault(note, True)

    def read(self) -> tuple[list[Worker], list[Note]]:
        """What steps are at, and the notes that nobody has read."""
        new = [note for note, is_new in self._notes.items() if is_new]
        self._notes = dict.fromkeys(self._notes, False)
        return list(self._seen.values()), new


def _take_over(step: Step, exchange: Exchange, take: Callable[[Path], None], out: Path) -> bool:
    """Is all that the step was to make in the atlas now?"""
    with TemporaryDirectory(prefix="headatlas-") as name:
        if not exchange.fetch(step.name, Path(name)):
            return False
        take(Path(name))
    return not step.makes or step.is_made(out)


@contextmanager
def _named(place: str, out: Path) -> Iterator[Exchange]:
    """The exchange under a name that it keeps until all is done, also when the work is resumed."""
    path, name = out / _NAME, ""
    with suppress(FileNotFoundError):
        name = path.read_text(encoding="utf-8", errors="replace")
    exchange = Exchange(place, name if re.fullmatch("[0-9a-f]{32}", name) else uuid4().hex)
    write_whole(path, exchange.name)
    done = False
    try:
        yield exchange
        done = True
    finally:
        if done or not (
            Store.exists(out) or exchange.has_parts()
        ):  # otherwise there is something to go on with
            path.unlink(missing_ok=True)
            exchange.clear()


def _require_listening(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT).close()


def _error(found: Mapping[str, str]) -> HeadatlasError:
    """The error of a worker, of its kind where that is made of a sentence alone."""
    kind = getattr(core, found["error"], HeadatlasError)
    made: HeadatlasError = (RequestError if kind is core.UnknownNameError else kind)(found["text"])
    return made


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
