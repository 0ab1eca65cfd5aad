"""Do the heads that a relation names by their weights carry it out when the model runs?

The model is asked for targets of a relation behind a few worked examples. Its heads with the highest scores
are then switched off at the last position, one after another; next to it as many random heads, drawn several
times, and the same heads while other relations are asked (controls: relations whose top heads are others).
A relation is carried by its heads if its accuracy falls far below that of the random draws and the
controls stay up.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from headatlas.core import Head, RequestError, ranked
from headatlas.core.lazy import xr
from headatlas.method.engine.head_effects import gates_without
from headatlas.method.engine.likelihood import require_finite
from headatlas.method.engine.memory import with_room
from headatlas.method.engine.rows import RowTable
from headatlas.method.relation.scorer import relations_for
from headatlas.model import Model, eval_mode
from headatlas.task import LEAST_PAIRS, Relation, RelationTokens, Row, load_relation

__all__ = ["CausalCheck", "accuracy", "can_ask", "causal_check", "questions", "top_heads"]

#: worked examples before each question
SHOTS = 3
#: heads that are switched off, step by step
STEPS = (0, 1, 2, 4, 8, 16)
DRAWS = 5
_QUESTIONS = 100
_TOKENS = 4096
#: a relation is a control if it shares less than this part of the heads
_SHARED = 0.15
#: and the model gets this part of it right
_KNOWN = 0.3
#: and as many of those are asked
_CONTROLS = 3


@dataclass(frozen=True, slots=True)
class CausalCheck:
    """Accuracy on `relation` with its best `heads` switched off, `steps[i]` of them at a time.

    `top` is [step]; `random` is [draw, step]: as many heads drawn from all others; `controls` are other
    relations -> [step] with the same heads off. `questions` is how many were asked.
    """

    relation: str
    heads: tuple[Head, ...]
    steps: tuple[int, ...]
    top: tuple[float, ...]
    random: tuple[tuple[float, ...], ...]
    controls: Mapping[str, tuple[float, ...]]
    questions: int

    def to_json(self) -> dict[str, Any]:
        return {
            "relation": self.relation,
            "heads": [str(head) for head in self.heads],
            "steps": list(self.steps),
            "top": list(self.top),
            "random": [list(draw) for draw in self.random],
            "controls": {name: list(values) for name, values in self.controls.items()},
            "questions": self.questions,
        }


def can_ask(relation: RelationTokens) -> bool:
    """Are enough of its targets single tokens?"""
    return sum(pair.whole for pair in relation.pairs) >= LEAST_PAIRS


def questions(model: Model, relation: RelationTokens, most: int = _QUESTIONS) -> list[Row]:
    """Prompts behind a few worked examples, for pairs whose target is one token; examples
    never have the source or an answer on either side."""
    whole = {pair.words: pair.target for pair in relation.pairs if pair.whole}
    if len(whole) < LEAST_PAIRS:
        raise RequestError(
            f"{relation.name!r} cannot be asked of {model.spec.name}: {len(whole)} of its targets are single "
            f"tokens there, {LEAST_PAIRS} are needed."
        )
    template = relation.relation.prompt or "{source} ->"
    first, _ = model.first_tokens()
    chance = random.Random(0)
    pairs = list(relation.relation.pairs)
    answers: dict[str, set[str]] = {}
    for source, target in pairs:
        answers.setdefault(source, set()).add(target)
    chosen = chance.sample(list(whole), min(most, len(whole)))
    texts = []
    for source, _ in chosen:
        given_away = {source, *answers[source]}
        others = [pair for pair in pairs if given_away.isdisjoint(pair)]
        shots = [
            f"{template.format(source=pair[0])} {pair[1]}."
            for pair in chance.sample(others, min(SHOTS, len(others)))
        ]
        texts.append("\n".join([*shots, template.format(source=source)]))
    prompts = model.tokenizer(texts, add_special_tokens=False)["input_ids"]
    return [
        Row((*first, *prompt, whole[pair]), len(first) + len(prompt))
        for prompt, pair in zip(prompts, chosen, strict=True)
    ]


@torch.no_grad()
def accuracy(model: Model, rows: Sequence[Row], off: Sequence[Head]) -> float:
    """The share of rows whose target is on top, with heads switched off where it is predicted."""
    gates = gates_without(model, *off)
    table = RowTable(rows)

    def count_right(budget: int) -> int:
        right = 0
        for batch in table.passes(np.arange(len(rows))[:, None], budget, model.device):
            with model.gates(gates, positions=batch.positions):
                logits = model.logits_at(batch.ids, batch.rows, batch.positions)
            require_finite(model, logits.amax(-1), "logits")  # argmax takes NaN for the largest
            right += int((logits.argmax(-1) == batch.targets.to(logits.device)).sum())
        return right

    with eval_mode(model.hf):
        return with_room(int(table.lengths.max()), _TOKENS, count_right) / len(rows)


def top_heads(scores: xr.DataArray, relation: str, most: int) -> list[Head]:
    """The heads that promote a relation most, the best first; none that does not promote it at all."""
    values = scores.sel(relation=relation, direction="promote").transpose("layer", "head").values
    return [head for head in ranked(values)[:most] if values[head.layer, head.head] > 0]


def causal_check(
    model: Model,
    scores: xr.DataArray,
    relation: str | Relation,
    *,
    controls: Sequence[str | Relation] = (),
    steps: Sequence[int] = STEPS,
    draws: int = DRAWS,
    most: int = _QUESTIONS,
    progress: Callable[[int], None] | None = None,
) -> CausalCheck:
    """Switch off the top heads of a relation by `scores` (what `relation_scores` gives).

    At most half of the model's heads go, and only heads that promote the relation. Of the `controls` those
    are asked, three at most, that share less than 15 % of these heads, have 30 targets of one token, and
    that the model gets right in 30 % of the cases: what it cannot do cannot be lost.
    """
    if most < 1 or draws < 0:
        raise RequestError("a check needs at least one question, and no negative number of draws.")
    (asked,) = relations_for(model, load_relation(relation))
    if asked.name not in scores.relation.values:
        raise RequestError(f"there are no scores of {asked.name!r}; give it to relation_scores as well.")
    heads = top_heads(scores, asked.name, max(steps, default=0))[: len(model.spec) // 2]
    if not heads:
        raise RequestError(f"no head promotes {asked.name!r}; there is nothing to switch off.")
    count = len(heads)
    steps = tuple(sorted({min(step, count) for step in steps}))
    rows = questions(model, asked, most)

    def curve(some: Sequence[Row], order: Sequence[Head]) -> tuple[float, ...]:
        found = []
        for step in steps:
            found.append(accuracy(model, some, order[:step]))
            if progress is not None:
                progress(1)
        return tuple(found)

    rest = [head for head in model.spec if head not in heads]
    chance = np.random.default_rng(0)
    drawn = [[rest[place] for place in chance.permutation(len(rest))[:count]] for _ in range(draws)]
    others: dict[str, tuple[float, ...]] = {}
    for control in relations_for(model, list(controls)) if controls else ():
        if len(others) == _CONTROLS:
            break
        if control.name == asked.name or control.name not in scores.relation.values or not can_ask(control):
            continue
        if len(set(top_heads(scores, control.name, count)) & set(heads)) / count >= _SHARED:
            continue
        asks = questions(model, control, most)
        if accuracy(model, asks, []) >= _KNOWN:
            others[control.name] = curve(asks, heads)
    return CausalCheck(
        asked.name,
        tuple(heads),
        steps,
        curve(rows, heads),
        tuple(curve(rows, order) for order in drawn),
        others,
        len(rows),
    )
