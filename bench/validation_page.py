"""The page of what the maps of SmolLM2 are worth, from bench/reference/validation.json.

python bench/validation_page.py --out docs/results.md
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from objective import gates
from validation import KEPT, TASKS

from agreement import REFERENCE


def _cell(line: dict[str, Any], part: str) -> str:
    return f"{line[part]:.2f} [{line[part + '_low']:.2f}–{line[part + '_high']:.2f}]"


def _methods(facts: dict[str, Any]) -> list[str]:
    lines = [
        "| task | method | sufficiency ↑ | distance ↓ | necessity ↑ |",
        "|---|---|---|---|---|",
    ]
    for task, table in facts["methods"].items():
        for line in table:
            cells = (_cell(line, part) for part in ("sufficiency", "distance", "necessity"))
            name = f"**{line['method']}**" if line["method"] == "gating" else line["method"]
            lines.append(f"| {task} | {name} | {' | '.join(cells)} |")
    return lines


def _by_seeds(facts: dict[str, Any]) -> list[str]:
    parts = ("always_facilitating", "any_facilitating", "always_interfering", "any_interfering")
    lines = [
        "| task | seeds | Always, Any facilitating | Always, Any interfering | rank correlation of "
        "facilitation with all seeds | with as many others |",
        "|---|---|---|---|---|---|",
    ]
    for task, table in facts["by_seeds"].items():
        for line in table:
            if line["seeds"] in (1, 2, 3, 5, 10):
                share = [f"{100 * line[part]:.0f} %" for part in parts]
                other = line["facilitation_with_others"]
                said = "" if other is None else f"{other:.2f}"
                lines.append(
                    f"| {task} | {line['seeds']} | {share[0]}, {share[1]} | {share[2]}, {share[3]} "
                    f"| {line['facilitation_with_all']:.2f} | {said} |"
                )
    return lines


class Found:
    """The findings by topic and what they are about."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._all = {(one["topic"], one["about"]): one for one in [*facts["findings"], *facts["joined"]]}

    def each(self, topic: str, about: str) -> list[dict[str, Any]]:
        """Of every task; {} is its name."""
        return [self._all[topic, about.format(task)] for task in TASKS]

    def topic(self, topic: str) -> list[dict[str, Any]]:
        return [one for (key, _), one in self._all.items() if key == topic]

    def one(self, topic: str, about: str) -> dict[str, Any]:
        found: dict[str, Any] = self._all[topic, about]
        return found


def _listed(values: list[str]) -> str:
    return ", ".join(f"{task} {value}" for task, value in zip(TASKS, values, strict=True))


def _published() -> str:
    """Always with the preset `paper`."""
    words = []
    for task in TASKS:
        if (REFERENCE / f"{task}-paper.parquet").exists():
            share = (gates(f"{task}-paper")["remove"] >= 0.5).all(0).mean()
            words.append(f"{task} {100 * share:.0f} %")
    return ", ".join(words)


def _verdict(conditions: list[bool]) -> str:
    return "holds" if all(conditions) else "in part" if any(conditions) else "does not hold"


def _claims(facts: dict[str, Any]) -> list[str]:
    """What the papers say, when we say that it holds, what is so here."""
    from headatlas.atlas.published import PUBLISHED_SHARES

    found = Found(facts)
    known = [task for task in TASKS if task in PUBLISHED_SHARES]
    most = {task: max(pair[0] for pair in PUBLISHED_SHARES[task]["always"]) for task in known}
    always = dict(zip(TASKS, found.each("density", "{}, always, facilitation"), strict=True))
    some = [one["value"] for one in found.each("density", "{}, any, facilitation")]
    gap = found.one("tasks", "math − syntax")
    deep = found.each("layers", "{}, facilitation in any seed")
    off = {
        order: found.each("ablation", f"{{}}, {order}")
        for order in ("facilitation", "irrelevance", "interference")
    }
    named = found.topic("mediation")
    early = {one["about"]: one for one in found.topic("categories")}
    several = found.one("several", "categories")
    by_chance = [float(one["text"].rsplit("by chance ", 1)[1]) for one in off["irrelevance"]]
    upper = ("algorithmic", "knowledge")
    lines = [
        (
            "Any is dense",
            "more than half of the heads facilitate in some seed",
            _listed([f"{100 * value:.0f} %" for value in some]),
            _verdict([value > 0.5 for value in some]),
        ),
        (
            "Always is sparse",
            "no more heads facilitate in every one of ten seeds than in the Llama-3 model with most: "
            + ", ".join(f"{task} {most[task]:g} %" for task in known),
            _listed([f"{100 * always[task]['value']:.0f} %" for task in TASKS])
            + f"; with the published schedule and objective: {_published()}",
            _verdict([100 * always[task]["value"] <= most[task] for task in known]),
        ),
        (
            "Math keeps more heads in every seed than syntax",
            "the interval of the difference is above 0",
            f"{100 * gap['value']:+.1f} points [{100 * gap['low']:+.1f} to {100 * gap['high']:+.1f}]",
            _verdict([gap["low"] > 0]),
        ),
        (
            "Deeper layers have higher values under Any",
            "facilitation in any seed rises with depth, adjusted p < 0.05",
            "rank correlation: " + _listed([f"{one['value']:.2f}" for one in deep]),
            _verdict([one["value"] > 0 and one["adjusted"] < 0.05 for one in deep]),
        ),
        (
            "Switched off from G+, facilitating heads harm",
            "the interval is below 0, without 5 % of heads",
            _listed([f"{one['value']:+.2f}" for one in off["facilitation"]]) + " nats",
            _verdict([one["high"] < 0 for one in off["facilitation"]]),
        ),
        (
            "… irrelevant ones do nothing",
            "less than a tenth of what as many random heads do",
            _listed([f"{one['value']:+.3f}" for one in off["irrelevance"]]),
            _verdict(
                [
                    abs(one["value"]) < 0.1 * abs(chance)
                    for one, chance in zip(off["irrelevance"], by_chance, strict=True)
                ]
            ),
        ),
        (
            "… interfering ones help by going",
            "the interval is above 0",
            _listed([f"{one['value']:+.3f}" for one in off["interference"]])
            + ": G+ has them all but shut already. Opened again they do harm ([objective.md](objective.md))",
            _verdict([one["low"] > 0 for one in off["interference"]]),
        ),
        (
            "Heads that mediation names have a higher facilitation",
            "Welch's test, adjusted p < 0.05",
            _listed([f"{one['value']:+.2f}" for one in named]),
            _verdict([one["adjusted"] < 0.05 and one["value"] > 0 for one in named]),
        ),
        (
            "Algorithmic and knowledge heads lie in the upper layers",
            "90 % of them begin higher than as many random heads, adjusted p < 0.05",
            ", ".join(f"{name} from layer {early[name]['value']:.0f} of 30 on" for name in upper),
            _verdict([early[name]["adjusted"] < 0.05 for name in upper]),
        ),
        (
            "Linguistic heads lie in all layers",
            "90 % of them begin in the lower third",
            f"from layer {early['linguistic']['value']:.0f} of 30 on",
            _verdict([early["linguistic"]["value"] < 10]),
        ),
        (
            "Few heads have several categories",
            "fewer than 5 % of all heads",
            several["text"],
            _verdict([several["value"] < 0.05 * facts["heads"]]),
        ),
    ]
    head = ["| claim | holds if | here | verdict |", "|---|---|---|---|"]
    return [*head, *(f"| {' | '.join(line)} |" for line in lines)]


def _against_best(task: str, table: dict[str, Any], part: str) -> str:
    best = max((line[part], name) for name, line in table.items() if name != "gating")
    return f"{task} {table['gating'][part]:.2f} against {best[0]:.2f} ({best[1]})"


def _level(facts: dict[str, Any]) -> str:
    """Where the interval of the difference in sufficiency leaves open which is better."""
    close = [
        one["about"].replace(", gating − ", " (") + ")"
        for one in facts["findings"]
        if ", gating − " in one["about"] and one["low"] <= 0 <= one["high"]
    ]
    return f" The interval of the difference has zero in it in {', '.join(close)}." if close else ""


def _ahead(tables: dict[str, Any], part: str) -> str:
    """In how many tasks gating has the highest figure."""
    count = sum(
        all(table["gating"][part] >= line[part] for line in table.values()) for table in tables.values()
    )
    return "ahead in every task" if count == len(tables) else f"ahead in {count} of {len(tables)} tasks"


def _small(facts: dict[str, Any]) -> str:
    """Who is best when few heads are kept."""
    words = []
    for place, share in enumerate(KEPT[:3]):
        best = [
            f"{task} {max((values[place], name) for name, values in kept.items())[1]}"
            for task, kept in facts["kept"].items()
        ]
        words.append(f"{100 * share:.0f} % {', '.join(best)}")
    return "; ".join(words)


def _comparison(facts: dict[str, Any]) -> list[str]:
    """Where gating is ahead of the others and where not."""
    tables = {task: {line["method"]: line for line in facts["methods"][task]} for task in TASKS}
    lines = []
    for part, word in (("sufficiency", "Sufficiency"), ("necessity", "Necessity")):
        each = "; ".join(_against_best(task, table, part) for task, table in tables.items())
        lines.append(f"- **{word}**: gating is {_ahead(tables, part)}; against the best other method {each}.")
    lines[0] += _level(facts)
    sums = [
        f"{task} {one['attribute-integrated']['sum']:+.1f} of {one['attribute-integrated']['whole']:+.1f}"
        for task, one in facts["effects"].items()
    ]
    joined = [one["value"] for one in facts["joined"]]
    sure = [one["about"] for one in facts["joined"] if one["adjusted"] < 0.05]
    said = f"significant: {', '.join(sure)}" if sure else "none of them significant"
    return [
        *lines,
        f"- **With few heads kept** the most faithful are, at {_small(facts)}. The area hides this: at the "
        "pressure of the presets most heads that a task uses stay all but open, so that gating parts needed "
        "from unneeded heads well, and the needed ones among each other badly.",
        "- **Necessity asks another question.** Of heads that can stand in for each other remove shuts all "
        "but as few as are enough; these come late in its order and can take over when the first are taken "
        "away. That is our reading; it is not tested here.",
        "- **Integrated gradients are rough**: over all heads they should sum up to what shutting all of "
        f"them costs; they sum up to {'; '.join(sums)} nats. With most heads half shut the loss swings "
        "wildly, so that a few points of the way decide. Their figures depend on items, points and "
        "precision more than the intervals, which are over held-out items for a given ranking, can say.",
        f"- **The causal view and that of the weights**: for the {len(joined)} relations that were asked as "
        f"tasks facilitation and score have a rank correlation of {min(joined):.2f} to {max(joined):.2f} "
        f"over the heads, {said}. What a head writes for a source token and whether a prompt with examples "
        "needs it are different questions. Switching off the heads with the highest scores does break the "
        "task ([relations.md](relations.md)).",
    ]


def _effort(facts: dict[str, Any]) -> str:
    every = {(one["items"], one["seeds"]) for task in facts["effects"].values() for one in task.values()}
    return " or ".join(f"{items} items and {seeds} seed{'s' * (seeds > 1)}" for items, seeds in sorted(every))


def _kept(facts: dict[str, Any]) -> list[str]:
    head = ["task", "method", *(f"{100 * share:.0f} %" for share in KEPT)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for task, methods in facts["kept"].items():
        for method, values in methods.items():
            lines.append(f"| {task} | {method} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    return lines


def _spread(facts: dict[str, Any]) -> list[str]:
    if "spread" not in facts:
        return []
    lines = ["", "By the order of one seed alone, the lowest and the highest of all seeds:", ""]
    lines += ["| task | method | seeds | sufficiency |", "|---|---|---|---|"]
    for task, methods in facts["spread"].items():
        for method, areas in methods.items():
            lines.append(f"| {task} | {method} | {len(areas)} | {min(areas):.2f}–{max(areas):.2f} |")
    return lines


def report(arguments: argparse.Namespace) -> None:
    from headatlas.atlas import TOPICS

    facts = json.loads((REFERENCE / "validation.json").read_text())
    seeds = facts["seeds"][TASKS[0]]
    lines = [
        "# What the maps of SmolLM2 are worth",
        "",
        f"Made by `bench/validation_page.py` from an atlas of {', '.join(TASKS)} with {seeds} seeds of "
        f"the preset `quick`, validated on {facts['items'][TASKS[0]]} held-out items (fewer where a task "
        f"has fewer) on {facts['device']}. In brackets: 95 % intervals over items (methods) or over heads "
        "(findings).",
        "",
        "## What holds of the papers' claims on this model",
        "",
        *_claims(facts),
        "",
        "And of the methods:",
        "",
        *_comparison(facts),
        "",
        "## Every method on the same items",
        "",
        "*Sufficiency*: the area under faithfulness over the share of heads kept, the most wanted first. "
        "*Distance*: between that curve and 1. *Necessity*: one less the area with those heads taken away. "
        "Heads that are not there are switched off, which is what gating is fitted with; methods that "
        "replace heads by other outputs (mean, resample, mediate) rank them for another question, and are "
        "judged by this one all the same. The efforts differ: gating has its seeds and updates, the effects "
        f"of single heads come from {_effort(facts)}. Intervals are over held-out items, each ranking as it "
        "is.",
        "",
        *_methods(facts),
        *_spread(facts),
        "",
        "Faithfulness with so many heads kept:",
        "",
        *_kept(facts),
        "",
        "![Faithfulness with heads kept and taken away](sufficiency.png)",
        "",
        "![Change of the target log-probability as heads are switched off from G+](ablation.png)",
        "",
        "![Effects of single heads on syntax by each method](effects.png)",
        "",
        "## How many seeds are enough?",
        "",
        *_by_seeds(facts),
        "",
        "![Shares and agreement against the number of seeds](stability.png)",
    ]
    for topic, question in TOPICS.items():
        some = [one for one in facts["joined" if topic == "joined" else "findings"] if one["topic"] == topic]
        if some:
            lines += [
                "",
                f"## {question}",
                "",
                "| finding | p, adjusted | published, of other models |",
                "|---|---|---|",
            ]
        for one in some:
            p = one["adjusted"]
            said = "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"
            lines.append(f"| {one['text']} | {said} | {one['published'] or ''} |")
    arguments.out.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    report(parser.parse_args())


if __name__ == "__main__":
    main()
