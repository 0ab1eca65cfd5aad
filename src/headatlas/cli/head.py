"""`headatlas head DIR L5H3`: one head's card."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headatlas.cli.options import AsJson

if TYPE_CHECKING:
    from headatlas.atlas import HeadCard

__all__ = ["head"]

_RELATIONS = 8
#: columns of numbers, as wide as these get
_WIDTHS = {
    "G+": 4, "G−": 4, "facilitation": 18, "interference": 18, "direction": 9, "score": 5, "pairs": 5, "by": 5,
    "effect": 7, "rank": 4,
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


def _table(*columns: str, numbers: int) -> Table:
    """The last `numbers` columns hold numbers, which are never cut; words go on in a second line."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for place, column in enumerate(columns):
        number = place >= len(columns) - numbers
        table.add_column(column, no_wrap=number, overflow="fold", min_width=_WIDTHS.get(column))
    return table


def _show(console: Console, card: HeadCard) -> None:
    console.print(f"[bold]{card.head}[/] of {escape(card.model)}: {escape(card.label)}")
    if card.tasks:
        table = _table("task", "roles over the seeds", "G+", "G−", "facilitation", "interference", numbers=4)
        for task in card.tasks:
            roles = ", ".join(f"{task.roles.count(role)} {role}" for role in dict.fromkeys(task.roles))
            table.add_row(
                escape(task.task),
                roles,
                f"{task.retain:.2f}",
                f"{task.remove:.2f}",
                *(
                    "{:.2f} / {:.2f} / {:.2f}".format(*three)
                    for three in (task.facilitation, task.interference)
                ),
            )
        console.print()
        console.print(table)
        console.print("[dim]gates: mean over seeds; facilitation, interference: always / mean / any[/]")
    if card.effects:
        table = _table("task", "method", "effect", "rank", numbers=2)
        for effect in card.effects:
            table.add_row(escape(effect.task), effect.method, f"{effect.effect:+.3f}", str(effect.rank))
        console.print()
        console.print(table)
        console.print("[dim]effect: nats of loss without the head alone; rank: 1 helps most[/]")
    if card.relations:
        table = _table("relation", "category", "direction", "score", "pairs", numbers=3)
        scored = [one for one in card.relations if one.score > 0]
        for one in scored[:_RELATIONS]:
            mark = "*" if one.kind == "multi-token" else ""
            words = (one.relation, one.category, one.direction)
            table.add_row(*map(escape, words), f"{one.score:.2f}", f"{one.pairs or ''}{mark}")
        console.print()
        console.print(table)
        more = len(scored) - _RELATIONS
        notes = ["* scored in texts"] if any(one.kind == "multi-token" for one in scored[:_RELATIONS]) else []
        notes += [f"{more} more with lower scores; --json has all"] if more > 0 else []
        if notes or not scored:
            console.print(f"[dim]{'; '.join(notes) or 'no relation has a score above zero'}[/]")
    if card.salient:
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
        table.add_column("amplifies", no_wrap=True)
        table.add_column("by", no_wrap=True, min_width=_WIDTHS["by"])
        table.add_column("into", overflow="fold")
        for token in card.salient:
            table.add_row(
                escape(repr(token.token)), f"{token.strength:.2f}", escape("  ".join(map(repr, token.mapped)))
            )
        console.print()
        console.print(table)
        console.print("[dim]by: length of what the head writes over the length of what the token brings[/]")
    if not (card.tasks or card.relations or card.salient or card.effects):
        console.print("nothing is known about it yet: 'headatlas map' and 'headatlas relations' find out")
