"""An atlas and a card as a notebook shows them: plain HTML, no script, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from headatlas.atlas.contrasts import contrasts_of
from headatlas.atlas.imported import imported_effects
from headatlas.atlas.roles import ROLE_WORDS
from headatlas.core import NOT_IMPORTED, plural

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas
    from headatlas.atlas.comparison import Comparison
    from headatlas.atlas.head_card import HeadCard

__all__ = ["atlas_html", "card_html", "comparison_html"]

#: cells of a map, and relations of a card, that a notebook is given
_CELLS, _RELATIONS = 2500, 8
_PIXELS = 7


def atlas_html(atlas: Atlas) -> str:
    """Model, a line per task with the roles of its heads and its Always map, relations by category."""
    spec = atlas.spec
    heads = f"{plural(len(spec), 'head')} in {plural(spec.layers, 'layer')}"
    where = f", {escape(str(atlas.path))}" if atlas.path else ""
    parts = [f"<p><b>{escape(spec.name)}</b>: {heads}{where}</p>"]
    if atlas.tasks:
        words = [word for word in ROLE_WORDS if word]
        lines, maps = [], []
        for task in atlas.tasks:
            shares = atlas.distribution(task)[words].mean()
            always = atlas.always(task)
            counts = [f"{100 * shares[word]:.0f} %" for word in words]
            lines.append([escape(task), str(len(atlas.seeds(task))), *counts])
            maps.append(_map(always["facilitation"].values, always["interference"].values))
        parts.append(_table(["task", "seeds", *words], lines))
        parts.append("<small>shares of heads, the mean over seeds; both help and hurt: anomaly</small>")
        parts.append(_table(atlas.tasks, [maps]))
        parts.append(
            "<small>Always: green helps in every seed, red hurts in every seed; layers upwards, heads to the "
            "right</small>"
        )
    if atlas.relations:
        scores = atlas.relation_scores()
        each = {
            str(category): int((scores.category == category).sum()) for category in np.unique(scores.category)
        }
        said = ", ".join(f"{escape(category)} {count}" for category, count in each.items())
        parts.append(f"<p>{plural(len(atlas.relations), 'relation')}: {said}</p>")
    if atlas.imported:
        parts.append(f"<p>imported: {escape(', '.join(atlas.imported))}</p>")
    if atlas.effect_maps:
        imported = imported_effects(atlas)
        effects = ", ".join(
            f"{escape(method)} of {escape(task)}" + (" (imported)" if (task, method) in imported else "")
            for task, method in atlas.effect_maps
        )
        parts.append(f"<p>effects of single heads: {effects}</p>")
    if contrasts_of(atlas):
        parts.append(f"<p>contrasts: {escape(', '.join(contrasts_of(atlas)))}</p>")
    contents = atlas.contents
    if contents.unfinished:
        parts.append(f"<p>unfinished: {escape(', '.join(contents.unfinished))}</p>")
    if not contents:
        parts.append("<p>nothing is finished yet</p>")
    parts += _caveats(atlas)
    return "".join(parts)


def _caveats(atlas: Atlas) -> list[str]:
    """Reasons to doubt the results, in a list that opens."""
    lines = [
        f"<li>{escape(subject)}: {escape(doubt.text)}</li>"
        for subject, some in atlas.doubts().items()
        for doubt in some
    ]
    if not lines:
        return []
    return [f"<details><summary>{plural(len(lines), 'caveat')}</summary><ul>{''.join(lines)}</ul></details>"]


def card_html(card: HeadCard) -> str:
    """The card of a head."""
    parts = [f"<p><b>{card.head}</b> of {escape(card.model)}: {escape(card.label)}</p>"]
    if card.tasks:
        lines = []
        for task in card.tasks:
            roles = ", ".join(f"{task.roles.count(role)} {role}" for role in dict.fromkeys(task.roles))
            threes = (task.facilitation, task.interference)
            scores = ["{:.2f} / {:.2f} / {:.2f}".format(*three) for three in threes]
            gates = f"{task.retain:.2f}", f"{task.remove:.2f}"
            lines.append([escape(task.task), escape(roles), *gates, *scores])
        heads = ["task", "roles over the seeds", "G+", "G−", "facilitation", "interference"]
        parts.append(_table(heads, lines))
        parts.append("<small>gates: mean over seeds; facilitation, interference: always / mean / any</small>")
    if card.effects:
        only_nats = card.has_effects_in_nats_only
        parts.append(
            _table(
                ["task", "method", "effect, nats" if only_nats else "effect", "rank"],
                [
                    [
                        escape(e.task),
                        escape(e.method) + (", imported" if e.imported else ""),
                        f"{e.effect:+.3f}" + ("" if only_nats else f" {escape(e.unit)}"),
                        str(e.rank),
                    ]
                    for e in card.effects
                ],
            )
        )
        parts += [
            f"<small>doubtful: {escape(e.task)}, {escape(e.method)}: {escape(e.doubt)}</small><br>"
            for e in card.effects
            if e.doubt
        ]
    if card.contrasts:
        parts.append(
            _table(
                ["contrast", "seeds with an open gate", "mean gate"],
                [
                    [escape(one.contrast), f"{one.open_in} of {one.seeds}", f"{one.gate:.2f}"]
                    for one in card.contrasts
                ],
            )
        )
    if card.imported:
        rows = [
            [escape(one.name), f"{one.score:.3g}", str(one.seeds or "not given"), str(one.rank)]
            for one in card.imported
        ]
        parts.append(_table(["imported score", "score", "seeds", "rank"], rows))
    if card.missing:
        parts.append(f"<p>{NOT_IMPORTED}: {escape(', '.join(card.missing))}</p>")
    scored = [one for one in card.relations if one.score > 0][:_RELATIONS]
    if scored:
        parts.append(
            _table(
                ["relation", "category", "direction", "score", "how"],
                [
                    [*map(escape, (r.relation, r.category, r.direction)), f"{r.score:.2f}", escape(r.kind)]
                    for r in scored
                ],
            )
        )
    if card.salient:
        parts.append(
            _table(
                ["amplifies", "by", "into"],
                [
                    [escape(repr(one.token)), f"{one.strength:.2f}", escape("  ".join(map(repr, one.mapped)))]
                    for one in card.salient
                ],
            )
        )
    return "".join(parts)


def comparison_html(comparison: Comparison) -> str:
    """A comparison: its sentences, and the heads by their roles in both."""
    title, *lines, verdict = comparison.lines()
    parts = [f"<p><b>{escape(title)}</b></p>", f"<p>{escape(verdict)}</p>"]
    parts.append("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>")
    if comparison.roles is not None:
        columns = list(dict.fromkeys(there for _, there in comparison.roles))
        rows = [
            [escape(here), *(str(comparison.roles.get((here, there), 0)) for there in columns)]
            for here in dict.fromkeys(here for here, _ in comparison.roles)
        ]
        parts.append(_table(["first, down; second, across: heads", *columns], rows))
    return "".join(parts)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    rows = ["".join(f'<th style="text-align:left">{escape(cell)}</th>' for cell in head)]
    rows += ["".join(f'<td style="text-align:left">{cell}</td>' for cell in line) for line in lines]
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def _map(facilitation: np.ndarray, interference: np.ndarray) -> str:
    """Red for what hurts, green for what helps, black for neither, nothing where there is no head."""
    layers, heads = facilitation.shape
    if facilitation.size > _CELLS:
        return "too large for a notebook"
    cells = []
    for (layer, head), helps in np.ndenumerate(facilitation):
        if np.isnan(helps):
            continue
        red, green = (round(255 * float(np.clip(x, 0, 1))) for x in (interference[layer, head], helps))
        place = f'x="{head}" y="{layers - 1 - layer}"'
        cells.append(f'<rect {place} width="1" height="1" fill="#{red:02x}{green:02x}00"/>')
    size = f'width="{heads * _PIXELS}" height="{layers * _PIXELS}"'
    return (
        f'<svg role="img" aria-label="Always map" {size} viewBox="0 0 {heads} {layers}" '
        f'shape-rendering="crispEdges">{"".join(cells)}</svg>'
    )
