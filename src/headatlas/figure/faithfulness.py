"""How far maps can be believed: heads kept alone, taken away, and switched off one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from headatlas.atlas import ORDERS, Atlas, Validation, validation_doubts
from headatlas.core import NLL, RequestError, title_of
from headatlas.figure.footer import Foot, count_by_task, doubt_caption
from headatlas.figure.frame import Frame
from headatlas.figure.grid import lay_out
from headatlas.figure.kind import FigureKind
from headatlas.figure.method_look import method_label, method_looks
from headatlas.figure.palette import PaletteLike, palette_of
from headatlas.figure.panels import Sheet, inward_numbers, plain_axes
from headatlas.figure.shown import figure_function
from headatlas.figure.style import LINE_WIDTH, TEXT_WIDTH, house_style

__all__ = ["draw_ablation", "draw_sufficiency", "plot_ablation", "plot_sufficiency"]

_HEIGHT = 1.15  # inches
_BAND = 0.25  # how much of its colour a band has
_SIDES = {"keep": "kept", "drop": "taken away"}


def _validated(atlas: Atlas, tasks: Sequence[str] | str | None = None) -> list[Validation]:
    wanted = atlas.validated if tasks is None else [tasks] if isinstance(tasks, str) else list(tasks)
    if not wanted:
        raise RequestError("no task of this atlas was validated yet; validate_atlas does it.")
    return [atlas.validation(task) for task in wanted]


def _measured(found: Sequence[Validation]) -> str:
    """What is compared on the held-out items."""
    if all(one.metric.name == NLL for one in found):
        return "the log-probability of held-out targets"
    return f"{' or '.join(dict.fromkeys(one.metric.gain for one in found))} on held-out items"


def _units(found: Sequence[Validation]) -> str:
    return ", ".join(dict.fromkeys(one.metric.unit for one in found))


def _change_label(found: Sequence[Validation]) -> str:
    if all(one.metric.name == NLL for one in found):
        return "Log-probability (nats)"
    names = dict.fromkeys(f"{one.metric.gain} ({one.metric.unit})" for one in found)
    return " or ".join(name[0].upper() + name[1:] for name in names)


@figure_function
def plot_sufficiency(
    atlas: Atlas,
    tasks: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """A row per task: faithfulness against the share of heads that are kept alone, and that are taken
    away, in the order of each method. Nats gained over no heads where faithfulness cannot be normalized."""
    found = _validated(atlas, tasks)
    frame = Frame.of(atlas, ax, axes, title)
    names = list(dict.fromkeys(name for one in found for name in one.named()))
    palette = palette_of(palette, names)
    lines: list[Artist] = [
        Line2D([], [], color=colour, linestyle=dash, linewidth=1.0, label=method_label(atlas, name))
        for name, (colour, dash) in method_looks(names, palette.methods).items()
    ]
    caption = [
        f"Faithfulness: 0 as without any head, 1 as the whole model, in {_measured(found)}. "
        "Heads in the order of each method, the most wanted first; random: the mean of random "
        f"orders. Heads that are not there are switched off (zero). "
        f"{count_by_task({one.task: one.items for one in found}, 'held-out item')}.",
        *doubt_caption(atlas, [one.task for one in found], validation_doubts),
    ]
    caption += [
        f"{title_of(one.task)}, in {one.metric.unit} gained over no heads: {one.why_not_normalized()}."
        for one in found
        if not one.is_normalized
    ]
    foot = Foot.of(lines, caption, width)
    sheet = Sheet(2, width, left=0.42, right=0.06)
    texts = [
        frame.title(
            f"{title_of(one.task)}: {word}{'' if one.is_normalized else f', {one.metric.unit}'}",
            task=title_of(one.task),
            score=word,
        )
        for one in found
        for word in _SIDES.values()
    ]
    grid = lay_out(sheet, texts, foot, _HEIGHT, frame=frame)
    curves = [(one, side) for one in found for side in _SIDES]
    for panel, edge, (one, side) in zip(grid.panels, grid.edges, curves, strict=True):
        draw_sufficiency(one, side, ax=panel, methods=names, palette=palette)
        plain_axes(panel, **edge)
        if edge["bottom"]:
            inward_numbers(panel)
    units = {True: "Faithfulness", False: f"Gain ({_units(found)})"}
    label_y = " or ".join(units[kind] for kind in units if any(one.is_normalized == kind for one in found))
    return grid.finish(x="Share of heads", y=label_y, label=label)


@house_style()
def draw_sufficiency(
    found: Validation,
    side: str,
    *,
    ax: Axes,
    methods: Sequence[str] | None = None,
    palette: PaletteLike | None = None,
) -> Axes:
    """The curves of one task with heads kept ("keep") or taken away ("drop").

    `methods`: all that the figure shows, which decide the looks of those of plugins.
    """
    shown = methods or found.named()
    looks = method_looks(shown, palette_of(palette, shown).methods)
    values = found.curve if found.is_normalized else found.gain
    full = 1 if found.is_normalized else found.gap.mean
    for value in (0, full):
        ax.axhline(value, color="#c0c0c0", linewidth=LINE_WIDTH)
    for name in reversed(found.named()):  # gating on top
        colour, dash = looks[name]
        thick = 1.4 if name == "gating" else 0.9
        ax.plot(found.shares, values(name, side), color=colour, linestyle=dash, linewidth=thick, gid=name)
    curves = np.stack([values(name, one) for name in found.named() for one in _SIDES])  # one scale
    ax.set(xlim=(0, 1), xticks=(0, 0.5, 1))
    ax.set_xticklabels(["0", "0.5", "1"])
    if found.is_normalized:
        low, high = min(-0.1, float(np.nanmin(curves)) - 0.05), max(1.1, float(np.nanmax(curves)) + 0.05)
        ax.set(ylim=(low, high), yticks=(0, 0.5, 1))
        ax.set_yticklabels(["0", "0.5", "1"])
    else:
        margin = 0.1 * float(np.ptp(curves)) or 0.1
        ax.set_ylim(float(curves.min()) - margin, float(curves.max()) + margin)
        ax.locator_params(axis="y", nbins=4)
    plain_axes(ax)
    return ax


@figure_function
def plot_ablation(
    atlas: Atlas,
    tasks: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    axes: Any = None,
    palette: PaletteLike = "paper",
    width: float = TEXT_WIDTH,
) -> Figure:
    """A panel per task: the change of the target log-probability as heads are switched off from G+, in
    the order of each score; the band holds 95 % of the random orders."""
    found = _validated(atlas, tasks)
    frame, palette = Frame.of(atlas, ax, axes, title), palette_of(palette)
    words = palette.lines
    lines: list[Artist] = [
        Line2D([], [], color=words[name], linewidth=1.2, label=f"by {name}") for name in ORDERS
    ]
    lines.append(Patch(facecolor="#7f7f7f", alpha=_BAND, linewidth=0, label="random orders"))
    seeds = count_by_task({one.task: one.off.shape[0] for one in found}, "seed")
    items = count_by_task({one.task: one.items for one in found}, "held-out item")
    draws = count_by_task({one.task: len(one.by_chance) for one in found}, "random order")
    caption = [
        "Heads are switched off one after another, the highest score first, from the gates G+ of each seed; "
        f"mean over seeds and held-out items: {seeds}; {items}. Band: {draws}, from the 2.5th to the 97.5th "
        "percentile. The scale "
        "is cut where all is lost.",
        *doubt_caption(atlas, [one.task for one in found], validation_doubts),
    ]
    foot = Foot.of(lines, caption, width)
    sheet = Sheet(min(3, len(found)), width, left=0.42, right=0.06, gap_x=0.3)
    texts = [frame.title(title_of(one.task), task=title_of(one.task)) for one in found]
    grid = lay_out(sheet, texts, foot, _HEIGHT, frame=frame)
    for panel, one in zip(grid.panels, found, strict=True):
        draw_ablation(one, ax=panel, palette=palette)
    return grid.finish(x="Share of heads switched off", y=_change_label(found), label=label)


@house_style()
def draw_ablation(found: Validation, *, ax: Axes, palette: PaletteLike = "paper") -> Axes:
    """The curves of one task."""
    curves, words = found.ablation(), palette_of(palette).lines
    ax.axhline(0, color="#c0c0c0", linewidth=LINE_WIDTH)
    ax.fill_between(curves.share, curves["low"], curves["high"], color="#7f7f7f", alpha=_BAND, linewidth=0)
    for name in ORDERS:
        ax.plot(curves.share, curves["change"].sel(order=name), color=words[name], linewidth=1.2, gid=name)
    change = curves["change"].values
    lowest = float(change[:, -1].mean())  # all heads off
    top = float(max(0.05 * abs(lowest), np.nanmax(change), float(curves["high"].max())))
    ax.set(xlim=(0, 1), xticks=(0, 0.5, 1), ylim=(1.15 * lowest, top + 0.1 * abs(lowest)))
    ax.set_xticklabels(["0", "0.5", "1"])
    ax.locator_params(axis="y", nbins=4)
    plain_axes(ax)
    return ax


PROVIDES = [
    FigureKind(
        "sufficiency",
        "what heads do alone and what is left without them, by every method",
        plot_sufficiency,
        _validated,
        draws_gates=False,
    ),
    FigureKind(
        "ablation",
        "heads switched off one after another, by each score",
        plot_ablation,
        _validated,
        draws_gates=False,
    ),
]
