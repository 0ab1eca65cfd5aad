"""What the papers read off their pictures by eye, as numbers with intervals and tests.

Shares of heads vary with the seeds, so seeds are the units of their intervals and tests. Statements about
depth permute whole layers, other statements permute heads within their layers (`Heads`). The p-values of one
question are adjusted together (Holm). tests/calibration shows that every test keeps its level.

A finding is data; `wording` turns it into a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from headatlas.atlas.interval import Interval
from headatlas.atlas.statistics import PERMUTATIONS, holm
from headatlas.core import THRESHOLD, plural, require_share

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["TOPICS", "Finding", "find", "plural"]

#: topic -> the question that it answers
TOPICS = {
    "density": "How many heads facilitate or interfere, in every seed and in at least one?",
    "tasks": "Do tasks need different numbers of heads?",
    "layers": "Do deeper layers have higher scores?",
    "categories": "Where do the heads of a category begin?",
    "columns": "Are the heads of a task or category gathered in some head columns?",
    "several": "How many heads have several roles or categories?",
    "overlap": "Do tasks share their heads?",
    "held-out": "Do the gates help on items that no gate was fitted on?",
    "ablation": "Do the scores say what happens when heads are switched off?",
    "mediation": "Do heads that mediation names facilitate?",
    "sufficiency": "Are the heads that gating names enough, and more so than those of other methods?",
    "stability": "Would the same map come out again?",
    "joined": "Do the heads that a task needs have the weights for it?",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement about an atlas, as data.

    `topic` is the question that it answers, `kind` the statement, of those that answer it, and `about` its
    subject. `value` is its main number with the 95 % interval from `low` to `high`; `numbers` holds all else
    that its sentence says. `p` belongs to the test of `value`, and `adjusted` is that p adjusted for all
    tests of the same topic. `published`: what the papers say about other models.
    """

    topic: str
    kind: str
    about: str
    numbers: Mapping[str, Any]
    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    adjusted: float | None = None
    published: str | None = None

    @classmethod
    def of(
        cls,
        topic: str,
        kind: str,
        about: str,
        value: Interval | float,
        p: float | None = None,
        published: str | None = None,
        **numbers: Any,
    ) -> Finding:
        """A finding whose `value` may come with an interval."""
        interval = value if isinstance(value, Interval) else Interval(value)
        return cls(
            topic, kind, about, numbers, interval.mean, interval.low, interval.high, p, published=published
        )

    @property
    def interval(self) -> Interval:
        return Interval(self.value, self.low, self.high)

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        from headatlas.atlas.finding.wording import sentence

        return sentence(self)

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "about": self.about,
            "text": self.text,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "p": self.p,
            "adjusted": self.adjusted,
            "published": self.published,
        }


def find(atlas: Atlas, threshold: float = THRESHOLD, permutations: int = PERMUTATIONS) -> list[Finding]:
    """All findings that the atlas has evidence for."""
    from headatlas.atlas.finding import category_findings, evidence, role_findings
    from headatlas.atlas.finding.flat_heads import Heads

    threshold = require_share("threshold", threshold)
    heads = Heads(atlas)
    findings: list[Finding] = []
    for task in atlas.tasks:
        findings += role_findings.density(atlas, heads, task, threshold)
    for pair in combinations(atlas.tasks, 2):
        findings += role_findings.task_difference(atlas, heads, *pair, threshold)
        findings += role_findings.shared_heads(atlas, heads, *pair, threshold, permutations)
    for task in atlas.tasks:
        findings += evidence.held_out(atlas, task)
        findings += role_findings.depth(atlas, heads, task, permutations)
        findings += role_findings.task_columns(atlas, heads, task, threshold, permutations)
        findings += role_findings.both_roles(atlas, heads, task, threshold)
        findings += evidence.stability(atlas, task, threshold)
        findings += evidence.mediated(atlas, heads, task, permutations)
        findings += evidence.joined(atlas, heads, task, threshold, permutations)
    for task in atlas.validated:
        findings += [*evidence.ablated(atlas, task), *evidence.sufficiency(atlas, task)]
    if atlas.relations:
        findings += category_findings.category_findings(atlas, heads, permutations)
    order = list(TOPICS)
    return sorted(_adjusted(findings), key=lambda finding: order.index(finding.topic))


def _adjusted(findings: list[Finding]) -> list[Finding]:
    """The findings with p-values adjusted for all tests of the same topic."""
    adjusted = list(findings)
    for topic in TOPICS:
        tested = [
            index
            for index, finding in enumerate(findings)
            if finding.topic == topic and finding.p is not None
        ]
        for index, p in zip(tested, holm([findings[index].p or 0.0 for index in tested]), strict=True):
            adjusted[index] = replace(findings[index], adjusted=p)
    return adjusted
