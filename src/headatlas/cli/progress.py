"""Bars for work that takes minutes: updates, loss, tokens per second, time left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from headatlas.core import plural

if TYPE_CHECKING:
    from headatlas.method import Step
    from headatlas.run import Ray, Seen

__all__ = ["ShownProgress", "saved_in"]

_STAGES = {"pressed": "retain + remove", "measure": "held out"}
#: columns of a terminal on which all that a bar can say has its place
_WIDE = 108
#: seconds between two lines where there is no terminal
_EVERY = 60


def saved_in(out: str, executor: Ray | None = None) -> str | None:
    """The folder in which all that a command saves appears; None if workers save it elsewhere."""
    return out if executor is None or executor.exchange is None else None


class ShownProgress:
    """Draws bars on a terminal; elsewhere one line per stage. All of it goes to standard error.

    `tasks` are all that will come, in that order; `goes_on` names what goes on after Ctrl-C. Files in the
    folder `out` tell whether there is anything to go on with.
    """

    def __init__(
        self,
        quiet: bool = False,
        goes_on: str = "the same command with --resume",
        tasks: Sequence[str] = (),
        out: str | None = None,
    ) -> None:
        self._out = out
        self._saved_before = self._saved()
        self._goes_on = goes_on
        self._tasks = list(tasks)
        self._console = Console(stderr=True, soft_wrap=True, highlight=False)
        self._live = self._console.is_terminal and not quiet
        self._quiet = quiet
        self._wide = self._console.width >= _WIDE
        columns: tuple[ProgressColumn, ...] = (
            TextColumn("{task.description:<26}"),
            BarColumn(bar_width=20 if self._wide else 8),
            MofNCompleteColumn(),
            TextColumn("{task.fields[about]:<26}" if self._wide else "{task.fields[about]}"),
            *((TimeElapsedColumn(),) if self._wide else ()),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bars = Bars(*columns, console=self._console)
        self._bar = self._bars.add_task("", total=None, visible=False, about="")
        self._tokens = 0
        self._name = self._what = ""
        self._began = self._said = 0.0
        self._each: dict[str, TaskID] = {}
        self._all: TaskID | None = None
        self._units = (-1, -1)

    def __enter__(self) -> ShownProgress:
        if self._live:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._bars.stop()
        if kind is KeyboardInterrupt:
            self._console.print(escape(self._after_stop()))

    def _after_stop(self) -> str:
        if self._out is not None and self._saved() == self._saved_before:
            return f"stopped before anything was saved; {self._goes_on} starts again where this one started"
        return f"stopped; {self._goes_on} goes on from what was saved last"

    def _saved(self) -> set[tuple[Path, int]]:
        """Finished work and checkpoints in the atlas folder, with the time of each."""
        files = Path(self._out).rglob("*.safetensors") if self._out is not None else ()
        return {(path, path.stat().st_mtime_ns) for path in files}

    def stage(self, task: str, stage: str, sets: int, updates: int, done: int) -> None:
        several = len(self._tasks) > 1 and task in self._tasks
        number = f"{self._tasks.index(task) + 1}/{len(self._tasks)} " if several else ""
        self._name = escape(f"{number}{task}: {_STAGES.get(stage, stage)}, {plural(sets, 'fit')}")
        self._tokens = 0
        if self._live:
            self._bar = self._bars.add_task(self._name, total=updates, completed=done, about="")

    def step(self, step: Step) -> None:
        self._tokens += step.tokens
        loss = "" if step.loss is None else f"loss {step.loss:.3f}"
        if self._live:
            seconds = self._bars.tasks[self._bars.task_ids.index(self._bar)].elapsed or 1e-9
            rate = f"  {self._tokens / seconds:,.0f} tokens/s" if self._tokens and self._wide else ""
            self._bars.update(self._bar, completed=step.update, about=loss + rate)
        elif not self._quiet and step.update == step.updates and step.stage != "measure":
            self._console.print(f"{self._name}: {plural(step.updates, 'update')}, {loss}")

    def heads(self, what: str, done: int, total: int) -> None:
        """So many heads of so many have been looked at; a total of 0 is not known."""
        if not self._live:
            if not self._quiet:
                self._say(what, done, total)
            return
        if what != self._what:
            self._what = what
            self._bar = self._bars.add_task(escape(what), total=total or None, about="")
        self._bars.update(self._bar, completed=done)

    def _say(self, what: str, done: int, total: int) -> None:
        """Where there is no terminal: when something begins, and every minute how far it is."""
        now = monotonic()
        if what != self._what:
            self._what, self._began, self._said = what, now, now
            self._console.print(f"{escape(what)} …")
        elif now - self._said >= _EVERY and 0 < done < total:
            self._said = now
            left = (now - self._began) * (total - done) / done
            self._console.print(f"{escape(what)}: {100 * done / total:.0f} %, about {left / 60:.0f} min left")

    def units(self, running: Sequence[Seen], done: int, total: int) -> None:
        """What all workers are at: a bar for each, and one for all."""
        if not self._live:
            if not self._quiet and (done, total) != self._units:
                self._console.print(f"{done} of {plural(total, 'unit')} done")
            self._units = done, total
            return
        if self._all is None or self._units[1] != total:
            self._all = self._bars.add_task("all units", total=total, about="")
        self._units = done, total
        self._bars.update(self._all, completed=done)
        for name in self._each.keys() - {one.unit for one in running}:
            self._bars.remove_task(self._each.pop(name))
        for one in running:
            if one.unit not in self._each:
                self._each[one.unit] = self._bars.add_task(escape(one.unit), total=None, about="")
            self._bars.update(
                self._each[one.unit], completed=one.done, total=one.total or None, about=escape(one.what)
            )

    def note(self, text: str) -> None:
        self._console.print("[yellow]note:[/]", escape(text))
