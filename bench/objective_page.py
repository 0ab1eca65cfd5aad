"""The page of which objective is right, from what `bench/objective.py` and `bench/plants.py` measured.

python bench/objective_page.py --out docs/objective.md          (and docs/objective.png)
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from markdown import table
from objective import LIMIT, RUNS, TASKS, gates, logits, runs

from agreement import FIRST_VERSION, REFERENCE, seed_to_seed

DOCS = Path(__file__).parent.parent / "docs"


def numbers(task: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / f"objective-{task}.json").read_text(encoding="utf-8"))
    return found


def _percent(part: float, whole: float = 1) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def _interval(values: dict[str, float], sign: str = "") -> str:
    mean, low, high = (_number(values[key], f"{sign}.3f") for key in ("mean", "low", "high"))
    return f"{mean} [{low} to {high}]"


def _number(value: float, form: str) -> str:
    """With a true minus, and none before a zero."""
    text = f"{value:{form}}"
    return text[1:] if float(text) == 0 and value < 0 else text.replace("-", "−")


def _shares(reached: np.ndarray) -> str:
    """Always and Any of [seed, layer, head]."""
    return f"{_percent(reached.all(0).mean())}, {_percent(reached.any(0).mean())}"


def _each() -> Iterator[tuple[str, str, str, dict[str, np.ndarray], dict[str, Any]]]:
    """Task, schedule, objective, gates and what was measured, of every run that has a partner."""
    for task in TASKS:
        measured = numbers(task)
        there = runs(task)
        for (schedule, objective), name in there.items():
            if all((schedule, other) in there for other in RUNS[schedule]):
                yield task, schedule, objective, gates(name), measured["runs"][name]


def trap_table() -> list[str]:
    lines = []
    for task, schedule, objective, fits, _ in _each():
        shut, kept = fits["retain"] < 0.5, fits["remove"] >= 0.5
        beyond = {fit: logits(values) for fit, values in fits.items()}
        out = [
            _percent((np.abs(beyond["free"]) > LIMIT).mean()),
            _percent((beyond["retain"] < -LIMIT).sum(), shut.sum()),
            _percent((beyond["remove"] > LIMIT).sum(), kept.sum()),
        ]
        if objective == "bounded":
            out = ["–"] * 3
        lines.append([task, schedule, f"`{objective}`", *out])
    head = [
        "task",
        "schedule",
        "objective",
        "free logits beyond ±4",
        "of the gates that retain shut, beyond −4",
    ]
    return table([*head, "of the gates that remove left open, beyond +4"], lines)


def agreement_table() -> list[str]:
    lines = []
    for task, schedule, objective, fits, _ in _each():
        flat = {fit: values.reshape(len(values), -1) for fit, values in fits.items()}
        pairs = f"{seed_to_seed(flat['remove']):.2f} / {seed_to_seed(1 - flat['retain']):.2f}"
        shares = [_shares(fits["remove"] >= 0.5), _shares(fits["retain"] <= 0.5)]
        lines.append([task, schedule, f"`{objective}`", str(len(fits["free"])), pairs, *shares])
    head = ["task", "schedule", "objective", "seeds", "agreement of seeds", "facilitating: Always, Any"]
    return table([*head, "interfering: Always, Any"], lines)


def sufficiency_table() -> list[str]:
    lines = []
    for task in TASKS:
        for schedule, gain in numbers(task)["difference"].items():
            for kind, key in (("all seeds", "sufficiency"), ("one seed", "one_seed")):
                means = [
                    f"{numbers(task)['runs'][RUNS[schedule][objective].format(task)][key]['mean']:.3f}"
                    for objective in ("paper", "bounded")
                ]
                gains = [_interval(gain[name][kind], "+") for name in ("bounded", "limited")]
                lines.append([task, schedule, kind, *means, *gains])
    head = ["task", "schedule", "order by", "`paper`", "`bounded`", "difference"]
    return table([*head, "`paper` with logits limited afterwards, difference"], lines)


def harm_table() -> list[str]:
    lines = []
    for task, schedule, objective, fits, measured in _each():
        opened, alone = np.array(measured["opened"]), np.array(numbers(task)["alone"])
        change, error, out = opened[:, 3], opened[:, 4], opened[:, 5] == 1
        often = ((fits["retain"] <= 0.5).mean(0) >= 0.5).ravel()
        without = measured["without_them"]
        lines.append(
            [
                task,
                schedule,
                f"`{objective}`",
                str(len(opened)),
                f"{_percent((change < 0).mean())}, {_percent((change < -2 * error).mean())}",
                f"{_percent((change > 2 * error).mean())}",
                f"{_percent((change[out] < 0).sum(), out.sum())} of {out.sum()}" if out.any() else "–",
                str(often.sum()),
                _percent((alone[often, 0] > 0).mean()),
                f"{without['mean']:+.3f} ± {2 * without['error']:.3f}",
            ]
        )
    head = ["task", "schedule", "objective", "shut gates", "worse if opened, clearly so", "clearly better"]
    head += ["of the trapped, worse", "heads shut in most seeds", "better without one", "without all of them"]
    return table(head, lines)


COLOURS = {"paper": "#d55e00", "bounded": "#0072b2"}


def draw(path: Path) -> None:
    from matplotlib.figure import Figure

    from headatlas.figure import save_figure
    from headatlas.figure.style import house_style

    with house_style():
        figure = Figure(figsize=(7.2, 2.5), layout="constrained")
        ends, harm, gain = figure.subplots(1, 3)
        _draw_ends(ends)
        _draw_harm(harm)
        _draw_gain(gain)
        for axes in (ends, harm, gain):
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=6)
            axes.title.set_fontsize(7)
    save_figure(figure, path)


def _draw_ends(axes: Any) -> None:
    """Where the free fit leaves the logits."""
    bins = np.linspace(-8, 8, 65)
    for objective, colour in COLOURS.items():
        fits = [one[3]["free"] for one in _each() if one[1:3] == ("published schedule", objective)]
        values = np.concatenate([logits(one).ravel() for one in fits])
        axes.hist(values, bins, histtype="step", density=True, color=colour, label=objective)
    for side in (-1, 1):
        axes.axvspan(side * LIMIT, side * 8, color="#eeeeee", zorder=0)
    axes.set(xlim=(-8, 8), xlabel="logit of a gate after the free fit", ylabel="density")
    axes.set_title("Grey: no pressure acts here")
    axes.legend(loc="upper left")


def _draw_harm(axes: Any) -> None:
    """What it costs to open a gate that retain has shut."""
    looks = {"paper": ("-", "paper"), "trapped": ("--", "paper, trapped"), "bounded": ("-", "bounded")}
    for kind, (dash, label) in looks.items():
        objective = "paper" if kind == "trapped" else kind
        each = [np.array(one[4]["opened"]) for one in _each() if one[2] == objective]
        opened = np.concatenate(each)
        change = opened[opened[:, 5] == 1, 3] if kind == "trapped" else opened[:, 3]
        shares = np.arange(1, len(change) + 1) / len(change)
        axes.plot(np.sort(change), shares, dash, color=COLOURS[objective], linewidth=1, label=label)
    axes.axvline(0, color="#999999", linewidth=0.5)
    axes.set(xlim=(-0.04, 0.012), ylim=(0, 1), ylabel="share of the shut gates")
    axes.set_xlabel("change of log-probability if opened")
    axes.set_title("Are heads called interfering harmful?")
    axes.legend(loc="upper left")


def _draw_gain(axes: Any) -> None:
    lines = [(task, schedule) for task, schedule, objective, *_ in _each() if objective == "bounded"]
    for place, (task, schedule) in enumerate(lines):
        for kind, mark, shift in (("all seeds", "o", -0.12), ("one seed", "s", 0.12)):
            found = numbers(task)["difference"][schedule]["bounded"][kind]
            axes.plot([found["low"], found["high"]], [place + shift] * 2, color="#000000", linewidth=0.7)
            face = "#000000" if kind == "all seeds" else "#ffffff"
            label = kind if not place else None
            axes.plot(
                found["mean"], place + shift, mark, color="#000000", mfc=face, markersize=3.5, label=label
            )
    axes.axvline(0, color="#999999", linewidth=0.5)
    axes.set_yticks(range(len(lines)), [f"{task}\n{schedule}" for task, schedule in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel("sufficiency, bounded less paper")
    axes.set_title("Heads that are enough")
    axes.legend(loc="center right")


def _range(values: list[float], sign: str = "") -> str:
    return f"{_number(min(values), f'{sign}.2f')} to {_number(max(values), f'{sign}.2f')}"


def _gaps(fit: str, harmful: bool) -> list[float]:
    """Agreement between seeds with `bounded` less that with `paper`, of every task and schedule."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for task, schedule, objective, fits, _ in _each():
        flat = fits[fit].reshape(len(fits[fit]), -1)
        found.setdefault((task, schedule), {})[objective] = seed_to_seed(1 - flat if harmful else flat)
    return [one["bounded"] - one["paper"] for one in found.values()]


def _unsure() -> list[str]:
    """By how much Any exceeds Always, in points, `paper` and `bounded`."""
    found: dict[tuple[str, str], list[float]] = {}
    for task, schedule, _, fits, _ in _each():
        kept = fits["remove"] >= 0.5
        gap = kept.any(0).mean() - kept.all(0).mean()
        found.setdefault((task, schedule), []).append(100 * float(gap))
    return [f"{task}, {schedule}: {one[0]:.0f} and {one[1]:.0f}" for (task, schedule), one in found.items()]


def summary() -> list[str]:
    plants = json.loads((REFERENCE / "plants.json").read_text(encoding="utf-8"))
    wrong = {
        objective: [
            sum(counts[place] for one in plants for counts in one["methods"][method]["roles"].values())
            for place in (0, 2)
        ]
        for objective, method in (("paper", "gating as published"), ("bounded", "gating"))
    }
    missed = {objective: true - right for objective, (right, true) in wrong.items()}
    trapped = sum(one["trapped"]["paper"]["wrong"] for one in plants)
    gains = {
        kind: [one["bounded"][kind] for task in TASKS for one in numbers(task)["difference"].values()]
        for kind in ("all seeds", "one seed")
    }
    clear = {kind: sum(one["low"] > 0 for one in some) for kind, some in gains.items()}
    worse = {kind: sum(one["high"] < 0 for one in some) for kind, some in gains.items()}
    opened = {
        name: np.concatenate([np.array(one[4]["opened"]) for one in _each() if one[2] == name])
        for name in ("paper", "bounded")
    }
    caught = opened["paper"][opened["paper"][:, 5] == 1]
    limited = [
        one["limited"][kind]["mean"]
        for task in TASKS
        for one in numbers(task)["difference"].values()
        for kind in ("all seeds", "one seed")
    ]
    gone = {
        name: [one[4]["without_them"]["mean"] for one in _each() if one[2] == name]
        for name in ("paper", "bounded")
    }
    more = sum(one > other for one, other in zip(gone["bounded"], gone["paper"], strict=True))
    return [
        f"- **Planted roles.** Of {wrong['paper'][1]} heads (all plants, forms and seeds) "
        f"{missed['paper']} do not get their role with `paper`, {missed['bounded']} with `bounded`; "
        f"{trapped} of the gates behind the former lie beyond ±4, where no pressure corrects them "
        "([plants.md](plants.md); what is left are the named exceptions of the definition).",
        f"- **Seeds agree better in facilitation**: by {_range(_gaps('remove', False), '+')} in the "
        f"correlation of two seeds, in every task and schedule. In interference: "
        f"{_range(_gaps('retain', True), '+')}.",
        "- **Part of what is called variety of circuits is this.** Any exceeds Always in facilitation by so "
        f"many points with `paper` and `bounded`: {'; '.join(_unsure())}.",
        f"- **Its heads are enough sooner.** Sufficiency is higher by "
        f"{_range([one['mean'] for one in gains['all seeds']], '+')} with the mean over all seeds and by "
        f"{_range([one['mean'] for one in gains['one seed']], '+')} with one seed. The interval over "
        f"items is above 0 in {clear['all seeds']} and {clear['one seed']} of {len(gains['all seeds'])} "
        f"cases, below in {worse['all seeds']} and {worse['one seed']}; it counts neither groups of "
        "items nor other rankings, so it is too narrow.",
        "- **Is that only the order of gates that are all but open?** Limiting the published logits to ±4 "
        f"afterwards, without fitting anew, changes sufficiency by {_range(limited, '+')}.",
        "- **What the trap does not do here: name harmless heads.** In the planted models a head that hardly "
        "matters is shut for good and called interfering. On SmolLM2 no head is quite without effect: of the "
        f"{len(opened['paper'])} gates that retain shuts with `paper`, "
        f"{_percent((opened['paper'][:, 3] < 0).mean())} cost log-probability on held-out items when opened "
        f"alone in G+, of the {len(caught)} trapped ones {_percent((caught[:, 3] < 0).mean())}, and with "
        f"`bounded` {_percent((opened['bounded'][:, 3] < 0).mean())} of {len(opened['bounded'])}. Without "
        "all heads that most seeds shut the whole model does better in every case: log-probability rises by "
        f"{_range(gone['paper'], '+')} with the heads of `paper` and {_range(gone['bounded'], '+')} with "
        f"those of `bounded`, which is ahead in {more} of {len(gone['paper'])}: here neither is better.",
    ]


def report(arguments: argparse.Namespace) -> None:
    draw(DOCS / "objective.png")
    missing = [
        f"{task} ({schedule})"
        for task in TASKS
        for schedule, names in RUNS.items()
        if any((schedule, objective) not in runs(task) for objective in names)
    ]
    lines = [
        "# Which objective is right?",
        "",
        FIRST_VERSION,
        "",
        "Made by `bench/objective_page.py`. SmolLM2, 270 heads, on an H200; the same seeds, starts and rows "
        "for both objectives. *Published schedule*: 500 + 500 updates, batch 64. *quick*: the preset. Not "
        f"run: {', '.join(missing) or 'nothing'}.",
        "",
        "The published objective presses the logit of a gate only while it lies within ±4, but does not keep "
        "it there. Adam moves a gate at full speed on any gradient of constant sign, however small: a gate "
        "that the free fit has driven past −4 feels no pressure of retain any more, one past +4 none of "
        "remove. Such a gate is *trapped*: nothing has tested it. `bounded` puts logits back into [−4, 4] "
        "after every update, and changes nothing else.",
        "",
        "## In short",
        "",
        *summary(),
        "",
        "So `bounded` is what `headatlas map` uses; `--objective paper` is the published one, and `--preset "
        "paper` has it together with the published schedule.",
        "",
        "![Logits after the free fit, harm of heads called interfering, gain in sufficiency](objective.png)",
        "",
        "## How many gates are trapped",
        "",
        *trap_table(),
        "",
        "## Seeds, Always and Any",
        "",
        "*Agreement of seeds*: mean correlation of two seeds over the heads, facilitation / interference. "
        "*Always, Any*: the share of heads whose score is at least 0.5 in every seed, and in at least one.",
        "",
        *agreement_table(),
        "",
        "## Sufficiency on held-out items",
        "",
        "The area under faithfulness over the share of heads kept, as in [results.md](results.md), in the "
        "order of the mean over all seeds, and of one seed (mean over seeds). Heads that are equal in "
        "facilitation and interference come by lot. In brackets 95 % intervals of the difference over "
        "items alone: groups of items and other rankings would make them wider. The last column: the "
        "published gates with logits beyond ±4 counted as ±4.",
        "",
        *sufficiency_table(),
        "",
        "## Does the task get better without the heads called interfering?",
        "",
        "*Shut gates*: gates of retain below 0.5, all seeds. Each was opened alone, in the G+ of its seed: "
        "in how many cases the held-out targets became less probable, and clearly so (by two standard "
        "errors over items), or clearly more probable. Then the heads that are shut in at least half of the "
        "seeds, in the whole model: the share whose removal alone makes the targets more probable, and the "
        "change of their log-probability without all of them (± two standard errors). A head may interfere "
        "in company only: G+ is the model that its gate was fitted in.",
        "",
        *harm_table(),
    ]
    arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    report(parser.parse_args())


if __name__ == "__main__":
    main()
