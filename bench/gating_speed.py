"""How fast gates are fitted: an update of our engine beside one of the authors' and one of a plain loop.

python bench/gating_speed.py --peer FOLDER

FOLDER holds the unpacked wheel of nam-causal-head-gating 0.1.0, which carries the authors' engine (and needs
einops). All sides fit the same gate sets on the same rows. A round times one update of every variant, in an
order that rotates; kept are medians over the rounds and the ratio within rounds. Before that, 20 updates of
our engine and of the plain loop, both in float32: how far are their gates apart? The ceiling is a large
matrix product in the fast dtype, in the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from engines import authors, ours, schedule, update_of
from timing import about, ceiling, interleaved, median_ratio, where_time_goes
from torch.nn import functional

from headatlas import load_model, load_task
from headatlas.method.engine.block_compiler import BlockCompiler
from headatlas.method.gating import PRESETS
from headatlas.run.prepare import read_rows
from headatlas.task import Row

REFERENCE = Path(__file__).parent / "reference"
CHECKED = 20


def plain_loop(hf: Any, anatomy: Any, rows: Sequence[Row], starts: torch.Tensor) -> torch.Tensor:
    """The definition, in the simplest code: hooks, one row at a time, all logits, PyTorch's Adam."""
    stage = schedule(rows).free
    results = []
    for start in starts:
        logits = start.clone().requires_grad_()
        adam = torch.optim.Adam([logits], lr=stage.rate, betas=PRESETS["paper"].momentum)
        for update in range(CHECKED):
            adam.param_groups[0]["lr"] = stage.rate_at(update)
            adam.zero_grad()
            gates = torch.sigmoid(logits)
            hooks = [
                hf.get_submodule(one.output).register_forward_pre_hook(_times(gates[one.layer], one.heads))
                for one in anatomy.present()
            ]
            for row in rows:
                ids = torch.tensor([row.ids])
                out = hf(input_ids=ids, use_cache=False).logits[0, row.start - 1 : -1]
                loss = functional.cross_entropy(out.float(), ids[0, row.start :])
                torch.autograd.backward(loss / len(rows), retain_graph=True)
            for hook in hooks:
                hook.remove()
            torch.nn.utils.clip_grad_norm_([logits], PRESETS["paper"].clip)
            adam.step()
        results.append(logits.detach())
    return torch.stack(results)


def _times(gates: torch.Tensor, heads: int) -> Callable[..., Any]:
    def hook(_: Any, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        each = given[0].reshape(*given[0].shape[:-1], heads, -1) * gates[:heads, None]
        return each.flatten(-2), *given[1:]

    return hook


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--peer", type=Path, required=True)
    parser.add_argument("--task", action="append")
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=REFERENCE / "gating-cpu.json")
    arguments = parser.parse_args()

    exact = load_model(arguments.model, dtype="float32", check=False)
    fast = load_model(arguments.model, dtype="fast", check=False)
    exact.hf.requires_grad_(False)
    results = []
    for task in arguments.task or ["syntax", "arithmetic"]:
        rows = read_rows(exact, load_task(task), None, 8).rows.train[: arguments.rows]
        checked = ours(exact, rows[:4], 2)
        slow = plain_loop(exact.hf, exact.anatomy, rows[:4], checked.logits)
        for _ in range(CHECKED):
            update_of(checked)()
        gap = float((torch.sigmoid(slow) - torch.sigmoid(checked.logits)).abs().max())
        print(f"{task}: after {CHECKED} updates gates differ from the plain loop's by {gap:.1e}", flush=True)
        torch._inductor.config.force_disable_caches = True  # what was made in another run would be quick
        compiled = ours(fast, rows, arguments.sets)
        compiled.runner.compiler = BlockCompiler(fast, 1e30, ("cpu",))
        variants = {
            "ours": update_of(ours(fast, rows, arguments.sets)),
            "ours, float32": update_of(ours(exact, rows, arguments.sets)),
            "ours, compiled": update_of(compiled),
            "peer": authors(arguments.peer, exact.hf, rows, arguments.sets),
        }
        began = time.perf_counter()
        variants["ours, compiled"]()
        first = time.perf_counter() - began
        if not compiled.runner.compiler:
            sys.exit("no compiler here")
        times = interleaved(variants, arguments.rounds)
        tokens = arguments.sets * sum(len(row.ids) for row in rows)
        results.append(
            {
                "task": task,
                "rows": len(rows),
                "sets": arguments.sets,
                "tokens": tokens,
                "operations": 4 * (exact.spec.parameters or 0) * tokens,
                "gap": gap,
                "seconds": {name: statistics.median(some) for name, some in times.items()},
                "ratio": median_ratio(times["peer"], times["ours"]),
                "compiled_ratio": median_ratio(times["ours"], times["ours, compiled"]),
                "compiled_first": first,
                "profile": where_time_goes(variants["ours"]),
                "product_operations": 4 * tokens * sum(p.numel() for p in exact.hf.model.layers.parameters()),
            }
        )
        print(results[-1], flush=True)
    found = {
        **about(),
        "model": arguments.model,
        "fast": fast.spec.dtype,
        "rounds": arguments.rounds,
        "ceiling": ceiling(fast.hf.dtype),
        "results": results,
    }
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
