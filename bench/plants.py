"""How well does each method find planted roles? A table over the plants of tests/support/plants.py.

python bench/plants.py --out FILE.md        (some minutes on a CPU)
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.plant_scores import (
    CLEAR,
    SEEDS,
    Counts,
    Finding,
    auroc,
    by_gating,
    counts,
    findings,
    fitted_gates,
    long_settings,
)
from support.plants import EXCEPTIONS, FORMS, PLANTS, ROLES, Plant

HEAD = ["plant", "method", "AUROC", *(f"{role}: precision / recall" for role in ROLES)]


def figure(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def measured(plant: Plant, form: str) -> list[Finding]:
    """All methods, and gating with the objective as published."""
    model = plant.build(form)
    found = findings(model, plant, fitted_gates(model, plant, long_settings()))
    published = fitted_gates(model, plant, long_settings("paper"))
    return [*found[:2], by_gating(published, "gating as published")[0], *found[2:]]


def line(name: str, method: str, area: float, tally: dict[str, Counts]) -> str:
    shares = [f"{figure(tally[role].precision)} / {figure(tally[role].recall)}" for role in ROLES]
    return "| " + " | ".join([name, method, figure(area), *shares]) + " |"


def table(plants: dict[str, Plant], form: str) -> list[str]:
    """A line for each plant and method; for each method one of all plants, counts added, AUROC averaged."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    areas: dict[str, list[float]] = {}
    tallies: dict[str, dict[str, Counts]] = {}
    for plant in plants.values():
        truth = plant.roles()
        for found in measured(plant, form):
            area, tally = auroc(found.importance, truth == ROLES[0]), counts(found, truth)
            lines.append(line(plant.name, found.method, area, tally))
            areas.setdefault(found.method, []).append(area)
            before = tallies.setdefault(found.method, dict.fromkeys(ROLES, Counts(0, 0, 0)))
            tallies[found.method] = {role: before[role] + tally[role] for role in ROLES}
    for method, values in areas.items():
        lines.append(line("**all of these**", method, sum(values) / len(values), tallies[method]))
    return lines


def stories(plants: dict[str, Plant]) -> list[str]:
    return [f"- **{plant.name}**: {' '.join(plant.story.split())}" for plant in plants.values()]


def page() -> str:
    settings = long_settings()
    intro = (
        "# Planted roles: which method finds them?\n\n"
        "Made by `python bench/plants.py`. Models of one or two layers with four heads each, weights by "
        f"hand. Gating: {settings.free.updates} + {settings.pressed.updates} updates, {len(SEEDS)} seeds, "
        f"objective `{settings.objective}`; `gating as published` has the objective `paper`. Its roles are "
        "counted seed by seed; `any seed` is what some seed calls a head. Effects of other methods count as "
        f"a role above {CLEAR} nats in size. AUROC: facilitating heads against all others, by the signed "
        "score (ties count half). It asks for the order alone, and effects here are free of noise: one far "
        f"below {CLEAR} nats still ranks first. `random`: the mean of many draws. –: no such head."
    )
    parts = [intro]
    for form in FORMS:
        parts += [f"## {form}", "\n".join(table(PLANTS, form))]
    parts += ["## Where the definition ends", "\n".join(table(EXCEPTIONS, FORMS[0]))]
    parts += ["## What is planted", "\n".join(stories(PLANTS | EXCEPTIONS))]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the Markdown file to write")
    parser.parse_args().out.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
