"""What the maps of SmolLM2 are worth: the papers' claims, and every method on the same held-out items.

python bench/results.py join --out FOLDER
    map tasks that ask for a relation, and the relations (minutes on a GPU); writes
    bench/reference/joined.json
python bench/results.py report --out docs/results.md
    the page and its figures, from the gallery atlas and bench/reference/joined.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
from math import isnan
from pathlib import Path
from typing import Any

from markdown import table

from agreement import REFERENCE

DOCS = Path(__file__).parent.parent / "docs"
GALLERY = DOCS / "gallery" / "atlas.zip"
FIGURES = ("sufficiency", "ablation", "effects", "stability")
TASKS = ("math", "syntax", "arithmetic")
#: relations that SmolLM2 knows, and the seeds of their tasks
ASKED, SEEDS = ("past-tense", "plural", "ing-form", "first-letter", "name-copying", "country-capital"), 10
#: shares of heads at which faithfulness is shown
KEPT = (0.05, 0.1, 0.2, 0.5)


def join(arguments: argparse.Namespace) -> None:
    from headatlas import load_model, map_heads, open_atlas, relate_heads
    from headatlas.atlas import find

    out = arguments.out
    relate_heads(load_model(arguments.model, dtype="float32"), out=out, resume=True, salient=False)
    model = load_model(arguments.model, dtype="fast")
    for name in ASKED:
        map_heads(model, f"relation:{name}", out=out, resume=True, seeds=SEEDS)
        print(name, flush=True)
    findings = [finding.to_json() for finding in find(open_atlas(out)) if finding.topic == "joined"]
    text = json.dumps(findings, indent=1, ensure_ascii=False) + "\n"
    (REFERENCE / "joined.json").write_text(text, encoding="utf-8")


def _interval(finding: dict[str, Any], form: str, scale: float = 1) -> str:
    value = f"{scale * finding['value']:{form}}"
    if finding["low"] is None:
        return value
    return f"{value} [{scale * finding['low']:{form}} to {scale * finding['high']:{form}}]"


def _p(value: float | None) -> str:
    return "" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


class Findings:
    """Findings by topic and subject."""

    def __init__(self, findings: list[dict[str, Any]]) -> None:
        self._by_key = {(finding["topic"], finding["about"]): finding for finding in findings}

    def of_tasks(self, topic: str, subject: str) -> list[dict[str, Any]]:
        """One per task; {} in `subject` is its name."""
        return [self._by_key[topic, subject.format(task)] for task in TASKS]

    def one(self, topic: str, subject: str) -> dict[str, Any]:
        finding: dict[str, Any] = self._by_key[topic, subject]
        return finding

    def task_difference(self, first: str, second: str) -> tuple[dict[str, Any], int]:
        """The difference of two tasks, and its sign if the report has them in this order or the other."""
        if ("tasks", f"{first} − {second}") in self._by_key:
            return self.one("tasks", f"{first} − {second}"), 1
        return self.one("tasks", f"{second} − {first}"), -1

    def topic(self, topic: str) -> dict[str, dict[str, Any]]:
        return {subject: finding for (key, subject), finding in self._by_key.items() if key == topic}


def _is_significant(finding: dict[str, Any]) -> bool:
    return finding["adjusted"] is not None and finding["adjusted"] < 0.05


def claim_rows(findings: Findings, atlas: Any) -> list[list[str]]:
    """A row per published claim: what the papers say, what is measured here, and the result."""

    def listed(values: list[str]) -> str:
        return ", ".join(f"{task} {value}" for task, value in zip(TASKS, values, strict=True))

    always = findings.of_tasks("density", "{}, always, facilitation")
    dense = findings.of_tasks("density", "{}, any, facilitation")
    gap, sign = findings.task_difference("math", "syntax")
    low, high = sorted(sign * gap[side] for side in ("low", "high"))
    deep = findings.of_tasks("layers", "{}, facilitation in any seed")
    off = {
        order: findings.of_tasks("ablation", f"{{}}, {order}")
        for order in ("facilitation", "irrelevance", "interference")
    }
    by_chance = [
        float(atlas.validation(task).ablation()["middle"].sel(share=0.05, method="nearest")) for task in TASKS
    ]
    mediation = findings.topic("mediation")
    first = findings.topic("categories")
    several = findings.one("several", "categories")
    upper = [name for name in ("algorithmic", "knowledge") if name in first]
    return [
        [
            "Any is dense",
            "heads that facilitate in at least one of ten seeds",
            listed([f"{100 * one['value']:.1f} %" for one in dense]),
        ],
        [
            "Always is sparse",
            "heads that facilitate in every one of ten seeds",
            listed([f"{100 * one['value']:.1f} %" for one in always]),
        ],
        [
            "Math needs more heads than syntax",
            "difference of the shares of facilitating heads per seed",
            f"{100 * sign * gap['value']:+.1f} points [{100 * low:+.1f} to {100 * high:+.1f}]",
        ],
        [
            "Deeper layers have higher values under Any",
            "facilitation in any seed against depth",
            "rank correlation " + listed([_interval(one, ".2f") for one in deep]),
        ],
        [
            "Switched off from G+, facilitating heads harm",
            "change of log-probability with the first 5 % of heads off",
            listed([_interval(one, "+.2f") for one in off["facilitation"]]) + " nats",
        ],
        [
            "… irrelevant heads do nothing",
            "the same, beside as many random heads",
            listed(
                [
                    f"{_interval(one, '+.3f')} (random {chance:+.2f})"
                    for one, chance in zip(off["irrelevance"], by_chance, strict=True)
                ]
            )
            + " nats",
        ],
        [
            "… the task gains without interfering heads",
            "the same",
            listed([_interval(one, "+.3f") for one in off["interference"]])
            + " nats; G+ has nearly shut them already",
        ],
        [
            "Heads that mediation names have a higher facilitation",
            "facilitation against the mean of their layers",
            ", ".join(f"{task} {_interval(one, '+.2f')}" for task, one in mediation.items()),
        ],
        [
            "Algorithmic and knowledge heads lie in the upper layers",
            "mean depth against permuted layers",
            ", ".join(
                f"90 % of {name} from layer {first[name]['value']:.0f} of 30 on "
                f"(p {_p(first[name]['adjusted'])})"
                for name in upper
            ),
        ],
        [
            "Linguistic heads lie in all layers",
            "the layer from which 90 % of them lie on",
            f"from layer {first['linguistic']['value']:.0f} of 30 on",
        ],
        [
            "Few heads have several categories",
            "heads with two or more categories",
            several["text"],
        ],
    ]


def methods(atlas: Any) -> list[str]:
    """Sufficiency, distance and necessity of every method; in nats where they cannot be normalized."""
    lines = []
    for task in TASKS:
        check = atlas.validation(task)
        suffix = "" if check.is_normalized else "_nats"
        for record in sorted(check.records(), key=lambda record: -record[f"sufficiency{suffix}"]):
            cells = [
                f"{record[name]:.2f} [{record[f'{name}_low']:.2f} to {record[f'{name}_high']:.2f}]"
                for name in (f"{figure}{suffix}" for figure in ("sufficiency", "distance", "necessity"))
            ]
            name = f"**{record['method']}**" if record["method"] == "gating" else record["method"]
            unit = "" if check.is_normalized else " (nats)"
            lines.append([f"{task}{unit}", name, *cells, record["varies"]])
    return table(["task", "method", "sufficiency ↑", "distance ↓", "necessity ↑", "interval over"], lines)


def comparison(atlas: Any, joined: list[dict[str, Any]]) -> list[str]:
    """Where gating leads and where it does not, by intervals of the differences."""
    from headatlas.atlas.effect_summary import COMPLETE

    lines = []
    for figure in ("sufficiency", "necessity"):
        texts = []
        for task in TASKS:
            check = atlas.validation(task)
            open_methods = [name for name in check.named() if not _is_converged(atlas, task, name)]
            others = [name for name in check.named() if name not in ("gating", *open_methods)]
            areas = {method: check.measure(figure, method).mean for method in others}
            best = max(areas, key=lambda method: areas[method])
            gap = check.measure(figure, "gating", less=best)
            lead = "leads" if (gap.low or 0) > 0 else "trails" if (gap.high or 0) < 0 else "is level with"
            left_out = f", without {', '.join(open_methods)}" if open_methods else ""
            texts.append(f"{task}{left_out}: gating {lead} {best} ({gap.mean:+.2f}{gap.brackets('+.2f')})")
        lines.append(
            f"- **{figure.capitalize()}**, against the best other method that has converged: "
            f"{'; '.join(texts)}."
        )
    errors = {task: atlas.completeness_error(task, "attribute-integrated") for task in TASKS}
    listed = ", ".join(f"{task} {100 * error:.1f} %" for task, error in errors.items())
    open_tasks = [task for task, error in errors.items() if error > COMPLETE]
    rough = f"; above 5 % they have not converged, so no verdict on {', '.join(open_tasks)} uses them"
    lines.append(f"- **Integrated gradients**: completeness error {listed}{rough if open_tasks else ''}.")
    if any(_path_dtype(atlas, task) != "float32" for task in TASKS):
        points = max(atlas.effect(task, "attribute-integrated", 0).facts["points"] for task in TASKS)
        lines[-1] += (
            f" These gradients were measured in half precision with {points:.0f} points per item; now "
            "headatlas measures the path in float32 and adds points until the expected error is 2 %."
        )
    if joined:
        values = [one["value"] for one in joined]
        certain = [one["about"] for one in joined if _is_significant(one)]
        lines.append(
            f"- **Task and weights**: for {len(joined)} relations asked as tasks, facilitation and score "
            f"have a rank correlation within layers of {min(values):.2f} to {max(values):.2f}; "
            f"{'significant: ' + ', '.join(certain) if certain else 'none is significant'}. What a head "
            "writes for a source token and whether a few-shot prompt needs it are different questions."
        )
    return lines


def _is_converged(atlas: Any, task: str, method: str) -> bool:
    from headatlas.atlas.effect_summary import COMPLETE

    error = atlas.completeness_error(task, method) if (task, method) in atlas.effect_maps else None
    return error is None or error <= COMPLETE


def _path_dtype(atlas: Any, task: str) -> str | None:
    """The dtype that the integrated gradients were measured in; None if it was not recorded."""
    dtype: str | None = atlas.effect(task, "attribute-integrated", 0).facts.get("dtype")
    return dtype


def kept(atlas: Any) -> list[str]:
    lines = []
    for task in TASKS:
        check = atlas.validation(task)
        for method in check.named():
            curve = check.curve(method)
            values = [curve[int(abs(check.shares - share).argmin())] for share in KEPT]
            lines.append([task, method, *(f"{value:.2f}" for value in values)])
    return table(["task", "method", *(f"{100 * share:.0f} %" for share in KEPT)], lines)


def held_out(atlas: Any) -> list[str]:
    """NLL and gain on new groups, and on new items of known groups."""
    lines = []
    for task in TASKS:
        summary = atlas.summary(task)
        sides = (summary.nll, summary.known.get("nll", {}))
        cells = [
            ", ".join(f"{side[fit]:.2f}" for fit in ("baseline", "retain", "remove"))
            for side in sides
            if side
        ]
        gains = [f"{gain.mean:+.3f}{gain.brackets('+.3f')}" for gain in summary.gain.values()]
        lines.append([task, f"{summary.held_out} in {summary.groups} groups", *cells, *gains])
    head = [
        "task",
        "held-out items",
        "NLL on new groups: whole, G+, G−",
        "on known groups",
        "gain of G+",
        "of G−",
    ]
    return table(head, lines)


def by_seeds_table(atlas: Any) -> list[str]:
    from headatlas.atlas import by_seeds
    from headatlas.atlas.stability import half_overlap

    lines = []
    for task in TASKS:
        scores = atlas.scores(task)
        again = half_overlap(scores)
        for line in by_seeds(scores).to_dict("records"):
            if line["seeds"] in (1, 3, 5, 10):
                other = line["facilitation_with_others"]
                halves = ""
                if again is not None and line["seeds"] == again.seeds:
                    halves = f"{again.jaccard:.2f}, {again.chance:.2f}"
                lines.append(
                    [
                        task,
                        f"{line['seeds']:.0f}",
                        f"{100 * line['always_facilitating']:.0f} %, {100 * line['any_facilitating']:.0f} %",
                        "" if isnan(other) else f"{other:.2f}",
                        halves,
                    ]
                )
    head = ["task", "seeds", "Always, Any facilitating", "rank correlation with as many other seeds"]
    return table([*head, "Jaccard index of disjoint halves, by chance"], lines)


def page(atlas: Any, joined: list[dict[str, Any]]) -> str:
    """The text of docs/results.md."""
    from headatlas.atlas import find

    findings = Findings([finding.to_json() for finding in find(atlas)])
    run = atlas.run(TASKS[0])
    lines = [
        "# What the maps of SmolLM2 are worth",
        "",
        "Made by `bench/results.py` from the [gallery](gallery/README.md) atlas: "
        f"{len(atlas.seeds(TASKS[0]))} seeds of the preset `{run.settings['given']['preset']}`, "
        f"{run.made_with['device']}. Its [report](gallery/report.md) has all findings. Brackets hold "
        "95 % intervals; [changes.md](changes.md) lists what earlier versions claimed.",
        "",
        "## The papers' claims on this model",
        "",
        "The papers report other models, and other data sets under the names math and syntax, so this "
        "neither confirms nor refutes them. Relation claims use relation lists made anew.",
        "",
        *table(["published claim", "what is measured here", "here"], claim_rows(findings, atlas)),
        "",
        "## Held-out items",
        "",
        "*New groups*: templates, lemmas or operands that no gate was fitted on. *Known groups*: new "
        "items of groups that were fitted on. The gain is the drop in NLL, its interval over groups.",
        "",
        *held_out(atlas),
        "",
        "## Every method on the same items",
        "",
        *comparison(atlas, joined),
        "",
        "*Sufficiency*: area under faithfulness as heads are kept, best first. *Distance*: mean distance "
        "of that curve from the whole model. *Necessity*: mean loss of faithfulness as heads are taken "
        "away, best first. Removed heads are zero-ablated, as in the fits of gating; methods that "
        "replace heads by other outputs answer another question and are still judged by this one. "
        f"Gating uses its seeds and updates; effects of single heads come from {_effort(atlas)}.",
        "",
        *methods(atlas),
        "",
        "Faithfulness with this share of heads kept:",
        "",
        *kept(atlas),
        "",
        "![Faithfulness with heads kept and taken away](sufficiency.png)",
        "",
        "![Change of the target log-probability as heads are switched off from G+](ablation.png)",
        "",
        "![Effects of single heads on syntax by each method](effects.png)",
        "",
        "## Seeds",
        "",
        *by_seeds_table(atlas),
        "",
        "![Shares and agreement against the number of seeds](stability.png)",
        "",
    ]
    if joined:
        lines += ["## Do the heads that a task needs have the weights for it?", ""]
        lines += table(["finding", "adjusted p"], [[one["text"], _p(one["adjusted"])] for one in joined])
        lines.append("")
    return "\n".join(lines)


def read_joined() -> list[dict[str, Any]]:
    path = REFERENCE / "joined.json"
    joined: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return joined


def report(arguments: argparse.Namespace) -> None:
    from headatlas import open_atlas
    from headatlas.atlas import unpack_atlas
    from headatlas.figure import draw_figure, save_figure

    with tempfile.TemporaryDirectory() as folder:
        atlas = open_atlas(unpack_atlas(GALLERY, Path(folder) / "atlas"))
        text = page(atlas, read_joined())
        for kind in FIGURES:
            tasks = ("syntax",) if kind == "effects" else TASKS
            save_figure(draw_figure(atlas, kind, tasks=tasks), DOCS / f"{kind}.png")
    arguments.out.write_text(text, encoding="utf-8")


def _effort(atlas: Any) -> str:
    counts = {
        (atlas.effect(task, method, 0).facts["items"], len(atlas.effects(task, method).seed))
        for task, method in atlas.effect_maps
    }
    return " or ".join(
        f"{items} items and {seeds} seed{'s' * (seeds > 1)}" for items, seeds in sorted(counts)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, work in (("join", join), ("report", report)):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, required=True)
        command.set_defaults(work=work)
        if name == "join":
            command.add_argument("--model", default="smollm2")
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
