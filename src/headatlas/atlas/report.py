"""The report of an atlas: its findings with what they rest on, as Markdown or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headatlas.atlas.contrasts import FIGURES, ContrastSummary, contrasts_of, summarize_contrast
from headatlas.atlas.effect_summary import qualifications
from headatlas.atlas.finding import TOPICS, Finding, find, plural
from headatlas.atlas.finding.doubts import made_how, seed_blocks_text
from headatlas.atlas.imported import imported_effects, imported_markdown
from headatlas.atlas.markdown import escape_markdown
from headatlas.atlas.validation import faithfulness_words
from headatlas.core import NLL, NOT_IMPORTED, THRESHOLD

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["Report", "report_of"]

#: heads that are named on each side
_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What an atlas says: its findings and what they rest on."""

    atlas: Atlas
    findings: tuple[Finding, ...]

    def markdown(self) -> str:
        """The report as a page, topic by topic."""
        return _markdown(self.atlas, self.findings)

    def to_json(self) -> dict[str, Any]:
        atlas = self.atlas
        return {
            "model": atlas.spec.name,
            "made": {task: made_how(atlas, task) for task in atlas.tasks},
            "doubts": {task: [doubt.to_json() for doubt in atlas.doubts(task)] for task in atlas.tasks},
            "effect_doubts": {
                f"{task}, {method}": [doubt.to_json() for doubt in atlas.doubts(task, method)]
                for task, method in atlas.effect_maps
            },
            "contrasts": [
                {
                    **summarize_contrast(atlas, name).to_json(),
                    "doubts": [doubt.to_json() for doubt in atlas.doubts(name, "contrast")],
                }
                for name in contrasts_of(atlas)
            ],
            "findings": [finding.to_json() for finding in self.findings],
        }


def report_of(atlas: Atlas) -> Report:
    return Report(atlas, tuple(find(atlas)))


def _markdown(atlas: Atlas, found: Sequence[Finding]) -> str:
    spec = atlas.spec
    tasks = [f"{escape_markdown(task)} ({plural(len(atlas.seeds(task)), 'seed')})" for task in atlas.tasks]
    tests = sum(one.p is not None for one in found)
    lines = [
        f"# {escape_markdown(spec.name)}",
        "",
        f"{plural(len(spec), 'head')} in {plural(spec.layers, 'layer')}; "
        f"{', '.join(tasks) or 'no gated task'}; "
        f"{plural(len(atlas.relations), 'relation')}.",
        "",
        "Brackets hold 95 % intervals; those of mediation and of tasks against weights invert their "
        "permutation test. "
        "The units are seeds for shares of heads, whole layers for depth, "
        "heads within their layers for other statements about heads, and groups of held-out items together "
        "with rankings where heads are kept or switched off. "
        + (
            f"p: {plural(tests, 'permutation or Welch test')} with these units; those of one question are "
            "adjusted together (Holm), so that the chance of even one false alarm among them stays below "
            "5 %. "
            if tests
            else ""
        )
        + "Published findings are about other models.",
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
            cells = (
                escape_markdown(one.text),
                _p(one.p),
                _p(one.adjusted),
                escape_markdown(one.published or ""),
            )
            lines.append(f"| {' | '.join(cells)} |")
    lines += [*_effects(atlas), *_contrasts(atlas), *imported_markdown(atlas)]
    if not (found or atlas.imported or atlas.relations or atlas.effect_maps or contrasts_of(atlas)):
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
        summary = atlas.effect_summary(task, method)
        cells = [
            ", ".join(f"{each.head} {each.effect:+.3f}" for each in side) or "none"
            for side in summary.strongest(_NAMED)
        ]
        without = len(atlas.spec) - len(summary.heads)
        is_imported = (task, method) in imported_effects(atlas)
        missing = NOT_IMPORTED if is_imported else "not measured"
        note = f" ({plural(without, 'head')} {missing})" if without else ""
        note += f" ({summary.item_words})" if summary.of_items is not None else ""
        note += " (imported)" if is_imported else ""
        unit = atlas.run(task, method).unit
        note += f" (unit: {escape_markdown(unit)})" if unit != "nats" else ""
        lines.append(f"| {escape_markdown(f'{task}, {method}')}{note} | {' | '.join(cells)} |")
    measured = [key for key in atlas.effect_maps if key not in imported_effects(atlas)]
    if measured:
        has_other_units = any(atlas.run(*key).unit != "nats" for key in atlas.effect_maps)
        unit = (
            "In nats of loss unless the method names another unit" if has_other_units else "In nats of loss"
        )
        lines += ["", f"{unit}; the mean over the distinct items of its seeds."]
    notes = [f"- {sentence}" for sentence in qualifications(atlas)]
    notes += [
        f"- **doubtful**: {escape_markdown(f'{task}, {method}: {doubt.text}')}"
        for task, method in atlas.effect_maps
        for doubt in atlas.doubts(task, method)
    ]
    return [*lines, "", *notes] if notes else lines


def _contrasts(atlas: Atlas) -> list[str]:
    """Held-out figures of both tasks without the gates of a contrast and with them."""
    names = contrasts_of(atlas)
    if not names:
        return []
    columns = ("keep: NLL", "accuracy", "forget: NLL", "accuracy")
    lines = [
        "",
        "## Which heads does one task need that another does not?",
        "",
        f"| contrast | seeds | {' | '.join(columns)} | heads shut: in every seed, on average, in any |",
        "|---|---|---|---|---|---|---|",
    ]
    warnings = []
    for name in names:
        summary = summarize_contrast(atlas, name)
        cells = [_before_and_after(summary, key) for key in FIGURES]
        shut = ", ".join(f"{summary.shut[over]:.3g}" for over in ("always", "mean", "any"))
        shown = f"keep {escape_markdown(summary.retain)}, forget {escape_markdown(summary.forget)}"
        if not summary.forget:  # imported under a name of its own
            shown = f"{escape_markdown(name)} (imported)"
        blocks = seed_blocks_text(atlas, name, "contrast")
        seeds = f"{len(summary.seeds)} ({blocks})" if blocks else str(len(summary.seeds))
        lines.append(f"| {shown} | {seeds} | {' | '.join(cells)} | {shut} |")
        warnings += [
            f"- **doubtful**: {escape_markdown(name)}: {escape_markdown(doubt.text)}"
            for doubt in atlas.doubts(name, "contrast")
        ]
    lines += [
        "",
        "Held-out items, without the gates → with them, on average over seeds. In parentheses: by how much "
        "the NLL rises, with the 95 % interval over groups of items and seeds. "
        f"A head is shut if its gate is below {THRESHOLD:g}: the task to forget uses it, or neither task "
        "does.",
    ]
    return [*lines, "", *warnings] if warnings else lines


def _before_and_after(summary: ContrastSummary, key: str) -> str:
    """A held-out figure without the gates of a contrast and with them; for an NLL how far it rises."""
    if key not in summary.before or key not in summary.after:
        return ""
    text = f"{summary.before[key]:.2f} → {summary.after[key]:.2f}"
    change = summary.change.get(key.removesuffix("_nll"))
    return f"{text} ({change.mean:+.2f}{change.brackets('+.2f')})" if change else text


def _basis(atlas: Atlas) -> list[str]:
    """What the numbers rest on, before they are read."""
    if not atlas.tasks:
        return []
    lines = ["", "## Before you believe this", ""]
    for task in atlas.tasks:
        lines.append(f"- {escape_markdown(f'{task}: {made_how(atlas, task)}')}")
        lines += [f"  - **doubtful**: {escape_markdown(doubt.text)}" for doubt in atlas.doubts(task)]
    if atlas.validated:
        metrics = {atlas.validation(task).metric.name: task for task in atlas.validated}
        for task in metrics.values():
            lines += ["", *faithfulness_words(atlas.validation(task).facts.get("metric", NLL))]
    waiting = [task for task in atlas.tasks if atlas.asks_for(task) and atlas.relation_of(task) is None]
    if waiting:
        lines += [
            "",
            f"{escape_markdown(', '.join(waiting))}: relate_heads would show whether the heads have "
            "the weights for it.",
        ]
    return lines


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"
