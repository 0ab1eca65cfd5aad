"""Which short schedule agrees best with the published one, per token?

    python bench/search_quick.py --rows rows.json --seconds 500 --out found.npz      (on a GPU)
    python bench/search_quick.py --rows rows.json --first 32 --out more.npz          (only the later variants)
    python bench/search_quick.py --found found.npz more.npz --summary bench/reference/search.json

Every variant below is fitted with ten seeds, the most telling ones first, until time is up. The file holds
the gates of retain and remove; the summary compares them with the long runs in bench/reference, and
`bench/agreement.py report` turns it into a table.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from agreement import REFERENCE, always_any, fit_both, gates_of, read_rows, scores, seed_to_seed, with_seeds

#: changes to the schedule that the search began with: BATCH rows, 15 + 30 updates, rates 0.5 -> 0.15 and
#: 0.5 -> 0.1, start in 0.5..1, Adam's usual momentum, clip 1, no push
BATCH = {"math": 4, "syntax": 12}
_SMALL = {"smaller": 2, "free": 30, "pressed": 60, "momentum": (0.8, 0.999), "clip": 0.1}
VARIANTS: list[dict[str, Any]] = [
    {},
    {"start": (0.0, 1.0)},
    {"start": (0.25, 1.0)},
    {"start": (0.0, 1.0), "rate": (1.0, 0.3)},
    {"start": (0.25, 1.0), "rate": (1.0, 0.3)},
    {"start": (0.0, 1.0), "rate": (1.0, 0.15), "free": 20, "pressed": 27},
    {"start": (0.0, 1.0), "free": 30, "pressed": 22},
    {"start": (0.25, 1.0), "rate": (1.0, 0.2), "free": 20, "pressed": 27},
    {"pressed_rate": (1.0, 0.1)},
    {"pressed_rate": (0.7, 0.1)},
    {"pressed_rate": (0.3, 0.1)},
    {"pressed_rate": (0.5, 0.02)},
    {"free": 10, "pressed": 32},
    {"free": 5, "pressed": 35},
    {"momentum": (0.9, 0.99)},
    {"momentum": (0.9, 0.95)},
    {"momentum": (0.8, 0.999)},
    {"momentum": (0.95, 0.999)},
    {"clip": 1e9},
    {"clip": 0.1},
    {"smaller": 2, "free": 30, "pressed": 60},
    {"smaller": 2, "free": 30, "pressed": 60, "rate": (0.3, 0.1), "pressed_rate": (0.3, 0.1)},
    {"smaller": 0.5, "free": 8, "pressed": 15, "rate": (1.0, 0.3), "pressed_rate": (1.0, 0.2)},
    {"objective": "paper"},
    {"start": (0.0, 1.0), "rate": (1.0, 0.3), "smaller": 2, "free": 30, "pressed": 60},
    {"start": (0.8, 1.0)},
    {"free": 30, "pressed": 60},
    {"start": (0.0, 1.0), "rate": (1.0, 0.3), "free": 30, "pressed": 60},
    {"free": 60, "pressed": 60},
    {"start": (0.0, 1.0), "rate": (1.0, 0.3), "pressed_rate": (1.0, 0.3), "free": 60, "pressed": 60},
    {"pressure": 0.2},
    {"pressure": 0.05},
    _SMALL,
    {**_SMALL, "push": 1.5},
    {**_SMALL, "push": 2},  # `quick`, but for its 25 + 50 updates
    {**_SMALL, "push": 3},
    {**_SMALL, "push": 2, "start": (0.0, 1.0)},
    {**_SMALL, "push": 2, "objective": "paper"},
    {**_SMALL, "push": 2, "smaller": 4, "free": 60, "pressed": 120},
    {**_SMALL, "push": 2, "free": 60, "pressed": 120},
]


def settings_of(variant: dict[str, Any], task: str, seeds: int) -> Any:
    from headatlas.method import GatingSettings
    from headatlas.method.gating import Stage

    rate = variant.get("rate", (0.5, 0.15))
    return GatingSettings(
        variant.get("objective", "bounded"),
        Stage(variant.get("free", 15), *rate),
        Stage(variant.get("pressed", 30), *variant.get("pressed_rate", (0.5, 0.1))),
        batch=max(1, round(BATCH[task] / variant.get("smaller", 1))),
        seeds=seeds,
        start=variant.get("start", (0.5, 1.0)),
        momentum=variant.get("momentum", (0.9, 0.999)),
        clip=variant.get("clip", 1.0),
        pressure=variant.get("pressure", 0.1),
        push=variant.get("push", 1.0),
    )


def search(arguments: argparse.Namespace) -> None:
    from headatlas import load_model

    began = time.monotonic()
    model = load_model(arguments.model, dtype="fast", check=False)
    rows = {task: read_rows(Path(arguments.rows), task)[0] for task in arguments.task}
    arrays: dict[str, np.ndarray] = {}
    facts: dict[str, Any] = {}
    for number, variant in list(enumerate(VARIANTS))[arguments.first :]:
        for task, train in rows.items():
            if time.monotonic() - began > arguments.seconds:
                break
            settings = settings_of(variant, task, arguments.seeds)
            results, seconds, tokens = fit_both(model, train, settings, task)
            name = f"{task}-{number}"
            facts[name] = {
                "variant": variant,
                "settings": settings.to_json(),
                "seconds": seconds,
                "tokens": tokens,
            }
            for kind in ("retain", "remove"):
                gates = [gates_of(one) for one in results if one.fit == kind]
                arrays[f"{name}.{kind}"] = np.stack(gates).astype(np.float16)
            everything: dict[str, Any] = {"facts": np.array(json.dumps(facts)), **arrays}
            np.savez_compressed(arguments.out, **everything)  # as it goes
            print(name, variant, f"{seconds:.1f} s", flush=True)


def summarise(paths: list[Path]) -> list[dict[str, Any]]:
    """One line per task and variant, with the published schedule first."""
    found: dict[str, np.ndarray] = {}
    facts: dict[str, Any] = {}
    for path in paths:
        with np.load(path) as one:
            facts |= json.loads(str(one["facts"]))
            found |= {name: one[name] for name in one.files if name != "facts"}
    references = {
        task: scores(REFERENCE / f"{task}-paper.parquet")
        for task in sorted({name.partition("-")[0] for name in facts})
    }
    lines = [{"task": task, "variant": "paper", **_figures(one)} for task, one in references.items()]
    for name, about in facts.items():
        task = name.partition("-")[0]
        low, high = (found[f"{name}.{kind}"].astype(np.float64) for kind in ("remove", "retain"))
        values = {
            "facilitation": low.reshape(len(low), -1),
            "interference": 1 - high.reshape(len(high), -1),
        }
        settings = about["settings"]
        lines.append(
            {
                "task": task,
                "variant": about["variant"],
                "rows": settings["batch"]
                * (settings["free"]["updates"] + 2 * settings["pressed"]["updates"]),
                **_figures(values),
                "agreement": {
                    score: round(with_seeds(one, references[task][score], 3), 3)
                    for score, one in values.items()
                },
            }
        )
    return lines


def _figures(values: dict[str, np.ndarray]) -> dict[str, Any]:
    """Correlation between seeds; per cent of heads that reach 0.5 in all, and in any, of three seeds: a short
    schedule must also differ from seed to seed as the long one does, or its maps mislead."""
    return {
        "seeds": {score: round(seed_to_seed(one), 2) for score, one in values.items()},
        "shares": {score: [round(100 * share) for share in always_any(one)] for score, one in values.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows")
    parser.add_argument("--task", nargs="+", default=list(BATCH))
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--first", type=int, default=0, help="number of the variant to begin with")
    parser.add_argument("--found", type=Path, nargs="+")
    parser.add_argument("--summary", type=Path)
    arguments = parser.parse_args()
    if arguments.summary:
        lines = [json.dumps(line) for line in summarise(arguments.found)]
        arguments.summary.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    else:
        search(arguments)


if __name__ == "__main__":
    main()
