"""`headatlas validate DIR`: how far can the maps of an atlas be believed?"""

from __future__ import annotations

import json
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.map import doubt_json
from headatlas.cli.options import (
    AsJson,
    ExecutorFlags,
    LoadFlags,
    TrustTaskCode,
    recalling_model,
    with_flags,
)
from headatlas.cli.progress import ShownProgress, saved_in
from headatlas.cli.show import plain_table, show_table
from headatlas.cli.wording import command_text
from headatlas.core import plural

if TYPE_CHECKING:
    from headatlas import Atlas, Stability, Validation

__all__ = ["validate"]

#: the share of heads up to which the table goes; the figure has all
_MOST_OFF = 0.5


@with_flags
def validate(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    task: Annotated[
        list[str] | None,
        typer.Option("--task", "-t", help="Only these (default: all that were gated)."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare gating with these (default: the built-in ones, and those of plugins that the atlas "
            "has), or gating alone."
        ),
    ] = None,
    items: Annotated[int, typer.Option(help="Held-out items.")] = 48,
    effect_items: Annotated[
        int, typer.Option(help="Items for a method that the atlas does not have yet.")
    ] = 32,
    draws: Annotated[int, typer.Option(help="Random orders that heads are switched off in.")] = 40,
    retest: Annotated[int, typer.Option(help="Seeds fitted on each half of the items; 0: none.")] = 1,
    model: Annotated[str | None, typer.Option(help="Where the model is, if it has moved.")] = None,
    *,
    load: LoadFlags,
    trust_task_code: TrustTaskCode = False,
    executor: ExecutorFlags,
    as_json: AsJson = False,
) -> None:
    """Ablation curves from G+, sufficiency and necessity of the heads that each method names, stability: on
    held-out items, next to random heads. What is measured is kept in the atlas."""
    from headatlas import ValidateRequest, execute

    request = ValidateRequest.of(
        folder, model=model, tasks=task or (), methods=method, items=items, draws=draws, retest=retest,
        effect_items=effect_items, trust_code=trust_task_code, load=load.given(),
    )  # fmt: skip
    elsewhere = executor.build()
    names = [found.name for found in request.tasks]
    progress = ShownProgress(
        as_json, "the same command", names, saved_in(folder, elsewhere), model=request.model.source
    )
    with recalling_model(model, request.model.source, "--model"), progress:
        atlas = execute(request, folder, resume=True, executor=elsewhere, progress=progress)
    if as_json:
        typer.echo(json.dumps({"atlas": folder, "tasks": {name: _to_json(atlas, name) for name in names}}))
        return
    console = Console(soft_wrap=True, highlight=False)
    for name in names:
        _show(console, atlas, name)
    console.print(
        f"[dim]kept in {escape(folder)}; 'headatlas plot {escape(folder)} --kind sufficiency', "
        f"'ablation' and 'stability' draw it, 'headatlas report {escape(folder)}' says it with all else[/]"
    )


def _to_json(atlas: Atlas, name: str) -> dict[str, Any]:
    data = atlas.validation(name).to_json()
    doubts = [doubt_json(doubt) for doubt in atlas.doubts(name, "validation")]
    return {
        "items": data["items"],
        "doubts": doubts,
        **data,
        "seeds": atlas.stability(name).to_json()["seeds"],
    }


def _show(console: Console, atlas: Atlas, name: str) -> None:
    check = atlas.validation(name)
    console.print(
        f"\n[bold]{escape(name)}[/], {check.item_words()}; heads that are not kept are switched off"
    )
    _show_methods(console, check)
    for words in check.explanation():
        console.print(f"[dim]  {escape(words.replace('*', ''))}[/]")
    _show_ablation(console, check)
    _show_stability(console, atlas.stability(name))
    for doubt in atlas.doubts(name, "validation"):
        console.print(f"  [yellow]note:[/] {escape(command_text(doubt.text))}")


def _show_methods(console: Console, check: Validation) -> None:
    """A table in nats, after a normalized one if faithfulness means something."""
    lines = check.records()
    for suffix, unit in (("", "share of the gap"), ("_nats", escape(check.metric.unit))):
        if not suffix and not check.is_normalized:
            console.print(f"  {escape(check.why_not_normalized())}")
            continue
        table = plain_table(f"  {unit}", "sufficiency ↑", "distance ↓", "necessity ↑")
        for line in lines:
            figures = (_cell(line, figure + suffix) for figure in ("sufficiency", "distance", "necessity"))
            table.add_row(f"  {line['method']}", *figures)
        show_table(console, table)


def _cell(line: dict[str, Any], figure: str) -> str:
    low, high = line[f"{figure}_low"], line[f"{figure}_high"]
    return f"{line[figure]:.2f}" + ("" if low is None else f" [{low:.2f}, {high:.2f}]")


def _show_ablation(console: Console, check: Validation) -> None:
    change = check.ablation()
    orders = [str(order) for order in change.order.values]
    table = plain_table("  from G+", *orders, "random orders")
    for place, share in enumerate(change.share.values):
        if 0 < share <= _MOST_OFF:
            one = change.isel(share=place)
            table.add_row(
                f"  {100 * float(share):.0f} % off",
                *(f"{float(one['change'].sel(order=order)):+.3f}" for order in orders),
                f"{float(one['middle']):+.2f} [{float(one['low']):+.2f} to {float(one['high']):+.2f}]",
            )
    gain = f"{check.metric.gain} ({check.metric.unit})"
    console.print(f"\n  change of the {escape(gain)}, heads off in the order of")
    show_table(console, table)


def _show_stability(console: Console, stability: Stability) -> None:
    by_number = stability.by_seeds
    most = len(by_number)
    if most > 1:
        table = plain_table("  seeds", "facilitate in all, any", "agree with as many others (ranks)")
        for count in sorted({one for one in (1, 3, 5, most) if one <= most}):
            line = by_number.iloc[count - 1]
            shares = [f"{100 * line[f'{when}_facilitating']:.0f} %" for when in ("always", "any")]
            other = line["facilitation_with_others"]
            table.add_row(f"  {count}", ", ".join(shares), "" if isnan(other) else f"{other:.2f}")
        console.print()
        show_table(console, table)
    halves, retest = stability.halves, stability.retest
    if halves is not None:
        console.print(
            f"  facilitating heads of disjoint sets of {plural(halves.seeds, 'seed')}: Jaccard index "
            f"{halves.jaccard:.2f}, {halves.chance:.2f} by chance"
        )
    if retest is not None:
        console.print(
            "  fitted anew on two halves of the items: facilitation correlates "
            f"{retest['facilitation']:.2f}, interference {retest['interference']:.2f}"
        )
