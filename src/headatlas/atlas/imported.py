"""What was imported, in numbers and in lines: where it came from, how it was read, what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from headatlas.core import IMPORTED, NOT_IMPORTED, escape_unprintable

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = [
    "imported_effects",
    "imported_markdown",
    "mean_of_seeds",
    "reading_words",
    "relations_of_one_origin",
    "seeds_given",
]

#: heads that are named on each side
_NAMED = 5


def seeds_given(atlas: Atlas, name: str) -> list[int]:
    """Seeds of an imported score; none if the table names none."""
    return list(atlas.imported_scores(name).attrs["seeds"])


def mean_of_seeds(atlas: Atlas, name: str) -> xr.DataArray:
    """[layer, head]: the mean of an imported score over the seeds that name a head; NaN where none does."""
    scores = atlas.imported_scores(name)
    return scores.mean("seed") if scores.sizes["seed"] > 1 else scores.isel(seed=0, drop=True)


def relations_of_one_origin(atlas: Atlas) -> tuple[xr.DataArray, bool]:
    """(relation scores, True if they are imported): those that were measured here, if there are any.

    Otherwise imported ones, without those whose table leaves out heads: which heads it names would decide
    where the heads of a category lie.
    """
    scores = atlas.relation_scores()
    is_imported = scores["kind"].values == IMPORTED
    if not is_imported.all():
        return scores.isel(relation=~is_imported), False
    promote = scores.sel(direction="promote").values
    has_holes = [any(np.isnan(each[head.layer, head.head]) for head in atlas.spec) for each in promote]
    return scores.isel(relation=~np.array(has_holes, dtype=bool)), True


def imported_effects(atlas: Atlas) -> list[tuple[str, str]]:
    """(task, method) of effects that came from a table."""
    return [
        (task, method)
        for task, method in atlas.effect_maps
        if "imported_from" in atlas.run(task, method).task_facts
    ]


def reading_words(facts: Mapping[str, Any]) -> list[str]:
    """How a table was read, from the `task_facts` of a run."""
    words = []
    if columns := facts.get("averaged_over"):
        fewest, most = facts["rows_per_score"]
        rows = f"{most}" if fewest == most else f"{fewest} to {most}"
        words.append(f"each score is the mean over {_listed(columns)} ({rows} rows)")
    if columns := facts.get("ignored_columns"):
        words.append(f"columns that were ignored: {_listed(columns)}")
    return words


def _listed(columns: Sequence[str]) -> str:
    """Names of a foreign table, for a terminal."""
    return escape_unprintable(", ".join(columns))


def imported_markdown(atlas: Atlas) -> list[str]:
    """A section of the report: every imported score and relation, and the heads it leaves out."""
    rows: list[tuple[str, Mapping[str, Any], int, np.ndarray]] = []
    for name in atlas.imported:
        values = mean_of_seeds(atlas, name).values
        rows.append((name, atlas.run(name, IMPORTED).task_facts, len(seeds_given(atlas, name)), values))
    for task, method in imported_effects(atlas):
        seeds = atlas.effects(task, method).sizes["seed"]
        values = atlas.importance(task, method).values
        rows.append((f"{method} of {task}", atlas.run(task, method).task_facts, seeds, values))
    if atlas.relations:
        scores = atlas.relation_scores()
        for place in np.flatnonzero(scores["kind"].values == IMPORTED):
            one = scores.isel(relation=place)
            name = str(one["relation"].item())
            facts = atlas.run(name, "relations").task_facts
            rows.append((f"relation {name}", facts, int(one["seeds"]), one.max("direction").values))
    if not rows:
        return []
    lines = [
        "",
        "## What was imported?",
        "",
        f"| score | from | seeds | heads {NOT_IMPORTED} | highest | lowest |",
        "|---|---|---|---|---|---|",
    ]
    notes: dict[str, None] = {}
    for name, facts, seeds, values in rows:
        each = [(float(values[head.layer, head.head]), str(head)) for head in atlas.spec]
        known = sorted((one for one in each if not np.isnan(one[0])), key=lambda one: -one[0])
        sides = known[:_NAMED], known[: -_NAMED - 1 : -1]
        cells = [", ".join(f"{head} {value:.3g}" for value, head in side) for side in sides]
        source = str(facts.get("imported_from", "elsewhere"))
        missing = f"{len(each) - len(known)} of {len(each)}"
        words = [name, source, str(seeds or "not given"), missing, *cells]
        lines.append(f"| {' | '.join(word.replace('|', chr(92) + '|') for word in words)} |")
        notes |= dict.fromkeys(f"{source}: {text}." for text in reading_words(facts))
    notes |= {"Imported scores are as their tables give them; of several seeds, the mean.": None}
    return [*lines, "", *notes]
