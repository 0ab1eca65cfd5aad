"""`headatlas map MODEL --task T`: which heads does this model need for a task, which hurt it?"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

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
from headatlas.cli.progress import ShownProgress, counted, saved_in
from headatlas.core import EFFECT_METHODS, METHODS, method_named

if TYPE_CHECKING:
    from headatlas import Model, Ray, Task
    from headatlas.atlas import Doubt, EffectSummary, Interval, Summary

__all__ = ["map_", "show_doubts", "show_effects", "show_held_out", "show_map", "show_summary"]

#: heads that are named on each side
_NAMED = 6
#: what `whole` is
_WHOLE = {
    "ablate": "all heads replaced at once",
    "attribute": "all heads shut",
    "mediate": "what the corruption costs",
}


def map_(
    model: ModelName,
    task: Annotated[
        list[str],
        typer.Option(
            "--task",
            "-t",
            help="Built-in name, YAML, JSONL, CSV or Parquet file, hub:…; files and hub: name their columns "
            "like this: my.csv?prompt=question&target=answer&group=kind.",
        ),
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
        command = escape(f"headatlas plot {shlex.quote(out)}{kind}")
        console.print(f"[dim]atlas in {escape(out)}; '{command}' draws the map[/]")


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
    with ShownProgress(as_json, goes_on, [one.name for one in tasks], saved_in(out, executor)) as progress:
        given = {"preset": preset, "max_tokens": max_tokens, "executor": executor, **asked}
        atlas = map_heads(loaded, tasks, out=out, resume=resume, progress=progress, **given)
    summaries = [atlas.summary(one.name) for one in tasks]
    doubtful = {one.name: atlas.doubts(one.name) for one in tasks}
    if as_json:
        shown = [
            {**summary.to_json(), "doubts": [doubt.to_json() for doubt in doubtful[summary.task]]}
            for summary in summaries
        ]
        typer.echo(json.dumps({"atlas": out, "tasks": shown}))
        return
    for summary in summaries:
        show_summary(console, summary, atlas.run(summary.task).settings["resolved"]["batch"])
    show_doubts(console, doubtful)


def show_doubts(console: Console, doubtful: Mapping[str, Sequence[Doubt]]) -> None:
    """One warning for all results of a command: name -> its doubts."""
    if not any(doubtful.values()):
        return
    console.print("\n[bold yellow]Warning:[/] these results are doubtful")
    for name, some in doubtful.items():
        for doubt in some:
            console.print(f"  {escape(name)}: {escape(doubt.text)}")


def show_summary(console: Console, summary: Summary, batch: int) -> None:
    """A task in a few lines; `batch` rows were asked at each update."""

    def pair(shares: dict[str, float]) -> str:
        return f"{100 * shares['facilitating']:5.1f} / {100 * shares['interfering']:4.1f} %"

    def each(role: str) -> str:
        found: Interval = summary.per_seed[role]
        return f"{100 * found.mean:.1f} % {role}{found.brackets('.1f', 100)}"

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
    show_held_out(console, summary)


def show_held_out(console: Console, summary: Summary) -> None:
    """The figures on held-out items of new groups, then on held-out items of groups that were fitted on."""
    known = summary.known
    grouped = bool(known)
    items = "" if summary.held_out is None else counted(summary.held_out, "item")
    if grouped and summary.groups == summary.held_out:
        items += ", each of another group that no gate was fitted on"
    elif grouped and summary.groups is not None:
        items += f" of {counted(summary.groups, 'group')} that no gate was fitted on"
    new = {"nll": summary.nll, "accuracy": summary.accuracy, "token_accuracy": summary.token_accuracy}
    sides = [("held out", new, items)]
    if known:
        rows = "" if summary.known_rows is None else counted(summary.known_rows, "new item")
        sides.append(("known", known, f"{rows} of groups that were fitted on"))
    for title, figures, about in sides:
        lines = [
            text.format(*(figures[name][fit] for fit in ("baseline", "retain", "remove")))
            for name, text in (
                ("nll", "NLL {:.2f} ungated, {:.2f} with G+, {:.2f} with G−"),
                ("accuracy", "accuracy {:.2f}, {:.2f}, {:.2f} on whole targets"),
                ("token_accuracy", "accuracy {:.2f}, {:.2f}, {:.2f} on their tokens"),
            )
            if {"baseline", "retain", "remove"} <= figures.get(name, {}).keys()
        ]
        if title == "held out" and summary.gain:
            gains = [
                f"{gain.mean:+.2f}{gain.brackets('+.2f')} {words}"
                for words, gain in zip(("with G+", "with G−"), summary.gain.values(), strict=False)
            ]
            lines.insert(1, f"gain {', '.join(gains)}")
        lines += [f"({about})"] if about else []
        for place, line in enumerate(lines):
            console.print(f"  {title if place == 0 else '':<8} {line}")


def show_effects(
    loaded: Model | str,
    tasks: Sequence[Task],
    method: str,
    out: str,
    *,
    resume: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Measure, then say which heads help most and which hurt most."""
    from headatlas import map_heads

    console = Console(soft_wrap=True, highlight=False)
    if not as_json:
        console.print(f"{introduced(loaded)}; {method}: {EFFECT_METHODS[method]}")
    with ShownProgress(
        as_json, tasks=[one.name for one in tasks], out=saved_in(out, given.get("executor"))
    ) as progress:
        atlas = map_heads(loaded, tasks, method=method, out=out, resume=resume, progress=progress, **given)
    summaries = [atlas.effect_summary(task.name, method) for task in tasks]
    if as_json:
        found = [summary.to_json() for summary in summaries]
        typer.echo(json.dumps({"atlas": out, "method": method, "tasks": found}))
        return
    for summary in summaries:
        _show_effect(console, summary)
    if any(each.error is not None for summary in summaries for each in summary.heads):
        counts = [summary.distinct_items for summary in summaries]
        over = f"{counts[0]} distinct items" if len(set(counts)) == 1 and counts[0] else "distinct items"
        console.print(f"[dim]  ± standard error over {over}[/]")


def _show_effect(console: Console, summary: EffectSummary) -> None:
    console.print(
        f"\n[bold]{escape(summary.task)}[/], {counted(summary.seeds, 'seed')} of "
        f"{counted(summary.items or 0, 'item')}, loss {summary.nll:.2f} nats"
        f"{' with corrupted prompts' if summary.method == 'mediate' else ''}"
    )
    for word, heads in zip(("helps", "hurts"), summary.strongest(_NAMED), strict=True):
        texts = [f"{each.head} {each.effect:+.3f}{_error(each.error)}" for each in heads]
        lines = [texts[place : place + 3] for place in range(0, len(texts), 3)] or [["no head"]]
        for number, line in enumerate(lines):
            console.print(f"  {word if number == 0 else '':<8} {'   '.join(line)}")
    kind = summary.method.partition("-")[0]
    console.print(f"  {_WHOLE[kind]}: {summary.whole:+.2f} nats")
    if summary.corruption is not None:
        console.print(f"  {summary.corruption}")
    if summary.completeness_error is not None:
        console.print(
            f"  the effects sum to {summary.sum:+.2f}, completeness error "
            f"{100 * summary.completeness_error:.1f} %, {summary.points:.0f} points per item"
        )
    for doubt in summary.doubts:
        console.print(f"  [yellow]doubtful[/]: {escape(doubt.text)}")


def _error(value: float | None) -> str:
    return "" if value is None else f" ± {value:.3f}"
