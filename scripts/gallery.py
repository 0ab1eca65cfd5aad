"""The gallery: SmolLM2 by the published schedule, ten seeds, three tasks, all relations.

python scripts/gallery.py fit --out FOLDER
    the atlas (some minutes on a GPU; called again it goes on)
python scripts/gallery.py show --atlas FOLDER
    its figures, report and page, into docs/gallery
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

TASKS = ("math", "syntax", "arithmetic")
ITEMS, DRAWS = 128, 20
FOLDER = Path(__file__).parent.parent / "docs" / "gallery"
FIGURES = ("agreement", "categories", "profile", "sufficiency")


def fit(arguments: argparse.Namespace) -> None:
    from headatlas import load_model, map_heads, relate_heads, validate_atlas

    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {what}", flush=True)

    relate_heads(load_model(arguments.model, dtype="float32"), out=arguments.out, resume=True)
    say("relations")
    model = load_model(arguments.model, dtype="fast")
    for task in reversed(TASKS):  # the longest last
        map_heads(model, task, out=arguments.out, preset="paper", resume=True)
        say(f"gates of {task}")
    for task in TASKS:
        validate_atlas(arguments.out, model=model, tasks=[task], items=ITEMS, draws=DRAWS)
        say(f"held-out items of {task}")


def show(arguments: argparse.Namespace) -> None:
    from headatlas import open_atlas
    from headatlas.figure import FigureOptions, draw_figure, save_figure

    atlas = open_atlas(arguments.atlas)
    FOLDER.mkdir(exist_ok=True)
    for kind in FIGURES:
        save_figure(draw_figure(atlas, kind, FigureOptions()), FOLDER / f"{kind}.png")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("fit")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--model", default="smollm2")
    command.set_defaults(work=fit)
    command = commands.add_parser("show")
    command.add_argument("--atlas", type=Path, required=True)
    command.set_defaults(work=show)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
