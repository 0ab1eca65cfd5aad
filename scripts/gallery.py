"""The gallery: SmolLM2 by the published schedule, ten seeds, three tasks, all relations.

python scripts/gallery.py fit --out FOLDER
    make the atlas (half an hour on a GPU); run it again to resume
python scripts/gallery.py reopen --out FOLDER
    unpack the atlas of the gallery without effects that have not converged or that an earlier version
    measured, for `fit` to measure them again
python scripts/gallery.py show [--atlas FOLDER]
    its figures, report, page and words, into docs/gallery; without a folder from the packed atlas there
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from headatlas import Atlas

TASKS = ("math", "syntax", "arithmetic")
SEEDS = 10
#: held-out items and random orders of the validation, items that effects of single heads are measured on
ITEMS, DRAWS, EFFECT_ITEMS = 96, 40, 64
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
        validate_atlas(
            arguments.out, model=model, tasks=[task], items=ITEMS, draws=DRAWS, effect_items=EFFECT_ITEMS
        )
        say(f"held-out items of {task}")


def reopen(arguments: argparse.Namespace) -> None:
    from headatlas import open_atlas
    from headatlas.atlas import EffectMap, unpack_atlas
    from headatlas.atlas.effect_summary import COMPLETE
    from headatlas.atlas.record import record_folder

    root = unpack_atlas(PACKED, arguments.out)
    atlas = open_atlas(root)
    dropped = [
        (method, task)
        for task, method in atlas.effect_maps
        if (atlas.completeness_error(task, method) or 0.0) > COMPLETE or _is_outdated(atlas, task, method)
    ]
    data = json.loads((root / "atlas.json").read_text(encoding="utf-8"))
    data["runs"] = [run for run in data["runs"] if (run["method"], run["task"]) not in dropped]
    (root / "atlas.json").write_text(json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8")
    for method, task in dropped:
        shutil.rmtree(root / record_folder(EffectMap, method, task))
        print(f"{task}: {method} is to be measured again")


def _is_outdated(atlas: Atlas, task: str, method: str) -> bool:
    """True if the effects cannot be compared with effects that are measured today."""
    from headatlas import AtlasError
    from headatlas.request.validate_request import has_effects

    try:
        return not has_effects(atlas, method, task)
    except AtlasError:
        return True


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


def _require_words(atlas: Atlas) -> None:
    """Fail if this atlas contradicts what the text says without a figure."""
    correlations = [atlas.summary(task).correlation["facilitation"] or 0.0 for task in TASKS]
    shares = [atlas.summary(task).always["facilitating"] for task in TASKS]
    assert sorted(correlations) == [value for _, value in sorted(zip(shares, correlations, strict=True))]
    assert not atlas.categories().sel(category="translation", direction="promote").values.any()


def _gain(atlas: Atlas, task: str, fit: str) -> str:
    gain = atlas.summary(task).gain[fit]
    return f"{gain.mean:.2f}{gain.brackets()}"


def _against_best(atlas: Atlas, figure: str) -> str:
    """Gating against the best other method, with the interval of the difference."""
    texts = []
    for task in TASKS:
        check = atlas.validation(task)
        others = {
            name: check.measure(figure, name).mean
            for name in check.named()
            if name != "gating" and _is_converged(atlas, task, name)
        }
        best = max(others, key=lambda name: others[name])
        gap = check.measure(figure, "gating", less=best)
        value = check.measure(figure, "gating").mean
        texts.append(
            f"{task} {value:.2f} against {others[best]:.2f} ({best}, {gap.mean:+.2f}{gap.brackets('+.2f')})"
        )
    return "; ".join(texts)


def _is_converged(atlas: Atlas, task: str, method: str) -> bool:
    from headatlas.atlas.effect_summary import COMPLETE

    error = atlas.completeness_error(task, method) if (task, method) in atlas.effect_maps else None
    return error is None or error <= COMPLETE


def _depth(atlas: Atlas) -> str:
    """The trends of mean facilitation with depth, as the report words them."""
    from headatlas.atlas import find

    texts = [
        finding.text
        for finding in find(atlas)
        if finding.topic == "layers" and finding.about.endswith("mean facilitation")
    ]
    return ". ".join(text[0].upper() + text[1:] for text in texts) + "."


def _converged(atlas: Atlas) -> str:
    errors = {task: atlas.completeness_error(task, "attribute-integrated") for task in TASKS}
    listed = ", ".join(f"{task} {100 * (error or 0):.0f} %" for task, error in errors.items())
    if all(error is not None and error <= 0.05 for error in errors.values()):
        return f"Integrated gradients are converged (completeness error {listed})."
    return (
        "Integrated gradients should add up to the loss difference between all heads and none. They miss it "
        f"by {listed}: above 5 % they have not converged, and the comparison above leaves them out."
    )


def words(atlas: Atlas) -> str:
    """What the gallery shows: all figures in it come from the atlas."""
    import numpy as np

    from headatlas import Head

    facts = {task: atlas.summary(task) for task in TASKS}
    _require_words(atlas)
    helps = {task: atlas.always(task)["facilitation"].values >= 0.5 for task in TASKS}
    hurts = {task: atlas.always(task)["interference"].values >= 0.5 for task in TASKS}
    everywhere = np.all(list(helps.values()), axis=0)
    named = np.any(atlas.categories().sel(direction="promote").values, axis=0)
    shared, capitals = (atlas.card(Head.parse(name)) for name in (EVERYWHERE, CAPITALS))
    order = {one.task: one.rank for one in shared.effects if one.method == "ablate-zero"}

    def accuracy(task: str) -> str:
        values = facts[task].accuracy
        return f"from {values['baseline']:.2f} to {values['retain']:.2f}"

    def swap(one: str, other: str) -> str:
        chosen = helps[one] & hurts[other]
        s = "s" if chosen.sum() == 1 else ""
        return f"{_names(chosen)} help{s} {one} and hurt{s} {other}" if chosen.any() else ""

    swaps = "; ".join(filter(None, (swap(*pair) for pair in permutations(TASKS, 2))))
    has_gain = (facts["math"].gain["remove"].low or 0) > 0
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
        per_seed=_of_tasks(lambda task: _percent(facts[task].per_seed["facilitating"].mean)),
        correlation=_of_tasks(lambda task: f"{facts[task].correlation['facilitation']:.2f}"),
        gain_retain=_of_tasks(lambda task: _gain(atlas, task, "retain")),
        gain_remove=_of_tasks(lambda task: _gain(atlas, task, "remove")),
        math_gain="" if has_gain else "On new templates of math, G− has no clear gain.",
        gain_arithmetic=accuracy("arithmetic"),
        gain_syntax=accuracy("syntax"),
        helping=everywhere.sum(),
        helping_names=_names(everywhere),
        order=_of_tasks(lambda task: f"{order[task]}"),
        hurting=_of_tasks(lambda task: f"{hurts[task].sum()} heads"),
        hurting_two=(np.sum(list(hurts.values()), axis=0) > 1).sum() or "none",
        swaps=f"Some help another task in every seed: {swaps}."
        if swaps
        else "None helps another task in every seed.",
        depth=_depth(atlas),
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
        sufficiency=_against_best(atlas, "sufficiency"),
        necessity=_against_best(atlas, "necessity"),
        converged=_converged(atlas),
    )


def _draw(atlas: Atlas) -> None:
    from headatlas.figure import draw_figure, save_figure
    from headatlas.page import write_page

    for kind in FIGURES:
        options = {} if kind == "categories" else {"tasks": TASKS}
        save_figure(draw_figure(atlas, kind, **options), FOLDER / f"{kind}.png")
    (FOLDER / "report.md").write_text(atlas.report().markdown(), encoding="utf-8")
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
    command = commands.add_parser("reopen")
    command.add_argument("--out", type=Path, required=True)
    command.set_defaults(work=reopen)
    command = commands.add_parser("show")
    command.add_argument("--atlas", type=Path)
    command.set_defaults(work=show)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
