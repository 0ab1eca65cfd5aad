"""Which claims of the gallery changed when its defects were fixed, as a table: claim, before, after.

python bench/changes.py --out docs/changes.md

`bench/reference/findings-before.json` holds the findings, validation tables and effect sums of the first
gallery atlas, as the code of that time reported them. The other side is the gallery atlas of today.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import results
from markdown import table

from agreement import REFERENCE

GALLERY = Path(__file__).parent.parent / "docs" / "gallery" / "atlas.zip"
#: a claim counts as significant if its adjusted p-value is below this level
LEVEL = 0.05
#: estimates that differ by less than this share of the larger one count as equal
EQUAL = 0.02
ABSENT = "not claimed"
#: verdicts on the papers' claims that docs/results.md gave before, from ten seeds of the preset quick
VERDICTS = {
    "Any is dense": "holds (math 83 %, syntax 81 %, arithmetic 73 %)",
    "Always is sparse": "does not hold (math 49 %, syntax 33 %, arithmetic 25 %)",
    "Math needs more heads than syntax": "holds (+15.9 points [+8.9 to +22.6], in every seed)",
    "Deeper layers have higher values under Any": (
        "does not hold (math -0.11, syntax -0.14, arithmetic -0.38)"
    ),
    "Switched off from G+, facilitating heads harm": (
        "holds (math -2.68, syntax -3.79, arithmetic -1.55 nats)"
    ),
    "… irrelevant heads do nothing": "holds (math -0.018, syntax -0.004, arithmetic +0.001 nats)",
    "… the task gains without interfering heads": (
        "does not hold (math -0.005, syntax -0.001, arithmetic -0.008 nats)"
    ),
    "Heads that mediation names have a higher facilitation": (
        "holds (math +0.17, syntax +0.20, arithmetic +0.23)"
    ),
    "Algorithmic and knowledge heads lie in the upper layers": (
        "holds (from layer 22 of 30 on, and from layer 23)"
    ),
    "Linguistic heads lie in all layers": "does not hold (from layer 22 of 30 on)",
    "Few heads have several categories": "holds (6 heads; 5.6 by chance)",
}
#: other statements of README and docs/results.md: before, after ({} is filled in from the gallery atlas)
STATEMENTS = {
    "Gating is ahead in sufficiency in every task.": "{sufficiency}",
    "Gating is ahead in necessity in none of three tasks.": "{necessity}",
    "Integrated gradients are rough.": "{integrated}",
    "The numbers of a resumed run are those of an uninterrupted run.": (
        "True with the same seeds. Seeds that are added to a started block are fitted apart from it, and "
        "some of their roles differ from those of one run; every fit stores the seeds fitted with it."
    ),
    "The causal view and that of the weights: rank correlations over the heads of 0.02 to 0.15.": "{joined}",
}
INTRODUCTION = """\
Made by `bench/changes.py` from the gallery atlas of SmolLM2. *Before*: the first gallery and the statistics
of that time. *After*: the gallery of today, whose tasks hold out whole templates, whose tests take layers and
seeds as units, and whose intervals include groups of items and rankings. Numbers are the estimate, its
95 % interval and the p-value adjusted for all tests of its question. A claim is left out if its estimate
moved by at most 2 % and neither its interval nor its significance changed."""
#: claims whose quantity is another one today: what it was, what it is
OTHER_QUANTITY = {
    "tasks": "another quantity: the share of heads in every seed before, per seed now",
    "stability seeds": "another quantity: resampled seeds before, disjoint halves now",
}


def describe(finding: dict[str, Any] | None) -> str:
    """The estimate with its interval and its adjusted p-value."""
    if finding is None:
        return ABSENT
    text = f"{finding['value']:.3g}"
    if finding["low"] is not None:
        text += f" [{finding['low']:.3g} to {finding['high']:.3g}]"
    if finding["adjusted"] is not None:
        text += f", p = {finding['adjusted']:.2g}"
    return text


def verdict(finding: dict[str, Any]) -> bool | None:
    """Is the claim significant, by its test or else by its interval? None if it has neither."""
    if finding["adjusted"] is not None:
        return bool(finding["adjusted"] < LEVEL)
    if finding["low"] is not None:
        return not finding["low"] <= 0 <= finding["high"]
    return None


def has_changed(before: dict[str, Any] | None, after: dict[str, Any] | None) -> bool:
    if before is None or after is None:
        return True
    size = max(abs(before["value"]), abs(after["value"]))
    differs = abs(before["value"] - after["value"]) > EQUAL * size
    return differs or verdict(before) != verdict(after) or _width(after) != _width(before)


def _width(finding: dict[str, Any]) -> float | None:
    return None if finding["low"] is None else round(finding["high"] - finding["low"], 3)


def effect(key: tuple[str, str], before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """What the change means for a reader who knew the old claim about `key`, a topic and a subject."""
    if after is None:
        return "**withdrawn**"
    if before is None:
        return "new"
    topic, subject = key
    for name, words in OTHER_QUANTITY.items():
        if f"{topic} {subject}".startswith(name) or name == f"{topic} {subject.rpartition(', ')[2]}":
            return words
    if before["adjusted"] is not None and after["adjusted"] is None:
        return "test withdrawn: with heads as units it was wrong, and these data cannot decide it with layers"
    if verdict(after) is None and verdict(before) is not None:
        return "interval withdrawn: heads are not its units"
    if verdict(before) and not verdict(after):
        return "**no longer significant**"
    if verdict(after) and verdict(before) is False:
        return "**now significant**"
    wide, narrow = _width(after), _width(before)
    if wide is not None and narrow:
        return f"interval {wide / narrow:.1f} times as wide"
    return "estimate"


def rows_of(before: dict[str, Any], findings: list[dict[str, Any]]) -> list[list[str]]:
    """A row per finding that changed: the question with its subject, before, after, and what changed."""
    from headatlas.atlas.finding import TOPICS

    sides = [{(one["topic"], one["about"]): one for one in side} for side in (before["findings"], findings)]
    rows = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        old, new = (side.get(key) for side in sides)
        if has_changed(old, new):
            rows.append([f"{TOPICS[key[0]]} {key[1]}", describe(old), describe(new), effect(key, old, new)])
    return rows


def integrated_rows(before: dict[str, Any], atlas: Any) -> list[list[str]]:
    """Integrated gradients: the sum over heads beside the difference that it should be."""
    from headatlas.atlas.effect_summary import COMPLETE

    method, rows = "attribute-integrated", []
    for task in atlas.tasks:
        if method not in atlas.methods(task):
            continue
        old = before["effects"][task][method]
        facts = atlas.effect(task, method, 0).facts
        rows.append(
            [
                task,
                f"{old['sum']:+.2f} against {old['whole']:+.2f}",
                f"{facts['sum']:+.2f} against {facts['whole']:+.2f}",
                "converged"
                if (atlas.completeness_error(task, method) or 0) <= COMPLETE
                else "**not converged**",
            ]
        )
    return rows


def held_out_rows(before: dict[str, Any], atlas: Any) -> list[list[str]]:
    rows = []
    for task in atlas.tasks:
        summary = atlas.summary(task)
        sides = (before["summaries"][task]["nll"], summary.known["nll"], summary.nll)
        texts = [", ".join(f"{side[fit]:.2f}" for fit in ("baseline", "retain", "remove")) for side in sides]
        rows.append([task, *texts])
    return rows


def method_rows(before: dict[str, Any], atlas: Any) -> list[list[str]]:
    """Distance and necessity of every method; sufficiency is among the claims of the report."""
    rows = []
    for task in atlas.validated:
        old = {record["method"]: record for record in before["methods"][task]}
        for record in atlas.validation(task).records():
            sides = [
                f"{side[name]:.2f} [{side[f'{name}_low']:.2f} to {side[f'{name}_high']:.2f}]"
                if side
                else ABSENT
                for name in ("distance", "necessity")
                for side in (old.get(record["method"]), record)
            ]
            rows.append([task, record["method"], *sides])
    return rows


def statement_rows(atlas: Any, findings: list[dict[str, Any]]) -> list[list[str]]:
    """Statements of the earlier pages, in sentences, with what replaces them."""
    now = {claim: here for claim, _, here in results.claim_rows(results.Findings(findings), atlas)}
    rows = [
        [claim, verdict, f"no verdict, because the paper's models and data are others: {now[claim]}"]
        for claim, verdict in VERDICTS.items()
    ]
    lines = [line.removeprefix("- ") for line in results.comparison(atlas, results.read_joined())]
    values = dict(zip(("sufficiency", "necessity", "integrated", "joined"), lines, strict=True))
    return rows + [[before, "claimed", after.format(**values)] for before, after in STATEMENTS.items()]


def page(atlas: Any) -> str:
    """The text of docs/changes.md."""
    from headatlas.atlas import find

    before = json.loads((REFERENCE / "findings-before.json").read_text(encoding="utf-8"))
    findings = [finding.to_json() for finding in find(atlas)]
    lines = [
        "# What changed when wrong results were fixed",
        "",
        INTRODUCTION,
        "",
        "## Statements",
        "",
        *table(["statement", "before", "after"], statement_rows(atlas, findings)),
        "",
        "## Held-out loss (nats): whole model, G+, G−",
        "",
        *table(
            [
                "task",
                "before (items of known templates)",
                "after (items of known templates)",
                "after (new ones)",
            ],
            held_out_rows(before, atlas),
        ),
        "",
        "## Integrated gradients: sum over all heads against the difference that it must equal",
        "",
        *table(["task", "before", "after", "now"], integrated_rows(before, atlas)),
        "",
        "## Distance and necessity of every method",
        "",
        *table(
            ["task", "method", "distance, before", "after", "necessity, before", "after"],
            method_rows(before, atlas),
        ),
        "",
        "## Findings of the report",
        "",
        *table(["finding", "before", "after", "what changed"], rows_of(before, findings)),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    from headatlas import open_atlas
    from headatlas.atlas import unpack_atlas

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        atlas = open_atlas(unpack_atlas(GALLERY, Path(folder) / "atlas"))
        arguments.out.write_text(page(atlas), encoding="utf-8")


if __name__ == "__main__":
    main()
