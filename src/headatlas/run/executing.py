"""Requests that somebody else carries out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from headatlas.atlas import Atlas, open_atlas
from headatlas.core import RequestError
from headatlas.model import EMBEDDED
from headatlas.run.fitter import Progress, Silence
from headatlas.run.steps import Plan

__all__ = ["Executor", "Request", "executed"]


@dataclass(frozen=True, slots=True)
class Request:
    """What a worker is to be called with: one of its calls, a model, how it is loaded (`load_model` options)
    if nothing else is said, and all that was asked."""

    call: str
    model: str
    load: Mapping[str, Any]
    asked: Mapping[str, Any]


class Executor(Protocol):
    """Carries out the units of a plan, wherever that is."""

    def carry_out(self, request: Request, plan: Plan, out: Path, progress: Progress) -> None: ...


def executed(
    executor: Executor,
    call: str,
    model: Any,
    load: Mapping[str, Any],
    asked: Mapping[str, Any],
    plan: Plan,
    out: str | Path | None,
    progress: Progress | None,
) -> Atlas:
    """The atlas, when all units are done. Paths are made ones that do not depend on where one stands."""
    if not isinstance(model, str | os.PathLike):
        raise RequestError("workers load the model themselves: with an executor give its name or its folder.")
    if out is None:
        raise RequestError("with an executor the atlas needs a folder (out).")
    if "tasks" in asked:
        asked = {**asked, "tasks": [replace(task, folder=task.folder.resolve()) for task in asked["tasks"]]}
    name = os.fspath(model)
    where = str(Path(name).resolve()) if name not in EMBEDDED and Path(name).exists() else name
    executor.carry_out(Request(call, where, load, asked), plan, Path(out), progress or Silence())
    return open_atlas(out)
