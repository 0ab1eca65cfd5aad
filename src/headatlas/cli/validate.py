"""`headatlas validate DIR`: how far can the maps of an atlas be believed?"""

from __future__ import annotations

import json
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headatlas.cli.loading import load_shown
from headatlas.cli.options import AsJson, Device, DeviceMap, Revision, TrustRemoteCode, TrustTaskCode
from headatlas.cli.progress import ShownProgress
from headatlas.core import EFFECT_METHODS, ModelSourceError

if TYPE_CHECKING:
    from headatlas import Atlas

__all__ = ["validate"]


def validate(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    task: Annotated[
        list[str] | None,
        typer.Option("--task", "-t", help="Only these (all that were gated); own ones as their file."),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Compare gating with these (all); repeatable.")
    ] = None,
    items: Annotated[int, typer.Option(help="Held-out items.")] = 48,
    draws: Annotated[int, typer.Option(help="Random orders that heads are switched off in.")] = 20,
    retest: Annotated[int, typer.Option(help="Seeds fitted on each half of the items; 0: none.")] = 1,
    model: Annotated[
        str | None, typer.Option(help="Where the model is, if its name in the atlas does not say it.")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="As the gates were fitted, if not given.")] = None,
    device: Device = None,
    device_map: DeviceMap = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    trust_task_code: TrustTaskCode = False,
    as_json: AsJson = False,
) -> None:
    """Ablation curves from G+, sufficiency and necessity of the heads that each method names, stability: on
    held-out items, next to random heads. What is measured is kept in the atlas."""
    from headatlas import open_atlas

    atlas = open_atlas(folder)
    from headatlas.run import require_validation, validate_atlas  # brings torch: after what needs none
    from headatlas.task import load_task

    given = [load_task(name, trust_code=trust_task_code) for name in task or ()]
    methods = list(EFFECT_METHODS) if method is None else method
    chosen = require_validation(atlas, given, methods, items, draws, retest)
    fitted = atlas.run(chosen[0].name).settings.get("decides", {}).get("dtype", "fast")
    where = model or atlas.spec.name
    try:
        loaded = load_shown(where, dtype or fitted, device, device_map, revision, trust_remote_code)
    except ModelSourceError as error:
        if model is not None:
            raise
        raise ModelSourceError(
            f"{error} The atlas calls its model {where!r}: --model says where it is."
        ) from None
    names = [one.name for one in chosen]
    with ShownProgress(as_json, "the same command", names) as progress:
        atlas = validate_atlas(
            folder, model=loaded, tasks=chosen, methods=methods, items=items, draws=draws, retest=retest,
            progress=progress,
        )  # fmt: skip
    if as_json:
        typer.echo(json.dumps({"atlas": folder, "tasks": {name: _said(atlas, name) for name in names}}))
        return
    console = Console(soft_wrap=True, highlight=False)
    for name in names:
        _show(console, atlas, name)
    console.print(
        f"[dim]kept in {escape(folder)}; 'headatlas plot {escape(folder)} --kind sufficiency', "
        f"'ablation' and 'stability' draw it, 'headatlas report {escape(folder)}' says it with all else[/]"
    )


def _said(atlas: Atlas, name: str) -> dict[str, Any]:
    from headatlas.atlas import by_seeds

    check = atlas.validation(name)
    curves = check.ablation()
    return {
        "items": check.items,
        "methods": check.table().to_dict("records"),
        "shares": check.shares.tolist(),
        "keep": {method: check.curve(method).tolist() for method in check.named()},
        "drop": {method: check.curve(method, "drop").tolist() for method in check.named()},
        "ablation": {
            str(order): curves["change"].sel(order=order).values.tolist() for order in curves.order.values
        },
        "random": {part: curves[part].values.tolist() for part in ("low", "middle", "high")},
        "seeds": json.loads(by_seeds(atlas.scores(name)).to_json(orient="records")),
    }


def _show(console: Console, atlas: Atlas, name: str) -> None:
    check = atlas.validation(name)
    console.print(
        f"\n[bold]{escape(name)}[/], {check.items} held-out items; heads that are not kept are switched off"
    )
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("  method", no_wrap=True)
    for column in ("sufficiency ↑", "distance ↓", "necessity ↑"):
        table.add_column(column, no_wrap=True)
    for line in check.table().to_dict("records"):
        cells = [
            f"{line[part]:.2f} [{line[part + '_low']:.2f}–{line[part + '_high']:.2f}]"
            for part in ("sufficiency", "distance", "necessity")
        ]
        table.add_row(f"  {line['method']}", *cells)
    console.print(table)
    change = check.ablation()
    place = int(abs(change.share - 0.1).argmin())
    parts = [
        f"{float(change['change'].sel(order=order)[place]):+.2f} by {order}" for order in change.order.values
    ]
    console.print(
        f"  from G+, {100 * float(change.share[place]):.0f} % of heads switched off: target log-probability "
        f"{', '.join(parts)}; at random {float(change['middle'][place]):+.2f} "
        f"[{float(change['low'][place]):+.2f} to {float(change['high'][place]):+.2f}]"
    )
    _show_stability(console, atlas, name)


def _show_stability(console: Console, atlas: Atlas, name: str) -> None:
    from headatlas.atlas import HALVES, by_seeds, retest

    table = by_seeds(atlas.scores(name))
    most = len(table)
    if most > 1:
        words = []
        for count in sorted({1, 3, 5, most // 2, most}):
            if count <= most and count:
                line = table.iloc[count - 1]
                other = line["facilitation_with_others"]
                agrees = "" if isnan(other) else f", {other:.2f} with as many others"
                words.append(
                    f"{count}: {100 * line['always_facilitating']:.0f}–{100 * line['any_facilitating']:.0f} %"
                    f"{agrees}"
                )
        console.print(f"  seeds, and heads that facilitate in all–in any of them: {'; '.join(words)}")
    halves = [atlas.scores(name, half) for half in HALVES if atlas.seeds(name, half)]
    if len(halves) == 2:
        again = retest(halves[0], halves[1])
        console.print(
            f"  fitted anew on two halves of the items: facilitation correlates {again['facilitation']:.2f}, "
            f"interference {again['interference']:.2f} (ranks)"
        )
