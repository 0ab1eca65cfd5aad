"""What a fit costs on a GPU: time beside the authors' engine, memory, growth.

PYTHONPATH=src python bench/gating_gpu.py --peer FOLDER --out bench/reference/gating-gpu.json

FOLDER holds the unpacked wheel of nam-causal-head-gating 0.1.0 (and einops, which it needs). Random weights
of published shapes; all sides fit the same gate sets on the same rows. A round times one update of every
variant, in an order that rotates; kept are medians over the rounds and ratios within rounds. The ceiling is a
large matrix product in bfloat16, alone and for as long as an update lasts: under load a GPU lowers its clock.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from engines import authors, ours, update_of
from shapes import SHAPES, random_model, random_rows
from timing import about, ceiling, interleaved, median_ratio, sustained_ceiling, where_time_goes

from headatlas import load_model

GIB = 2**30
#: rows, tokens, targets
CASES = {"syntax-like": (32, 40, 1), "syntax-like, large": (256, 40, 1), "math-like": (32, 256, 128)}
CHECKED, ROUNDS = 20, 9
#: least cosine of a slope and that of passes one by one
ALIKE = 0.99
#: GiB that a fit of 64 rows × 40 tokens and ten gate sets is to keep to
LIMITS = {"Llama-3.2-3B": 12, "Llama-3.1-8B": 24}
Variants = dict[str, Callable[[], None]]


def speed(peer: Path) -> dict[str, Any]:
    shape = "Llama-3.2-3B"
    fast = load_model(random_model(shape), check=False)
    exact = random_model(shape, torch.float32)
    results: list[dict[str, Any]] = []
    profiles: list[dict[str, Any]] = []
    for case, (rows, tokens, targets) in CASES.items():
        some = random_rows(rows, tokens, targets, SHAPES[shape]["vocab_size"])
        ways = {"one by one": (False, False), "recorded": (True, False), "recorded, compiled": (True, True)}
        fits = {name: ours(fast, some, 1, recorded=r, compiled=c) for name, (r, c) in ways.items()}
        first, peak, slopes = {}, {}, {}
        variants: Variants = {name: update_of(fit) for name, fit in fits.items()}
        variants["authors"] = authors(peer, exact, some, 1)
        for name, work in variants.items():
            torch.cuda.empty_cache()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            began = time.perf_counter()
            work()
            torch.cuda.synchronize()
            first[name] = time.perf_counter() - began
            if name in fits:  # Adam's mean after one update is a tenth of the slope
                slopes[name] = fits[name].adam.mean.clone()
            for _ in range(CHECKED - 1 if name in fits else 2):
                work()
            peak[name] = (torch.cuda.max_memory_allocated() - before) / GIB
        gates = {name: torch.sigmoid(fit.logits) for name, fit in fits.items()}
        alike = {name: cosine(slopes[name], slopes["one by one"]) for name in fits}
        for name, cos in alike.items():
            assert cos > ALIKE, f"what is timed is not the same work: {name}, {cos}"
        times = interleaved(variants, ROUNDS)
        for name in variants:
            results.append(
                {
                    "case": case,
                    "shape": [rows, tokens, targets],
                    "variant": name,
                    "seconds": statistics.median(times[name]),
                    "ratio": median_ratio(times["authors"], times[name]),
                    "rate": 4 * (fast.spec.parameters or 0) * rows * tokens / statistics.median(times[name]),
                    "first": first[name],
                    "peak_gib": peak[name],
                    "slope": alike.get(name),
                    "gap": float((gates[name] - gates["one by one"]).abs().max()) if name in gates else None,
                }
            )
            print(results[-1], flush=True)
        profiles.append(
            {
                "case": case,
                "seconds": where_time_goes(variants["recorded, compiled"]),
                # of the products: no embedding, and the unembedding for targets alone
                "operations": 4 * rows * (tokens * inside(fast) + targets * fast.unembedding().numel()),
            }
        )
        print(profiles[-1], flush=True)
        del variants, fits
    return {"updates": results, "profiles": profiles}


def inside(model: Any) -> int:
    """Parameters of the blocks."""
    return int(sum(p.numel() for p in model.hf.model.layers.parameters()))


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.cosine_similarity(one.double().flatten(), other.double().flatten(), dim=0))


def memory() -> list[dict[str, Any]]:
    results = []
    for shape, limit in LIMITS.items():
        model = load_model(random_model(shape), check=False)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        failed = torch.cuda.memory_stats()["num_ooms"]
        torch.cuda.set_per_process_memory_fraction(limit * GIB / torch.cuda.mem_get_info()[1])
        try:
            fit = ours(model, random_rows(64, 40, 1, SHAPES[shape]["vocab_size"]), 10)
            work = update_of(fit)
            for _ in range(3):
                work()
            times = interleaved({"update": work}, 3)["update"]
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        results.append(
            {
                "shape": shape,
                "limit_gib": limit,
                "weights_gib": sum(p.numel() * p.element_size() for p in model.hf.parameters()) / GIB,
                "peak_gib": torch.cuda.max_memory_reserved() / GIB,
                "failed": torch.cuda.memory_stats()["num_ooms"] - failed,
                "tokens_per_pass": fit.runner.budget,
                "compiled": bool(fit.runner.compiler),
                "recorded": len(fit.runner.recorder._recordings),
                "seconds": statistics.median(times),
                "rate": 4 * (model.spec.parameters or 0) * 64 * 40 * 10 / statistics.median(times),
            }
        )
        print(results[-1], flush=True)
        del fit, work, model
        torch.cuda.empty_cache()
    return results


def growth() -> dict[str, Any]:
    """Milliseconds per update with more rows, and with more gate sets; memory after few and many updates."""
    shape = "Llama-3.2-3B"
    vocabulary = SHAPES[shape]["vocab_size"]
    model = load_model(random_model(shape), check=False)
    found: dict[str, Any] = {"rows": {}, "sets": {}}
    for kind, counts in (("rows", (32, 64, 128, 256)), ("sets", (1, 2, 4, 8))):
        for count in counts:
            rows, sets = (count, 1) if kind == "rows" else (32, count)
            fit = ours(model, random_rows(rows, 40, 1, vocabulary), sets, recorded=True, compiled=True)
            work = update_of(fit)
            work()
            work()
            found[kind][count] = statistics.median(interleaved({"": work}, 5)[""])
            print(kind, count, found[kind][count], flush=True)
    fit = ours(model, random_rows(32, 40, 1, vocabulary), 4, recorded=True, compiled=True)
    work, held = update_of(fit), {}
    torch.cuda.empty_cache()
    for number in range(1, 201):
        work()
        if number in (10, 50, 200):
            torch.cuda.synchronize()
            held[number] = torch.cuda.memory_reserved() / GIB
    return {**found, "held_gib": held}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found: dict[str, Any] = {**about(), "rounds": ROUNDS, "checked": CHECKED, "ceiling": ceiling()}
    found["sustained"] = sustained_ceiling()
    print(found, flush=True)
    parts: dict[str, Callable[[], Any]] = {
        "speed": lambda: speed(arguments.peer),
        "memory": memory,
        "growth": growth,
    }
    for name, part in parts.items():
        found[name] = part()
        torch.cuda.empty_cache()
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")  # as it goes


if __name__ == "__main__":
    main()
