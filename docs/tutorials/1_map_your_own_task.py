"""Tutorial 1: which heads does a model need for a task of yours?

    python docs/tutorials/1_map_your_own_task.py --out tutorial

A task is a file with prompts and targets. The loss is on the target, which follows its prompt directly: mind
the space. Some records are held out; they measure what the gates are worth. Minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
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

    # 1. The task: one line for each question. Two worked examples make clear what is asked.
    task = arguments.out / "plural.jsonl"
    start = "one dog, two dogs; one fox, two foxes;"
    lines = [{"prompt": f"{start} one {noun}, two", "target": f" {plural(noun)}"} for noun in NOUNS.split()]
    task.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")

    # 2. The map. It is kept in the folder fit by fit; called again, this goes on where it was.
    model = headatlas.load_model("smollm2", dtype="fast")
    schedule = {"seeds": 1, "updates": 6} if arguments.fast else {"seeds": 3}
    atlas = headatlas.map_heads(model, task, out=arguments.out / "atlas", resume=True, **schedule)

    # 3. What came out. G+ keeps as many heads open as the task allows, G- as few.
    summary = atlas.summary("plural")
    for gates, nll in summary.nll.items():  # without gates, with G+, with G-
        print(f"held-out NLL, {gates}: {nll:.2f}")
    print(f"facilitate in every seed: {100 * summary.always['facilitating']:.0f} % of heads")
    print(f"interfere in every seed:  {100 * summary.always['interfering']:.0f} % of heads")

    # 4. Arrays have named axes, so that nothing is ever mixed up.
    help_ = atlas.scores("plural")["facilitation"].mean("seed")
    best = help_.stack(cell=("layer", "head")).dropna("cell").sortby("cell").to_series().nlargest(5)
    print("most needed:", ", ".join(f"L{layer}H{head} {score:.2f}" for (layer, head), score in best.items()))

    # 5. A figure for a paper.
    from headatlas.figure import plot_agreement, save_figure

    save_figure(plot_agreement(atlas), arguments.out / "plural.png")
    print(f"{arguments.out}/plural.png, and all numbers in {arguments.out}/atlas")


if __name__ == "__main__":
    main()
