"""How well every head implements each relation, as heat maps; and how relations are named in figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.atlas import Atlas, uneven_words
from headatlas.core import DIRECTIONS, IMPORTED, RequestError, UnknownNameError, relation_words, title_of
from headatlas.core.lazy import xr
from headatlas.figure.frame import Frame
from headatlas.figure.kind import FigureKind
from headatlas.figure.palette import PaletteLike
from headatlas.figure.score_map import heat_maps
from headatlas.figure.shown import figure_function
from headatlas.figure.style import TEXT_WIDTH

__all__ = [
    "BOTH",
    "SOURCE_WORDS",
    "direction_of",
    "imported_note",
    "measured",
    "notes_of",
    "plot_relations",
    "relation_title",
    "relations_of",
    "require_direction",
]

#: the word for promoting and suppressing together
BOTH = "both"
_SCORE_WORDS = {"promote": "Relation score", "suppress": "Suppression score", None: "Either score"}
_NARROWEST = 0.74  # inches: a panel
SOURCE_WORDS = {"first_mlp": "the first MLP’s output", "embedding": "their embeddings"}


def relation_title(name: str) -> str:
    """A relation's name in a header: country-capital -> Country → capital, past-tense -> Past tense."""
    return title_of(relation_words(name))


def direction_of(direction: str | None) -> str | None:
    """`promote`, `suppress`, or None for both, which may also be called so."""
    if direction is None or direction == BOTH:
        return None
    if direction not in DIRECTIONS:
        raise UnknownNameError("direction", direction, [*DIRECTIONS, BOTH])
    return direction


def relations_of(atlas: Atlas, relations: Sequence[str] | str | None) -> xr.DataArray:
    """The scores of the relations that were asked for, or of all."""
    scores = atlas.relation_scores()
    if relations is None:
        return scores
    wanted = [relations] if isinstance(relations, str) else list(relations)
    for name in wanted:
        if name not in atlas.relations:
            raise UnknownNameError("relation in this atlas", name, atlas.relations)
    if not wanted:
        raise RequestError("there is no relation to draw; name one, or leave relations out for all of them.")
    return scores.sel(relation=wanted)


def measured(scores: xr.DataArray) -> xr.DataArray:
    """Those that can be measured with this model's tokenizer."""
    found = scores.isel(relation=scores["kind"].values != "none")
    if not found.sizes["relation"]:
        raise RequestError(
            f"nothing to draw: too few pairs are single tokens of this model in {_listed(scores, 'single')}."
        )
    return found


def _listed(scores: xr.DataArray, number: str) -> str:
    """ "next-year (n = 6), plural (n = 12)": the relations with a number of theirs."""
    parts = zip(scores["relation"].values, scores[number].values, strict=True)
    return ", ".join(f"{name} (n = {int(count)})" for name, count in parts)


def _unbroken(scores: xr.DataArray, number: str) -> str:
    """The same for a caption, which keeps each name and its number on one line."""
    return _listed(scores, number).replace(" ", "\u00a0").replace(",\u00a0", ", ")


def require_direction(scores: xr.DataArray, direction: str | None) -> None:
    """Is there anything to draw? A table that was imported may have one direction alone."""
    if direction is not None and bool(scores.sel(direction=direction).isnull().all()):
        other = next(one for one in DIRECTIONS if one != direction)
        raise RequestError(f"this atlas has no scores of the direction {direction!r}; try {other!r}.")


def notes_of(scores: xr.DataArray, mark: str = "") -> list[str]:
    """Paragraphs of a caption: what the sources were, and what was not measured like the others, whose
    headers may have a `mark`."""
    kinds = scores["kind"].values
    notes = []
    sources = sorted({str(one) for one in scores["source"].values[kinds == "static"]} - {""})
    if sources:
        notes.append(
            f"What tokens bring to the heads: {' and '.join(SOURCE_WORDS.get(s, s) for s in sources)}."
        )
    if (kinds == "multi-token").any():
        names = _unbroken(scores.isel(relation=kinds == "multi-token"), "single")
        pieces = ~scores["whole"].values.astype(bool) & (kinds == "multi-token")
        how = ", one piece standing for each target" if pieces.any() else ""
        notes.append(
            f"{mark}Not measurable from weights with this tokenizer, scored in texts instead{how}: {names}."
        )
    if (kinds == "none").any():
        names = _unbroken(scores.isel(relation=kinds == "none"), "single")
        notes.append(f"Not measurable with this tokenizer (n pairs of single tokens): {names}.")
    return [*notes, *imported_note(scores)]


def imported_note(scores: xr.DataArray) -> list[str]:
    """A paragraph of a caption: relations whose scores were imported, with the seeds that were averaged."""
    given = scores.isel(relation=scores["kind"].values == IMPORTED)
    if not given.sizes["relation"]:
        return []
    parts = [
        str(name) + (f" (mean over {count} seeds)".replace(" ", "\u00a0") if count > 1 else "")
        for name, count in zip(given["relation"].values, given["seeds"].values, strict=True)
    ]
    lost = given["relation"].values[~given["seeds_kept"].values].tolist()
    note = [f"An older version imported {', '.join(lost)}: the single seeds were not kept."] if lost else []
    counts = zip(*(given[key].values.tolist() for key in ("relation", "uneven", "seeds")), strict=True)
    note += [f"{name}: {uneven_words(uneven, seeds)}." for name, uneven, seeds in counts if uneven]
    return [f"Imported, not measured here: {', '.join(parts)}.", *note]


@figure_function
def plot_relations(
    atlas: Atlas,
    relations: Sequence[str] | str | None = None,
    *,
    direction: str | None = "promote",
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    width: float = TEXT_WIDTH,
) -> Figure:
    """One panel per relation, five beside each other on the width of a text, and one colour bar for all.

    A header has the number of pairs, with a dagger where they were measured in texts. `direction` None or
    "both": the higher of the two scores.
    """
    way = direction_of(direction)
    frame = Frame.of(atlas, ax, axes, title)
    asked = relations_of(atlas, relations)
    scores = measured(asked)
    require_direction(scores, way)
    maps = [
        (
            frame.title(_header(one), relation=relation_title(one["relation"].item())),
            one.max("direction") if way is None else one.sel(direction=way, drop=True),
        )
        for one in (scores.isel(relation=place) for place in range(scores.sizes["relation"]))
    ]
    caption = notes_of(asked, mark="† ")
    return heat_maps(
        atlas, maps, _SCORE_WORDS[way], frame=frame, label=label, palette=palette, width=width,
        narrowest=_NARROWEST, caption=caption, imported=bool((scores["kind"].values == IMPORTED).any()),
    )  # fmt: skip


def _header(scores: xr.DataArray) -> str:
    mark = "†" if scores["kind"].item() == "multi-token" else ""
    count = int(scores["pairs"])  # of imported scores it is not known
    return f"{relation_title(scores['relation'].item())}" + (f" (n = {count}{mark})" if count else "")


PROVIDES = [
    FigureKind(
        "relations",
        "the scores of all heads, a map per relation",
        plot_relations,
        lambda atlas: measured(atlas.relation_scores()),
        draws_gates=False,
    )
]
