"""Findings as a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from headatlas.atlas.atlas import Atlas
from headatlas.atlas.doubts import doubts, made_how
from headatlas.atlas.finding import TOPICS, Finding
from headatlas.atlas.findings import find

__all__ = ["SUFFICIENCY_WORDS", "report_markdown"]

#: heads that are named on each side
_NAMED = 5
#: what the figures of a validation mean, a line each
SUFFICIENCY_WORDS = (
    "Faithfulness is 1 where the targets are as probable as in the whole model, 0 where they are as without "
    "any head. *Sufficiency*: its area over the share of heads kept, the most wanted first (above 1 "
    "counts). *Distance*: the area between it and 1. *Necessity*: 1 less its area with those heads taken "
    "away.",
    "Heads that are not kept are switched off, as they are while gates are fitted: that suits gating and "
    "zero ablation more than methods that ask another question. Being ahead of random heads is a low bar.",
)


def report_markdown(atlas: Atlas, findings: Sequence[Finding] | None = None) -> str:
    """What the atlas says, topic by topic."""
    found = find(atlas) if findings is None else list(findings)
    spec = atlas.spec
    tasks = [f"{task} ({len(atlas.seeds(task))} seeds)" for task in atlas.tasks]
    tests = sum(one.p is not None for one in found)
    lines = [
        f"# {spec.name}",
        "",
        f"{len(spec):,} heads in {spec.layers} layers; "
        f"{', '.join(tasks) or 'no gated task'}; "
        f"{len(atlas.relations)} relations.",
        "",
        "In brackets: 95 % intervals, over heads; over held-out items where heads are kept or switched off; "
        f"over seeds where it says so. p: permutation, exact or Welch's test, {tests} in all; those of one "
        "question are adjusted together (Holm), so that the chance of even one false alarm among them stays "
        "below the level. What the papers found is about other models and stands in its own column.",
    ]
    lines += _basis(atlas)
    for topic, question in TOPICS.items():
        some = [one for one in found if one.topic == topic]
        if not some:
            continue
        lines += [
            "",
            f"## {question}",
            "",
            "| finding | p | adjusted | published, of other models |",
            "|---|---|---|---|",
        ]
        for one in some:
            cells = (_safe(one.text), _p(one.p), _p(one.adjusted), _safe(one.published or ""))
            lines.append(f"| {' | '.join(cells)} |")
    lines += _effects(atlas)
    if not found and not any(atlas.methods(task) for _, task in atlas.runs):
        lines += ["", "There is nothing to report yet."]
    return "\n".join(lines) + "\n"


def _effects(atlas: Atlas) -> list[str]:
    """The heads with the largest effects, by method."""
    if not atlas.effect_maps:
        return []
    lines = [
        "",
        "## What do single heads do?",
        "",
        "| task, method | helps most | hurts most |",
        "|---|---|---|",
    ]
    for task, method in atlas.effect_maps:
        effects = atlas.importance(task, method)
        each = [(float(effects[head.layer, head.head]), str(head)) for head in atlas.spec]
        each.sort(key=lambda one: -one[0])
        sides = [
            [one for one in each[:_NAMED] if one[0] > 0],
            [one for one in each[: -_NAMED - 1 : -1] if one[0] < 0],
        ]
        cells = [", ".join(f"{head} {value:+.3f}" for value, head in side) or "none" for side in sides]
        lines.append(f"| {_safe(task)}, {method} | {' | '.join(cells)} |")
    return [*lines, "", "In nats of loss; the mean over its seeds."]


def _basis(atlas: Atlas) -> list[str]:
    """What the numbers rest on, before they are read."""
    if not atlas.tasks:
        return []
    lines = ["", "## Before you believe this", ""]
    for task in atlas.tasks:
        lines.append(f"- {_safe(task)}: {made_how(atlas, task)}")
        lines += [f"  - **doubtful**: {_safe(doubt)}" for doubt in doubts(atlas, task)]
    if atlas.validated:
        lines += ["", *SUFFICIENCY_WORDS]
    waiting = [task for task in atlas.tasks if atlas.asks_for(task) and atlas.relation_of(task) is None]
    if waiting:
        lines += [
            "",
            f"{', '.join(waiting)}: 'headatlas relations' would show whether the heads have the weights for "
            "it.",
        ]
    return lines


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _safe(text: str) -> str:
    """No cell ends where a name has a bar in it."""
    return text.replace("|", "\\|").replace("\n", " ")
