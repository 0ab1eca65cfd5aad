"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from headatlas.core import ModelSourceError, RequestError, UnknownNameError

if TYPE_CHECKING:
    from headatlas import Ray

__all__ = [
    "DTYPE",
    "Address",
    "AsJson",
    "Device",
    "DeviceMap",
    "Dtype",
    "Exchange",
    "ExecutorName",
    "Gpus",
    "MappedModel",
    "MethodOption",
    "ModelName",
    "Out",
    "Resume",
    "Revision",
    "TrustRemoteCode",
    "TrustTaskCode",
    "executor_of",
    "load_options",
    "options_of",
    "recalling_model",
    "require_given",
]

ModelName = Annotated[str, typer.Argument(help="Built-in name, hub name, model folder or GGUF file.")]
MappedModel = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        show_default=False,
        help="Built-in name, hub name, model folder or GGUF file; with --resume default: that of the atlas.",
    ),
]
MethodOption = Annotated[
    list[str] | None,
    typer.Option("--option", help="NAME=VALUE: an option of a plugin's method or format (repeatable)."),
]
DTYPE = typer.Option(
    help="auto, fast, float32, bfloat16, float16, float64, int8, int4 (weights rounded by bitsandbytes)."
)
Dtype = Annotated[str, DTYPE]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, … (default: the best there is).")]
DeviceMap = Annotated[str | None, typer.Option(help="'auto' spreads a large model over devices.")]
Revision = Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")]
TrustRemoteCode = Annotated[bool, typer.Option("--trust-remote-code", help="Run the model's own code.")]
TrustTaskCode = Annotated[
    bool, typer.Option("--trust-task-code", help="Run the generator that a task's YAML names.")
]
ExecutorName = Annotated[str, typer.Option("--executor", help="local, or ray: on many machines.")]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster (default: RAY_ADDRESS, else one of this machine).")
]
Exchange = Annotated[
    str | None,
    typer.Option(help="Folder or URL (s3://…) that all Ray workers reach (default: parts in --out)."),
]
Gpus = Annotated[int | None, typer.Option(help="GPUs of a Ray worker (default: 1 if there are any).")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Out = Annotated[str, typer.Option("--out", "-o", help="Folder of the atlas.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the atlas in --out, or add to it.")]

EXECUTORS = ("local", "ray")


def options_of(given: Sequence[str] | None) -> dict[str, Any]:
    """`--option name=value` as values: numbers and yes or no as YAML reads them."""
    options = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise RequestError(f"--option {text!r} is not NAME=VALUE.")
        try:
            options[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            options[name] = value
    return options


def executor_of(name: str, address: str | None, exchange: str | None, gpus: int | None) -> Ray | None:
    """Who does the work; None: this process."""
    if name not in EXECUTORS:
        raise UnknownNameError("executor", name, EXECUTORS)
    if name == "local":
        for option, value in (("--address", address), ("--exchange", exchange), ("--gpus", gpus)):
            if value is not None:
                raise RequestError(f"{option} is for --executor ray.")
        return None
    from headatlas import Ray

    return Ray(address, exchange, gpus)


def load_options(
    dtype: str | None, device: str | None, device_map: str | None, revision: str | None, trust: bool
) -> dict[str, Any]:
    """How a model is loaded; what was not given is absent."""
    given = {"dtype": dtype, "device": device, "device_map": device_map, "revision": revision}
    return {name: value for name, value in given.items() if value is not None} | (
        {"trust_remote_code": True} if trust else {}
    )


@contextmanager
def recalling_model(model: str | None, recorded: str | None, how: str) -> Iterator[None]:
    """If no `model` is given and the one that the atlas remembers is gone, say `how` to give it."""
    try:
        yield
    except ModelSourceError as error:
        if model is not None:
            raise
        raise ModelSourceError(
            f"{error} The atlas calls its model {recorded!r}; {how} says where it is."
        ) from None


def require_given(model: str | None, task: Sequence[str] | None) -> None:
    """The model and a task are needed unless an atlas is continued that remembers them."""
    if model is None:
        raise RequestError("give a model; only an atlas that is continued (--resume) remembers its model.")
    if not task:
        raise RequestError("give a task (--task); only an atlas that is continued (--resume) remembers them.")
