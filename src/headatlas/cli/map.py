"""`headatlas map MODEL --task T`: which heads does this model need for a task, which hurt it?"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.options import (
    AsJson,
    ExecutorFlags,
    ExtensionOption,
    LoadFlags,
    MappedModel,
    Out,
    Resume,
    TrustTaskCode,
    options_of,
    recalling_model,
    require_given,
    with_flags,
)
from headatlas.cli.progress import ShownProgress, saved_in
from headatlas.cli.wording import command_text
from headatlas.core import plural

if TYPE_CHECKING:
    from headatlas import Atlas, Doubt, EffectSummary, Interval, MapRequest, Ray, Summary

__all__ = ["doubt_json", "map_", "show_doubts", "show_held_out", "show_map", "show_summary"]

#: heads that are named on each side
_NAMED = 6
#: what `whole` is
_WHOLE = {
    "ablate": "all heads replaced at once",
    "attribute": "all heads shut",
    "mediate": "what the corruption costs",
}


@with_flags
def map_(
    model: MappedModel = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            "-t",
            help="Built-in name, YAML, JSONL, CSV or Parquet file, hub:…; files and hub: name their columns "
            "like this: my.csv?prompt=question&target=answer&group=kind. With --resume default: all tasks of "
            "the atlas.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="gating, or the effect of each head alone: 'headatlas list methods' has them all."),
    ] = "gating",
    preset: Annotated[
        str | None, typer.Option(help="quick (default: minutes on a CPU) or paper (as published).")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Random starts; the preset's if not given.")] = None,
    updates: Annotated[int | None, typer.Option(help="Updates per stage.")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows per update and gate set.")] = None,
    objective: Annotated[str | None, typer.Option(help="bounded or paper.")] = None,
    items: Annotated[int | None, typer.Option(help="Items for methods other than gating (32).")] = None,
    option: ExtensionOption = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longer rows are left out (default 512).")] = None,
    out: Out = "atlas",
    resume: Resume = False,
    *,
    load: LoadFlags,
    trust_task_code: TrustTaskCode = False,
    executor: ExecutorFlags,
    as_json: AsJson = False,
) -> None:
    """Learn gates on all heads for each task: which heads facilitate, interfere or do not matter. Other
    methods: what each head alone does to the loss."""
    from headatlas import MapRequest

    given: dict[str, Any] = {
        "preset": preset, "seeds": seeds, "updates": updates, "batch": batch, "objective": objective,
        "items": items, **options_of(option),
    }  # fmt: skip
    common: dict[str, Any] = {
        "max_tokens": max_tokens, "trust_code": trust_task_code, "load": load.given(),
    }  # fmt: skip
    elsewhere = executor.build()
    if resume and (model is None or not task):
        request = MapRequest.resumed(out, model, task or None, method, **common, **given)
    else:
        require_given(model, task)
        request = MapRequest.of(model, task or (), method, **common, **given)
    with recalling_model(model, request.model.source, "the argument MODEL"):
        show_map(request, out, resume=resume, as_json=as_json, executor=elsewhere)
    if not as_json:
        console = Console(soft_wrap=True, highlight=False)
        kind = "" if _fits_gates(request) else " --kind effects"
        command = escape(f"headatlas plot {shlex.quote(out)}{kind}")
        console.print(f"[dim]atlas in {escape(out)}; '{command}' draws the map[/]")


def show_map(
    request: MapRequest,
    out: str,
    *,
    resume: bool,
    as_json: bool = False,
    goes_on: str = "the same command with --resume",
    executor: Ray | None = None,
) -> None:
    """Carry out the request with a bar, then say what came of it."""
    from headatlas import METHODS, execute

    names = [task.name for task in request.tasks]
    progress = ShownProgress(
        as_json, goes_on, names, saved_in(out, executor), about=_about(request), model=request.model.source
    )
    with progress:
        atlas = execute(request, out, resume=resume, executor=executor, progress=progress)
    if _fits_gates(request):
        _show_gates(atlas.fitted_by(request.method), names, out, as_json)
    elif METHODS[request.method].stages:
        _show_fits(names, request.method, out, as_json)
    else:
        _show_effects(atlas, names, request.method, out, as_json)


def _fits_gates(request: MapRequest) -> bool:
    """True if the method fits G+ and G-, from which heads have roles."""
    from headatlas import METHODS

    fits = {fit for names in METHODS[request.method].stages.values() for fit in names}
    return {"retain", "remove"} <= fits


def _about(request: MapRequest) -> str:
    """What the request does, for the first line of the output."""
    settings = request.options
    if request.method != "gating":
        from headatlas import METHODS

        return f"{request.method}: {METHODS[request.method].summary}"
    batch = f"batch {settings.batch}, " if settings.batch else ""
    return (
        f"preset {request.given.get('preset', 'quick')}: objective {settings.objective}, "
        f"{settings.free.updates} + {settings.pressed.updates} updates, "
        f"{batch}{plural(settings.seeds, 'seed')}"
    )


def _show_effects(atlas: Atlas, names: Sequence[str], method: str, out: str, as_json: bool) -> None:
    """Which heads help most and which hurt most."""
    console = Console(soft_wrap=True, highlight=False)
    summaries = [atlas.effect_summary(name, method) for name in names]
    if as_json:
        tasks = [
            {**summary.to_json(), "doubts": [command_text(doubt.text) for doubt in summary.doubts]}
            for summary in summaries
        ]
        typer.echo(json.dumps({"atlas": out, "method": method, "tasks": tasks}))
        return
    for summary in summaries:
        _show_effect(console, summary, atlas.run(summary.task, method).unit)
    if any(each.error is not None for summary in summaries for each in summary.heads):
        counts = [summary.distinct_items for summary in summaries]
        over = f"{counts[0]} distinct items" if len(set(counts)) == 1 and counts[0] else "distinct items"
        console.print(f"[dim]  ± standard error over {over}[/]")


def _show_fits(names: Sequence[str], method: str, out: str, as_json: bool) -> None:
    """Summarize fits that are not G+ and G-."""
    if as_json:
        typer.echo(json.dumps({"atlas": out, "method": method, "tasks": [{"task": name} for name in names]}))
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(
        f"{escape(', '.join(names))}: fitted by {escape(method)}, which has no G+ and G−, so heads have no "
        f"roles; 'headatlas table {escape(out)}' has its gates"
    )


def _show_gates(atlas: Atlas, names: Sequence[str], out: str, as_json: bool) -> None:
    summaries = [atlas.summary(name) for name in names]
    doubtful = {name: atlas.doubts(name) for name in names}
    if as_json:
        shown = [
            {**summary.to_json(), "doubts": [doubt_json(doubt) for doubt in doubtful[summary.task]]}
            for summary in summaries
        ]
        typer.echo(json.dumps({"atlas": out, "tasks": shown}))
        return
    console = Console(soft_wrap=True, highlight=False)
    for summary in summaries:
        show_summary(console, summary, atlas.run(summary.task).settings["resolved"].get("batch"))
    show_doubts(console, doubtful)


def doubt_json(doubt: Doubt) -> dict[str, Any]:
    """A doubt as data, its text in terms of flags."""
    return {**doubt.to_json(), "text": command_text(doubt.text)}


def show_doubts(console: Console, doubtful: Mapping[str, Sequence[Doubt]]) -> None:
    """One warning for all results of a command: name -> its doubts."""
    if not any(doubtful.values()):
        return
    console.print("\n[bold yellow]Warning:[/] these results are doubtful")
    for name, some in doubtful.items():
        for doubt in some:
            console.print(f"  {escape(name)}: {escape(command_text(doubt.text))}")


def show_summary(console: Console, summary: Summary, batch: int | None) -> None:
    """A task in a few lines; `batch` rows were asked at each update, if the method says how many."""

    def pair(shares: dict[str, float]) -> str:
        return f"{100 * shares['facilitating']:5.1f} / {100 * shares['interfering']:4.1f} %"

    def each(role: str) -> str:
        found: Interval = summary.per_seed[role]
        return f"{100 * found.mean:.1f} % {role}{found.brackets('.1f', 100)}"

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    rows = f"batch {batch}, " if batch else ""
    console.print(
        f"\n[bold]{escape(summary.task)}[/], {plural(summary.seeds, 'seed')}, {rows}"
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
    items = "" if summary.held_out is None else plural(summary.held_out, "item")
    if summary.held_out == 0:
        items = "nothing: the gates were fitted on every item"
    if grouped and summary.groups == summary.held_out:
        items += ", each of another group that no gate was fitted on"
    elif grouped and summary.groups is not None:
        items += f" of {plural(summary.groups, 'group')} that no gate was fitted on"
    new = {"nll": summary.nll, "accuracy": summary.accuracy, "token_accuracy": summary.token_accuracy}
    sides = [("held out", new, items)]
    if known:
        rows = "" if summary.known_rows is None else plural(summary.known_rows, "new item")
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
        if title == "held out" and {"baseline", "retain", "remove"} <= summary.metric.keys():
            figures_text = "{:.2f} ungated, {:.2f} with G+, {:.2f} with G−".format(
                *(summary.metric[fit] for fit in ("baseline", "retain", "remove"))
            )
            lines.append(f"{escape(summary.metric_label)} {figures_text}")
        lines += [f"({about})"] if about else []
        for place, line in enumerate(lines):
            console.print(f"  {title if place == 0 else '':<8} {line}")


def _show_effect(console: Console, summary: EffectSummary, unit: str) -> None:
    parts = [f"{plural(summary.seeds, 'seed')} of {summary.item_words}"]
    if summary.nll is not None:
        prompts = " with corrupted prompts" if summary.method == "mediate" else ""
        parts.append(f"loss {summary.nll:.2f} nats{prompts}")
    if summary.mean is not None:
        parts.append(f"mean {escape(summary.metric)} {summary.mean:.2f}")
    if unit != "nats":
        parts.append(f"effects in {escape(unit)}")
    console.print(f"\n[bold]{escape(summary.task)}[/], {', '.join(parts)}")
    for word, heads in zip(("helps", "hurts"), summary.strongest(_NAMED), strict=True):
        texts = [f"{each.head} {each.effect:+.3f}{_error(each.error)}" for each in heads]
        lines = [texts[place : place + 3] for place in range(0, len(texts), 3)] or [["no head"]]
        for number, line in enumerate(lines):
            console.print(f"  {word if number == 0 else '':<8} {'   '.join(line)}")
    if summary.whole is not None:
        whole = _WHOLE.get(summary.method.partition("-")[0], "all heads together")
        console.print(f"  {whole}: {summary.whole:+.2f} {escape(unit)}")
    if summary.corruption is not None:
        console.print(f"  {summary.corruption}")
    if summary.completeness_error is not None and summary.points is not None:
        console.print(
            f"  the effects sum to {summary.sum:+.2f}, completeness error "
            f"{100 * summary.completeness_error:.1f} %, {summary.points:.0f} points per item"
        )
    for doubt in summary.doubts:
        console.print(f"  [yellow]doubtful[/]: {escape(command_text(doubt.text))}")


def _error(value: float | None) -> str:
    return "" if value is None else f" ± {value:.3f}"
