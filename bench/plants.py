"""How well does each method find planted roles? Tables over the plants of tests/support/plants.py.

python bench/plants.py measure --out bench/reference/plants.json     (some minutes on a CPU)
python bench/plants.py report --out docs/plants.md
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.fitting import fitted_gates
from support.plant_scores import (
    CLEAR,
    SEEDS,
    Counts,
    auroc,
    by_gating,
    counts,
    findings,
    long_settings,
)
from support.plants import EXCEPTIONS, FORMS, PLANTS, ROLES, Plant

REFERENCE = Path(__file__).parent / "reference"
PUBLISHED = "gating as published"
OBJECTIVES = {"bounded": "gating", "paper": PUBLISHED}
HEAD = ["plant", "method", "AUROC", *(f"{role}: precision / recall" for role in ROLES)]


# Measuring


def measured(plant: Plant, form: str) -> dict[str, Any]:
    """All methods, and gating with the objective as published."""
    model, truth = plant.build(form), plant.roles()
    fitted = {name: fitted_gates(model, plant.rows, long_settings(name)) for name in OBJECTIVES}
    found = findings(model, plant, fitted["bounded"])
    found = [*found[:2], by_gating(fitted["paper"], PUBLISHED)[0], *found[2:]]
    return {
        "plant": plant.name,
        "form": form,
        "methods": {
            one.method: {
                "auroc": auroc(one.importance, truth == ROLES[0]),
                "roles": {
                    role: [tally.right, tally.named, tally.true] for role, tally in counts(one, truth).items()
                },
            }
            for one in found
        },
        "trapped": {objective: trapped(gates, truth) for objective, gates in fitted.items()},
    }


def trapped(gates: xr.DataArray, truth: np.ndarray) -> dict[str, int]:
    """Gates that ended where the pressure against them no longer acts, and those that thereby got a role
    that is not theirs: shut by retain without harm done, open after remove without need."""
    limit = long_settings().limit
    values = gates.values.astype(float)  # [seed, fit, layer, head]
    with np.errstate(divide="ignore"):  # a gate of one has a logit without end
        logits = np.log(values) - np.log1p(-values)
    fits = gates["fit"].values.tolist()
    shut = logits[:, fits.index("retain")] < -limit
    kept = logits[:, fits.index("remove")] > limit
    return {
        "gates": int(gates.size),
        "trapped": int(shut.sum() + kept.sum()),
        "wrong": int((shut & (truth != ROLES[1])).sum() + (kept & (truth != ROLES[0])).sum()),
    }


def measure(arguments: argparse.Namespace) -> None:
    found = [measured(plant, form) for form in FORMS for plant in PLANTS.values()]
    found += [measured(plant, FORMS[0]) for plant in EXCEPTIONS.values()]
    arguments.out.write_text(json.dumps(found) + "\n", encoding="utf-8")


# The page


def figure(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def result(one: dict[str, Any]) -> list[str]:
    """AUROC, then precision and recall of each role."""
    tallies = [Counts(*one["roles"][role]) for role in ROLES]
    return [figure(one["auroc"]), *(f"{figure(each.precision)} / {figure(each.recall)}" for each in tallies)]


def together(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each method: counts added, AUROC averaged."""
    sums: dict[str, dict[str, Any]] = {}
    for method in found[0]["methods"]:
        some = [one["methods"][method] for one in found]
        roles = {role: np.sum([one["roles"][role] for one in some], axis=0).tolist() for role in ROLES}
        sums[method] = {"auroc": float(np.mean([one["auroc"] for one in some])), "roles": roles}
    return sums


def table(found: list[dict[str, Any]]) -> list[str]:
    lines = [line(HEAD), "|" + "---|" * len(HEAD)]
    for one in found:
        lines += [line([one["plant"], method, *result(values)]) for method, values in one["methods"].items()]
    return lines


def summary(found: list[dict[str, Any]]) -> list[str]:
    """A line for each method, all plants together."""
    lines = [line(HEAD[1:]), "|" + "---|" * (len(HEAD) - 1)]
    return [*lines, *(line([method, *result(values)]) for method, values in together(found).items())]


def stories(plants: dict[str, Plant]) -> list[str]:
    return [f"- **{plant.name}**: {' '.join(plant.story.split())}" for plant in plants.values()]


def page(found: list[dict[str, Any]]) -> str:
    settings = long_settings()
    planted = {
        form: [one for one in found if one["form"] == form and one["plant"] in PLANTS] for form in FORMS
    }
    exceptions = [one for one in found if one["plant"] in EXCEPTIONS]
    shown = {form: summary(some) for form, some in planted.items()}
    forms = {" and ".join(shown): shown[FORMS[0]]} if len(set(map(tuple, shown.values()))) == 1 else shown
    parts = [
        "# Planted roles: which method finds them?",
        "Made by `bench/plants.py`. Models of one or two layers with four heads each, in Llama and in GPT-2 "
        "form, weights by hand, so that the role of every head is known; what gating must make of them is "
        f"worked out on paper below. Gating: {settings.free.updates} + {settings.pressed.updates} updates, "
        f"{len(SEEDS)} seeds, objective `{settings.objective}`; *{PUBLISHED}* has the objective `paper`. Its "
        "roles are counted seed by seed; *any seed* is what some seed calls a head. Effects of other methods "
        f"count as a role above {CLEAR} nats in size.",
        "AUROC: facilitating heads against all others, by the signed score (ties count half). It asks for "
        f"the order alone, and effects here are free of noise: one far below {CLEAR} nats still ranks first, "
        "so that it tells methods apart less well than the roles do. *random*: the mean of many draws. –: no "
        "such head.",
        "## All plants together",
    ]
    for name, lines in forms.items():
        parts += [f"In {name} form:", "\n".join(lines)]
    parts += [
        "Single ablation and gradients miss what another head makes up for: each of a redundant pair, and a "
        "head with a backup, costs next to nothing when cut alone. Gating shuts many heads at once and finds "
        "them; integrated gradients do as well, but also name the backup, which nobody needs.",
        "## Where the definition of gating ends",
        "\n".join(
            [
                "- **A redundant pair.** Of two heads either of which is enough, remove keeps one, and the "
                "seed decides which: the other one counts as irrelevant in that seed (recall 0.5 below). "
                "*Any* over seeds names both, *Always* neither.",
                "- **Twins.** Two weaker heads that do the same may also come to rest half open, both above "
                "or both below 0.5.",
                "- **Overkill.** Facilitation says how far a gate must stay open, not what a head is worth. "
                "A head that writes four times what is enough (2.4 nats when it is cut) rests at 0.32 and is "
                "called irrelevant. `headatlas map --method ablate` shows it.",
                "- **Pressure is shared.** The pressure on one gate is λ divided by the number of heads: in "
                "a larger model a head has to matter less to stay open. Scores of models of different size "
                "are not the same scale.",
                "- **Saturation and sharing in general.** Heads that share a role can all settle below 0.5; "
                "the figure of facilitation, not only the word, says so.",
            ]
        ),
        "\n".join(table(exceptions)),
        "## Gates that the published objective traps",
        "\n".join(trap_lines(found)),
        "How both objectives do on a language model: [objective.md](objective.md).",
        "## What is planted",
        "\n".join(stories(PLANTS | EXCEPTIONS)),
        "## Every plant",
        "\n".join(table(planted[FORMS[0]])),
    ]
    return "\n\n".join(parts) + "\n"


def trap_lines(found: list[dict[str, Any]]) -> list[str]:
    """Over all plants and forms."""
    lines = [
        "All plants, forms and seeds. *Other role*: heads that do not get theirs (with `bounded` these are "
        "the exceptions above). *Trapped*: gates of retain and remove that ended beyond ±4, where the "
        "pressure against them no longer acts (with `bounded` there can be none); *wrongly*: and the head's "
        "role says that they should have given way.",
        "",
        "| objective | heads | other role | gates | trapped | wrongly |",
        "|---|---|---|---|---|---|",
    ]
    for objective, method in OBJECTIVES.items():
        tallies = [Counts(*one) for plant in found for one in plant["methods"][method]["roles"].values()]
        heads, right = sum(one.true for one in tallies), sum(one.right for one in tallies)
        each = [one["trapped"][objective] for one in found]
        sums = [str(sum(one[key] for one in each)) for key in ("gates", "trapped", "wrong")]
        lines.append(line([f"`{objective}`", str(heads), str(heads - right), *sums]))
    return lines


def report(arguments: argparse.Namespace) -> None:
    found = json.loads((REFERENCE / "plants.json").read_text(encoding="utf-8"))
    arguments.out.write_text(page(found), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, work in (("measure", measure), ("report", report)):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, required=True)
        command.set_defaults(work=work)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
