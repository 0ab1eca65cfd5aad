"""`Task`: prompts and targets, ready to be asked."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from headatlas.core import TaskError
from headatlas.task.files import Record
from headatlas.task.records import first_records, read_records
from headatlas.task.spec import TaskSpec, fill

__all__ = ["Item", "Items", "Task"]

#: records: what is wrong with a file mostly shows in them
_FIRST_LOOK = 1000


@dataclass(frozen=True, slots=True)
class Item:
    """One question: the loss is on `target`, which follows `prompt` directly; `corrupted` is another prompt,
    in which what the target depends on is changed, where the task has one."""

    prompt: str
    target: str
    corrupted: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a task: to fit with, and held out. `seen` counts the records of the source."""

    train: Sequence[Item]
    test: Sequence[Item]
    seen: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class Task:
    """A task as described by `spec`; `folder` is where its relative paths start. A generator that is not
    one of ours is code that runs: only with `trust_code`."""

    spec: TaskSpec
    folder: Path = Path()
    trust_code: bool = False

    @property
    def name(self) -> str:
        return self.spec.name

    def require_readable(self) -> None:
        """A first look, quick, without a tokenizer or a network: missing files, columns and targets."""
        where = f"task {self.name!r}"
        for place, record in enumerate(first_records(self.spec, self.folder, self.trust_code, _FIRST_LOOK)):
            self._require_target(record, where, f"record {place + 1}")

    def _require_target(self, record: Record, where: str, number: str) -> None:
        prompt = fill(self.spec.prompt, record, where)
        if not fill(self.spec.target, record, where).strip():
            raise TaskError(f"{where}: {number} has an empty target; its prompt is {prompt[:60]!r}.")

    def items(self, tokenizer: Any = None) -> Items:
        """All items, held-out ones apart. Some generators choose words that `tokenizer` knows.

        Which records are held out depends on their text alone, and the same prompt is never on both sides
        (the same text, where all have one prompt). Adding a record moves none with another prompt.
        """
        where = f"task {self.name!r}"

        def length(record: Record) -> int:
            return len(fill(self.spec.prompt, record, where)) + len(fill(self.spec.target, record, where))

        records, test, seen = read_records(self.spec, self.folder, tokenizer, length, self.trust_code)
        if not records:
            raise TaskError(f"{where} has no records.")
        for place, record in enumerate([*records, *(test or [])]):
            self._require_target(record, where, f"record {place + 1}" if seen == len(records) else "a record")
        train, test = self._split(records) if test is None else (self._without(records, test), test)
        if not train or not test:
            raise TaskError(
                f"{where} has {len(records)} records, too few (or too much alike) to hold some out."
            )
        made = [self._ask(train, train), self._ask(test, train)]
        silent = ("about", "licence") + (() if self.spec.corrupted else ("corrupted",))
        asked = {key: value for key, value in self.spec.to_json().items() if key not in silent}
        digest = sha256(json.dumps(asked, sort_keys=True, default=str).encode())
        for side in made:
            for item in side:
                said = [item.prompt, item.target, *([item.corrupted] if item.corrupted else [])]
                digest.update(json.dumps(said).encode())
            digest.update(b"|")
        return Items(made[0], made[1], seen, digest.hexdigest())

    def _texts(self, record: Record) -> tuple[str, str]:
        return fill(self.spec.prompt, record, self.name), fill(self.spec.target, record, self.name)

    def _split(self, records: list[Record]) -> tuple[list[Record], list[Record]]:
        """(to fit with, held out). Records with one prompt (a problem and its many solutions) stay together:
        the hash of the first of their texts, by the alphabet, decides for all."""
        texts = [self._texts(record) for record in records]
        leader: dict[str, str] = {}
        for prompt, target in texts:
            leader[prompt] = min(target, leader.get(prompt, target))
        for leaders in ([(prompt, leader[prompt]) for prompt, _ in texts], texts):
            held_out = [self._chosen(*text) for text in leaders]
            if any(held_out) and not all(held_out):
                break
        train, test = (
            [record for record, out in zip(records, held_out, strict=True) if out is side]
            for side in (False, True)
        )
        return train, test

    def _chosen(self, prompt: str, target: str) -> bool:
        text = f"{prompt}\0{target}".encode("utf-8", "surrogatepass")
        return int.from_bytes(sha256(text).digest()[:4]) < self.spec.test * 2**32

    def _without(self, records: list[Record], test: list[Record]) -> list[Record]:
        """The records that are not in a test split of the source: by prompt, or by text if all have one."""
        asked = {self._texts(record) for record in test}
        prompts = {prompt for prompt, _ in asked}
        apart = [record for record in records if self._texts(record)[0] not in prompts]
        return apart or [record for record in records if self._texts(record) not in asked]

    def _ask(self, records: list[Record], known: list[Record]) -> list[Item]:
        """Prompts with their worked examples, which come from the records that are not held out."""
        where = f"task {self.name!r}"
        by = self.spec.examples_by
        alike: defaultdict[Any, list[Record]] = defaultdict(list)
        if self.spec.examples:
            for record in known:
                if by and not isinstance(record.get(by), str | int | bool):
                    raise TaskError(
                        f"{where}: examples_by names the column {by!r}, which holds {record.get(by)!r}; "
                        "it must be there and hold text or numbers."
                    )
                alike[record.get(by) if by else None].append(record)
        items = []
        for place, record in enumerate(records):
            prompt = fill(self.spec.prompt, record, where)
            target = fill(self.spec.target, record, where)
            shots = self._shots(alike[record.get(by) if by else None], prompt, target, place)
            head = fill(self.spec.instruction, record, where)
            before = [*([head] if head else []), *shots]
            corrupted = fill(self.spec.corrupted, record, where)
            items.append(
                Item(
                    "\n".join([*before, prompt]),
                    target,
                    "\n".join([*before, corrupted]) if corrupted else "",
                )
            )
        return items

    def _shots(self, known: list[Record], prompt: str, target: str, place: int) -> list[str]:
        """Worked examples for the question at `place`: other ones than the question itself."""
        wanted = self.spec.examples
        if not wanted:
            return []
        where = f"task {self.name!r}"
        chance = random.Random(place)
        shots: list[str] = []
        few = [chance.choice(known) for _ in range(4 * wanted + 4)] if known else []
        for record in chain(few, known):  # nearly always a few are enough
            if len(shots) == wanted:
                break
            text = fill(self.spec.prompt, record, where) + fill(self.spec.target, record, where)
            if text != prompt + target and text not in shots:
                shots.append(text)
        if len(shots) < wanted:
            raise TaskError(f"{where}: a question needs {wanted} worked examples, there are {len(shots)}.")
        return shots
