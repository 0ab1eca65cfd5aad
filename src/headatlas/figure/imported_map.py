"""Scores that were made elsewhere, as they were imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from headatlas.atlas import Atlas, mean_of_seeds, reading_words, require_atlas, seeds_given, uneven_seeds
from headatlas.core import IMPORTED, RequestError, UnknownNameError, title_of
from headatlas.figure.effect_maps import draw_effects, scale_end
from headatlas.figure.footer import Foot
from headatlas.figure.headers import add_header, fit_headers
from headatlas.figure.holes import hole_legend
from headatlas.figure.panels import Sheet, add_label, add_outer_labels, columns_of, map_height
from headatlas.figure.style import TEXT_WIDTH, house_style

__all__ = ["plot_imported"]

_NARROWEST = 1.3  # inches: a panel


@house_style()
def plot_imported(
    atlas: Atlas | str | Path,
    names: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel per imported task score: blue above zero, red below, each with a scale of its own."""
    atlas = require_atlas(atlas)
    wanted = atlas.imported if names is None else [names] if isinstance(names, str) else list(names)
    if not wanted:
        raise RequestError("this atlas has no imported task score to draw; 'headatlas import' reads one.")
    for name in wanted:
        if name not in atlas.imported:
            raise UnknownNameError("imported score in this atlas", name, atlas.imported)
    maps = [mean_of_seeds(atlas, name) for name in wanted]
    foot = Foot.of(hole_legend(atlas, maps, imported=True), _caption(atlas, wanted), width)
    sheet = Sheet(1, 1, width, left=0.34, right=0.06, bottom=0.28 + foot.height)
    columns = columns_of(max(len(maps), 3), sheet, _NARROWEST)
    rows = -(-len(maps) // columns)
    sheet = replace(sheet, rows=rows, columns=columns)
    headers = fit_headers(
        [
            f"{title_of(name)} (±{scale_end(values.values):.2g})"
            for name, values in zip(wanted, maps, strict=True)
        ],
        sheet.panel_width,
    )
    sheet = replace(sheet, header=headers.height)
    figure, axes = sheet.build(map_height(atlas.spec.shape, sheet.panel_width, rows))
    for place, ax in enumerate(axes.flat):
        if place >= len(maps):
            ax.remove()
            continue
        draw_effects(maps[place], ax=ax, left=place % columns == 0, bottom=place + columns >= len(maps))
        add_header(ax, headers.texts[place], headers)
    add_outer_labels(figure, axes, x="Head", y="Layer", lift=foot.height)
    add_label(figure, label)
    foot.draw(figure)
    return figure


def _caption(atlas: Atlas, names: Sequence[str]) -> list[str]:
    facts = [atlas.run(name, IMPORTED).task_facts for name in names]
    files = dict.fromkeys(str(one.get("imported_from", "elsewhere")) for one in facts)
    counts = {name: len(seeds_given(atlas, name)) for name in names}
    several = [f"{name} ({count})" for name, count in counts.items() if count > 1]
    caption = [
        f"Scores as imported from {', '.join(files)}, not measured here. Blue: above zero, red: below. Each "
        "panel has a scale of its own, to the ± in its header, beyond which the strongest 2 % of heads lie."
    ]
    if several:
        caption.append(f"The mean over seeds: {', '.join(several)}.")
    uneven = uneven_seeds(atlas)
    caption += [f"{name}: {uneven[IMPORTED, name]}." for name in names if (IMPORTED, name) in uneven]
    notes = dict.fromkeys(text for one in facts for text in reading_words(one) if "mean" in text)
    return [*caption, *(f"{text[0].upper()}{text[1:]}." for text in notes)]
