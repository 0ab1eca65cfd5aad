"""What gating costs: a gated forward pass against a plain one, interleaved in one run.

    make bench
    python bench/gating_overhead.py --model smollm2 --rows 8 --tokens 64 --rounds 25

Each round times every variant once, in an order that rotates, and the ratio to the plain pass of the
same round is taken; the table gives the median over rounds and the middle half of them. A second
plain pass stands among the variants: its ratio shows what this machine's noise alone does.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from headatlas import __version__, gates, load_model


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


def synchronise() -> None:
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()


@torch.no_grad()
def measure(passes: dict[str, Callable[[], torch.Tensor]], rounds: int) -> dict[str, list[float]]:
    for run in passes.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    names = list(passes)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            synchronise()
            start = time.perf_counter()
            passes[name]()
            synchronise()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def table(seconds: dict[str, list[float]]) -> list[str]:
    lines = [
        "| forward pass | median seconds | ratio to plain | middle half of the rounds |",
        "|---|---|---|---|",
    ]
    for name, times in seconds.items():
        ratios = [t / p for t, p in zip(times, seconds["plain"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        lines.append(f"| {name} | {statistics.median(times):.3f} | {middle:.3f} | {low:.3f} to {high:.3f} |")
    return lines


def hardware() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    return f"{cpu}, {torch.get_num_threads()} threads"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--out", type=Path, help="write a page of Markdown here")
    arguments = parser.parse_args()
    passes = variants(arguments.model, arguments.rows, arguments.tokens, arguments.dtype)
    lines = table(measure(passes, arguments.rounds))
    where = (
        f"{datetime.date.today():%Y-%m-%d}, headatlas {__version__}, torch {torch.__version__}, "
        f"{hardware()}; "
        f"{arguments.model}, {arguments.dtype}, {arguments.rows} rows of {arguments.tokens} tokens, "
        f"{arguments.rounds} interleaved rounds."
    )
    print("\n".join([where, "", *lines]))
    if arguments.out:
        page = [
            "# Performance",
            "",
            "Made by `make bench`; not edited by hand. Ratios come from one interleaved run.",
            "",
            "## What gating costs",
            "",
            where,
            "",
            *lines,
            "",
        ]
        arguments.out.write_text("\n".join(page))


if __name__ == "__main__":
    main()
