"""How a map was made, and what speaks against believing it: said wherever its numbers are said."""

from __future__ import annotations

from headatlas.atlas.agreement import Summary
from headatlas.atlas.atlas import Atlas
from headatlas.atlas.finding import plural

__all__ = ["doubts", "doubts_of", "made_how"]

#: held-out items, mean distance between G+ and G-, and correlation between seeds, below which a map is
#: doubtful; items and random orders below which a validation is
_FEW_ROWS, _HARDLY_PARTED, _LITTLE_ALIKE = 20, 0.1, 0.5
_FEW_ITEMS, _FEW_DRAWS = 10, 5


def doubts(atlas: Atlas, task: str) -> list[str]:
    """What speaks against believing the map of a task, and its validation; empty if nothing does."""
    found = doubts_of(atlas.summary(task))
    if task in atlas.validated:
        check = atlas.validation(task)
        if check.items < _FEW_ITEMS:
            found.append(f"validated on {plural(check.items, 'item')}: its intervals mean little")
        if len(check.by_chance) < _FEW_DRAWS:
            found.append(f"validated with {plural(len(check.by_chance), 'random order')}: no band to compare")
    return found


def doubts_of(summary: Summary) -> list[str]:
    """The same of a task in numbers, without its validation."""
    found = []
    if summary.parted < _HARDLY_PARTED:
        found.append(
            f"G+ and G− differ by {summary.parted:.2f} on average: too few updates to tell which heads "
            "matter, unless every head does; try more --updates"
        )
    if summary.seeds == 1:
        found.append("one seed: another might give another map; --seeds 3 --resume adds some")
    alike = summary.correlation.get("facilitation")
    if alike is not None and alike < _LITTLE_ALIKE:
        found.append(f"seeds correlate {alike:.2f} in facilitation: little of the map is the same in all")
    if summary.held_out is not None and summary.held_out < _FEW_ROWS:
        found.append(f"{plural(summary.held_out, 'held-out item')}: too few to tell small differences")
    return found


def made_how(atlas: Atlas, task: str) -> str:
    """How the gates of a task were fitted, in a line."""
    run, summary = atlas.run(task), atlas.summary(task)
    settings = run.settings.get("resolved", {})
    if {"objective", "free", "pressed", "batch"} <= set(settings):
        updates = " + ".join(str(settings[stage]["updates"]) for stage in ("free", "pressed"))
        how = f"objective {settings['objective']}, {updates} updates, batch {settings['batch']}"
    else:
        how = f"imported from {run.task_facts.get('imported_from', 'elsewhere')}"
    alike = summary.correlation.get("facilitation")
    seeds = plural(summary.seeds, "seed") + ("" if alike is None else f" that correlate {alike:.2f}")
    rows = "" if summary.held_out is None else f", {plural(summary.held_out, 'held-out item')}"
    return f"{how}, {seeds}; G+ and G− differ by {summary.parted:.2f} on average{rows}"
