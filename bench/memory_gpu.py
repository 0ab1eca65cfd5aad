"""What a pass keeps on a GPU, by its tokens and by the shape of the model.

PYTHONPATH=src python bench/memory_gpu.py --out bench/reference/memory-gpu.json

Random weights of published shapes, rows of 40 tokens, passes of a given size, recorded and with compiled
blocks. What is counted is the most that a fit takes above the weights: `allocated` for its numbers,
`reserved` with what the allocator holds back for them.
"""

from __future__ import annotations

import argparse
import gc
import json
from pathlib import Path
from typing import Any

import torch
from engines import ours, update_of
from shapes import SHAPES, random_model, random_rows
from timing import about

from headatlas import load_model

GIB = 2**30
ROWS = 1024
PASSES = (512, 1024, 2048, 4096, 8192)


def measured(shape: str) -> list[dict[str, Any]]:
    model = load_model(random_model(shape), check=False)
    rows = random_rows(ROWS, 40, 1, SHAPES[shape]["vocab_size"])
    results = []
    for tokens in PASSES:
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        fit = ours(model, rows, 1, recorded=True, compiled=True)
        fit.runner.budget = tokens
        assert 40 * len(rows) // fit.runner.pieces >= tokens  # passes are as large as they may be
        work = update_of(fit)
        for _ in range(3):
            work()
        torch.cuda.synchronize()
        assert fit.runner.budget == tokens  # and never ran out of memory
        results.append(
            {
                "shape": shape,
                "tokens_per_pass": tokens,
                "allocated_gib": (torch.cuda.max_memory_allocated() - before[0]) / GIB,
                "reserved_gib": (torch.cuda.max_memory_reserved() - before[1]) / GIB,
                "weights_gib": sum(p.numel() * p.element_size() for p in model.hf.parameters()) / GIB,
            }
        )
        print(results[-1], flush=True)
        del fit, work
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    found: list[dict[str, Any]] = []
    for shape in ("Llama-3.2-3B", "Llama-3.1-8B"):
        found += measured(shape)
        out.write_text(json.dumps({**about(), "passes": found}, indent=1) + "\n", encoding="utf-8")
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
