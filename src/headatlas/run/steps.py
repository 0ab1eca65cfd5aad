"""What a request comes to, cut into steps that can be carried out apart, here or on other machines.

A step has a name. A request that is given names carries out these and nothing else, so that whoever knows the
names can hand the same request to many: the numbers do not depend on who carries out which step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

__all__ = ["SIDE_BY_SIDE", "Only", "Plan", "Seen", "Unit", "is_asked", "seed_blocks"]

#: seeds that are fitted side by side. How many there are decides about the last digits, so it is no matter of
#: who fits them: the same here and on a cluster.
SIDE_BY_SIDE = 5
#: the names of the steps that are to be carried out; None: all
Only = Collection[str] | None


def is_asked(step: str, only: Only) -> bool:
    return only is None or step in only


def seed_blocks(seeds: Iterable[int]) -> Iterator[list[int]]:
    """The seeds that are fitted side by side."""
    for _, block in groupby(seeds, key=lambda seed: seed // SIDE_BY_SIDE):
        yield list(block)


@dataclass(frozen=True, slots=True)
class Unit:
    """Some steps that one worker carries out; `makes` are the files of the atlas that they end in, `tasks`
    those of the request's that they are about (none: all), `needs` the folders of the atlas that they read
    (none: all)."""

    name: str
    steps: tuple[str, ...]
    makes: tuple[Path, ...]
    tasks: tuple[str, ...] = ()
    needs: tuple[Path, ...] = ()

    def is_done(self, root: Path) -> bool:
        return bool(self.makes) and all((root / path).exists() for path in self.makes)

    def reads(self, name: str) -> bool:
        """Is this file of the atlas one that the steps may look at?"""
        return not self.needs or any(Path(name).is_relative_to(folder) for folder in self.needs)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a unit is at, in the process `pid` of its machine; a total of 0 is not known."""

    unit: str
    what: str
    done: int
    total: int
    pid: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Units stage by stage: those of a stage are independent of each other and need what came before."""

    stages: Sequence[Sequence[Unit]]
    runs: Sequence[tuple[str, str]]  # (method, task) of what is made, in the order in which it was asked for
    passing: Sequence[Path] = ()  # files that are there until all is done

    def left(self, stage: Sequence[Unit], root: Path) -> list[Unit]:
        """The units of a stage that have something to do. What is there may have been made with other
        settings: of each task that is done its first unit sees to that."""
        done = {unit for unit in stage if unit.is_done(root)}
        open_tasks = {unit.tasks for unit in stage if unit not in done}
        first = {unit.tasks: unit for unit in reversed(stage)}
        asks = {unit for tasks, unit in first.items() if tasks not in open_tasks}
        return [unit for unit in stage if unit not in done or unit in asks]
