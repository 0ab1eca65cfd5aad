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
    """Some steps that one worker carries out; `makes` are the files of the atlas that they end in."""

    name: str
    steps: tuple[str, ...]
    makes: tuple[Path, ...]

    def is_done(self, root: Path) -> bool:
        return bool(self.makes) and all((root / path).exists() for path in self.makes)


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
