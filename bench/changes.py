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

from markdown import table

from agreement import REFERENCE

GALLERY = Path(__file__).parent.parent / "docs" / "gallery" / "atlas.zip"
#: a claim counts as significant if its adjusted p-value is below this level
LEVEL = 0.05
#: estimates that differ by less than this share of the larger one count as equal
EQUAL = 0.02
ABSENT = "not claimed"
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
    return "number"


def rows_of(before: dict[str, Any], findings: list[dict[str, Any]]) -> list[list[str]]:
    sides = [{(one["topic"], one["about"]): one for one in side} for side in (before["findings"], findings)]
    rows = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        old, new = (side.get(key) for side in sides)
        if has_changed(old, new):
            rows.append([key[0], key[1], describe(old), describe(new), effect(key, old, new)])
    return rows


def integrated_rows(before: dict[str, Any], atlas: Any) -> list[list[str]]:
    """Integrated gradients: the sum over heads beside the difference that it should be."""
    from headatlas.atlas import COMPLETE

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


def main() -> None:
    from headatlas import open_atlas
    from headatlas.atlas import find, unpack_atlas

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    before = json.loads((REFERENCE / "findings-before.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        atlas = open_atlas(unpack_atlas(GALLERY, Path(folder) / "atlas"))
        rows = rows_of(before, [finding.to_json() for finding in find(atlas)])
        lines = [
            "# What changed when wrong results were fixed",
            "",
            INTRODUCTION,
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
            "## Claims of the report",
            "",
            *table(["question", "claim", "before", "after", "what changed"], rows),
            "",
        ]
    arguments.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
