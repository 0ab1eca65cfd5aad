"""`headatlas check MODEL`: can this model be mapped?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headatlas import ModelRefusedError, ModelSpec
from headatlas.cli.options import AsJson, LoadFlags, ModelName, with_flags
from headatlas.cli.progress import spinner
from headatlas.cli.show import show_table
from headatlas.core import plural

if TYPE_CHECKING:
    from headatlas import SelfCheck

__all__ = ["check"]


@with_flags
def check(
    model: ModelName,
    *,
    load: LoadFlags,
    as_json: AsJson = False,
) -> None:
    """Can this model be mapped? Finds its heads and shows the self-check, layer by layer."""
    options = load.given()  # refused before torch is imported
    from headatlas import load_model

    console = Console()
    try:
        with spinner(f"loading {model} …"):
            loaded = load_model(model, check=True, **options)
    except ModelRefusedError as error:
        if error.check is not None:
            _show(console, None, error.check, as_json)
        raise
    assert loaded.check is not None
    _show(console, loaded.spec, loaded.check, as_json)


def _show(console: Console, spec: ModelSpec | None, outcome: SelfCheck, as_json: bool) -> None:
    if as_json:
        payload: dict[str, Any] = {"model": spec.to_json() if spec else None, "check": outcome.to_json()}
        typer.echo(json.dumps(payload))
        return
    if spec is not None:
        console.print(_headline(spec), highlight=False)
    show_table(console, _table(outcome))
    console.print(_verdict(outcome), highlight=False)


def _headline(spec: ModelSpec) -> str:
    holes = sum(1 for heads in spec.heads if not heads)
    without = f", {plural(holes, 'layer')} without attention" if holes else ""
    size = spec.parameters or 0
    millions = f"{size / 1e6:,.0f} M" if size >= 1e6 else f"{size:,}"
    return (
        f"[bold]{escape(spec.name)}[/]  {spec.architecture}, {plural(len(spec), 'head')} in "
        f"{plural(spec.layers, 'layer')}"
        f"{without}, hidden {spec.hidden:,}, vocabulary {spec.vocabulary:,}, {millions} parameters, "
        f"{spec.dtype}"
    )


def _table(outcome: SelfCheck) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    for column in ("layer", "heads", "kv", "dim"):
        table.add_column(column, justify="right")
    table.add_column("gate point", style="cyan", no_wrap=True)
    table.add_column("values", style="dim")
    for column in ("gate", "pattern", "rebuild"):
        table.add_column(column, justify="right")
    for number, layer in enumerate(outcome.layers):
        if layer is None:
            table.add_row(str(number), "-", "-", "-", "[dim]no softmax attention[/]", "", "", "", "")
            continue
        deviations = (layer.gate, layer.pattern, layer.rebuild)
        table.add_row(
            *(str(n) for n in (number, layer.heads, layer.kv_heads, layer.head_dim)),
            layer.gate_point.rpartition(f".{number}.")[2],
            layer.kind,
            *(_coloured(deviation, outcome.tolerance) for deviation in deviations),
        )
    return table


def _coloured(deviation: float, tolerance: float) -> str:
    shown = f"{deviation:.0e}" if deviation else "0"
    return f"[{'green' if deviation <= tolerance else 'bold red'}]{shown}[/]"


def _verdict(outcome: SelfCheck) -> str:
    ones = (
        "leave the logits bit for bit the same"
        if outcome.ones_identical
        else "[bold red]change the logits[/]"
    )
    facts = (
        f"gates of one {ones}; causal {outcome.causal:.0e}, attention code {outcome.kernels:.0e}; "
        f"deviations are relative, allowed {outcome.tolerance:g}"
    )
    word = "[bold green]passed[/]" if outcome.passed else "[bold red]failed[/]"
    return f"{facts}\nself-check {word} in {outcome.seconds:.1f} s"
