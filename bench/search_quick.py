"""Which short schedule agrees best with the published one, per token?

    python bench/search_quick.py --rows rows.json --seconds 500 --out found.npz      (on a GPU)
    python bench/search_quick.py --found found.npz --show

Every variant below is fitted with ten seeds, the most telling ones first, until time is up. The file holds
the gates of retain and remove; `--show` compares them with bench/reference.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from agreement import REFERENCE, always_any, fit_both, read_rows, scores, seed_to_seed, with_seeds

#: changes to: batch by target tokens, 20 + 20 updates, rate 0.5 -> 0.15, start 0.5..1, Adam's usual momentum
VARIANTS: list[dict[str, Any]] = [
    {},
    {"start": (0.0, 1.0)},
    {"start": (0.8, 1.0)},
    {"rate": (1.0, 0.3)},
    {"rate": (0.3, 0.1)},
    {"rate": (0.5, 0.05)},
    {"pressed_rate": (1.0, 0.2)},
    {"free": 10, "pressed": 25},
    {"free": 30, "pressed": 15},
    {"momentum": (0.9, 0.99)},
    {"momentum": (0.95, 0.999)},
    {"momentum": (0.8, 0.95)},
    {"clip": 1e9},
    {"clip": 0.1},
    {"smaller": 2, "free": 40, "pressed": 40},
    {"smaller": 2, "free": 40, "pressed": 40, "rate": (0.3, 0.1)},
    {"smaller": 0.5, "free": 10, "pressed": 10, "rate": (1.0, 0.3)},
    {"start": (0.8, 1.0), "rate": (1.0, 0.3)},
    {"start": (0.8, 1.0), "rate": (0.3, 0.1)},
    {"start": (0.8, 1.0), "free": 10, "pressed": 25},
    {"start": (0.9, 1.0), "free": 5, "pressed": 28},
    {"objective": "paper"},
    {"free": 30, "pressed": 30},
    {"free": 40, "pressed": 40},
    {"free": 60, "pressed": 60},
    {"free": 12, "pressed": 12},
    {"start": (0.0, 1.0), "rate": (1.0, 0.3), "free": 60, "pressed": 60},
]


def settings_of(variant: dict[str, Any], targets: float, seeds: int) -> Any:
    from headatlas.method import GatingSettings, Stage

    rate = variant.get("rate", (0.5, 0.15))
    settings = GatingSettings(
        variant.get("objective", "bounded"),
        Stage(variant.get("free", 20), *rate),
        Stage(variant.get("pressed", 20), *variant.get("pressed_rate", rate)),
        batch=None,
        seeds=seeds,
        start=variant.get("start", (0.5, 1.0)),
        momentum=variant.get("momentum", (0.9, 0.999)),
        clip=variant.get("clip", 1.0),
    ).for_targets(targets)
    assert settings.batch is not None
    from dataclasses import replace

    return replace(settings, batch=max(1, round(settings.batch / variant.get("smaller", 1))))


def search(arguments: argparse.Namespace) -> None:
    from headatlas import load_model

    began = time.monotonic()
    model = load_model(arguments.model, dtype="fast", check=False)
    rows = {task: read_rows(Path(arguments.rows), task)[0] for task in arguments.task}
    arrays: dict[str, np.ndarray] = {}
    facts: dict[str, Any] = {}
    for number, variant in enumerate(VARIANTS):
        for task, train in rows.items():
            if time.monotonic() - began > arguments.seconds:
                break
            targets = float(np.mean([len(row.target) for row in train]))
            settings = settings_of(variant, targets, arguments.seeds)
            results, seconds, tokens = fit_both(model, train, settings, task)
            name = f"{task}-{number}"
            facts[name] = {
                "variant": variant,
                "settings": settings.to_json(),
                "seconds": seconds,
                "tokens": tokens,
            }
            for kind in ("retain", "remove"):
                gates = [1 / (1 + np.exp(-one.logits)) for one in results if one.fit == kind]
                arrays[f"{name}.{kind}"] = np.stack(gates).astype(np.float16)
            everything: dict[str, Any] = {"facts": np.array(json.dumps(facts)), **arrays}
            np.savez_compressed(arguments.out, **everything)  # as it goes
            print(name, variant, f"{seconds:.1f} s", flush=True)


def show(path: Path) -> None:
    found = np.load(path)
    facts = json.loads(str(found["facts"]))
    print(
        "| task | variant | tokens, 3 seeds | facilitation | interference | seeds | Always / Any, 3 seeds |"
    )
    print("|---|---|---|---|---|---|---|")
    for task in sorted({name.partition("-")[0] for name in facts}):
        reference = scores(REFERENCE / f"{task}-paper.parquet")
        print(f"| {task} | paper | | | | {_pair(seed_to_seed, reference)} | {_shares(reference)} |")
    for name, about in facts.items():
        task = name.partition("-")[0]
        reference = scores(REFERENCE / f"{task}-paper.parquet")
        low, high = (found[f"{name}.{kind}"].astype(np.float64) for kind in ("remove", "retain"))
        low, high = (one.reshape(len(one), -1) for one in (low, high))
        cells = [
            task,
            json.dumps(about["variant"]),
            f"{about['tokens'] * 3 / len(low):,.0f}",
            f"{with_seeds(low, reference['facilitation'], 3):.3f}",
            f"{with_seeds(1 - high, reference['interference'], 3):.3f}",
            _pair(seed_to_seed, {"facilitation": low, "interference": 1 - high}),
            _shares({"facilitation": low, "interference": 1 - high}),
        ]
        print("| " + " | ".join(cells) + " |")


def _pair(measure: Callable[[np.ndarray], float], values: dict[str, np.ndarray]) -> str:
    return " / ".join(f"{measure(values[name]):.2f}" for name in ("facilitation", "interference"))


def _shares(values: dict[str, np.ndarray]) -> str:
    """Per cent of heads, facilitating and interfering: a short schedule must also differ from seed to seed
    as much as the long one does, or its Always and Any maps are too much alike."""
    found = (always_any(values[name]) for name in ("facilitation", "interference"))
    return ", ".join(f"{100 * always:.0f} / {100 * some:.0f}" for always, some in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows")
    parser.add_argument("--task", nargs="+", default=["syntax", "math"])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--found", type=Path)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    if arguments.show:
        show(arguments.found)
    else:
        search(arguments)


if __name__ == "__main__":
    main()
