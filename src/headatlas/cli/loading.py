"""A model loaded for a command, with a sign of life on a terminal."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from headatlas.core import ModelSourceError, RequestError, UnknownNameError

if TYPE_CHECKING:
    from headatlas import Atlas, Model, Ray
    from headatlas.task import Task

__all__ = ["executor_named", "introduced", "load_mapped", "load_shown", "task_or_name"]

EXECUTORS = ("local", "ray")


def load_shown(
    model: str,
    dtype: str,
    device: str | None,
    device_map: str | None,
    revision: str | None,
    trust_remote_code: bool,
) -> Model:
    """`load_model` with the options that the commands share."""
    from headatlas import load_model

    console = Console(stderr=True)
    with console.status(escape(f"loading {model} …")) if console.is_terminal else nullcontext():
        return load_model(
            model,
            dtype=dtype,
            device=device,
            device_map=device_map,
            revision=revision,
            trust_remote_code=trust_remote_code,
        )


def executor_named(
    name: str, address: str | None, exchange: str | None, gpus: int | None, **load: Any
) -> Ray | None:
    """Who is to do the work: None for this process. `load`: how the model is loaded."""
    if name not in EXECUTORS:
        raise UnknownNameError("executor", name, EXECUTORS)
    if name == "local":
        for option, value in (("--address", address), ("--exchange", exchange), ("--gpus", gpus)):
            if value is not None:
                raise RequestError(f"{option} is for --executor ray.")
        return None
    from headatlas.run import Ray, require_ray

    require_ray()
    return Ray(address, exchange, gpus, {key: value for key, value in load.items() if value is not None})


def task_or_name(name: str, trust_code: bool) -> Task | str:
    """A task of an atlas; a name that nothing has is for those who know the atlas to refuse."""
    from headatlas import load_task

    try:
        return load_task(name, trust_code=trust_code)
    except UnknownNameError:
        return name


def _rounded(model: Model) -> str | None:
    """The bits of weights that were rounded when they were loaded."""
    config: Any = getattr(model.hf.config, "quantization_config", None)
    for bits in (4, 8):
        if getattr(config, f"load_in_{bits}bit", False):
            return f"{bits} bits"
    return None if config is None else "few bits"


def load_mapped(
    atlas: Atlas,
    model: str | None,
    dtype: str,
    device: str | None,
    device_map: str | None,
    revision: str | None,
    trust_remote_code: bool,
) -> Model:
    """The model of an atlas: where its name says, or where the user does."""
    where = model or atlas.spec.name
    try:
        return load_shown(where, dtype, device, device_map, revision, trust_remote_code)
    except ModelSourceError as error:
        if model is not None:
            raise
        raise ModelSourceError(
            f"{error} The atlas calls its model {where!r}: --model says where it is."
        ) from None


def introduced(model: Model | str) -> str:
    """ "smollm2: 270 heads, float32 on cpu", with which a command begins; of a model that workers load its
    name."""
    if isinstance(model, str):
        return f"[bold]{escape(model)}[/]: on Ray"
    spec = model.spec
    rounded = _rounded(model)
    dtype = spec.dtype if rounded is None else f"weights in {rounded}, {spec.dtype}"
    return f"[bold]{escape(spec.name)}[/]: {len(spec):,} heads, {dtype} on {model.device.type}"
