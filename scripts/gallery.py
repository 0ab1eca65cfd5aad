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
ITEMS, DRAWS, SEEDS = 128, 20, 10
#: bytes of the page
LARGEST = 5_000_000
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
        map_heads(model, task, out=arguments.out, preset="paper", seeds=SEEDS, resume=True)
        say(f"gates of {task}")
    for task in TASKS:
        validate_atlas(arguments.out, model=model, tasks=[task], items=ITEMS, draws=DRAWS)
        say(f"held-out items of {task}")


def show(arguments: argparse.Namespace) -> None:
    from headatlas import open_atlas
    from headatlas.atlas import report_markdown
    from headatlas.figure import FigureOptions, draw_figure, save_figure
    from headatlas.page import write_page

    atlas = open_atlas(arguments.atlas)
    missing = [task for task in TASKS if task not in atlas.tasks or len(atlas.seeds(task)) < SEEDS]
    if missing or not atlas.relations:
        raise SystemExit(f"{arguments.atlas} is not whole: {', '.join(missing) or 'no relations'}")
    FOLDER.mkdir(exist_ok=True)
    for kind in FIGURES:
        save_figure(draw_figure(atlas, kind, FigureOptions()), FOLDER / f"{kind}.png")
    (FOLDER / "report.md").write_text(report_markdown(atlas), encoding="utf-8")
    page = write_page(atlas, FOLDER / "atlas.html")
    size = page.stat().st_size
    print(f"{FOLDER}: {', '.join(FIGURES)}, report, page ({size / 1e6:.1f} MB)")
    assert size < LARGEST, "the page is to go with the documentation"


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
