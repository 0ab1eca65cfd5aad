"""`headatlas compare DIR DIR`: two atlases side by side."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headatlas.cli.map import doubt_json, show_doubts
from headatlas.cli.options import AsJson
from headatlas.cli.show import show_table
from headatlas.core import THRESHOLD, require_share

if TYPE_CHECKING:
    from headatlas import Comparison

__all__ = ["compare"]


def compare(
    one: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    other: Annotated[str, typer.Argument(metavar="DIR", help="Another one, or the same for two tasks.")],
    task: Annotated[
        list[str] | None,
        typer.Option("--task", "-t", help="One that both have; given twice: the first one's, the other's."),
    ] = None,
    threshold: Annotated[float, typer.Option(help="The score from which on a head has a role.")] = THRESHOLD,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Also a figure: FILE.png, .pdf or .svg (of one task).")
    ] = None,
    page: Annotated[str | None, typer.Option(help="Also a page of both: FILE.html.")] = None,
    as_json: AsJson = False,
) -> None:
    """Correlation, roles that changed, heads that changed most; of models of different shapes, by depth."""
    from headatlas import HeadatlasWarning, RequestError, compare_atlases, open_atlas, shared_tasks
    from headatlas.figure import plot_comparison, save_figure

    first = open_atlas(one)
    second = first if Path(one).resolve() == Path(other).resolve() else open_atlas(other)
    pairs = shared_tasks(first, second, task or ())
    if out is not None and len(pairs) > 1:
        named = ", ".join(name for name, _ in pairs)
        raise RequestError(f"a figure is of one task, and both have {named}: give one with --task.")
    require_share("threshold", threshold)
    if page is not None and second is first:
        raise RequestError("the page of an atlas compares its tasks already: 'headatlas page'.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HeadatlasWarning)
        found = [compare_atlases(first, second, here, there, threshold) for here, there in pairs]
    doubtful = [(first.doubts(here), second.doubts(there)) for here, there in pairs]
    written = []
    if out is not None:
        written.append(str(save_figure(plot_comparison(first, second, found[0]), out)))
    if page is not None:
        from headatlas.page import write_page

        written.append(str(write_page(first, page, other=second)))
    if as_json:
        as_data = [[[doubt_json(doubt) for doubt in side] for side in both] for both in doubtful]
        rows = zip(found, as_data, strict=True)
        typer.echo(json.dumps([{**one.to_json(), "doubts": both} for one, both in rows]))
        return
    console = Console(soft_wrap=True, highlight=False)
    for comparison in found:
        _show(console, comparison)
    by_name = {}
    for comparison, both in zip(found, doubtful, strict=True):
        compared = zip(("first", "second"), comparison.names, comparison.tasks, both, strict=True)
        for side, model, its_task, some in compared:
            by_name[f"the {side} ({model}, {its_task})"] = some
    show_doubts(console, by_name)
    for warning in caught:
        console.print("[yellow]note:[/]", escape(str(warning.message)))
    for path in written:
        console.print(f"[dim]wrote {escape(path)}[/]")


def _show(console: Console, found: Comparison) -> None:
    names = [f"{name}, {task}" for name, task in zip(found.names, found.tasks, strict=True)]
    console.print(f"[bold]{escape(names[0])}[/] and [bold]{escape(names[1])}[/]")
    for note in found.shared:
        console.print(f"[yellow]not independent:[/] {escape(note)}")
    for note in found.perhaps_shared:
        console.print(f"[yellow]perhaps not independent:[/] {escape(note)}")
    for note in found.differences:
        console.print(f"[yellow]not fitted alike:[/] {escape(note)}")
    over = "over heads" if found.by_heads else "of the profiles over depth (the models have different shapes)"
    for score, interval in found.correlation.items():
        if interval is None:
            console.print(f"{score}: the same everywhere in one of the two")
            continue
        p = found.p[score]
        console.print(
            f"{score}: rank correlation {interval.mean:+.2f}{interval.brackets('+.2f')} {over}"
            f"{'' if p is None else f', p {p:.2g}'}"
        )
    drawn = "intervals leave out whole layers; " if found.by_heads else ""
    console.print(f"[dim]{drawn}{found.test}[/]")
    console.print(f"[bold]verdict:[/] {escape(found.verdict)}")
    if found.roles is None:
        return
    console.print(f"the same role: {100 * (found.same or 0):.0f} % of the heads, by the mean over seeds")
    within = [None if share is None else f"{100 * share:.0f} %" for share in found.within or ()]
    if found.between is not None:
        console.print(
            f"different single seeds have the same role in {100 * found.between:.0f} % of the heads between "
            f"the two, and within each in {within[0] or 'no pair'} and {within[1] or 'no pair'}"
        )
    changes = {pair: count for pair, count in found.roles.items() if pair[0] != pair[1]}
    if changes:
        shown = Table(box=None, pad_edge=False)
        for title in ("role in the first", "in the second", "heads"):
            shown.add_column(title, justify="right" if title == "heads" else "left")
        for (here, there), count in sorted(changes.items(), key=lambda pair: -pair[1]):
            shown.add_row(here, there, str(count))
        show_table(console, shown)
    changed = [one for one in found.changed[:5] if one[1] != one[2]]
    words = ", ".join(f"{head} ({here:+.2f} → {there:+.2f})" for head, here, there in changed)
    console.print(f"changed most (facilitation less interference): {words or 'no head at all'}")
    if found.relations is not None:
        console.print(
            f"relations that both have: correlation {found.relations:+.2f} over heads and relations"
        )
