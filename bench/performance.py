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
    found: dict[str, Any] = json.loads((REFERENCE / name).read_text(encoding="utf-8"))
    return found


def there(name: str) -> bool:
    """Has it been measured?"""
    return (REFERENCE / name).exists()


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
    lines, shares = [], []
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
        products = one["profile"]["matrix products"]
        shares.append(
            [
                one["task"],
                f"{100 * products / sum(one['profile'].values()):.0f} %",
                f"{100 * one['product_operations'] / products / found['ceiling']:.0f} %",
                f"{seconds['peer'] * found['ceiling'] / one['product_operations']:.1f}",
                f"{one['compiled_ratio'][1]:.2f}",
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
        "The goal was three times the authors' engine. What stands in the way, by a profile of one update: "
        "the share of its time that is matrix products; how near these come to the ceiling (the blocks "
        "alone, as logits are made for targets only); how many times the authors' engine an update would be "
        "with nothing but these products at the ceiling. The rest is hundreds of small operations between "
        "them. Compiling the blocks joins those: its gain; the first update then took "
        f"{found['results'][0]['compiled_first']:.0f} s. It is not the default on a CPU.",
        "",
        *table(
            [
                "an update",
                "in matrix products",
                "these, of the ceiling",
                "ratio with these alone, at the ceiling",
                "compiled: times as quick",
            ],
            shares,
        ),
        "",
    ]


def on_a_gpu() -> list[str]:
    found = numbers("gating-gpu.json")
    lines = []
    for one in found["speed"]["updates"]:
        rows, tokens, targets = one["shape"]
        lines.append(
            [
                f"{one['case']}: {rows} × {tokens}, {targets} target{'s' if targets > 1 else ''}",
                {"authors": "authors' engine"}.get(one["variant"], one["variant"]),
                f"{1e3 * one['seconds']:.1f}",
                "{1:.2f} ({0:.2f} to {2:.2f})".format(*one["ratio"]),
                f"{one['rate'] / 1e12:.0f}",
                f"{100 * one['rate'] / found['ceiling']:.0f} %",
                f"{100 * one['rate'] / found['sustained']:.0f} %",
                f"{one['first']:.1f}",
                f"{one['peak_gib']:.1f}",
                "–" if one["slope"] is None else f"{one['slope']:.4f}",
                "–" if one["gap"] is None else f"{one['gap']:.0e}" if one["gap"] else "0",
            ]
        )
    head = [
        "rows × tokens",
        "engine",
        "ms per update",
        "times the authors'",
        "TFLOP/s",
        "of the ceiling",
        "of the lasting ceiling",
        "first update, s",
        "GiB above the weights",
        "slope",
        "gap",
    ]
    profiles = []
    for one in found["speed"]["profiles"]:
        seconds, products = one["seconds"], one["seconds"]["matrix products"]
        profiles.append(
            [
                one["case"],
                f"{1e3 * sum(seconds.values()):.0f}",
                *(f"{1e3 * seconds[kind]:.1f}" for kind in seconds),
                f"{one['operations'] / products / 1e12:.0f}",
                f"{100 * one['operations'] / products / found['sustained']:.0f} %",
            ]
        )
    kinds = list(found["speed"]["profiles"][0]["seconds"])
    return [
        "## An update of a fit, on a GPU",
        "",
        f"{where(found)}; random weights of Llama-3.2-3B's shape, {found['rounds']} interleaved rounds "
        "(`bench/gating_gpu.py`). The same rows and one gate set on all sides; the authors' engine with "
        "float32 weights under its own autocast to float16. *One by one*: kernels are started one after the "
        "other, no code is made. *Recorded* is what everybody gets, *compiled* comes with it where a stage "
        "is long. *TFLOP/s*: 4 · parameters · tokens per update. *Ceiling*: a large matrix product in "
        f"bfloat16, {found['ceiling'] / 1e12:.0f} TFLOP/s alone; *lasting ceiling*: half "
        f"a second of them without a pause, {found['sustained'] / 1e12:.0f}, as a GPU under load lowers its "
        "clock. *Slope*: cosine of the first update's slope with that of *one by one*; *gap*: the largest "
        f"difference of a gate from it after {found['checked']} updates (with random weights slopes are "
        "next to nothing, and Adam makes of their rounding what it makes of a slope: see the last section "
        "for real weights).",
        "",
        *table(head, lines),
        "",
        "Where the time of *recorded, compiled* goes, in ms that the GPU was busy, and how quick the matrix "
        "products alone are:",
        "",
        *table(["case", "all", *kinds, "products, TFLOP/s", "of the lasting ceiling"], profiles),
        "",
    ]


def goals() -> list[str]:
    """What was set out for, and what came of it."""
    gpu, cpu, read = (numbers(f"{name}.json") for name in ("gating-gpu", "gating-cpu", "relations-gpu"))
    roles = numbers("roles.json")["tasks"].values()
    named = {(one["case"], one["variant"]): one for one in gpu["speed"]["updates"]}
    operations = {one["case"]: one["operations"] for one in gpu["speed"]["profiles"]}
    way, cases = "recorded, compiled", list(operations)

    def in_all(value: Any, some: list[str] = cases) -> str:
        return ", ".join(value(case) for case in some)

    def of_the_ceiling(kind: str) -> str:
        return in_all(lambda case: f"{100 * named[case, way]['rate'] / gpu[kind]:.0f} %", cases[1:])

    most = in_all(lambda case: f"{named[case, 'authors']['seconds'] * gpu['ceiling'] / operations[case]:.1f}")
    same, compiled, precise = (
        [value for one in roles for value in one["pairs"][fit]["roles"]]
        for fit in ("bfloat16, recorded", "bfloat16, recorded, compiled", "bfloat16, one by one")
    )
    lines = [
        [
            "GPU, 3B shape: 5 times the authors' engine",
            in_all(lambda case: f"{named[case, way]['ratio'][1]:.1f}"),
        ],
        [
            "GPU: 80 % of the ceiling, 256 × 40 and 32 × 256",
            f"{of_the_ceiling('ceiling')}; of the lasting one {of_the_ceiling('sustained')}",
        ],
        *(
            [
                f"GPU, {one['shape']}: within {one['limit_gib']} GiB",
                f"kept to, {one['failed']} failed attempts",
            ]
            for one in gpu["memory"]
        ),
        [
            "relations, 8B shape: 1 s, 2 GiB above the weights",
            f"{read['seconds']:.2f} s, {read['peak_gib']:.1f} GiB",
        ],
        [
            "two cores: 3 times the authors' engine",
            ", ".join(f"{one['ratio'][1]:.1f}" for one in cpu["results"]),
        ],
        [
            "99 % of roles of a seed as by the slow way",
            f"{100 * min(same):.0f} %; where a stage is so long that blocks are compiled, "
            f"{100 * min(compiled):.0f} to {100 * max(compiled):.0f} % (bfloat16 against float32: "
            f"{100 * min(precise):.0f} to {100 * max(precise):.0f} %)",
        ],
    ]
    return [
        "## Goals",
        "",
        f"Of an update on a GPU: {'; '.join(cases)}, in this order.",
        "",
        *table(["goal", "measured"], lines),
        "",
        "Why not 5 times: with nothing but its matrix products, at the ceiling, an update would be "
        f"{most} times the authors' engine. What is left between that and what is measured is, by the "
        "profile below, the lower clock of a GPU under load, and what is read and written between products. "
        "Where rows are many, fewer operations would be needed, not quicker ones. Tried and not kept: "
        "several matrices in one product (no gain); float8 products (1.1 to 1.3 times as quick, but "
        "gradients have a cosine of 0.67 to 0.86 with those of bfloat16, and roles agree for 73 to 81 % of "
        "heads).",
        "",
    ]


def memory() -> list[str]:
    found = numbers("gating-gpu.json")
    lines = [
        [
            one["shape"],
            f"{one['limit_gib']}",
            f"{one['weights_gib']:.1f}",
            f"{one['peak_gib']:.1f}",
            f"{one['failed']}",
            f"{one['tokens_per_pass']:,}",
            f"{one['seconds']:.2f}",
            f"{100 * one['rate'] / found['ceiling']:.0f} %",
        ]
        for one in found["memory"]
    ]
    head = ["shape", "GiB allowed", "weights, GiB", "most that was taken, GiB", "failed attempts"]
    grown = found["growth"]
    growth_lines = [
        [kind, count, f"{1e3 * seconds:.1f}", f"{1e3 * seconds / int(count):.2f}"]
        for kind in ("rows", "sets")
        for count, seconds in grown[kind].items()
    ]
    held = ", ".join(f"{gib:.2f} GiB after {count}" for count, gib in grown["held_gib"].items())
    return [
        "## Memory and growth",
        "",
        "64 rows × 40 tokens for each of ten gate sets; the process may use no more than the GiB allowed. "
        "How many tokens go in a pass is found out from a trial pass; a failed attempt would be one that "
        "ran out of memory.",
        "",
        *table([*head, "tokens per pass", "s per update", "of the ceiling"], lines),
        "",
        "Time per update with more rows (one gate set, 40 tokens each) and with more gate sets (32 rows "
        f"each), 3B shape, recorded and compiled. Memory held does not grow with updates: {held}.",
        "",
        *table(["more", "how many", "ms per update", "ms each"], growth_lines),
        "",
    ]


def relations() -> list[str]:
    found = numbers("relations-gpu.json")
    lines = [
        [
            f"{found['heads']:,} heads",
            f"{found['seconds']:.2f}",
            f"{found['peak_gib']:.1f} of {found['room_gib']}",
            f"{found['failed']}",
        ],
    ]
    compared = [
        [
            f"{found['compared_heads']} heads",
            f"{found['ours']:.2f}",
            f"{found['loop']:.1f}",
            f"{found['loop'] / found['ours']:.0f}",
            f"{found['differ']} of {found['cells']:,}",
            f"{found['differ_in_double']}",
        ]
    ]
    return [
        "## Relations read off weights, on a GPU",
        "",
        f"{where(found)}; random weights of {found['shape']}'s shape, {found['relations']} relations with "
        f"{found['pairs']:,} pairs (`bench/relations_gpu.py`). All numbers of all pairs for the whole "
        f"vocabulary, once, would take {found['floor']:.2f} s as matrix products in bfloat16 at the ceiling.",
        "",
        *table(["all heads", "seconds", "GiB above the weights, allowed", "failed attempts"], lines),
        "",
        "Beside the plain loop in float32 (for every head and relation all numbers of the vocabulary and two "
        "full top-k), in turn; scores that differ, and those of them that still do when the loop is run in "
        "double precision:",
        "",
        *table(["", "ours, s", "loop, s", "ratio", "scores that differ", "in double precision"], compared),
        "",
    ]


def rounding() -> list[str]:
    found = numbers("roles.json")
    lines = []
    for task, facts in found["tasks"].items():
        for way, one in facts["pairs"].items():
            lines.append(
                [
                    task,
                    way,
                    one["against"],
                    f"{100 * min(one['roles']):.0f} to {100 * max(one['roles']):.0f} %",
                    f"{100 * one['mean_roles']:.0f} %",
                    f"{one['facilitation']:.3f}",
                    f"{one['free_gap']:.0e}" if one["free_gap"] else "0",
                    f"{one['mean_gap']:.3f}",
                ]
            )
    seeds = " and ".join(
        f"{100 * facts['between_seeds']:.0f} % ({task})" for task, facts in found["tasks"].items()
    )
    return [
        "## What rounding does to roles",
        "",
        f"{where(found)}; SmolLM2, preset {found['preset']}, {found['seeds']} seeds (`bench/roles.py`). The "
        "same seeds, starts and rows; what differs is how numbers are rounded. *Roles*: heads of a seed "
        "with the same role, from the worst seed to the best; *of the mean*: with the role by the mean over "
        "seeds; then the correlation of mean facilitation over heads, the largest difference of a gate "
        "after the free fit, and the mean one after the pressed fit. Two different seeds agree in the roles "
        f"of {seeds} of the heads.",
        "",
        *table(
            ["task", "fit", "against", "roles", "of the mean", "facilitation", "free gap", "mean gap"], lines
        ),
        "",
        "Recorded passes give the gates of passes one by one to the last bit. Any other rounding, be it "
        "that of float32 in passes of another size, changes roles of single seeds: gates near the middle "
        "are pushed to either side by Adam's large steps. That is noise of the method, smaller than that of "
        "the seed; what is said of several seeds hardly changes. Hence the quick way that everybody gets is "
        "the one with the same bits; compiled blocks join it only where a stage is long (the preset `paper`, "
        "or large models), where the time that they save counts more than the bits.",
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
        *(goals() if all(there(f"{name}.json") for name in ("gating-gpu", "relations-gpu", "roles")) else []),
        *overhead(),
        *updates(),
        *(on_a_gpu() + memory() if there("gating-gpu.json") else []),
        *(relations() if there("relations-gpu.json") else []),
        *(rounding() if there("roles.json") else []),
    ]
    parser.parse_args().out.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
