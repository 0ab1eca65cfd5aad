"""Bars for work that takes minutes: updates, loss, tokens per second, time left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
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

from headatlas.cli.wording import command_text
from headatlas.core import Event, Loaded, Note, Update, Workers, plural

if TYPE_CHECKING:
    from rich.status import Status

    from headatlas import Ray

__all__ = ["ShownProgress", "saved_in", "spinner"]

#: columns of a terminal on which all that a bar can say has its place
_WIDE = 108
#: seconds between two lines where there is no terminal
_EVERY = 60


def spinner(text: str) -> AbstractContextManager[object]:
    """A sign of life on a terminal."""
    console = Console(stderr=True)
    return console.status(escape(text)) if console.is_terminal else nullcontext()


def saved_in(out: str, executor: Ray | None = None) -> str | None:
    """The folder in which all that a command saves appears; None if workers save it elsewhere."""
    return out if executor is None or executor.exchange is None else None


class ShownProgress:
    """Draws bars on a terminal; elsewhere one line per stage. All of it goes to standard error.

    `tasks` are all that will come, in that order; `goes_on` names what goes on after Ctrl-C. Files in the
    folder `out` tell whether there is anything to go on with; None: work is saved elsewhere. `about` says
    what is done, in the first line of standard output, with the model; `model` is its name until then.
    """

    def __init__(
        self,
        quiet: bool = False,
        goes_on: str = "the same command with --resume",
        tasks: Sequence[str] = (),
        out: str | None = None,
        about: str = "",
        model: str | None = None,
    ) -> None:
        self._out, self._about, self._model = out, about, model
        self._introduced = False
        self._status: Status | None = None
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
        self._tokens = self._done = 0
        self._what = ""
        self._began = self._said = 0.0
        self._each: dict[str, TaskID] = {}
        self._all: TaskID | None = None
        self._counts = (-1, -1)

    def __enter__(self) -> ShownProgress:
        if self._live and self._model:
            self._status = self._console.status(escape(f"loading {self._model} …"))
            self._status.start()
        elif self._live:
            self._bars.start()
        return self

    def _stop_status(self) -> None:
        """The model is loaded: bars take the place of the spinner."""
        if self._status is not None:
            self._status.stop()
            self._status = None
            self._bars.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
        elif self._live:
            self._bars.stop()
        if kind is KeyboardInterrupt:
            self._console.print(escape(self._after_stop()))

    def _after_stop(self) -> str:
        if self._out is None:  # workers may or may not have saved something
            return f"stopped; run {self._goes_on} to continue from the last save, if there is one"
        if self._saved() == self._saved_before:
            return f"stopped before anything was saved; {self._goes_on} starts again where this one started"
        return f"stopped; {self._goes_on} goes on from what was saved last"

    def _saved(self) -> set[tuple[Path, int]]:
        """Finished work and checkpoints in the atlas folder, with the time of each."""
        files = Path(self._out).rglob("*.safetensors") if self._out is not None else ()
        return {(path, path.stat().st_mtime_ns) for path in files}

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note):
            self._console.print("[yellow]note:[/]", escape(command_text(event.text)))
        elif isinstance(event, Loaded):
            self._stop_status()
            self._introduce(
                f"[bold]{escape(event.model)}[/]: {event.heads:,} heads, {event.dtype} on {event.device}"
            )
        elif isinstance(event, Workers):
            self._stop_status()
            self._show_workers(event)
        else:
            self._show_update(event)

    def _introduce(self, model: str) -> None:
        """The first line of the output: the model, and what is done with it."""
        if self._about and not self._quiet and not self._introduced:
            Console(soft_wrap=True, highlight=False).print(f"{model}; {escape(self._about)}")
        self._introduced = True

    def _title(self, event: Update) -> str:
        if not event.subject:
            return event.what
        several = len(self._tasks) > 1 and event.subject in self._tasks
        number = f"{self._tasks.index(event.subject) + 1}/{len(self._tasks)} " if several else ""
        return f"{number}{event.subject}: {event.what}"

    def _show_update(self, event: Update) -> None:
        title = self._title(event)
        is_new = title != self._what or event.done < self._done
        self._done = event.done
        if not self._live:
            if not self._quiet:
                self._print_update(title, event, is_new)
            self._what = title
            return
        if is_new:
            self._what, self._tokens = title, 0
            self._bar = self._bars.add_task(
                escape(title), total=event.total or None, completed=event.done, about=""
            )
        self._tokens += event.tokens
        loss = "" if event.loss is None else f"loss {event.loss:.3f}"
        seconds = self._bars.tasks[self._bars.task_ids.index(self._bar)].elapsed or 1e-9
        rate = f"  {self._tokens / seconds:,.0f} tokens/s" if self._tokens and self._wide else ""
        self._bars.update(self._bar, completed=event.done, about=loss + rate)

    def _print_update(self, title: str, event: Update, is_new: bool) -> None:
        """Where there is no terminal: a line when gates are fitted, with their loss; for other work a line
        when it begins, and every minute how far it is."""
        now = monotonic()
        if event.loss is not None:
            if event.done == event.total:
                loss = f"loss {event.loss:.3f}"
                self._console.print(f"{escape(title)}: {plural(event.total, 'update')}, {loss}")
        elif is_new:
            self._began = self._said = now
            if not event.subject:  # fits say so when they are done
                self._console.print(f"{escape(title)} …")
        elif now - self._said >= _EVERY and 0 < event.done < event.total:
            self._said = now
            left = (now - self._began) * (event.total - event.done) / event.done
            share = 100 * event.done / event.total
            self._console.print(f"{escape(title)}: {share:.0f} %, about {left / 60:.0f} min left")

    def _show_workers(self, event: Workers) -> None:
        """What all workers are at: a bar for each, and one for all."""
        self._introduce(f"[bold]{escape(self._model or '')}[/]: on Ray")
        counts = event.done, event.total
        if not self._live:
            if not self._quiet and counts != self._counts:
                self._console.print(f"{event.done} of {plural(event.total, 'step')} done")
            self._counts = counts
            return
        if self._all is None or self._counts[1] != event.total:
            self._all = self._bars.add_task("all steps", total=event.total, about="")
        self._counts = counts
        self._bars.update(self._all, completed=event.done)
        for name in self._each.keys() - {worker.step for worker in event.running}:
            self._bars.remove_task(self._each.pop(name))
        for worker in event.running:
            name, update = worker.step, worker.update
            if name not in self._each:
                self._each[name] = self._bars.add_task(escape(name), total=None, about="")
            loss = "" if update.loss is None else f", loss {update.loss:.3f}"
            self._bars.update(
                self._each[name], completed=update.done, total=update.total or None,
                about=escape(update.what + loss),
            )  # fmt: skip
