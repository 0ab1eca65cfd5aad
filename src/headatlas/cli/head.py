"""`headatlas head DIR L5H3`: one head's card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape

from headatlas.cli.options import AsJson
from headatlas.cli.show import plain_table
from headatlas.core import IMPORTED, NOT_IMPORTED, THRESHOLD, plural

if TYPE_CHECKING:
    from headatlas import HeadCard

__all__ = ["head"]

_RELATIONS = 8
#: characters that a column of words needs to be read
_WORDS = 12
#: columns of numbers, as wide as these get
_WIDTHS = {
    "G+": 4, "G−": 4, "facilitation": 18, "interference": 18, "direction": 9, "score": 5, "pairs": 5, "by": 5,
    "effect": 7, "rank": 4, "seeds": 5, "gate": 4,
}  # fmt: skip


def head(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    name: Annotated[str, typer.Argument(metavar="HEAD", help="L5H3, 5.3 or a5.h3.")],
    as_json: AsJson = False,
) -> None:
    """One head: its gates and roles in each task, its relations, the tokens that it amplifies."""
    from headatlas import open_atlas

    card = open_atlas(folder).card(name)
    if as_json:
        typer.echo(json.dumps(card.to_json()))
        return
    _show(Console(soft_wrap=True, highlight=False), card)


def _print_rows(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table after a blank line. Columns of `_WIDTHS` hold numbers, which are never cut; words go on in a
    second line. Where words have no room beside the numbers, every row is a list of its own."""
    console.print()
    needed = 2 * (len(columns) - 1)
    for index, column in enumerate(columns):
        widest = max(cell_len(row[index]) for row in [columns, *rows])
        needed += max(widest, _WIDTHS[column]) if column in _WIDTHS else min(widest, _WORDS)
    if console.width < needed:
        for row in rows:
            console.print(f"[bold]{escape(columns[0])}[/] {escape(row[0])}")
            for column, cell in zip(columns[1:], row[1:], strict=True):
                console.print(f"  {escape(column)}: {escape(cell)}")
        return
    table = plain_table()
    for column in columns:
        table.add_column(column, no_wrap=column in _WIDTHS, overflow="fold", min_width=_WIDTHS.get(column))
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def _show(console: Console, card: HeadCard) -> None:
    console.print(f"[bold]{card.head}[/] of {escape(card.model)}: {escape(card.label)}")
    if card.tasks:
        columns = ("task", "roles over the seeds", "G+", "G−", "facilitation", "interference")
        rows = [
            (
                task.task,
                ", ".join(f"{task.roles.count(role)} {role}" for role in dict.fromkeys(task.roles)),
                f"{task.retain:.2f}",
                f"{task.remove:.2f}",
                *(
                    "{:.2f} / {:.2f} / {:.2f}".format(*three)
                    for three in (task.facilitation, task.interference)
                ),
            )
            for task in card.tasks
        ]
        _print_rows(console, columns, rows)
        console.print("[dim]gates: mean over seeds; facilitation, interference: always / mean / any[/]")
    if card.effects:
        only_nats = card.has_effects_in_nats_only
        effects = [
            (
                one.task,
                f"{one.method}{'†' * one.imported}",
                *(() if only_nats else (one.unit,)),
                f"{one.effect:+.3f}",
                str(one.rank),
            )
            for one in card.effects
        ]
        units = () if only_nats else ("unit",)
        _print_rows(console, ("task", "method", *units, "effect", "rank"), effects)
        meaning = "nats of loss without the head alone" if only_nats else "of the head alone"
        note = "; † imported, not measured here" if any(one.imported for one in card.effects) else ""
        console.print(f"[dim]effect: {meaning}; rank: 1 helps most{note}[/]")
        for one in card.effects:
            if one.doubt:
                console.print(f"[yellow]doubtful[/]: {escape(one.task)}, {one.method}: {escape(one.doubt)}")
    _show_imported(console, card)
    if card.contrasts:
        contrasts = [
            (one.contrast, f"in {one.open_in} of {plural(one.seeds, 'seed')}", f"{one.gate:.2f}")
            for one in card.contrasts
        ]
        _print_rows(console, ("contrast", "open", "gate"), contrasts)
        console.print(
            f"[dim]gate: mean over seeds, open from {THRESHOLD:g}; a shut head serves the task to forget, or "
            "none[/]"
        )
    if card.relations:
        scored = [one for one in card.relations if one.score > 0]
        marks = {"multi-token": "*", IMPORTED: "†"}
        relations = [
            (
                one.relation,
                one.category,
                one.direction,
                f"{one.score:.2f}",
                f"{one.pairs or ''}{marks.get(one.kind, '')}",
            )
            for one in scored[:_RELATIONS]
        ]
        _print_rows(console, ("relation", "category", "direction", "score", "pairs"), relations)
        more = len(scored) - _RELATIONS
        kinds = {one.kind for one in scored[:_RELATIONS]}
        notes = ["* scored in texts"] if "multi-token" in kinds else []
        notes += ["† imported"] if IMPORTED in kinds else []
        notes += [f"{more} more with lower scores; --json has all"] if more > 0 else []
        if notes or not scored:
            console.print(f"[dim]{'; '.join(notes) or 'no relation has a score above zero'}[/]")
    if card.salient:
        tokens = [
            (repr(one.token), f"{one.strength:.2f}", "  ".join(map(repr, one.mapped))) for one in card.salient
        ]
        _print_rows(console, ("amplifies", "by", "into"), tokens)
        console.print("[dim]by: length of what the head writes over the length of what the token brings[/]")
    shown = (card.tasks, card.relations, card.salient, card.effects, card.contrasts, card.imported)
    if not any(shown) and not card.missing:
        console.print("nothing is known about it yet: 'headatlas map' and 'headatlas relations' find out")


def _show_imported(console: Console, card: HeadCard) -> None:
    if card.imported:
        given = [
            (one.name, f"{one.score:.3g}", str(one.seeds or "–"), str(one.rank)) for one in card.imported
        ]
        _print_rows(console, ("imported score", "score", "seeds", "rank"), given)
        console.print("[dim]as imported; of several seeds, the mean; rank: 1 is highest[/]")
    if card.missing:
        console.print()
        console.print(f"{NOT_IMPORTED}: {escape(', '.join(card.missing))}")
