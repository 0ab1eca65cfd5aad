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
import importlib
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import about, ceiling, interleaved, median_ratio
from torch.nn import functional

from headatlas import load_model, load_task
from headatlas.method import PRESETS, GateFit, GatingSettings, RowTable, random_starts
from headatlas.method.resources import fit_conditions, token_budget
from headatlas.run.prepare import read_rows
from headatlas.task import Row

REFERENCE = Path(__file__).parent / "reference"
CHECKED = 20


class SameRows(GateFit):
    """All rows in every update, the same for all sets."""

    def _drawn(self) -> np.ndarray:
        return np.tile(np.arange(len(self.rows)), len(self.sets))[:, None]


def schedule(rows: Sequence[Row]) -> GatingSettings:
    return replace(PRESETS["paper"], batch=len(rows))


def ours(model: Any, rows: Sequence[Row], sets: int) -> SameRows:
    settings = schedule(rows)
    names = [(seed, "free") for seed in range(sets)]
    starts = random_starts(model, settings, range(sets))
    return SameRows(model, RowTable(rows), settings, "free", names, starts)


def update_of(fit: SameRows) -> Callable[[], None]:
    def update() -> None:
        with fit_conditions(fit.model, int(fit.rows.lengths.max())):
            if fit.budget is None:
                fit.budget = token_budget(fit.model, fit.rows)
            fit._step()

    return update


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


def peer(folder: Path, hf: Any, rows: Sequence[Row], sets: int) -> Callable[[], None]:
    sys.path.insert(0, str(folder))
    trainer_of = importlib.import_module("causal_head_gating.core.trainer").CHGTrainer
    longest = max(len(row.ids) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long, device=hf.device)
    wanted = torch.zeros_like(ids, dtype=torch.bool)
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = torch.tensor(row.ids)
        wanted[place, row.start : len(row.ids)] = True

    class Batches:
        def to_iterator(self, **_: Any) -> Any:
            while True:
                yield {"input_ids": ids, "loss_masks": wanted}

    trainer = trainer_of(hf, Batches(), num_masks=sets, batch_size=len(rows), lr=0.1, lr_end=0.01)
    trainer._reset_optimizer(trainer.mask_logits, 0.1, 0.01, 500)
    trainer._zero_grad()
    return lambda: trainer._train_step(trainer.mask_logits, 0.0)


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
        variants = {
            "ours": update_of(ours(fast, rows, arguments.sets)),
            "ours, float32": update_of(ours(exact, rows, arguments.sets)),
            "peer": peer(arguments.peer, exact.hf, rows, arguments.sets),
        }
        times = interleaved(variants, arguments.rounds)
        tokens = arguments.sets * sum(len(row.ids) for row in rows)
        results.append(
            {
                "task": task,
                "rows": len(rows),
                "sets": arguments.sets,
                "tokens": tokens,
                "operations": 4 * exact.spec.parameters * tokens,
                "gap": gap,
                "seconds": {name: statistics.median(some) for name, some in times.items()},
                "ratio": median_ratio(times["peer"], times["ours"]),
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
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
