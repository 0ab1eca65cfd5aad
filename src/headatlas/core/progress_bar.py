"""What `progress=` of the Python functions means: a bar, nothing, or a function of events."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from headatlas.core.errors import HeadatlasWarning, RequestError
from headatlas.core.progress import Event, Loaded, Note, Progress, Update, Workers, silent

__all__ = ["ProgressBar", "progress_of", "warn_user"]

_PACKAGE = str(Path(__file__).parents[1])
#: seconds between two changes of what stands behind a bar
_EVERY = 0.1


@contextmanager
def progress_of(progress: bool | Progress) -> Iterator[Progress]:
    """The function that takes the events of some work; a bar is gone at the end of the block."""
    if progress is True:
        bar = ProgressBar()
        try:
            yield bar
        finally:
            bar.close()
    elif progress is False:
        yield silent
    elif callable(progress):
        yield progress
    else:
        raise RequestError(f"progress is {progress!r:.60}; allowed: True, False or a function of an event.")


class ProgressBar:
    """A bar of tqdm on standard error, with the last loss and the tokens per second; only on a terminal or in
    a notebook, so that it fills no log. Caveats become warnings everywhere, facts lines above the bar."""

    def __init__(self) -> None:
        self._is_shown = _in_notebook() or sys.stderr.isatty()
        self._bar: Any = None
        self._title = ""
        self._tokens = 0
        self._began = self._changed = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note):
            self._tell(event)
        elif self._is_shown and isinstance(event, Update):
            title = f"{event.subject}: {event.what}" if event.subject else event.what
            self._show(title, event.done, event.total, event)
        elif self._is_shown and isinstance(event, Workers):
            self._show("steps on other machines", event.done, event.total)
        else:
            assert isinstance(event, Loaded | Update | Workers)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _tell(self, note: Note) -> None:
        if note.kind == "caveat":
            warn_user(note.text)
        elif note.kind == "fact" and self._is_shown:
            from tqdm.auto import tqdm

            tqdm.write(note.text, file=sys.stderr)

    def _show(self, title: str, done: int, total: int, update: Update | None = None) -> None:
        if self._bar is None or title != self._title or done < self._bar.n:
            self._open(title, done, total)
        self._bar.total = total or None
        self._bar.update(done - self._bar.n)
        if update is None:
            return
        self._tokens += update.tokens
        now = monotonic()
        if now - self._changed >= _EVERY or done == total:
            self._changed = now
            loss = [] if update.loss is None else [f"loss {update.loss:.3f}"]
            seconds = max(now - self._began, 1e-9)
            rate = [f"{self._tokens / seconds:,.0f} tokens/s"] if self._tokens else []
            # tqdm skips updates that follow each other closely; the last one is always shown
            self._bar.set_postfix_str(", ".join(loss + rate), refresh=done == total)

    def _open(self, title: str, done: int, total: int) -> None:
        from tqdm.auto import tqdm

        self.close()
        self._title, self._tokens, self._began = title, 0, monotonic()
        self._bar = tqdm(
            desc=title, total=total or None, initial=done, leave=False, file=sys.stderr, dynamic_ncols=True
        )


def warn_user(text: str) -> None:
    """A `HeadatlasWarning` that points to the line of the user's code which called headatlas."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, HeadatlasWarning, stacklevel=level)


def _in_notebook() -> bool:
    """True in the kernel of a notebook, where standard error is no terminal but bars can be seen."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})
