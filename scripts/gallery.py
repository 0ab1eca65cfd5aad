"""The gallery: SmolLM2 by the published schedule, ten seeds, three tasks, all relations.

python scripts/gallery.py fit --out FOLDER
    the atlas (twenty minutes on a GPU; called again it goes on)
python scripts/gallery.py show [--atlas FOLDER]
    its figures, report, page and words, into docs/gallery; without a folder from the packed atlas there
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from headatlas import Atlas

TASKS = ("math", "syntax", "arithmetic")
ITEMS, DRAWS, SEEDS = 128, 20, 10
#: bytes of the page
LARGEST = 5_000_000
FOLDER = Path(__file__).parent.parent / "docs" / "gallery"
PACKED = FOLDER / "atlas.zip"
WORDS = Path(__file__).with_name("gallery_words.md")
FIGURES = ("agreement", "categories", "profile", "sufficiency")
#: heads whose cards are told in words
CAPITALS, EVERYWHERE = "L23H4", "L20H8"


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


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _of_tasks(said: Callable[[str], str]) -> str:
    return _listed(f"{said(task)} in {task}" for task in TASKS)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _names(chosen: np.ndarray) -> str:
    return _listed(f"L{layer}H{head}" for layer, head in zip(*chosen.nonzero(), strict=True))


def _table(atlas: Atlas) -> list[str]:
    lines = [
        "| task | Always | Any | seeds correlate | NLL: whole, G+, G− | accuracy | of tokens | items |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        facts = atlas.summary(task)

        def three(values: dict[str, float]) -> str:
            return ", ".join(f"{values[fit]:.2f}" for fit in ("baseline", "retain", "remove"))

        shares = (
            f"{100 * of['facilitating']:.0f} / {100 * of['interfering']:.0f} %"
            for of in (facts.always, facts.any)
        )
        lines.append(
            f"| {task} | {' | '.join(shares)} | {facts.correlation['facilitation']:.2f} | {three(facts.nll)} "
            f"| {three(facts.accuracy)} | {three(facts.token_accuracy)} | {facts.held_out} |"
        )
    return lines


def _require_words(atlas: Atlas, methods: dict[str, Any]) -> None:
    """What is said without a figure holds of this atlas."""
    for task in TASKS:
        layers = atlas.scores(task)["facilitation"].mean(("seed", "head")).values
        low = layers[3:8].mean()
        assert layers[:2].mean() > low < layers[9:21].mean(), f"{task}: another profile"
        table = methods[task].set_index("method")
        assert table["necessity"].idxmax() == "attribute-integrated", f"{task}: another order"
        assert table["sufficiency"]["gating"] > table["sufficiency"]["random"]
    assert (atlas.always("arithmetic")["facilitation"].values[22:] >= 0.5).mean() < 0.25
    assert not atlas.categories().sel(category="translation", direction="promote").values.any()


def words(atlas: Atlas) -> str:
    """What the gallery shows: all figures in it come from the atlas."""
    import numpy as np

    from headatlas import Head

    facts = {task: atlas.summary(task) for task in TASKS}
    methods: dict[str, Any] = {task: atlas.validation(task).table() for task in TASKS}
    _require_words(atlas, methods)
    helps = {task: atlas.always(task)["facilitation"].values >= 0.5 for task in TASKS}
    hurts = {task: atlas.always(task)["interference"].values >= 0.5 for task in TASKS}
    everywhere = np.all(list(helps.values()), axis=0)
    named = np.any(atlas.categories().sel(direction="promote").values, axis=0)
    shared, capitals = (atlas.card(Head.parse(name)) for name in (EVERYWHERE, CAPITALS))
    order = {one.task: one.rank for one in shared.effects if one.method == "ablate-zero"}

    def gain(task: str) -> str:
        accuracy = facts[task].accuracy
        return f"from {accuracy['baseline']:.2f} to {accuracy['retain']:.2f}"

    def swap(one: str, other: str) -> str:
        chosen = helps[one] & hurts[other]
        s = "s" if chosen.sum() == 1 else ""
        return f"{_names(chosen)} help{s} {one} and hurt{s} {other}" if chosen.any() else ""

    def best_other(task: str) -> str:
        table = methods[task].set_index("method")["sufficiency"]
        other = table.drop("gating")
        return f"{table['gating']:.2f} against {other.max():.2f} ({other.idxmax()}) in {task}"

    made = atlas.run(TASKS[0]).made_with
    return WORDS.read_text(encoding="utf-8").format(
        seeds=SEEDS,
        tasks=_listed(TASKS),
        relations=len(atlas.relations),
        items=ITEMS,
        device=made["device"],
        torch=made["torch"],
        everywhere=EVERYWHERE,
        capitals=CAPITALS,
        table="\n".join(_table(atlas)),
        always=_of_tasks(lambda task: _percent(facts[task].always["facilitating"])),
        any=_of_tasks(lambda task: _percent(facts[task].any["facilitating"])),
        correlation=_of_tasks(lambda task: f"{facts[task].correlation['facilitation']:.2f}"),
        gain_arithmetic=gain("arithmetic"),
        gain_syntax=gain("syntax"),
        helping=everywhere.sum(),
        helping_names=_names(everywhere),
        order=_of_tasks(lambda task: f"number {order[task]}"),
        hurting=_of_tasks(lambda task: f"{hurts[task].sum()} heads"),
        hurting_two=(np.sum(list(hurts.values()), axis=0) > 1).sum() or "none",
        swaps="; ".join(filter(None, (swap(*pair) for pair in permutations(TASKS, 2)))),
        named=named.sum(),
        heads=named.size,
        named_late=named[20:].sum(),
        named_23=named[23].sum(),
        width=named.shape[1],
        capital_score=_percent(
            next(one.score for one in capitals.relations if one.relation == "country-capital")
        ),
        silent=_listed(one.task for one in capitals.tasks if set(one.roles) == {"irrelevant"}),
        helps_named=_of_tasks(lambda task: _percent(helps[task][named].mean())),
        helps_other=_of_tasks(lambda task: _percent(helps[task][~named].mean())),
        sufficiency="; ".join(best_other(task) for task in TASKS),
    )


def _draw(atlas: Atlas) -> None:
    from headatlas.atlas import report_markdown
    from headatlas.figure import FigureOptions, draw_figure, save_figure
    from headatlas.page import write_page

    for kind in FIGURES:
        options = FigureOptions() if kind == "categories" else FigureOptions(tasks=TASKS)
        save_figure(draw_figure(atlas, kind, options), FOLDER / f"{kind}.png")
    (FOLDER / "report.md").write_text(report_markdown(atlas), encoding="utf-8")
    (FOLDER / "README.md").write_text(words(atlas), encoding="utf-8")
    page = write_page(atlas, FOLDER / "atlas.html")
    size = page.stat().st_size
    assert size < LARGEST, "the page is to go with the documentation"
    picture = Path(__file__).with_name("page_picture.py")
    subprocess.run(
        [sys.executable, picture, "--page", page, "--head", CAPITALS, "--out", FOLDER / "page.png"],
        check=True,
    )
    print(f"{FOLDER}: {', '.join(FIGURES)}, report, words, page ({size / 1e6:.1f} MB)")


def show(arguments: argparse.Namespace) -> None:
    from headatlas import open_atlas
    from headatlas.atlas import pack_atlas, unpack_atlas

    if arguments.atlas is None:
        with tempfile.TemporaryDirectory() as folder:
            _draw(open_atlas(unpack_atlas(PACKED, Path(folder) / "atlas")))
        return
    atlas = open_atlas(arguments.atlas)
    missing = [task for task in TASKS if task not in atlas.tasks or len(atlas.seeds(task)) < SEEDS]
    if missing or not atlas.relations:
        raise SystemExit(f"{arguments.atlas} is not whole: {', '.join(missing) or 'no relations'}")
    FOLDER.mkdir(exist_ok=True)
    PACKED.unlink(missing_ok=True)
    pack_atlas(arguments.atlas, PACKED)
    _draw(atlas)


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
    command.add_argument("--atlas", type=Path)
    command.set_defaults(work=show)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
