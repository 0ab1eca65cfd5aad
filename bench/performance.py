"""The page of what things cost, from what the timing scripts measured.

python bench/performance.py --out docs/performance.md
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from markdown import table

REFERENCE = Path(__file__).parent / "reference"


def numbers(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / name).read_text())
    return found


def where(found: dict[str, Any]) -> str:
    return f"{found['date']}, headatlas {found['headatlas']}, torch {found['torch']}, {found['machine']}"


def overhead() -> list[str]:
    found = numbers("gating-overhead.json")
    lines = [
        [name, f"{one['seconds']:.3f}", f"{one['ratio'][1]:.3f}", "{0:.3f} to {2:.3f}".format(*one["ratio"])]
        for name, one in found["passes"].items()
    ]
    return [
        "## What gates cost in a forward pass",
        "",
        f"{where(found)}; {found['model']}, {found['dtype']}, {found['rows']} rows of {found['tokens']} "
        f"tokens, {found['rounds']} interleaved rounds (`bench/gating_overhead.py`).",
        "",
        *table(["forward pass", "median seconds", "ratio to plain", "middle half of the rounds"], lines),
        "",
    ]


def updates() -> list[str]:
    found = numbers("gating-cpu.json")
    lines = []
    for one in found["results"]:
        seconds, rate = one["seconds"], one["operations"] / one["seconds"]["ours"]
        lines.append(
            [
                f"{one['task']}: {one['rows']} rows × {one['sets']} sets, {one['tokens']:,} tokens",
                f"{seconds['peer']:.2f}",
                f"{seconds['ours, float32']:.2f}",
                f"{seconds['ours']:.2f}",
                "{1:.2f} ({0:.2f} to {2:.2f})".format(*one["ratio"]),
                f"{100 * rate / found['ceiling']:.0f} %",
                f"{one['gap']:.0e}",
            ]
        )
    head = ["an update", "authors' engine", "ours in float32", f"ours ({found['fast']})", "ratio"]
    return [
        "## An update of a fit, on two cores",
        "",
        f"{where(found)}; {found['model']}, {found['rounds']} interleaved rounds (`bench/gating_speed.py`). "
        "Seconds per update of the free fit, the same rows and gate sets on both sides. *Authors' engine*: "
        "the package nam-causal-head-gating 0.1.0, float32 weights under its own autocast to bfloat16. *Of "
        "the ceiling*: 4 · parameters · tokens operations (forward, and backward through the activations) "
        f"in our time, against a large matrix product in the same run, {found['ceiling'] / 1e9:.0f} "
        "GFLOP/s. *Gap*: the largest difference of a gate from a plain loop (hooks, a row at a time, all "
        "logits, PyTorch's Adam) after 20 updates in float32.",
        "",
        *table([*head, "of the ceiling", "gap"], lines),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    page = [
        "# Performance",
        "",
        "Made by `bench/performance.py`; not edited by hand.",
        "",
        *overhead(),
        *updates(),
    ]
    parser.parse_args().out.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
