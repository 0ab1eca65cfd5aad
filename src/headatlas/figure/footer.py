"""What stands below the panels: a legend and a caption, as tall as they have to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headatlas.atlas import Atlas, Doubt, doubts
from headatlas.core import title_of
from headatlas.figure.headers import shortened, text_inches
from headatlas.figure.style import FONT_SIZES

__all__ = ["Foot", "count_by_task", "doubt_caption", "entry"]

_SIZE = FONT_SIZES["tick"]
#: inches: a line of the caption, a row of the legend, air above and below either
_LINE, _ROW, _AIR = _SIZE * 1.25 / 72, _SIZE * 1.5 / 72, 0.05
#: inches: the mark of an entry of the legend and the space around it
_MARK = 0.24


def entry(name: str) -> str:
    """A name in a legend, cut short where it would take half a column."""
    return shortened(name, _SIZE, 1.2)


def doubt_caption(
    atlas: Atlas, tasks: Sequence[str], of_task: Callable[[Atlas, str], Sequence[Doubt]] = doubts
) -> list[str]:
    """A paragraph that names what is doubtful about each task; none if nothing is."""
    found = {task: of_task(atlas, task) for task in dict.fromkeys(tasks)}
    parts = [
        f"{title_of(task)} ({', '.join(doubt.brief for doubt in some)})"
        for task, some in found.items()
        if some
    ]
    return [f"Doubtful: {'; '.join(parts)}. The report says why."] if parts else []


def count_by_task(counts: Mapping[str, int], what: str) -> str:
    """ "3 seeds"; where tasks differ, "3 seeds (Math), 5 seeds (Syntax)"."""
    each: dict[int, list[str]] = {}
    for task, count in counts.items():
        each.setdefault(count, []).append(title_of(task))
    words = {count: f"{count} {what}{'' if count == 1 else 's'}" for count in each}
    if len(each) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{words[count]} ({', '.join(tasks)})" for count, tasks in each.items())


@dataclass(frozen=True, slots=True)
class Foot:
    """A legend in `columns`, and below it the `lines` of a caption. Without either it has no height.

    A legend of no columns has found a place of its own, where a panel could be.
    """

    handles: tuple[Artist, ...]
    columns: int
    lines: tuple[str, ...]

    @classmethod
    def of(
        cls,
        handles: Sequence[Artist],
        caption: Sequence[str],
        width: float,
        place: tuple[float, float] | None = None,
    ) -> Foot:
        """Fitted to a sheet of `width` inches; every paragraph of the caption begins a line.

        `place`: inches of a free place in the grid of panels, which the legend takes if it fits.
        """
        lines = [line for text in caption for line in _wrapped(text, width - 0.06)]
        widest = max((text_inches(str(one.get_label()), _SIZE) + _MARK for one in handles), default=0)
        if not handles or (place and widest <= place[0] and len(handles) * _ROW <= place[1]):
            return cls(tuple(handles), 0, tuple(lines))
        most = max(1, min(len(handles), int(width / widest)))
        rows = -(-len(handles) // most)
        return cls(tuple(handles), -(-len(handles) // rows), tuple(lines))

    @property
    def height(self) -> float:
        """Inches."""
        return self._caption + (_AIR + _ROW * -(-len(self.handles) // self.columns) if self.columns else 0)

    @property
    def _caption(self) -> float:
        return _AIR + _LINE * len(self.lines) if self.lines else 0

    def draw(self, figure: Figure, place: Axes | None = None) -> None:
        """At the lower edge of a sheet that has kept the height free; `place`: the axes of the free place."""
        width, height = figure.get_size_inches()
        if self.lines:
            figure.text(
                0.02 / width, 0.02 / height, "\n".join(self.lines), ha="left", va="bottom", fontsize=_SIZE,
                linespacing=1.05, gid="caption",
            )  # fmt: skip
        style: dict[str, Any] = {"borderaxespad": 0.1, "borderpad": 0, "fontsize": _SIZE}
        style |= {"handlelength": 1.2, "handletextpad": 0.5, "columnspacing": 1.2, "labelspacing": 0.3}
        if self.columns:
            figure.legend(
                handles=self._by_columns(), loc="lower center", bbox_to_anchor=(0.5, self._caption / height),
                ncols=self.columns, **style,
            )  # fmt: skip
        elif self.handles and place is not None:
            figure.legend(handles=self.handles, loc="center", bbox_to_anchor=place.get_position(), **style)

    def _by_columns(self) -> list[Artist]:
        """Matplotlib fills a legend column by column; this one is read row by row."""
        return [handle for column in range(self.columns) for handle in self.handles[column :: self.columns]]


def _wrapped(text: str, width: float) -> list[str]:
    """Lines of at most `width` inches, broken at spaces; a no-break space holds words together."""
    lines = [""]
    for word in (shortened(word, _SIZE, width) for word in text.split(" ")):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_inches(longer, _SIZE) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
