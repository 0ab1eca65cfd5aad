"""`headatlas map MODEL --task T`: which heads does this model need for a task, which hurt it?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.effects import show_effects
from headatlas.cli.loading import executor_named, introduced, load_shown
from headatlas.cli.options import (
    Address,
    AsJson,
    Device,
    DeviceMap,
    Dtype,
    Exchange,
    ExecutorName,
    Gpus,
    ModelName,
    Out,
    Resume,
    Revision,
    TrustRemoteCode,
    TrustTaskCode,
)
from headatlas.cli.progress import ShownProgress, counted
from headatlas.core import METHODS, method_named

if TYPE_CHECKING:
    from headatlas import Model, Ray, Task
    from headatlas.atlas import Interval, Summary

__all__ = ["map_", "show_map", "show_summary"]


def map_(
    model: ModelName,
    task: Annotated[
        list[str], typer.Option("--task", "-t", help="Built-in name, YAML, JSONL, CSV or Parquet file, hub:…")
    ],
    method: Annotated[
        str, typer.Option(help=f"{', '.join(METHODS)}; ablate is ablate-zero, attribute attribute-gradient.")
    ] = "gating",
    preset: Annotated[str, typer.Option(help="quick (minutes on a CPU) or paper (as published).")] = "quick",
    seeds: Annotated[int | None, typer.Option(help="Random starts; the preset's if not given.")] = None,
    updates: Annotated[int | None, typer.Option(help="Updates per stage.")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows per update and gate set.")] = None,
    objective: Annotated[str | None, typer.Option(help="bounded or paper.")] = None,
    items: Annotated[int | None, typer.Option(help="Items for methods other than gating (32).")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longer rows are left out (default 512).")] = None,
    out: Out = "atlas",
    resume: Resume = False,
    dtype: Dtype = "fast",
    device: Device = None,
    device_map: DeviceMap = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    trust_task_code: TrustTaskCode = False,
    executor: ExecutorName = "local",
    address: Address = None,
    exchange: Exchange = None,
    gpus: Gpus = None,
    as_json: AsJson = False,
) -> None:
    """Learn gates on all heads for each task: which heads facilitate, interfere or do not matter. Other
    methods: what each head alone does to the loss."""
    from headatlas import load_task
    from headatlas.method import resolve
    from headatlas.run import distinct_tasks, require_numbers, require_settings, require_sound

    method = method_named(method)
    asked: dict[str, Any] = {"seeds": seeds, "updates": updates, "batch": batch, "objective": objective}
    require_settings(method, preset, items, updates=updates, batch=batch, objective=objective)
    resolve(preset, **asked)
    if method != "gating":
        require_numbers(1 if seeds is None else seeds, 1 if items is None else items)
    tasks = distinct_tasks([load_task(name, trust_code=trust_task_code) for name in task])
    require_sound(tasks, max_tokens, out, resume)
    load: dict[str, Any] = {"dtype": dtype, "device": device, "device_map": device_map}
    load |= {"revision": revision, "trust_remote_code": trust_remote_code}
    other = executor_named(executor, address, exchange, gpus, **load)
    loaded = model if other else load_shown(model, **load)
    if method == "gating":
        show_map(
            loaded,
            tasks,
            out,
            resume=resume,
            preset=preset,
            max_tokens=max_tokens,
            as_json=as_json,
            executor=other,
            **asked,
        )
    else:
        given = {"seeds": seeds, "items": items, "max_tokens": max_tokens}
        show_effects(loaded, tasks, method, out, resume=resume, as_json=as_json, executor=other, **given)
    if not as_json:
        console = Console(soft_wrap=True, highlight=False)
        kind = "" if method == "gating" else " --kind effects"
        console.print(f"[dim]atlas in {escape(out)}; 'headatlas plot {escape(out)}{kind}' draws the map[/]")


def show_map(
    loaded: Model | str,
    tasks: Sequence[Task],
    out: str,
    *,
    resume: bool,
    preset: str = "quick",
    max_tokens: int | None = None,
    as_json: bool = False,
    goes_on: str = "the same command with --resume",
    executor: Ray | None = None,
    **asked: Any,
) -> None:
    """Fit with a bar, then say what came out; `asked` changes the preset."""
    from headatlas import map_heads
    from headatlas.method import resolve

    settings = resolve(preset, **asked)
    console = Console(soft_wrap=True, highlight=False)
    if not as_json:
        console.print(
            f"{introduced(loaded)}; "
            f"preset {preset}: objective {settings.objective}, {settings.free.updates} + "
            f"{settings.pressed.updates} updates, "
            f"{f'batch {settings.batch}, ' if settings.batch else ''}{counted(settings.seeds, 'seed')}"
        )
    with ShownProgress(as_json, goes_on, [one.name for one in tasks]) as progress:
        given = {"preset": preset, "max_tokens": max_tokens, "executor": executor, **asked}
        atlas = map_heads(loaded, tasks, out=out, resume=resume, progress=progress, **given)
    summaries = [atlas.summary(one.name) for one in tasks]
    if as_json:
        typer.echo(json.dumps({"atlas": out, "tasks": [summary.to_json() for summary in summaries]}))
        return
    for summary in summaries:
        show_summary(console, summary, atlas.run(summary.task).settings["resolved"]["batch"])


def show_summary(console: Console, summary: Summary, batch: int) -> None:
    """A task in a few lines; `batch` rows were asked at each update."""
    from headatlas.atlas import doubts_of

    def pair(shares: dict[str, float]) -> str:
        return f"{100 * shares['facilitating']:5.1f} / {100 * shares['interfering']:4.1f} %"

    def each(role: str) -> str:
        found: Interval = summary.per_seed[role]
        return f"{100 * found.mean:.1f} % {role} [{100 * found.low:.1f}–{100 * found.high:.1f}]"

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    console.print(
        f"\n[bold]{escape(summary.task)}[/], {counted(summary.seeds, 'seed')}, batch {batch}, "
        f"threshold {summary.threshold:g}"
    )
    console.print(f"  Always   {pair(summary.always)}  of heads facilitating / interfering in every seed")
    console.print(f"  Any      {pair(summary.any)}  in at least one seed")
    console.print(f"  per seed {each('facilitating')}, {each('interfering')},")
    console.print(
        f"           {each('irrelevant')}, {100 * summary.anomalies:.1f} % anomalies, "
        f"{100 * summary.unclear:.1f} % unclear"
    )
    correlation = summary.correlation
    console.print(
        f"  seeds    correlate {number(correlation['facilitation'])} in facilitation, "
        f"{number(correlation['interference'])} in interference"
    )
    words = (
        ("  held out NLL {:.2f} ungated, {:.2f} with G+, {:.2f} with G−", summary.nll),
        ("           accuracy {:.2f}, {:.2f}, {:.2f} on whole targets", summary.accuracy),
        ("           accuracy {:.2f}, {:.2f}, {:.2f} on their tokens", summary.token_accuracy),
    )
    for text, figures in words:
        if {"baseline", "retain", "remove"} <= figures.keys():
            console.print(text.format(figures["baseline"], figures["retain"], figures["remove"]))
    if summary.held_out is not None:
        console.print(f"           ({counted(summary.held_out, 'item')})")
    for doubt in doubts_of(summary):
        console.print(f"  [yellow]note:[/]    {escape(doubt)}")
