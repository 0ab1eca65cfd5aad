"""What work reports while it goes on. Progress is a function of one event: a test passes `list.append`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Event", "Loaded", "Note", "Progress", "Update", "Worker", "Workers", "silent"]


@dataclass(frozen=True, slots=True)
class Update:
    """`done` of `total` (0: not known) parts of the work named `what` are done.

    `subject` is the task that the work is about, `loss` that of the last gate update, `tokens` how many
    tokens went through the model since the last event.
    """

    what: str
    done: int
    total: int
    subject: str = ""
    loss: float | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the user.

    A "caveat" becomes a warning of the Python functions. A "fact" is no reason to doubt anything. An "early"
    note is a caveat that the call repeats when it ends, where it becomes the warning.
    """

    text: str
    kind: Literal["caveat", "fact", "early"] = "caveat"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model is loaded and proved: its name, its heads, its dtype in words, its device."""

    model: str
    heads: int
    dtype: str
    device: str


@dataclass(frozen=True, slots=True)
class Worker:
    """What the process `process` on some machine is at: a step, and how far it is."""

    step: str
    process: int
    update: Update


@dataclass(frozen=True, slots=True)
class Workers:
    """`done` of `total` steps are done on other machines; `running` are those that are being done."""

    running: tuple[Worker, ...]
    done: int
    total: int


Event = Update | Note | Loaded | Workers
Progress = Callable[[Event], None]


def silent(event: Event) -> None:
    """Progress that nobody watches."""
