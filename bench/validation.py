"""What the maps of SmolLM2 are worth: every method, held-out items, all findings.

python bench/validation.py measure --out FOLDER
    maps math, syntax and arithmetic (ten quick seeds) and all relations into an atlas, validates it
    (minutes on a GPU, hours on a CPU)
python bench/validation.py join --out OTHER
    maps tasks that ask for a relation, and the relations: do both views name the same heads?
python bench/validation.py export --atlas FOLDER --joined OTHER --out bench/reference/validation.json
    the figures, and what the page is made from
python bench/validation.py report --out docs/results.md
    the page
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from objective import gates

from agreement import REFERENCE

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = ("sufficiency", "ablation", "effects", "stability")
TASKS = ("math", "syntax", "arithmetic")
#: relations that SmolLM2 knows
ASKED = ("past-tense", "plural", "ing-form", "first-letter", "name-copying", "country-capital")
SEEDS, ITEMS, DRAWS, RETEST = 10, 128, 20, 3


def measure(arguments: argparse.Namespace) -> None:
    import torch

    from headatlas import load_model, map_heads, relate_heads, validate_atlas

    out = arguments.out
    times: dict[str, float] = {}
    began = time.monotonic()
    relate_heads(load_model(arguments.model, dtype="float32"), out=out, resume=True)
    times["relations"] = time.monotonic() - began
    model = load_model(arguments.model, dtype="fast")
    for task in TASKS:
        began = time.monotonic()
        map_heads(model, task, out=out, resume=True, seeds=SEEDS)
        times[f"map {task}"] = time.monotonic() - began
        print(task, times, flush=True)
    for task in TASKS:
        began = time.monotonic()
        atlas = validate_atlas(out, model=model, tasks=[task], items=ITEMS, draws=DRAWS, retest=RETEST)
        times[f"validate {task}"] = time.monotonic() - began
        print(atlas.validation(task).table(200).to_string(), times, flush=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    facts = {"device": device, "torch": torch.__version__, "seconds": times}
    (Path(out) / "bench.json").write_text(json.dumps(facts, indent=1) + "\n")


def join(arguments: argparse.Namespace) -> None:
    from headatlas import load_model, map_heads, relate_heads

    relate_heads(load_model(arguments.model, dtype="float32"), out=arguments.out, resume=True, salient=False)
    model = load_model(arguments.model, dtype="fast")
    for name in ASKED:
        atlas = map_heads(model, f"relation:{name}", out=arguments.out, resume=True, seeds=SEEDS)
        print(atlas.summary(f"relation:{name}"), flush=True)


def export(arguments: argparse.Namespace) -> None:
    from headatlas import open_atlas
    from headatlas.atlas import by_seeds, find
    from headatlas.figure import FigureOptions, draw_figure, save_figure

    atlas = open_atlas(arguments.atlas)
    found: dict[str, Any] = {
        **json.loads((arguments.atlas / "bench.json").read_text()),
        "model": atlas.spec.name,
        "heads": len(atlas.spec),
        "seeds": {task: len(atlas.seeds(task)) for task in atlas.tasks},
        "items": {task: atlas.validation(task).items for task in atlas.validated},
        "methods": {task: atlas.validation(task).table().to_dict("records") for task in atlas.validated},
        "by_seeds": {
            task: json.loads(by_seeds(atlas.scores(task)).to_json(orient="records")) for task in atlas.tasks
        },
        "findings": [one.to_json() for one in find(atlas)],
    }
    others = find(open_atlas(arguments.joined))
    found["joined"] = [one.to_json() for one in others if one.topic == "joined"]
    arguments.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    for kind in FIGURES:
        tasks = ("syntax",) if kind == "effects" else None
        save_figure(draw_figure(atlas, kind, FigureOptions(tasks=tasks)), DOCS / f"{kind}.png")


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


def _holds(*conditions: bool) -> str:
    return "holds" if all(conditions) else "in part" if any(conditions) else "does not hold"


def _published() -> str:
    """Always with the preset `paper`."""
    words = []
    for task in TASKS:
        if (REFERENCE / f"{task}-paper.parquet").exists():
            share = (gates(f"{task}-paper")["remove"] >= 0.5).all(0).mean()
            words.append(f"{task} {100 * share:.0f} %")
    return ", ".join(words)


def _claims(facts: dict[str, Any]) -> list[str]:
    """What the papers say, what is so here, and whether it holds; the verdicts follow from the numbers."""
    found = Found(facts)
    always = [one["value"] for one in found.each("density", "{}, always, facilitation")]
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
    lines = [
        (
            "Any is dense: most heads facilitate in some seed",
            _listed([f"{100 * value:.0f} %" for value in some]),
            _holds(*(value > 0.5 for value in some)),
        ),
        (
            "Always is sparse: few heads facilitate in every seed",
            _listed([f"{100 * value:.0f} %" for value in always])
            + f" (ten seeds); with the published schedule and objective too: {_published()}",
            _holds(*(value < 0.1 for value in always)),
        ),
        (
            "Math keeps more heads in every seed than syntax",
            f"{100 * gap['value']:+.1f} points [{100 * gap['low']:+.1f} to {100 * gap['high']:+.1f}]",
            _holds(gap["low"] > 0),
        ),
        (
            "Deeper layers have higher values under Any",
            "rank correlation of facilitation with depth: "
            + _listed([f"{one['value']:.2f}" for one in deep]),
            _holds(*(one["low"] > 0 for one in deep)),
        ),
        (
            "Switched off from G+, facilitating heads harm",
            _listed([f"{one['value']:+.2f}" for one in off["facilitation"]]) + " nats without 5 % of heads",
            _holds(*(one["high"] < 0 for one in off["facilitation"])),
        ),
        (
            "… irrelevant ones do nothing",
            _listed([f"{one['value']:+.3f}" for one in off["irrelevance"]]),
            _holds(
                *(
                    abs(one["value"]) < 0.05 * abs(other["value"])
                    for one, other in zip(off["irrelevance"], off["facilitation"], strict=True)
                )
            ),
        ),
        (
            "… interfering ones help when switched off",
            _listed([f"{one['value']:+.3f}" for one in off["interference"]])
            + ": G+ has them all but shut already. ",
            _holds(*(one["low"] > 0 for one in off["interference"])),
        ),
        (
            "Heads that mediation names have a higher facilitation",
            _listed([f"{one['value']:+.2f}" for one in named]),
            _holds(*(one["adjusted"] < 0.05 and one["low"] > 0 for one in named)),
        ),
        (
            "Algorithmic and knowledge heads lie in the upper layers",
            ", ".join(
                f"{name} from layer {early[name]['value']:.0f}" for name in ("algorithmic", "knowledge")
            )
            + " of 30 on",
            _holds(*(early[name]["adjusted"] < 0.05 for name in ("algorithmic", "knowledge"))),
        ),
        (
            "Linguistic heads lie in all layers",
            f"90 % of them from layer {early['linguistic']['value']:.0f} on",
            _holds(early["linguistic"]["p"] > 0.05),
        ),
        (
            "Few heads have several categories",
            several["text"],
            _holds(several["value"] < 0.05 * facts["heads"]),
        ),
    ]
    return ["| claim | here | |", "|---|---|---|", *(f"| {' | '.join(line)} |" for line in lines)]


def _against_best(task: str, table: dict[str, Any], part: str) -> str:
    best = max((line[part], name) for name, line in table.items() if name != "gating")
    return f"{task} {table['gating'][part]:.2f} against {best[0]:.2f} ({best[1]})"


def _comparison(facts: dict[str, Any]) -> list[str]:
    """Where gating is ahead of the others and where not."""
    tables = {task: {line["method"]: line for line in facts["methods"][task]} for task in TASKS}
    ahead = [_against_best(task, table, "sufficiency") for task, table in tables.items()]
    behind = [_against_best(task, table, "necessity") for task, table in tables.items()]
    joined = [one["value"] for one in facts["joined"]]
    sure = sum(one["adjusted"] < 0.05 for one in facts["joined"])
    return [
        f"- **Sufficiency**, gating against the best other method: {'; '.join(ahead)}.",
        f"- **Necessity**: {'; '.join(behind)}. Gating is behind where integrated gradients are best. "
        "Our reading, which the planted redundant pair and backup bear out ([plants.md](plants.md)): of "
        "heads that can stand in for each other remove keeps as few as are enough and shuts the rest, so "
        "that the rest comes late in its order and takes over when the first are taken away; integrated "
        "gradients give credit to all of them. To find a small set of heads that works, gate; to find all "
        "that must go, attribute.",
        f"- **The causal view and that of the weights** hardly agree over all heads: for the {len(joined)} "
        f"relations that were asked as tasks the rank correlation is {min(joined):.2f} to {max(joined):.2f}, "
        f"{sure or 'none'} of them significant. What a head writes for a source token and whether a prompt "
        "with examples needs it are different questions: most heads that such a prompt needs (those that "
        "find the source, or read the examples) implement no relation, and of heads that do, others stand "
        "in. Switching off the heads with the highest scores does break the task "
        "([relations.md](relations.md)).",
    ]


def report(arguments: argparse.Namespace) -> None:
    from headatlas.atlas import TOPICS

    facts = json.loads((REFERENCE / "validation.json").read_text())
    seeds = facts["seeds"][TASKS[0]]
    lines = [
        "# What the maps of SmolLM2 are worth",
        "",
        f"Made by `bench/validation.py report` from an atlas of {', '.join(TASKS)} with {seeds} seeds of "
        f"the preset `quick`, validated on {facts['items'][TASKS[0]]} held-out items (fewer where a task "
        f"has fewer) on {facts['device']}. In brackets: 95 % intervals over items (methods) or over heads "
        "(findings).",
        "",
        "## What holds of the papers' claims on this model",
        "",
        *_claims(facts),
        "",
        "And of ours:",
        "",
        *_comparison(facts),
        "",
        "## Every method on the same items",
        "",
        "*Sufficiency*: the area under faithfulness over the share of heads kept, the most wanted first. "
        "*Distance*: between that curve and 1. *Necessity*: one less the area with those heads taken away. "
        "Heads that are not there are switched off, which is what gating is fitted with; methods that "
        "replace heads by other outputs (mean, resample, mediate) rank them for another question, and are "
        "judged by this one all the same.",
        "",
        *_methods(facts),
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
    commands = parser.add_subparsers(required=True)
    for name, work in (
        ("measure", measure),
        ("join", join),
        ("export", export),
        ("report", report),
    ):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, required=True)
        command.set_defaults(work=work)
        if name in ("measure", "join"):
            command.add_argument("--model", default="smollm2")
        if name == "export":
            command.add_argument("--atlas", type=Path, required=True)
            command.add_argument("--joined", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
