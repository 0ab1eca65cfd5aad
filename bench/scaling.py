"""What a map costs, before it is made: a cost model, checked against what was measured, and estimates.

python bench/scaling.py --out docs/scaling.md

    seconds  = tokens · (4 · parameters of the blocks / rate + layers · width · passing)
    memory   = 2 bytes · parameters + held · tokens of a pass · layers · width · kept

`rate` is how many operations per second matrix products get, `passing` what reading and writing between them
costs for each number of the stream. On an H200 the two come from two of the updates that `gating_gpu.py`
timed (256 × 40 and 32 × 256); all others are predicted. `kept` is what a pass keeps for its backward pass,
from one of those that `memory_gpu.py` measured; `held` is how much more the allocator holds for it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markdown import table

REFERENCE = Path(__file__).parent / "reference"
GIB = 2**30
#: layers, width, MLP width, key/value width, vocabulary, whether the unembedding is the embedding
SHAPES: dict[str, tuple[int, int, int, int, int, bool]] = {
    "SmolLM2-135M": (30, 576, 1536, 192, 49_152, True),
    "Llama-3.2-3B": (28, 3072, 8192, 1024, 128_256, True),
    "Llama-3.1-8B": (32, 4096, 14_336, 1024, 128_256, False),
    "Llama-3.1-70B": (80, 8192, 28_672, 1024, 128_256, False),
    "Llama-3.1-405B": (126, 16_384, 53_248, 1024, 128_256, False),
}
HEADS = {"Llama-3.1-8B": 1024, "Llama-3.1-70B": 5120, "Llama-3.1-405B": 16_128}
#: tokens of a fit by preset: updates of one seed (free, then both pressures) × rows × mean tokens of
#: SmolLM2's rows, for the built-in task syntax
ROW = 38.5
PRESETS = {"quick": (25 + 2 * 50) * 6 * ROW, "paper": (500 + 2 * 500) * 64 * ROW}
#: times as long as with compiled blocks
PLAIN = 1.5
H200 = 141e9 / GIB
#: the pass of which `kept` is taken
_KNOWN = ("Llama-3.2-3B", 2048)
#: of a GPU's memory that is filled
FILLED = 0.9


@dataclass(frozen=True)
class Shape:
    name: str

    @property
    def facts(self) -> tuple[int, int, int, int, int, bool]:
        return SHAPES[self.name]

    @property
    def blocks(self) -> float:
        layers, width, inner, values, _, _ = self.facts
        return layers * (2 * width * width + 2 * width * values + 3 * width * inner)

    @property
    def parameters(self) -> float:
        _, width, _, _, vocabulary, tied = self.facts
        return self.blocks + (1 if tied else 2) * vocabulary * width

    @property
    def stream(self) -> float:
        """Numbers that a token brings to all blocks."""
        return float(self.facts[0] * self.facts[1])


@dataclass(frozen=True)
class Cost:
    rate: float
    passing: float

    def seconds(self, shape: Shape, tokens: float) -> float:
        return tokens * (4 * shape.blocks / self.rate + shape.stream * self.passing)

    @classmethod
    def of(cls, found: dict[str, Any]) -> Cost:
        shape = Shape("Llama-3.2-3B")
        known = [one for one in found["speed"]["updates"] if one["variant"] == "recorded, compiled"][1:]
        sides = [
            [4 * shape.blocks * rows * tokens, shape.stream * rows * tokens]
            for rows, tokens, _ in (one["shape"] for one in known)
        ]
        # the two have nearly the same shape of cost: what is read and written is taken from the profile
        between = [one["seconds"]["all else"] for one in found["speed"]["profiles"]][1:]
        passing = float(np.mean([spent / side[1] for spent, side in zip(between, sides, strict=True)]))
        left = [one["seconds"] - side[1] * passing for one, side in zip(known, sides, strict=True)]
        return cls(float(np.mean([side[0] / rest for side, rest in zip(sides, left, strict=True)])), passing)


def numbers(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / name).read_text(encoding="utf-8"))
    return found


def checked(cost: Cost, found: dict[str, Any]) -> list[list[str]]:
    lines = []

    def line(what: str, shape: Shape, tokens: float, measured: float) -> None:
        predicted = cost.seconds(shape, tokens)
        lines.append([what, f"{measured:.3f}", f"{predicted:.3f}", f"{predicted / measured:.2f}"])

    three = Shape("Llama-3.2-3B")
    for one in found["speed"]["updates"]:
        if one["variant"] == "recorded, compiled":
            rows, tokens, _ = one["shape"]
            line(f"3B, {rows} × {tokens}", three, rows * tokens, one["seconds"])
    for one in found["memory"]:
        shape = Shape(one["shape"])
        line(f"{shape.name}, ten gate sets of 64 × 40, little memory", shape, 25_600, one["seconds"])
    for count, seconds in found["growth"]["sets"].items():
        line(f"3B, {count} gate sets of 32 × 40", three, int(count) * 1280, seconds)
    return lines


@dataclass(frozen=True)
class Memory:
    kept: float
    held: float

    def numbers(self, shape: Shape, tokens: int) -> float:
        """GiB."""
        return tokens * shape.stream * self.kept / GIB

    @classmethod
    def of(cls, passes: list[dict[str, Any]]) -> Memory:
        one = next(one for one in passes if (one["shape"], one["tokens_per_pass"]) == _KNOWN)
        stream = Shape(one["shape"]).stream
        return cls(
            one["allocated_gib"] * GIB / one["tokens_per_pass"] / stream,
            max(one["reserved_gib"] / one["allocated_gib"] for one in passes),
        )


def remembered(memory: Memory, passes: list[dict[str, Any]]) -> list[list[str]]:
    lines = []
    for one in passes:
        shape, tokens = Shape(one["shape"]), one["tokens_per_pass"]
        predicted, taken = memory.numbers(shape, tokens), one["allocated_gib"]
        weights = 2 * shape.parameters / GIB
        lines.append(
            [
                f"{shape.name}, {tokens:,} tokens",
                f"{one['weights_gib']:.1f}, {weights:.1f}",
                f"{taken:.1f}",
                f"{predicted:.1f}",
                f"{predicted / taken:.2f}",
                f"{one['reserved_gib']:.1f}",
                f"{memory.held * predicted:.1f}",
            ]
        )
    return lines


def time_of(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def estimates(cost: Cost, memory: Memory) -> list[list[str]]:
    lines = []
    for name in HEADS:
        shape = Shape(name)
        weights = 2 * shape.parameters / GIB
        pass_gib = memory.held * memory.numbers(shape, 1024)
        gpus = int(np.ceil((weights + pass_gib) / (FILLED * H200)))
        times = {preset: cost.seconds(shape, 10 * tokens) for preset, tokens in PRESETS.items()}
        times["quick"] *= PLAIN  # too short to be compiled
        lines.append(
            [
                name,
                f"{weights:.0f}",
                f"{pass_gib:.1f}",
                f"{gpus}",
                time_of(times["quick"]),
                time_of(times["paper"]),
                f"{1000 * times['quick'] * gpus / 3600:,.0f}",
                f"{1000 * times['paper'] * gpus / 3600:,.0f}",
            ]
        )
    return lines


def reading(found: dict[str, Any]) -> list[list[str]]:
    base = HEADS["Llama-3.1-8B"] * Shape("Llama-3.1-8B").facts[1]
    return [
        [name, f"{heads:,}", time_of(found["seconds"] * heads * Shape(name).facts[1] / base)]
        for name, heads in HEADS.items()
    ]


def page() -> list[str]:
    found, read, cpu = (numbers(f"{name}.json") for name in ("gating-gpu", "relations-gpu", "gating-cpu"))
    passes = numbers("memory-gpu.json")["passes"]
    cost, memory = Cost.of(found), Memory.of(passes)
    rates = [one["operations"] / one["seconds"]["ours"] for one in cpu["results"]]
    slow = float(np.mean(rates))
    small = Shape("SmolLM2-135M")
    here = ", ".join(
        f"{preset} {time_of(10 * tokens * 4 * small.parameters / slow)}" for preset, tokens in PRESETS.items()
    )
    return [
        "# Scaling",
        "",
        "Made by `bench/scaling.py` from what [performance.md](performance.md) measured; not edited by hand.",
        "",
        "## The cost model",
        "",
        "```",
        "seconds = tokens · (4 · parameters of the blocks / rate + layers · width · passing)",
        "memory  = 2 bytes · parameters + held · tokens of a pass · layers · width · kept",
        "tokens  = seeds · (updates of the free fit + 2 · those of the pressed fit) · rows · tokens of a row",
        "```",
        "",
        f"On {found['machine']}, torch {found['torch']}, in bfloat16: rate {cost.rate / 1e12:.0f} TFLOP/s, "
        f"passing {1e12 * cost.passing:.0f} ps, kept {memory.kept:.0f} bytes, "
        f"held {memory.held:.1f} times that. Rate and "
        "passing are taken from two updates of a 3B shape (256 × 40 and 32 × 256) and their profiles, kept "
        "from one of its passes (2,048 tokens), held is the most that was seen; the other lines are "
        "predictions. Blocks are compiled in all of them, as they are where a stage is long; where it is "
        f"not, as with quick, an update takes about {PLAIN:g} times as long.",
        "",
        *table(["an update", "measured, s", "by the model, s", "ratio"], checked(cost, found)),
        "",
        "And memory, in GiB: weights (measured, by the model), the numbers of a fit above them, and what the "
        "allocator holds for those if it may. A GPU with less has smaller passes, not a failed fit.",
        "",
        *table(
            [
                "a pass",
                "weights",
                "numbers, measured",
                "by the model",
                "ratio",
                "held, measured",
                "by the model",
            ],
            remembered(memory, passes),
        ),
        "",
        f"On two cores ({cpu['machine']}, SmolLM2): {slow / 1e9:.0f} GFLOP/s of 4 · parameters · tokens, so "
        f"ten seeds of syntax take: {here}.",
        "",
        "Linear in rows, tokens, seeds and tasks; memory does not grow with any of them, as a pass has as "
        "many tokens as there is room for. Long rows cost more than the model says, by their attention.",
        "",
        "## Estimates",
        "",
        "One task like the built-in syntax (38.5 tokens a row), ten seeds, H200s with 131 GiB. Where a model "
        "needs several GPUs its layers lie on them one after the other (`--device-map auto`), and one GPU "
        "works at a time: the time is that of one, the cost that of all. *A thousand tasks*: GPU hours, "
        "which `--executor ray` spreads over as many machines as there are; fits are independent, so the "
        "time is that divided by the number of GPUs, plus a load of the model for every worker. These are "
        "estimates: nothing above 8B was run.",
        "",
        *table(
            [
                "shape",
                "weights, GiB",
                "held for passes of 1,024 tokens, GiB",
                "GPUs",
                "a task, quick",
                "a task, paper",
                "a thousand tasks, quick, GPU h",
                "paper, GPU h",
            ],
            estimates(cost, memory),
        ),
        "",
        f"Relations from weights ({read['relations']} relations, {read['pairs']:,} pairs; measured for 8B, "
        f"{read['seconds']:.2f} s; by heads × width for the others):",
        "",
        *table(["shape", "heads", "all relations"], reading(read)),
        "",
        "What follows: up to 8B a task is a matter of seconds (quick) or half an hour (paper) on one GPU. "
        "For 70B take `quick` for many tasks and `paper` for those that matter. For 405B weights in eight or "
        "four bits (`--dtype int8`, `int4`) save half or three quarters of the GPUs that hold them; gates "
        "are fitted in the model's compute dtype all the same.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.parse_args().out.write_text("\n".join(page()), encoding="utf-8")


if __name__ == "__main__":
    main()
