"""What was imported, in numbers and in lines: where it came from, how it was read, what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.markdown import escape_markdown
from headatlas.core import IMPORTED, NOT_IMPORTED, escape_unprintable, plural, ranked
from headatlas.core.lazy import xr

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = [
    "imported_effects",
    "imported_markdown",
    "mean_of_seeds",
    "reading_words",
    "relations_of_one_origin",
    "seeds_given",
    "uneven_heads",
    "uneven_seeds",
    "uneven_words",
]

#: heads that are named on each side
_NAMED = 5


def seeds_given(atlas: Atlas, name: str, method: str = IMPORTED) -> list[int]:
    """Seeds of an imported score, or of imported effects by `method`; none if the table names none."""
    if method == IMPORTED:
        return list(atlas.imported_scores(name).attrs["seeds"])
    seeds = [int(seed) for seed in atlas.effects(name, method).seed.values]
    return [seed for seed in seeds if atlas.effect(name, method, seed).facts.get("seed_given", True)]


def uneven_heads(per_seed: np.ndarray) -> int:
    """How many heads of scores [seed, …, layer, head] have a value in some of the seeds and not in all."""
    counts = (~np.isnan(per_seed)).sum(axis=0)
    is_uneven = (counts > 0) & (counts < len(per_seed))
    return int(is_uneven.any(axis=tuple(range(is_uneven.ndim - 2))).sum())


def uneven_words(heads: int, seeds: int) -> str:
    """ "3 heads have fewer than all 2 seeds"; empty for no head."""
    verb = "has" if heads == 1 else "have"
    return f"{plural(heads, 'head')} {verb} fewer than all {seeds} seeds" if heads else ""


def uneven_seeds(atlas: Atlas) -> dict[tuple[str, str], str]:
    """(method, name) -> "3 heads have fewer than all 2 seeds", for imported values of which that is true."""
    values = {(IMPORTED, name): atlas.imported_scores(name).values for name in atlas.imported}
    for task, method in imported_effects(atlas):
        values[method, task] = atlas.effects(task, method)["effect"].values
    counts = {key: (uneven_heads(each), len(each)) for key, each in values.items()}
    if atlas.relations:
        scores = atlas.relation_scores()
        parts = (scores[key].values.tolist() for key in ("relation", "uneven", "seeds"))
        counts |= {("relations", name): (uneven, seeds) for name, uneven, seeds in zip(*parts, strict=True)}
    return {key: uneven_words(heads, seeds) for key, (heads, seeds) in counts.items() if heads}


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
    rows: list[tuple[str, Mapping[str, Any], str, np.ndarray]] = []
    uneven = uneven_seeds(atlas)

    def add(label: str, method: str, name: str, seeds: str, values: np.ndarray) -> None:
        seeds = "; ".join(filter(None, (seeds, uneven.get((method, name), ""))))
        rows.append((label, atlas.run(name, method).task_facts, seeds, values))

    for name in atlas.imported:
        seeds = _seeds_cell(len(seeds_given(atlas, name)))
        add(name, IMPORTED, name, seeds, mean_of_seeds(atlas, name).values)
    for task, method in imported_effects(atlas):
        seeds = _seeds_cell(len(seeds_given(atlas, task, method)))
        add(f"{method} of {task}", method, task, seeds, atlas.importance(task, method).values)
    if atlas.relations:
        scores = atlas.relation_scores()
        for place in np.flatnonzero(scores["kind"].values == IMPORTED):
            one = scores.isel(relation=place)
            name = str(one["relation"].item())
            seeds = _seeds_cell(int(one["seeds"]), bool(one["seeds_kept"]))
            add(f"relation {name}", "relations", name, seeds, one.max("direction").values)
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
        known = [(float(values[head.layer, head.head]), str(head)) for head in ranked(values)]
        sides = known[:_NAMED], known[: -_NAMED - 1 : -1]
        cells = [", ".join(f"{head} {value:.3g}" for value, head in side) for side in sides]
        source = str(facts.get("imported_from", "elsewhere"))
        missing = f"{len(atlas.spec) - len(known)} of {len(atlas.spec)}"
        words = [name, source, seeds, missing, *cells]
        lines.append(f"| {' | '.join(map(escape_markdown, words))} |")
        notes |= dict.fromkeys(escape_markdown(f"{source}: {text}.") for text in reading_words(facts))
    notes |= {"Imported scores are as their tables give them; of several seeds, the mean.": None}
    return [*lines, "", *notes]


def _seeds_cell(seeds: int, kept: bool = True) -> str:
    if not kept:
        return f"mean over {seeds} seeds, which were not kept"
    return str(seeds) if seeds else "not given"
