"""Findings as a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from headatlas.atlas.atlas import Atlas
from headatlas.atlas.finding import TOPICS, Finding
from headatlas.atlas.findings import find

__all__ = ["report_markdown"]


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
    if not found:
        lines += ["", "There is nothing to report yet."]
    return "\n".join(lines) + "\n"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _safe(text: str) -> str:
    """No cell ends where a name has a bar in it."""
    return text.replace("|", "\\|").replace("\n", " ")
