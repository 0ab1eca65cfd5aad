"""What gating costs: a gated forward pass against a plain one, interleaved in one run.

    python bench/gating_overhead.py --model smollm2 --rows 8 --tokens 64 --rounds 25

Each round times every variant once, in an order that rotates, and the ratio to the plain pass of the
same round is taken: the median over rounds and the middle half of them. A second
plain pass stands among the variants: its ratio shows what this machine's noise alone does.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from timing import about, interleaved, median_ratio

from headatlas import gates, load_model

REFERENCE = Path(__file__).parent / "reference"


def variants(name: str, rows: int, tokens: int, dtype: str) -> dict[str, Callable[[], torch.Tensor]]:
    """The passes to compare, and a check that each computes what it should."""
    model = load_model(name, dtype=dtype)
    model.hf.requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, 30_000, (rows, tokens), generator=generator).to(model.device)
    shared = torch.rand(model.spec.shape, generator=generator).to(model.device)
    own = torch.rand(rows, *model.spec.shape, generator=generator).to(model.device)
    ones = torch.ones_like(shared)

    def plain() -> torch.Tensor:
        logits: torch.Tensor = model.hf(input_ids=ids, use_cache=False).logits
        return logits

    def gated(values: torch.Tensor) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            with gates(model, values):
                return plain()

        return run

    with torch.no_grad():
        assert torch.equal(gated(ones)(), plain()), "gates of one must change nothing"
        assert not torch.allclose(gated(shared)(), plain(), atol=1e-2), "random gates must change something"
    return {
        "plain": plain,
        "plain again": plain,
        "one gate set": gated(shared),
        "a gate set per row": gated(own),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--out", type=Path, default=REFERENCE / "gating-overhead.json")
    arguments = parser.parse_args()
    passes = variants(arguments.model, arguments.rows, arguments.tokens, arguments.dtype)
    with torch.no_grad():
        seconds = interleaved(passes, arguments.rounds)
    found = {
        **about(),
        "model": arguments.model,
        "dtype": arguments.dtype,
        "rows": arguments.rows,
        "tokens": arguments.tokens,
        "rounds": arguments.rounds,
        "passes": {
            name: {"seconds": statistics.median(times), "ratio": median_ratio(times, seconds["plain"])}
            for name, times in seconds.items()
        },
    }
    print(json.dumps(found, indent=1))
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
