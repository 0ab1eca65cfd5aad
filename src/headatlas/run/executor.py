"""Carries out requests: here, or through an executor on other machines.

The local executor and a worker call the same function with the same steps, so they compute the same numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from headatlas.atlas import Atlas, Store, open_atlas
from headatlas.core import (
    METRICS,
    AtlasError,
    Loaded,
    ModelRef,
    Progress,
    RequestError,
    check_tokenizer,
    metric_name,
    require_path,
    silent,
)
from headatlas.request.plan import Plan, Step

if TYPE_CHECKING:
    from headatlas.model import Model

__all__ = [
    "Executor",
    "Job",
    "LocalExecutor",
    "Request",
    "carry_out",
    "execute",
    "load_for_run",
    "local_executor",
]


class Request(Protocol):
    """A frozen value that says all that is asked; `job` names the class that carries it out."""

    kind: ClassVar[str]
    job: ClassVar[str]

    @property
    def model(self) -> ModelRef: ...

    def plan(self, atlas: Atlas | None = None) -> Plan: ...

    def only(self, subjects: Sequence[str]) -> Any: ...

    def to_json(self) -> dict[str, Any]: ...


class Job(Protocol):
    """Carries out steps of one kind of request with a loaded model."""

    def enter(self, store: Store) -> None:
        """Enter the runs; refused if finished results belong to another request."""

    def run(self, store: Store, steps: Sequence[Step]) -> None:
        """Carry out these steps of one stage."""


class Executor(Protocol):
    """Carries out the plan of a request into the atlas folder `out`, wherever that is."""

    def carry_out(self, request: Request, out: Path, progress: Progress) -> None: ...


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """This process. `model` is a model that is loaded already, a transformers model perhaps with its
    `tokenizer`; else the request says how to load it."""

    model: Any = None
    tokenizer: Any = None

    def carry_out(self, request: Request, out: Path, progress: Progress) -> None:
        with self._model_of(request) as model:
            progress(_loaded(model))
            atlas = open_atlas(out) if Store.exists(out) else None
            carry_out(request, model, out, request.plan(atlas).stages, progress)

    @contextmanager
    def _model_of(self, request: Request) -> Iterator[Model]:
        if self.model is not None or request.model.source is None:
            yield load_for_run(request.model if self.model is None else self.model, self.tokenizer)
            return
        check_tokenizer(request.model.source, self.tokenizer)
        from headatlas.model.idle_model import borrowed_model

        with borrowed_model(request.model.source, **request.model.options()) as model:
            yield model


def execute(
    request: Request,
    out: str | Path | None = None,
    *,
    resume: bool | Literal["auto"] = False,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Atlas:
    """Carry out a request and open the atlas that comes of it.

    With `out` everything is kept in that folder; an existing atlas needs `resume=True`, or "auto", which
    continues an atlas if there is one. Without it results are kept in memory only.
    """
    if resume not in (True, False, "auto"):
        raise RequestError(f"resume is {resume!r}; allowed: True, False, 'auto'.")
    executor = executor or LocalExecutor()
    if not isinstance(executor, LocalExecutor):
        if request.model.source is None:
            raise RequestError("workers load the model themselves; with an executor give its name or folder.")
        metric = getattr(getattr(request, "options", request), "metric", None)
        if callable(metric):
            raise RequestError(
                f"the metric {metric_name(metric)!r} is a Python function, which workers do not have; give "
                f"{', '.join(METRICS)}, or run it here, without an executor."
            )
        if out is None:
            raise RequestError("with an executor the atlas needs a folder (out).")
    with _destination(out, bool(resume)) as folder:
        executor.carry_out(request, folder, progress)
        atlas = open_atlas(folder)
    atlas.path = None if out is None else Path(out)
    return atlas


@contextmanager
def _destination(out: str | Path | None, resume: bool) -> Iterator[Path]:
    """The folder of the atlas; a temporary one without `out`. Refused before any model is loaded if it cannot
    be written, or holds an atlas and `resume` is not given."""
    if out is None:
        with TemporaryDirectory() as name:
            yield Path(name)
        return
    folder = require_path("out", out)
    if Store.exists(folder) and not resume:
        raise AtlasError(f"{folder} holds an atlas already; resume=True continues it.")
    Store.require_writable(folder)
    yield folder


def carry_out(
    request: Request, model: Model, out: Path, stages: Sequence[Sequence[Step]], progress: Progress
) -> None:
    """Carry out the steps of these stages that are not done. All files of an existing atlas are read first:
    damage shows now, not after hours."""
    module, _, name = request.job.partition(":")
    with model.measuring():
        job: Job = getattr(import_module(module), name)(request, model, progress)
        if Store.exists(out):
            open_atlas(out)
        with Store.writing(out, model.spec) as store:
            job.enter(store)
            for stage in stages:
                steps = [step for step in stage if not step.is_done(out)]
                if steps:
                    job.run(store, steps)


def load_for_run(model: Any, tokenizer: Any = None) -> Model:
    """A `Model` as it is; a transformers model with its `tokenizer`, by default that of its name; or the
    model that a `ModelRef` says how to load."""
    from headatlas.model import Model, as_model, load_model

    if isinstance(model, ModelRef):
        if model.source is not None and tokenizer is None:
            return load_model(model.source, **model.options())
        model = model.source
    model = as_model(model, tokenizer)
    if isinstance(model, Model):
        return model
    raise RequestError(
        f"{model!r:.60} is not a model; give a name, a folder, a file, what load_model returns, or a "
        "transformers model."
    )


def local_executor(model: Any, tokenizer: Any = None) -> LocalExecutor:
    """The executor for a model that is given to a function: loaded already, or by name (or None: the model of
    an atlas). A name brings its own tokenizer."""
    check_tokenizer(model, tokenizer)
    return LocalExecutor(None if isinstance(model, str | os.PathLike) else model, tokenizer)


def _loaded(model: Model) -> Loaded:
    config: Any = getattr(model.hf.config, "quantization_config", None)
    dtype = model.spec.dtype
    if config is not None:
        bits = next((bits for bits in (4, 8) if getattr(config, f"load_in_{bits}bit", False)), "few")
        dtype = f"weights in {bits} bits, {dtype}"
    return Loaded(model.spec.name, len(model.spec), dtype, model.device.type)
