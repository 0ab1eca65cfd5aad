"""A task: say a word again."""

from __future__ import annotations

from collections.abc import Iterator

from headatlas import Task
from headatlas.task import TaskSpec


def records(count: int = 60) -> Iterator[dict[str, str]]:
    for number in range(count):
        yield {"first": f"w{number}", "second": f"w{number + 1}"}


ECHO = Task(
    TaskSpec(
        name="echo",
        source={"generator": "headatlas_plugin_of_a_test.task:records"},
        prompt="{first} {second} {first}",
        target=" {second}",
        about="A word that stood after the same word before.",
    ),
    trust_code=True,
)
