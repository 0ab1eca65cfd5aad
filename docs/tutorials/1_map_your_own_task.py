"""Tutorial 1: which heads does a model need for a task of yours?

    python docs/tutorials/1_map_your_own_task.py --out tutorial

A task is a list of prompts and targets (or a file of them). The loss is on the target, which follows its
prompt directly: mind the space. Some items are held out to measure what the gates are worth. This takes a few
minutes on two cores.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import headatlas

NOUNS = (
    "apple ball bank bear bed bell bird boat book box bridge brush bus cake camp car card cat chair "
    "church city class clock cloud coat corner country cow crowd cup daughter desk dog door dream dress "
    "drum duck eagle egg engine eye face farm field finger fire flag floor flower forest fork friend "
    "game garden gate gift girl glass goat hall hand hat heart hill horse hotel house idea island judge "
    "key king kitchen lake lamp leaf letter lion list map market "
)


def plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return "leaves" if noun == "leaf" else f"{noun}s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("tutorial"))
    parser.add_argument("--fast", action="store_true", help="few updates of one seed: to see that it works")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    # 1. The task: one pair for each question. Two worked examples make clear what is asked.
    start = "one dog, two dogs; one fox, two foxes;"
    items = [(f"{start} one {noun}, two", f" {plural(noun)}") for noun in NOUNS.split()]

    # 2. The map. The folder keeps every finished fit; called again, this continues where it stopped.
    model = headatlas.load_model("smollm2", dtype="fast")
    schedule = {"seeds": 1, "updates": 6} if arguments.fast else {"seeds": 3}
    atlas = headatlas.map_heads(model, {"plural": items}, out=arguments.out / "atlas", **schedule)

    # 3. The results. G+ keeps as many heads open as the task allows, G- as few.
    summary = atlas.summary("plural")
    for gates, nll in summary.nll.items():  # without gates, with G+, with G-
        print(f"held-out NLL, {gates}: {nll:.2f}")
    print(f"facilitate in every seed: {100 * summary.always['facilitating']:.0f} % of heads")
    print(f"interfere in every seed:  {100 * summary.always['interfering']:.0f} % of heads")

    # 4. The scores are labelled arrays [seed, layer, head].
    facilitation = atlas.scores("plural")["facilitation"].mean("seed")
    best = facilitation.to_series().nlargest(5)
    print("most needed:", ", ".join(f"L{layer}H{head} {score:.2f}" for (layer, head), score in best.items()))

    # 5. A figure for a paper.
    headatlas.figure.save_figure(atlas.plot.agreement(), arguments.out / "plural.png")
    print(f"{arguments.out}/plural.png, and all numbers in {arguments.out}/atlas")


if __name__ == "__main__":
    main()
