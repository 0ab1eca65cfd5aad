"""Worked examples before a question, from the records that a task is fitted on."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headatlas.core import TaskError
from headatlas.task.record_file import Record
from headatlas.task.spec import TaskSpec
from headatlas.task.split import Keys

__all__ = ["Question", "Shots"]


@dataclass(frozen=True, slots=True)
class Question:
    """A record with its texts, without instruction and worked examples."""

    record: Record
    prompt: str
    target: str
    keys: Keys


class Shots:
    """Chooses worked examples among `fitted`; with `examples_by` among those with the same value there."""

    def __init__(self, spec: TaskSpec, fitted: Sequence[Question]) -> None:
        self.spec = spec
        self.alike: defaultdict[Any, list[Question]] = defaultdict(list)
        if spec.examples:
            for question in fitted:
                self.alike[self._kind(question)].append(question)

    def _kind(self, question: Question) -> Any:
        by = self.spec.examples_by
        if by is None:
            return None
        value = question.record.get(by)
        if not isinstance(value, str | int | bool):
            raise TaskError(
                f"task {self.spec.name!r}: examples_by names the column {by!r}, which holds {value!r}; "
                "it must be there and hold text or numbers."
            )
        return value

    def choose(self, question: Question) -> list[str]:
        """Worked examples for a question: of other groups, or else of other questions of its group.

        They depend on the question's text, not on its place among the records.
        """
        wanted = self.spec.examples
        if not wanted:
            return []
        alike = self.alike[self._kind(question)]
        shots: dict[str, None] = {}
        for other in _candidates(question, alike, 4 * wanted + 4):
            if len(shots) == wanted:
                break
            shots[other.prompt + other.target] = None
        if len(shots) < wanted:
            raise TaskError(
                f"task {self.spec.name!r}: a question needs {wanted} worked examples, there are {len(shots)}."
            )
        return list(shots)


def _candidates(question: Question, alike: list[Question], drawn: int) -> Iterator[Question]:
    """Random ones of other groups, then all of other groups, then the others of the question's group."""
    chance = random.Random(question.keys.prompt)
    some = [chance.choice(alike) for _ in range(drawn)] if alike else []  # nearly always enough
    for pool in (some, alike):
        yield from (other for other in pool if other.keys.group != question.keys.group)
    yield from (other for other in alike if other.keys.prompt != question.keys.prompt)
