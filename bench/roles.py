"""Do fits that round otherwise find the same roles? SmolLM2, seed by seed, every way against one of them.

python bench/agreement.py rows --out rows.json
PYTHONPATH=src python bench/roles.py --rows rows.json --model smollm2 --out bench/reference/roles.json

A way is a dtype, passes recorded or run one by one, blocks compiled or not, how many tokens go in a pass, and
how many seeds are fitted together.
All have the same seeds, the same starts and the same rows.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from engines import set_way
from timing import about

from agreement import read_rows
from headatlas import load_model
from headatlas.atlas.roles import role_scores, roles_of
from headatlas.method.engine.gate_fit import GateFit, random_starts
from headatlas.method.engine.objective import Pressure
from headatlas.method.engine.rows import RowTable
from headatlas.method.gating import resolve

#: seeds that are fitted together (0: all) where a way does not say otherwise
ALL_SEEDS = 0
#: way -> dtype, recorded, compiled, the passes that they are by default
WAYS: dict[str, tuple[str, bool, bool, bool]] = {
    "bfloat16, one by one": ("bfloat16", False, False, True),
    "bfloat16, recorded": ("bfloat16", True, False, True),
    "bfloat16, recorded, again": ("bfloat16", True, False, True),
    "bfloat16, other passes": ("bfloat16", False, False, False),
    "bfloat16, recorded, compiled": ("bfloat16", True, True, True),
    "float32, one by one": ("float32", False, False, True),
    "float32, recorded": ("float32", True, False, True),
    "float32, other passes": ("float32", False, False, False),
    "float32, recorded, compiled": ("float32", True, True, True),
    "bfloat16, recorded, each seed alone": ("bfloat16", True, False, True),
    "bfloat16, recorded, two seeds together": ("bfloat16", True, False, True),
}
SEEDS_TOGETHER = {"bfloat16, recorded, each seed alone": 1, "bfloat16, recorded, two seeds together": 2}
#: way -> the one that it is to agree with
AGAINST = {
    "bfloat16, recorded": "bfloat16, one by one",
    "bfloat16, recorded, again": "bfloat16, recorded",
    "bfloat16, other passes": "bfloat16, one by one",
    "bfloat16, recorded, compiled": "bfloat16, one by one",
    "float32, recorded": "float32, one by one",
    "float32, other passes": "float32, one by one",
    "float32, recorded, compiled": "float32, one by one",
    "bfloat16, one by one": "float32, one by one",
    "bfloat16, recorded, each seed alone": "bfloat16, recorded",
    "bfloat16, recorded, two seeds together": "bfloat16, recorded, each seed alone",
}


def fit(
    model: Any,
    rows: list[Any],
    settings: Any,
    way: tuple[str, bool, bool, bool],
    seeds_together: int = ALL_SEEDS,
) -> tuple[xr.DataArray, np.ndarray]:
    """[seed, fit, layer, head]: the gates of both pressures; [seed, layer, head]: those of the free fit."""
    _, recorded, compiled, usual = way
    table, seeds = RowTable(rows), range(settings.seeds)

    def run(stage: str, sets: list[tuple[int, str]], starts: torch.Tensor) -> torch.Tensor:
        one = GateFit(model, Pressure(model, table, settings, stage, sets), starts)
        set_way(one, recorded, compiled)
        one.runner.pieces = one.runner.pieces if usual else 0
        one.run()
        return one.logits

    size = seeds_together or len(seeds)
    blocks = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    free_blocks, pressed_blocks = [], []
    for block in blocks:
        free = run("free", [(seed, "free") for seed in block], random_starts(model, settings, block))
        sets = [(seed, kind) for seed in block for kind in ("retain", "remove")]
        free_blocks.append(free)
        pressed_blocks.append(torch.sigmoid(run("pressed", sets, free.repeat_interleave(2, 0))))
    free, pressed = torch.cat(free_blocks), torch.cat(pressed_blocks)
    values = pressed.view(len(seeds), 2, *model.spec.shape).cpu().numpy()
    gates = xr.DataArray(
        values,
        dims=["seed", "fit", "layer", "head"],
        coords={"fit": ["retain", "remove"], "seed": list(seeds)},
    )
    return gates, torch.sigmoid(free).cpu().numpy()


def compared(one: xr.DataArray, other: xr.DataArray) -> dict[str, Any]:
    roles = [roles_of(role_scores(gates)).values for gates in (one, other)]
    means = [roles_of(role_scores(gates).mean("seed")).values for gates in (one, other)]
    helps = [role_scores(gates)["facilitation"].mean("seed").values.ravel() for gates in (one, other)]
    return {
        "roles": [float(share) for share in (roles[0] == roles[1]).mean((1, 2))],
        "mean_roles": float((means[0] == means[1]).mean()),
        "facilitation": float(np.corrcoef(helps[0], helps[1])[0, 1]),
        "gap": float(np.abs(one.values - other.values).max()),
        "mean_gap": float(np.abs(one.values - other.values).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--task", action="append")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--way", action="append")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    models: dict[str, Any] = {}
    found: dict[str, Any] = {**about(), "preset": arguments.preset, "seeds": arguments.seeds, "tasks": {}}
    for task in arguments.task or ["syntax", "arithmetic"]:
        rows, _, _ = read_rows(arguments.rows, task)
        settings = resolve(arguments.preset, seeds=arguments.seeds)
        gates: dict[str, xr.DataArray] = {}
        seconds, free = {}, {}
        for name in arguments.way or WAYS:
            dtype = WAYS[name][0]
            if dtype not in models:
                models[dtype] = load_model(arguments.model, dtype=dtype, check=False)
            began = time.monotonic()
            gates[name], free[name] = fit(
                models[dtype], rows, settings, WAYS[name], SEEDS_TOGETHER.get(name, ALL_SEEDS)
            )
            seconds[name] = time.monotonic() - began
            print(task, name, f"{seconds[name]:.1f} s", flush=True)
        pairs = {
            name: {
                "against": base,
                "free_gap": float(np.abs(free[name] - free[base]).max()),
                **compared(gates[name], gates[base]),
            }
            for name, base in AGAINST.items()
            if name in gates and base in gates
        }
        base = next(iter(gates.values()))
        roles = roles_of(role_scores(base)).values
        between = [float((roles[a] == roles[b]).mean()) for a, b in combinations(range(arguments.seeds), 2)]
        found["tasks"][task] = {"seconds": seconds, "pairs": pairs, "between_seeds": float(np.mean(between))}
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")  # as it goes
        print(json.dumps(found["tasks"][task]), flush=True)


if __name__ == "__main__":
    main()
