"""Units of a plan on a Ray cluster, one that is there or one of this machine.

The driver holds the atlas and no model. Workers leave what they make at the exchange; when a unit is done
the driver takes it over. A worker that is killed takes nothing with it but the time since it last handed
something over: its unit goes to another one. A driver that is killed goes on when it is called again.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headatlas import core
from headatlas.atlas import Store, gathering, put_in_order
from headatlas.core import FitError, HeadatlasError, RequestError, StoreError
from headatlas.run.exchange import Exchange
from headatlas.run.executing import Request
from headatlas.run.fitting import Progress
from headatlas.run.steps import Plan, Seen, Unit

__all__ = ["Ray", "require_ray"]

#: how often a unit may lose its worker
_LOST = 20
#: seconds between two looks
_LOOK = 0.5
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
    `gpus` of a worker (default: one, if the cluster has any), and how workers load the model (`load`: what
    `load_model` takes)."""

    address: str | None = None
    exchange: str | None = None
    gpus: float | None = None
    load: Mapping[str, Any] = field(default_factory=dict)
    checkpoint_seconds: float = 30.0

    def carry_out(self, request: Request, plan: Plan, out: Path, progress: Progress) -> None:
        """See to it that all that was planned is in the atlas folder `out`."""
        ray = require_ray()
        exchange = Exchange(self.exchange or str(out.resolve() / "parts"))
        with gathering(out) as take, self._cluster(ray):
            resources = self._resources(ray)
            submit = self._submitter(ray, request, str(out), exchange, resources)
            for stage in plan.stages:
                if Store.exists(out):
                    exchange.publish(out)
                # what is there was made with the same settings: the first unit of a stage sees to that
                units = [unit for unit in stage if not unit.is_done(out)] or list(stage[:1])
                self._stage(ray, units, submit, exchange, take, progress)
            put_in_order(out, plan.runs)
            for path in plan.passing:
                (out / path).unlink(missing_ok=True)
            exchange.clear()

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
            said = str(error).splitlines() or [type(error).__name__]
            raise RequestError(f"no Ray cluster at {where or 'this machine'}: {said[0]}") from None
        try:
            yield
        finally:
            ray.shutdown()

    def _resources(self, ray: Any) -> dict[str, float]:
        """What one worker takes."""
        import torch

        there = ray.cluster_resources()
        gpus = self.gpus
        if gpus is None:
            gpus = 1.0 if there.get("GPU") and self.load.get("device") != "cpu" else 0.0
        # as many threads as here: how numbers are added up depends on it
        need = {"num_cpus": 1.0 if gpus else float(torch.get_num_threads()), "num_gpus": float(gpus)}
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        for key, name in (("num_cpus", "CPU"), ("num_gpus", "GPU")):
            most = max((node.get(name, 0.0) for node in nodes), default=0.0)
            if need[key] > most:
                fix = "--gpus takes fewer" if name == "GPU" else "set OMP_NUM_THREADS to fewer"
                raise RequestError(
                    f"a worker takes {need[key]:g} {name}s, and no machine of the cluster has more than "
                    f"{most:g}; {fix}."
                )
        return need

    def _submitter(
        self, ray: Any, request: Request, out: str, exchange: Exchange, resources: dict[str, float]
    ) -> Callable[[Unit, Any], Any]:
        import torch

        from headatlas.run.working import Job, carry_out

        load = {"dtype": request.dtype, **self.load}
        job = Job(request, out, load, exchange.place, torch.get_num_threads(), self.checkpoint_seconds)

        def work(job: Job, unit: Unit, board: Any) -> dict[str, Any]:
            def tell(seen: Seen, notes: list[str]) -> None:
                board.tell.remote(seen, notes)

            return carry_out(job, unit, tell)

        remote = ray.remote(**resources, max_retries=0)(work)  # what is lost is given out again here
        return lambda unit, board: remote.remote(job, unit, board)

    def _stage(
        self,
        ray: Any,
        units: Sequence[Unit],
        submit: Callable[[Unit, Any], Any],
        exchange: Exchange,
        take: Callable[[Path], None],
        progress: Progress,
    ) -> None:
        board = ray.remote(num_cpus=0, max_restarts=-1)(_Board).remote()
        at_work = {submit(unit, board): unit for unit in units}
        lost = dict.fromkeys((unit.name for unit in units), 0)
        try:
            while at_work:
                ready, _ = ray.wait(list(at_work), timeout=_LOOK)
                self._look(ray, board, [unit.name for unit in at_work.values()], len(units), progress)
                for one in ready:
                    unit = at_work.pop(one)
                    try:
                        found = ray.get(one)
                    except ray.exceptions.RayTaskError as error:  # ours, not the cluster's
                        raise FitError(f"{unit.name}: a worker failed: {_last_line(error)}") from error
                    except ray.exceptions.RayError as error:
                        lost[unit.name] += 1
                        if lost[unit.name] > _LOST:
                            raise FitError(
                                f"{unit.name}: its worker was lost {_LOST + 1} times ({_last_line(error)}). "
                                "What is finished is safe; --resume goes on."
                            ) from error
                        progress.note(f"{unit.name}: its worker was lost; it goes on elsewhere")
                        at_work[submit(unit, board)] = unit
                        continue
                    if "error" in found:
                        raise _error(found)
                    _take_over(unit, exchange, take)
            self._look(ray, board, [], len(units), progress)
        finally:
            for one in at_work:
                ray.cancel(one, force=True)

    def _look(self, ray: Any, board: Any, at_work: Sequence[str], total: int, progress: Progress) -> None:
        try:
            seen, notes = ray.get(board.read.remote(), timeout=10 * _LOOK)
        except ray.exceptions.RayError:  # only what it shows is lost
            return
        for text in notes:
            progress.note(text)
        progress.units([one for one in seen if one.unit in at_work], total - len(at_work), total)


class _Board:
    """What all workers are at. Lives in a process of its own."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._notes: dict[str, bool] = {}

    def tell(self, seen: Seen, notes: list[str]) -> None:
        self._seen[seen.unit] = seen
        for text in notes:
            self._notes.setdefault(text, True)

    def read(self) -> tuple[list[Seen], list[str]]:
        """What units are at, and the notes that nobody has read."""
        new = [text for text, is_new in self._notes.items() if is_new]
        self._notes = dict.fromkeys(self._notes, False)
        return list(self._seen.values()), new


def _take_over(unit: Unit, exchange: Exchange, take: Callable[[Path], None]) -> None:
    with TemporaryDirectory(prefix="headatlas-") as name:
        exchange.fetch(unit.name, Path(name))
        if not Store.exists(Path(name)):
            raise StoreError(
                f"{unit.name} is done, and nothing of it is at {exchange.place}: --exchange is to be a "
                "folder or a URL that driver and workers reach."
            )
        take(Path(name))


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
