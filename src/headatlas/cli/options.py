"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Address",
    "AsJson",
    "Device",
    "DeviceMap",
    "Dtype",
    "Exchange",
    "ExecutorName",
    "Gpus",
    "ModelName",
    "Out",
    "Resume",
    "Revision",
    "TrustRemoteCode",
    "TrustTaskCode",
]

ModelName = Annotated[str, typer.Argument(help="Built-in name, hub name, model folder or GGUF file.")]
Dtype = Annotated[
    str,
    typer.Option(
        help="auto, fast, float32, bfloat16, float16, float64, int8, int4 (weights rounded by bitsandbytes)."
    ),
]
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
