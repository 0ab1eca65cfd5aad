"""How well does a preset agree with the published schedule, and what are its heads worth?

python bench/agreement.py rows --out rows.json
    the rows of math and syntax for SmolLM2, for a machine that lacks the task generators
python bench/agreement.py fit --rows rows.json --task syntax --preset paper --out bench/reference/x
    fits ten seeds (on a GPU), writes x.parquet (gates) and x.json (settings, held-out figures, seconds)
python bench/agreement.py report --out docs/quick.md
    compares what lies in bench/reference, and an atlas made by `headatlas demo` if one is given
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

REFERENCE = Path(__file__).parent / "reference"
TASKS = ("math", "syntax")


def export_rows(out: Path) -> None:
    from headatlas import load_model, load_task
    from headatlas.task import encode

    tokenizer = load_model("smollm2", check=False).tokenizer
    found: dict[str, Any] = {}
    for name in TASKS:
        rows = encode(load_task(name).items(tokenizer), tokenizer, bos=None, max_tokens=512, name=name)
        sides = {side: [[row.ids, row.start] for row in getattr(rows, side)] for side in ("train", "test")}
        found[name] = {**sides, "content_hash": rows.content_hash}
    out.write_text(json.dumps(found))


def fit(arguments: argparse.Namespace) -> None:
    import torch

    from headatlas import load_model
    from headatlas.method import GateFit, RowTable, random_starts, resolve
    from headatlas.task import Row

    data = json.loads(Path(arguments.rows).read_text())[arguments.task]
    train, test = ([Row(tuple(ids), start) for ids, start in data[side]] for side in ("train", "test"))
    model = load_model(arguments.model, dtype="fast", check=False)
    settings = resolve(
        arguments.preset, seeds=arguments.seeds, objective=arguments.objective, updates=arguments.updates
    )
    table, seeds = RowTable(train), range(settings.seeds)
    began = time.monotonic()
    free = GateFit(
        model,
        table,
        settings,
        "free",
        [(seed, "free") for seed in seeds],
        random_starts(model, settings, seeds),
        name=arguments.task,
    )
    free.run()
    starts = torch.from_numpy(np.stack([one.logits for one in free.results()])).repeat_interleave(2, 0)
    sets = [(seed, kind) for seed in seeds for kind in ("retain", "remove")]
    pressed = GateFit(model, table, settings, "pressed", sets, starts, name=arguments.task)
    pressed.run()
    seconds = time.monotonic() - began
    results = [*free.results(), *pressed.results()]
    lines = [
        {"seed": one.seed, "fit": one.fit, "layer": layer, "head": head, "value": float(gate)}
        for one in results
        for (layer, head), gate in np.ndenumerate(1 / (1 + np.exp(-one.logits.astype(np.float64))))
    ]
    out = Path(arguments.out)
    pd.DataFrame(lines).astype({"value": "float32"}).to_parquet(out.with_suffix(".parquet"), index=False)
    facts = {
        "task": arguments.task,
        "content_hash": data["content_hash"],
        "preset": arguments.preset,
        "settings": settings.to_json(),
        "seconds": seconds,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
        "held_out": held_out(model, test, results),
    }
    out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")


def held_out(model: Any, rows: list[Any], results: list[Any], draws: int = 3) -> dict[str, Any]:
    """NLL on held-out rows: ungated, gated, with only the kept heads, with random sets of that size."""
    from headatlas.method import evaluate

    def nll(gates: np.ndarray | None) -> float:
        return evaluate(model, rows, gates, budget=16_384).mean_nll

    plain = evaluate(model, rows, None, budget=16_384)
    found: dict[str, Any] = {"rows": len(rows), "baseline": plain.mean_nll, "accuracy": plain.accuracy}
    for kind in ("retain", "remove"):
        gates = [1 / (1 + np.exp(-one.logits)) for one in results if one.fit == kind]
        found[kind] = [nll(one) for one in gates]
    chance = np.random.default_rng(0)
    kept = [
        (1 / (1 + np.exp(-one.logits)) >= 0.5).astype(np.float32) for one in results if one.fit == "remove"
    ]
    found["kept_heads"] = [int(mask.sum()) for mask in kept]
    found["kept"] = [nll(mask) for mask in kept]
    found["random"] = [
        nll(chance.permutation(mask.ravel()).reshape(mask.shape)) for mask in kept for _ in range(draws)
    ]
    return found


# Comparison


def scores(path: Path) -> dict[str, np.ndarray]:
    """Facilitation and interference, [seed, head]."""
    frame = pd.read_parquet(path)
    wide = frame.pivot_table(index="seed", columns=["fit", "layer", "head"], values="value")
    return {"facilitation": wide["remove"].to_numpy(), "interference": 1 - wide["retain"].to_numpy()}


def seed_to_seed(values: np.ndarray) -> float:
    pairs = np.corrcoef(values)
    return float(pairs[np.triu_indices(len(values), 1)].mean())


def with_seeds(values: np.ndarray, reference: np.ndarray, count: int) -> float:
    """Mean correlation of the mean over `count` seeds with the reference's mean over all its seeds."""
    chosen = list(combinations(range(len(values)), count))
    if len(chosen) > 200:
        chosen = [chosen[place] for place in np.random.default_rng(0).choice(len(chosen), 200, replace=False)]
    target = reference.mean(axis=0)
    return float(np.mean([np.corrcoef(values[list(one)].mean(axis=0), target)[0, 1] for one in chosen]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    rows = commands.add_parser("rows")
    rows.add_argument("--out", type=Path, required=True)
    fitting = commands.add_parser("fit")
    for name, default in (("rows", None), ("task", None), ("preset", "paper"), ("out", None)):
        fitting.add_argument(f"--{name}", default=default, required=default is None)
    fitting.add_argument("--model", default="smollm2")
    fitting.add_argument("--objective")
    fitting.add_argument("--seeds", type=int, default=10)
    fitting.add_argument("--updates", type=int)
    arguments = parser.parse_args()
    if arguments.command == "rows":
        export_rows(arguments.out)
    else:
        fit(arguments)


if __name__ == "__main__":
    main()
