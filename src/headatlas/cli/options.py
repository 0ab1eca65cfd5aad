"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
import yaml

from headatlas.core import (
    ModelSourceError,
    RequestError,
    UnknownNameError,
    require_device,
    require_dtype_name,
)

if TYPE_CHECKING:
    from headatlas import Ray

__all__ = [
    "AsJson",
    "ExecutorFlags",
    "ExtensionOption",
    "LoadFlags",
    "MappedModel",
    "ModelName",
    "Out",
    "Resume",
    "TrustTaskCode",
    "options_of",
    "recalling_model",
    "require_given",
    "with_flags",
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
ExtensionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option", help="NAME=VALUE: an extra option of the method, figure or format (repeatable)."
    ),
]
TrustTaskCode = Annotated[
    bool, typer.Option("--trust-task-code", help="Run the generator that a task's YAML names.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Out = Annotated[str, typer.Option("--out", "-o", help="Folder of the atlas.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the atlas in --out, or add to it.")]


@dataclass(frozen=True)
class LoadFlags:
    """How a model is loaded."""

    dtype: Annotated[
        str | None,
        typer.Option(
            help="auto, fast, float32, bfloat16, float16, float64, int8, int4 (rounded by bitsandbytes). "
            "Default: fast to fit gates, that of the gates to validate them, else auto."
        ),
    ] = None
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, … (default: the best there is).")] = (
        None
    )
    device_map: Annotated[str | None, typer.Option(help="'auto' spreads a large model over devices.")] = None
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run the model's own code.")
    ] = False

    def given(self) -> dict[str, Any]:
        """What `load_model` takes; flags that were not given are absent."""
        if self.dtype is not None:
            require_dtype_name(self.dtype)
        if self.device is not None:
            require_device(self.device)
        return {name: value for name, value in asdict(self).items() if value not in (None, False)}


@dataclass(frozen=True)
class ExecutorFlags:
    """Who does the work."""

    executor: Annotated[str, typer.Option(help="local, or ray: on many machines.")] = "local"
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster (default: RAY_ADDRESS, else one of this machine).")
    ] = None
    exchange: Annotated[
        str | None,
        typer.Option(help="Folder or URL (s3://…) that all Ray workers reach (default: parts in --out)."),
    ] = None
    gpus: Annotated[int | None, typer.Option(help="GPUs of a Ray worker (default: 1 if there are any).")] = (
        None
    )

    def build(self) -> Ray | None:
        """None: this process."""
        if self.executor not in ("local", "ray"):
            raise UnknownNameError("executor", self.executor, ("local", "ray"))
        if self.executor == "ray":
            from headatlas import Ray

            return Ray(self.address, self.exchange, self.gpus)
        for name in ("address", "exchange", "gpus"):
            if getattr(self, name) is not None:
                raise RequestError(f"--{name} is for --executor ray.")
        return None


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a group of flags replaced by the flags of the group."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Any]] = {
        each.name: each.annotation
        for each in signature.parameters.values()
        if isinstance(each.annotation, type) and is_dataclass(each.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if each.name not in groups:
            parameters.append(each)
            continue
        hints = get_type_hints(groups[each.name], include_extras=True)
        parameters += [
            each.replace(name=flag.name, default=flag.default, annotation=hints[flag.name])
            for flag in fields(groups[each.name])
        ]

    def spread(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{flag.name: given.pop(flag.name) for flag in fields(group)})
        command(**given)

    spread.__doc__, spread.__name__ = command.__doc__, command.__name__
    spread.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return spread


def options_of(given: Sequence[str] | None) -> dict[str, Any]:
    """`--option name=value` as values: numbers and yes or no as YAML reads them."""
    options: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise RequestError(f"--option {text!r} is not NAME=VALUE.")
        if name in options:
            raise RequestError(f"--option {name} is given more than once; give each option once.")
        try:
            options[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            options[name] = value
    return options


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
