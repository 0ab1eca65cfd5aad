"""What reading relations off weights costs on a GPU: all heads of an 8B shape, beside the plain loop.

PYTHONPATH=src python bench/relations_gpu.py --out bench/reference/relations-gpu.json

Random weights of Llama-3.1-8B's shape, 20 relations with 3,088 random pairs. The loop (for every head and
relation all numbers of the vocabulary and two full top-k, as published, in float32) runs on the heads of two
layers, in turn with ours; there the scores are compared, where they differ with the loop in double precision.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch
from relations import loop_scores
from shapes import SHAPES, random_model
from timing import about, ceiling, interleaved

from headatlas import load_model
from headatlas.method.relation.scorer import Writer, static_scores
from headatlas.task import PairTokens

SHAPE, RELATIONS, PAIRS, K = "Llama-3.1-8B", 20, 3088, 25
#: GiB above the weights that may be used
ROOM = 2
COMPARED_LAYERS = (1, 16)


def random_pairs(vocabulary: int) -> list[list[PairTokens]]:
    """Some in which targets are near their sources, so that not all is chance, and some that copy."""
    draw = np.random.default_rng(0)
    tokens = draw.integers(0, vocabulary, size=(2, PAIRS))
    tokens[1, ::10] = tokens[0, ::10]
    pairs = [PairTokens((int(source),), int(target), True, ("", "")) for source, target in tokens.T]
    return [
        [pair for place, pair in enumerate(pairs) if place % RELATIONS == own] for own in range(RELATIONS)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    hf = random_model(SHAPE)
    model = load_model(hf, check=False)
    weights = torch.cuda.memory_allocated()
    pairs, k = random_pairs(SHAPES[SHAPE]["vocab_size"]), [K] * RELATIONS
    model.source_vectors([0, 1])  # what is found out once per model

    def whole() -> None:
        static_scores(Writer(model), pairs, k, "first_mlp")

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.set_per_process_memory_fraction((weights + ROOM * 2**30) / torch.cuda.mem_get_info()[1])
    failed = torch.cuda.memory_stats()["num_ooms"]
    times = interleaved({"all heads": whole}, 5)["all heads"]
    peak = (torch.cuda.max_memory_reserved() - weights) / 2**30
    failed = torch.cuda.memory_stats()["num_ooms"] - failed
    torch.cuda.set_per_process_memory_fraction(1.0)
    found: dict[str, Any] = {
        **about(),
        "shape": SHAPE,
        "heads": len(model.spec),
        "relations": RELATIONS,
        "pairs": PAIRS,
        "seconds": statistics.median(times),
        "room_gib": ROOM,
        "peak_gib": peak,
        "failed": failed,
        # the product of what heads read and all tokens, for every pair and head, once
        "floor": 2 * len(model.spec) * PAIRS * 128 * SHAPES[SHAPE]["vocab_size"] / ceiling(),
    }
    print(found, flush=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    heads = [head for head in model.spec if head.layer in COMPARED_LAYERS]
    writer, results = Writer(model), {}

    def ours() -> None:
        results["ours"] = static_scores(writer, pairs, k, "first_mlp", heads=heads)

    def loop() -> None:
        results["loop"] = loop_scores(model, pairs, k, "first_mlp", heads)

    both = interleaved({"ours": ours, "loop": loop}, 2)
    apart = np.nan_to_num(np.abs(results["ours"] - results["loop"])) > 1e-6
    still = 0
    for relation in np.flatnonzero(apart.any((1, 2, 3))):
        some = [head for head in heads if apart[relation, :, head.layer, head.head].any()]
        again = loop_scores(model, [pairs[relation]], [K], "first_mlp", some, double=True)
        still += int((np.nan_to_num(np.abs(results["ours"][relation] - again[0])) > 1e-6).sum())
    found |= {
        "compared_heads": len(heads),
        "ours": statistics.median(both["ours"]),
        "loop": statistics.median(both["loop"]),
        "cells": 2 * RELATIONS * len(heads),
        "hits": round(float(np.nansum(results["ours"])) * PAIRS / RELATIONS),
        "differ": int(apart.sum()),
        "differ_in_double": still,
    }
    print(found, flush=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
