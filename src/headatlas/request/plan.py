"""The steps that a request comes to, in stages. The local executor and Ray carry out the same plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

__all__ = ["SEEDS_TOGETHER", "Plan", "Step", "seed_blocks", "seeds_text"]

#: Seeds that are fitted together. Block size affects rounding, so it is the same everywhere.
SEEDS_TOGETHER = 5


@dataclass(frozen=True, slots=True)
class Step:
    """A unit of work that one process carries out.

    `subjects` are the tasks or relations that it is about (empty: all), `part` says which part of the work
    on them. `makes` are the result files that it writes; a step without any finds out itself what is missing.
    `work` are files that exist while it is in progress. `reads` are the folders of the atlas that it needs
    (empty: all).
    """

    name: str
    subjects: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    part: str = ""
    makes: tuple[Path, ...] = ()
    work: tuple[Path, ...] = ()
    reads: tuple[Path, ...] = ()

    def is_made(self, root: Path) -> bool:
        """True if all its result files exist."""
        return bool(self.makes) and all((root / path).exists() for path in self.makes)

    def is_done(self, root: Path) -> bool:
        """True if its results exist and no work is left."""
        return self.is_made(root) and not any((root / path).exists() for path in self.work)

    def needs(self, name: str) -> bool:
        """True if the step may read this file of the atlas."""
        return not self.reads or any(Path(name).is_relative_to(folder) for folder in self.reads)


@dataclass(frozen=True, slots=True)
class Plan:
    """Stages of steps: those of a stage are independent of each other and need the stages before.

    `runs` are (method, task) of what is made, in the order of the request. `temporary` files exist until
    all steps are done.
    """

    stages: Sequence[Sequence[Step]]
    runs: Sequence[tuple[str, str]]
    temporary: Sequence[Path] = ()

    @staticmethod
    def to_check(stage: Sequence[Step], root: Path) -> list[Step]:
        """The steps of a stage that are not done, and one finished step of each subject that has no others:
        only a process with the model can check that finished results belong to the same request."""
        done = {step for step in stage if step.is_made(root)}
        open_subjects = {step.subjects for step in stage if step not in done}
        first = {step.subjects: step for step in reversed(stage)}
        checks = {step for subjects, step in first.items() if subjects not in open_subjects}
        return [step for step in stage if step not in done or step in checks]


def seed_blocks(seeds: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """The seeds that are fitted together."""
    for _, block in groupby(seeds, key=lambda seed: seed // SEEDS_TOGETHER):
        yield tuple(block)


def seeds_text(seeds: Sequence[int]) -> str:
    """ "seed 3", "seeds 0 to 4"."""
    return f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
