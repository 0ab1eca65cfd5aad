"""What the maps of SmolLM2 are worth: every method, held-out items, all findings.

python bench/validation.py measure --out FOLDER
    maps math, syntax and arithmetic (ten quick seeds) and all relations into an atlas, validates it
    (minutes on a GPU, hours on a CPU)
python bench/validation.py join --out OTHER
    maps tasks that ask for a relation, and the relations: do both views name the same heads?
python bench/validation.py export --atlas FOLDER --joined OTHER --out bench/reference/validation.json
    the figures, and what the page is made from

`bench/validation_page.py` makes the page of it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from objective import in_order

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = ("sufficiency", "ablation", "effects", "stability")
TASKS = ("math", "syntax", "arithmetic")
#: relations that SmolLM2 knows
ASKED = ("past-tense", "plural", "ing-form", "first-letter", "name-copying", "country-capital")
SEEDS, ITEMS, DRAWS, RETEST = 10, 128, 20, 3
#: items and seeds that the effects of single heads are measured with
EFFECT_ITEMS, EFFECT_SEEDS = 64, 3
#: shares of heads at which faithfulness is shown
KEPT = (0.05, 0.1, 0.2, 0.5)


def measure(arguments: argparse.Namespace) -> None:
    import torch

    from headatlas import load_model, map_heads, relate_heads, validate_atlas
    from headatlas.core import EFFECT_METHODS

    out = arguments.out
    times: dict[str, float] = {}
    began = time.monotonic()
    relate_heads(load_model(arguments.model, dtype="float32"), out=out, resume=True)
    times["relations"] = time.monotonic() - began
    model = load_model(arguments.model, dtype="fast")
    for task in TASKS:
        began = time.monotonic()
        map_heads(model, task, out=out, resume=True, seeds=SEEDS)
        times[f"map {task}"] = time.monotonic() - began
        print(task, times, flush=True)
        for method in EFFECT_METHODS:
            began = time.monotonic()
            asked = {"items": EFFECT_ITEMS, "seeds": EFFECT_SEEDS, "out": out, "resume": True}
            map_heads(model, task, method=method, **asked)
            times[f"{method} {task}"] = time.monotonic() - began
    for task in TASKS:
        began = time.monotonic()
        atlas = validate_atlas(out, model=model, tasks=[task], items=ITEMS, draws=DRAWS, retest=RETEST)
        times[f"validate {task}"] = time.monotonic() - began
        print(atlas.validation(task).table(200).to_string(), times, flush=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    spread = {task: _by_one_seed(model, atlas, task) for task in TASKS}
    facts = {"device": device, "torch": torch.__version__, "seconds": times, "spread": spread}
    (Path(out) / "bench.json").write_text(json.dumps(facts, indent=1) + "\n")


def _by_one_seed(model: Any, atlas: Any, task: str) -> dict[str, list[float]]:
    """Sufficiency of the order that each seed alone gives: how much of a figure is the luck of a ranking?"""
    import numpy as np

    from headatlas import load_task
    from headatlas.atlas import SHARES, faithfulness
    from headatlas.method import evaluate_sets, kept_only
    from headatlas.run.prepare import read_rows

    rows = read_rows(model, load_task(task), None, ITEMS).held_out
    counts = sorted({round(share * len(model.spec)) for share in SHARES})
    scores = atlas.scores(task)
    orders = {
        "gating": [
            in_order(one["facilitation"].values, one["interference"].values, lot)
            for lot, one in enumerate(scores.isel(seed=seed) for seed in range(scores.sizes["seed"]))
        ]
    }
    for method in atlas.methods(task):
        if method != "gating":
            effects = atlas.effects(task, method)["effect"].values
            orders[method] = [in_order(one, np.zeros_like(one), lot) for lot, one in enumerate(effects)]
    found = {}
    for method, some in orders.items():
        sets = np.concatenate([kept_only(order, counts, model.spec.shape) for order in some])
        losses = evaluate_sets(model, rows, sets)[0].mean(axis=1).reshape(len(some), -1)
        areas = [
            np.trapezoid(faithfulness(-one, -one[0], -one[-1]), np.array(counts) / counts[-1])
            for one in losses
        ]
        found[method] = [float(area) for area in areas]
    return found


def join(arguments: argparse.Namespace) -> None:
    from headatlas import load_model, map_heads, relate_heads

    relate_heads(load_model(arguments.model, dtype="float32"), out=arguments.out, resume=True, salient=False)
    model = load_model(arguments.model, dtype="fast")
    for name in ASKED:
        atlas = map_heads(model, f"relation:{name}", out=arguments.out, resume=True, seeds=SEEDS)
        print(atlas.summary(f"relation:{name}"), flush=True)


def export(arguments: argparse.Namespace) -> None:
    from headatlas import open_atlas
    from headatlas.atlas import by_seeds, find
    from headatlas.figure import FigureOptions, draw_figure, save_figure

    atlas = open_atlas(arguments.atlas)
    found: dict[str, Any] = {
        **json.loads((arguments.atlas / "bench.json").read_text()),
        "model": atlas.spec.name,
        "heads": len(atlas.spec),
        "seeds": {task: len(atlas.seeds(task)) for task in atlas.tasks},
        "items": {task: atlas.validation(task).items for task in atlas.validated},
        "methods": {task: atlas.validation(task).table().to_dict("records") for task in atlas.validated},
        "effects": {
            task: {
                method: {
                    "items": atlas.effect(task, method, 0).facts["items"],
                    "seeds": len(atlas.effects(task, method).seed),
                    "sum": float(atlas.importance(task, method).sum()),
                    "whole": atlas.effect(task, method, 0).facts["whole"],
                }
                for method in atlas.methods(task)
                if method != "gating"
            }
            for task in atlas.tasks
        },
        "kept": {
            task: {
                method: [
                    float(check.curve(method)[int(abs(check.shares - share).argmin())]) for share in KEPT
                ]
                for method in check.named()
            }
            for task in atlas.validated
            for check in [atlas.validation(task)]
        },
        "by_seeds": {
            task: json.loads(by_seeds(atlas.scores(task)).to_json(orient="records")) for task in atlas.tasks
        },
        "findings": [one.to_json() for one in find(atlas)],
    }
    others = find(open_atlas(arguments.joined))
    found["joined"] = [one.to_json() for one in others if one.topic == "joined"]
    arguments.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    for kind in FIGURES:
        tasks = ("syntax",) if kind == "effects" else None
        save_figure(draw_figure(atlas, kind, FigureOptions(tasks=tasks)), DOCS / f"{kind}.png")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, work in (
        ("measure", measure),
        ("join", join),
        ("export", export),
    ):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, required=True)
        command.set_defaults(work=work)
        if name in ("measure", "join"):
            command.add_argument("--model", default="smollm2")
        if name == "export":
            command.add_argument("--atlas", type=Path, required=True)
            command.add_argument("--joined", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
