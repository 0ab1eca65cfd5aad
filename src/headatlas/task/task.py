"""`Task`: prompts and targets, ready to be asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from headatlas.core import TaskError
from headatlas.task.item_list import AUTO, DEFAULT_SHARE, ITEM_KEYS, HeldOut, checked_test, item_records
from headatlas.task.record_file import Record
from headatlas.task.records import first_records, read_records
from headatlas.task.shots import Question, Shots
from headatlas.task.spec import WORDS, TaskSpec, fill
from headatlas.task.split import Keys, known_prompts, merge_labels, split_groups, split_items

__all__ = ["Item", "Items", "Task", "no_foil_words"]

#: records: what is wrong with a file mostly shows in them
_FIRST_LOOK = 1000


def no_foil_words(task: str, prompt: str, target: str) -> str:
    """What is wrong with an item without a foil, and the repair."""
    return (
        f"task {task!r}: the item {prompt[-60:]!r} → {target!r} has no foil, and the metric logit_diff needs "
        "one for every item: a column 'foil' with a wrong answer, or the line 'foil: …' in the task's YAML."
    )


@dataclass(frozen=True, slots=True)
class Item:
    """One question: the loss is on `target`, which follows `prompt` directly; `corrupted` is another prompt,
    in which what the target depends on is changed, where the task has one. Items of one `group` are related;
    an item without a group is related only to those with its prompt. `foil` is another target, a wrong one,
    which the metric logit_diff compares with, where the task has one."""

    prompt: str
    target: str
    corrupted: str = ""
    group: str = ""
    foil: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a task: to fit with (`train`), of held-out groups (`test`), and held-out items of groups
    that are fitted on (`known`; empty if every group has one prompt).

    `seen` counts the records of the source, `copies` the held-out records that repeat another and are left
    out.
    """

    train: Sequence[Item]
    test: Sequence[Item]
    seen: int
    content_hash: str
    known: Sequence[Item] = ()
    copies: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """A task as described by `spec`; `folder` is where its relative paths start. A generator that is not
    one of ours is code that runs: only with `trust_code`."""

    spec: TaskSpec
    folder: Path = Path()
    trust_code: bool = False

    @classmethod
    def of(cls, items: Any, *, name: str = "items", test: HeldOut = AUTO) -> Task:
        """A task of items in memory: (prompt, target) pairs, dicts with the keys prompt, target and perhaps
        corrupted, foil and group, or a DataFrame with these columns.

        `test` is held out: a share or a number of the items (whole groups, in the order of a hash), a list of
        other items, or None for nothing. By default a tenth where gates are fitted, and nothing where effects
        are measured.
        """
        where = f"task {name!r}"
        records, test = item_records(items, where), checked_test(test, where)
        held_out = [] if test is None or isinstance(test, int | float | str) else list(test)
        used = {key for record in (*records, *held_out) for key in record}
        records = [{key: record.get(key, "") for key in ITEM_KEYS if key in used} for record in records]
        spec = TaskSpec(
            name=name,
            source={"items": records},
            prompt="{prompt}",
            target="{target}",
            corrupted="{corrupted}" if "corrupted" in used else "",
            group="group" if "group" in used else None,
            test=test,
        )
        return cls(spec)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def in_memory(self) -> bool:
        """Does the task hold its items itself?"""
        return self.spec.kind == "items"

    def holding_out(self, test: HeldOut) -> Task:
        """The same task in memory with other held-out items; see `of`."""
        if not self.in_memory:
            raise TaskError(
                f"test is for tasks in memory; {self.name!r} holds out what its definition says (test: in a "
                "YAML file)."
            )
        return Task.of(self.spec.source["items"], name=self.name, test=test)

    def require_readable(self) -> None:
        """A first look, quick, without a tokenizer or a network: missing files, columns and targets."""
        where = f"task {self.name!r}"
        for place, record in enumerate(first_records(self.spec, self.folder, self.trust_code, _FIRST_LOOK)):
            self._require_target(record, where, f"record {place + 1}")
            self._group(record, "")

    def _require_target(self, record: Record, where: str, number: str) -> None:
        prompt = fill(self.spec.prompt, record, where)
        if not fill(self.spec.target, record, where).strip():
            raise TaskError(f"{where}: {number} has an empty target; its prompt is {prompt[:60]!r}.")

    def items(self, tokenizer: Any = None) -> Items:
        """All items, held-out ones apart. Some generators choose words that `tokenizer` knows.

        The split holds out whole groups, and the same prompt is never on two sides (except for relations in
        which the pairs of one source cannot stay together, see `word_groups`). It depends on the text of a
        group alone: adding a record moves no record of another group. Where all records have one prompt,
        their texts are the groups.
        """
        where = f"task {self.name!r}"
        read = read_records(
            self.spec, self.folder, tokenizer, lambda record: "".join(self._texts(record)), self.trust_code
        )
        records, given_test, seen = read
        if not records:
            kept = "" if not seen else f" that pass 'longest' and 'per_group', of {seen}"
            raise TaskError(f"{where} has no records{kept}.")
        for place, record in enumerate([*records, *(given_test or [])]):
            self._require_target(record, where, f"record {place + 1}" if seen == len(records) else "a record")
        sides, copies = self._sides(records, given_test)
        if not sides["train"] or not (sides["test"] or self._holds_nothing_out()):
            column = f" of one {self.spec.group!r}" if self._has_one_group(records) else ""
            raise TaskError(
                f"{where} has {len(records)} records{column}, too few (or too much alike) to hold some out."
            )
        shots = Shots(self.spec, sides["train"])
        items = {side: [self._ask(question, shots) for question in sides[side]] for side in sides}
        digest = sha256(json.dumps(self.spec.version).encode())
        for side in ("train", "test", "known"):
            for item in items[side]:
                texts = [item.prompt, item.target, item.corrupted, item.group]
                foil = [{"foil": item.foil}] if item.foil else []
                digest.update(json.dumps([*texts, *foil]).encode())
            digest.update(b"|")
        return Items(items["train"], items["test"], seen, digest.hexdigest(), items["known"], copies)

    def require_foils(self) -> None:
        """A first look, quick, for the metric logit_diff: refused if an item has no foil."""
        if self.spec.kind == "generator" and not self.spec.foil:
            raise TaskError(f"task {self.name!r} has no foils, which the metric logit_diff needs.")
        for record in first_records(self.spec, self.folder, self.trust_code, _FIRST_LOOK):
            if not self._foil(record).strip():
                prompt, target = self._texts(record)
                raise TaskError(no_foil_words(self.name, prompt, target))

    def _foil(self, record: Record) -> str:
        """The template with the record in it. Without a template: the column `foil`, where the target is the
        column `target` as it is."""
        where = f"task {self.name!r}: foil"
        template = self.spec.foil
        if not template and self.spec.target == "{target}" and "foil" in record:
            template = "{foil}"
        return fill(template, record, where)

    def _texts(self, record: Record) -> tuple[str, str]:
        where = f"task {self.name!r}"
        return fill(self.spec.prompt, record, where), fill(self.spec.target, record, where)

    def _group(self, record: Record, prompt: str) -> str:
        """The value of the group's column; the prompt, if the record has none."""
        column = self.spec.group
        if column is None:
            return prompt
        where = f"task {self.name!r}: group"
        if column not in record:
            raise TaskError(f"{where}: there is no column {column!r}; the columns are {', '.join(record)}.")
        return fill("{group}", {"group": record[column]}, where) or prompt

    def _has_one_group(self, records: list[Record]) -> bool:
        return self.spec.group is not None and len({self._group(record, "") for record in records}) == 1

    def _questions(self, records: list[Record]) -> list[Question]:
        """The records with their texts and groups; groups that share a prompt are one."""
        texts = [self._texts(record) for record in records]
        prompts = [prompt for prompt, _ in texts]
        if len(set(prompts)) == 1:
            prompts = [f"{prompt}\0{target}" for prompt, target in texts]  # the prompt distinguishes nothing
        labels = [self._group(record, prompt) for record, prompt in zip(records, prompts, strict=True)]
        tied_by_words = (
            self.spec.kind == "relation" and self.spec.group == WORDS
        )  # prompts too, where they can be
        if self.spec.group is not None and not tied_by_words:
            labels = merge_labels(labels, prompts)
        return [
            Question(record, *text, Keys(prompt, label))
            for record, text, prompt, label in zip(records, texts, prompts, labels, strict=True)
        ]

    def _sides(
        self, records: list[Record], given_test: list[Record] | None
    ) -> tuple[dict[str, list[Question]], int]:
        """The questions of each side, and how many held-out copies were left out."""
        questions = self._questions([*records, *(given_test or [])])
        if self.in_memory:
            train, test = self._split_in_memory(questions, len(records))
            known: list[int] = []
        elif given_test is None:
            assert isinstance(self.spec.test, int | float)  # only items in memory have anything else
            train, known, test = split_groups([question.keys for question in questions], self.spec.test)
        else:
            test = list(range(len(records), len(questions)))
            held_out = {questions[index].keys.group for index in test}
            fitted = [index for index in range(len(records)) if questions[index].keys.group not in held_out]
            prompts = known_prompts([questions[index].keys for index in fitted])
            train = [index for index in fitted if questions[index].keys.prompt not in prompts]
            known = [index for index in fitted if questions[index].keys.prompt in prompts]
        indexes = {"train": train, "test": test, "known": known}
        sides = {side: [questions[index] for index in chosen] for side, chosen in indexes.items()}
        distinct = {
            side: list({(question.prompt, question.target): question for question in sides[side]}.values())
            for side in ("test", "known")
        }
        copies = sum(len(sides[side]) - len(distinct[side]) for side in distinct)
        return {**sides, **distinct}, copies

    def _holds_nothing_out(self) -> bool:
        return self.in_memory and self.spec.test is None

    def _split_in_memory(self, questions: Sequence[Question], fitted: int) -> tuple[list[int], list[int]]:
        """Indexes to fit with, and held-out ones; the first `fitted` questions are those of the items."""
        where, keys = f"task {self.name!r}", [question.keys for question in questions]
        every, share = list(range(len(questions))), self.spec.test
        if share is None:
            return every, []
        if not isinstance(share, int | float | str):
            groups = {key.group for key in keys[:fitted]}
            for question in questions[fitted:]:
                if question.keys.group in groups:
                    raise TaskError(
                        f"{where}: the held-out item {question.prompt[-60:]!r} has the prompt or the group "
                        "of an item to fit with; give other items as test."
                    )
            return every[:fitted], every[fitted:]
        if isinstance(share, int) and share >= fitted:
            raise TaskError(f"{where}: test is {share}, but there are {fitted} items; allowed are fewer.")
        if len({key.group for key in keys}) < 2:
            reason = "only 1 item" if fitted == 1 else f"{fitted} items of one group"
            raise TaskError(f"{where} has {reason}, so none can be held out; give more, or test=None.")
        share = DEFAULT_SHARE if isinstance(share, str) else share
        return split_items(keys, share if isinstance(share, int) else max(1, round(share * fitted)))

    def _ask(self, question: Question, shots: Shots) -> Item:
        """The prompt with its worked examples, which come from the records to fit with."""
        where = f"task {self.name!r}"
        head = fill(self.spec.instruction, question.record, where)
        before = [*([head] if head else []), *shots.choose(question)]
        corrupted = fill(self.spec.corrupted, question.record, where)
        return Item(
            "\n".join([*before, question.prompt]),
            question.target,
            "\n".join([*before, corrupted]) if corrupted else "",
            question.keys.group,
            self._foil(question.record),
        )
