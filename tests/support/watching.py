"""Progress that a test watches."""

from __future__ import annotations

from collections.abc import Callable

from headatlas.core import Event, Note, Update

__all__ = ["Watch", "is_step"]


def is_step(event: Event) -> bool:
    """True for a gate update."""
    return isinstance(event, Update) and event.loss is not None


class Watch:
    """Keeps all events. Stops the work, as Ctrl-C does, at the first event for which `stop` is true."""

    def __init__(
        self, stop: Callable[[Event], bool] | None = None, error: type[BaseException] = KeyboardInterrupt
    ) -> None:
        self.stop, self.error = stop, error
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if self.stop is not None and self.stop(event):
            raise self.error

    @property
    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Note)]

    @property
    def updates(self) -> list[Update]:
        return [event for event in self.events if isinstance(event, Update)]

    @property
    def steps(self) -> list[Update]:
        """The gate updates."""
        return [event for event in self.updates if is_step(event)]

    @property
    def works(self) -> list[tuple[str, int, int]]:
        """(what, done, total) of each piece of work, as it was told last."""
        last = {event.what: (event.what, event.done, event.total) for event in self.updates}
        return list(last.values())
