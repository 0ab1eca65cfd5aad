"""`headatlas map --method …`: what single heads do to a task, with a bar and in a few lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.progress import counted
from headatlas.core import Head

if TYPE_CHECKING:
    from headatlas import Atlas

__all__ = ["show_effects"]

#: heads that are named on each side
_NAMED = 6
#: what `whole` is
_WHOLE = {
    "ablate": "all heads replaced at once",
    "attribute": "all heads shut",
    "mediate": "what the corruption costs",
}


def show_effects(atlas: Atlas, names: Sequence[str], method: str, out: str, as_json: bool) -> None:
    """Which heads help most and which hurt most."""
    console = Console(soft_wrap=True, highlight=False)
    found = [_described(atlas, name, method) for name in names]
    if as_json:
        typer.echo(json.dumps({"atlas": out, "method": method, "tasks": found}))
        return
    for one in found:
        _show(console, one)
    if any(one["error"] is not None for task in found for one in task["heads"]):
        counts = [one["distinct_items"] for one in found]
        over = f"{counts[0]} distinct items" if len(set(counts)) == 1 and counts[0] else "distinct items"
        console.print(f"[dim]  ± standard error over {over}[/]")


def _described(atlas: Atlas, task: str, method: str) -> dict[str, Any]:
    from headatlas.atlas import describe_corruption, effect_doubts

    pooled = atlas.pooled_effects(task, method)
    seeds = atlas.effects(task, method).seed.values.tolist()
    facts = [atlas.effect(task, method, seed).facts for seed in seeds]
    values, errors = pooled["effect"].values, pooled["error"].values
    order = np.argsort(np.where(np.isnan(values), np.inf, -values).ravel(), kind="stable")
    places = [divmod(int(place), values.shape[1]) for place in order[: int((~np.isnan(values)).sum())]]
    heads = [
        {
            "head": str(Head(*place)),
            "effect": float(values[place]),
            "error": None if np.isnan(errors[place]) else float(errors[place]),
        }
        for place in places
    ]
    return {
        "task": task,
        "seeds": len(seeds),
        "items": int(facts[0]["items"]),
        "distinct_items": pooled.attrs["items"],
        "nll": float(np.mean([one["nll"] for one in facts])),
        "whole": float(np.mean([one["whole"] for one in facts])),
        "sum": float(np.nansum(values)),
        "points": float(np.mean([one["points"] for one in facts])) if "points" in facts[0] else None,
        "completeness_error": atlas.completeness_error(task, method),
        "corruption": describe_corruption(facts[0]) or None,
        "doubts": [doubt.text for doubt in effect_doubts(atlas, task, method)],
        "method": method,
        "heads": heads,
    }


def _show(console: Console, found: dict[str, Any]) -> None:
    console.print(
        f"\n[bold]{escape(found['task'])}[/], {counted(found['seeds'], 'seed')} of "
        f"{counted(found['items'], 'item')}, loss {found['nll']:.2f} nats"
        f"{' with corrupted prompts' if found['method'] == 'mediate' else ''}"
    )
    helping = [one for one in found["heads"] if one["effect"] > 0][:_NAMED]
    hurting = [one for one in reversed(found["heads"]) if one["effect"] < 0][:_NAMED]
    for word, heads in (("helps", helping), ("hurts", hurting)):
        texts = [f"{one['head']} {one['effect']:+.3f}{_error(one['error'])}" for one in heads]
        lines = [texts[place : place + 3] for place in range(0, len(texts), 3)] or [["no head"]]
        for number, line in enumerate(lines):
            console.print(f"  {word if number == 0 else '':<8} {'   '.join(line)}")
    kind = found["method"].partition("-")[0]
    console.print(f"  {_WHOLE[kind]}: {found['whole']:+.2f} nats")
    if found["corruption"] is not None:
        console.print(f"  {found['corruption']}")
    if found["completeness_error"] is not None:
        console.print(
            f"  the effects sum to {found['sum']:+.2f}, completeness error "
            f"{100 * found['completeness_error']:.1f} %, {found['points']:.0f} points per item"
        )
    for text in found["doubts"]:
        console.print(f"  [yellow]doubtful[/]: {escape(text)}")


def _error(value: float | None) -> str:
    return "" if value is None else f" ± {value:.3f}"
