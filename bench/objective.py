"""Which objective is right, the published one or the one with bounded logits?

python bench/objective.py measure --rows rows.json --task syntax --out bench/reference/objective-syntax.json
    on held-out items, for the runs of a task in bench/reference (`bench/agreement.py fit` makes them): what
    the heads are worth that each run puts first, and whether those that it calls interfering really do harm
    (about a minute on a GPU)

`bench/objective_page.py` makes the page of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from agreement import REFERENCE, read_rows

#: schedule -> objective -> run; {} is the task
RUNS = {
    "published schedule": {"paper": "{}-paper", "bounded": "{}-bounded"},
    "quick": {"paper": "{}-quick-paper", "bounded": "{}-quick"},
}
TASKS = ("math", "syntax", "arithmetic")
ITEMS, LIMIT, DRAWS, LOTS = 128, 4.0, 1000, 3


def gates(name: str) -> dict[str, np.ndarray]:
    """fit -> [seed, layer, head]."""
    frame = pd.read_parquet(REFERENCE / f"{name}.parquet").sort_values(["seed", "layer", "head"])
    shape = frame["seed"].nunique(), frame["layer"].nunique(), frame["head"].nunique()
    return {str(fit): part["value"].to_numpy(float).reshape(shape) for fit, part in frame.groupby("fit")}


def logits(values: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.log(values) - np.log1p(-values)
    return found


def runs(task: str) -> dict[tuple[str, str], str]:
    """(schedule, objective) -> name, of the runs that are there."""
    found = {
        (schedule, objective): name.format(task)
        for schedule, names in RUNS.items()
        for objective, name in names.items()
    }
    return {key: name for key, name in found.items() if (REFERENCE / f"{name}.parquet").exists()}


# Measuring


def in_order(values: np.ndarray, then: np.ndarray, lot: int) -> list[int]:
    """Heads by falling value, of equals by rising `then`, of what is still the same by lot: many gates rest
    at the bound, and by place whole layers would come first."""
    drawn = np.random.default_rng(lot).permutation(values.size)
    order: list[int] = np.lexsort((drawn, then.ravel(), -values.ravel())).tolist()
    return order


def orders_of(fits: dict[str, np.ndarray]) -> tuple[list[list[int]], list[list[int]]]:
    """By the mean over all seeds, once for each lot, and by each seed."""
    kept, shut = fits["remove"], 1 - fits["retain"]
    whole = [in_order(kept.mean(0), shut.mean(0), lot) for lot in range(LOTS)]
    return whole, [in_order(*pair, lot) for lot, pair in enumerate(zip(kept, shut, strict=True))]


def limited(fits: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With logits beyond the limit counted as at the limit."""
    edge = 1 / (1 + np.exp(-LIMIT))
    return {fit: values.clip(1 - edge, edge) for fit, values in fits.items()}


def measure(arguments: argparse.Namespace) -> None:
    from headatlas import load_model
    from headatlas.atlas import SHARES
    from headatlas.method.engine.likelihood import evaluate_sets, kept_only

    rows, content_hash = held_out(arguments.rows, arguments.task)
    model = load_model(arguments.model, dtype="fast", check=False)
    shape, heads = model.spec.shape, len(model.spec)
    counts = [round(share * heads) for share in SHARES]

    def losses(sets: np.ndarray) -> np.ndarray:
        return evaluate_sets(model, rows, np.asarray(sets, dtype=np.float32))[0]

    single = losses(1 - np.eye(heads).reshape(heads, *shape))
    full = losses(np.ones((1, *shape)))[0]
    found: dict[str, Any] = {
        "task": arguments.task,
        "items": len(rows),
        "alone": _changes(single - full),
        "runs": {},
    }
    curves: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}

    def kept_alone(fits: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Losses [order, share, item] by all seeds and by single seeds."""
        whole, single = orders_of(fits)
        sets = np.stack([kept_only(order, counts, shape) for order in (*whole, *single)])
        every = losses(sets.reshape(-1, *shape)).reshape(len(sets), len(counts), -1)
        return every[: len(whole)], every[len(whole) :]

    for key, name in runs(arguments.task).items():
        facts = json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8"))
        if facts["content_hash"] != content_hash:
            raise SystemExit(f"{name} was fitted with other items")
        fits = gates(name)
        curves[key] = kept_alone(fits)
        often = ((fits["retain"] <= 0.5).mean(0) >= 0.5).astype(float)
        together = full - losses(1 - often[None])[0]
        found["runs"][name] = {
            "schedule": key[0],
            "objective": key[1],
            "sufficiency": _area(curves[key][0], counts),
            "one_seed": _area(curves[key][1], counts),
            "often_interfering": int(often.sum()),
            "without_them": {"mean": float(together.mean()), "error": _error(together)},
            "opened": _opened(fits, losses),
        }
        print(name, found["runs"][name]["sufficiency"], flush=True)
    for schedule in RUNS:
        if all((schedule, objective) in curves for objective in ("paper", "bounded")):
            paper = curves[schedule, "paper"]
            others = {
                "bounded": curves[schedule, "bounded"],
                "limited": kept_alone(limited(gates(runs(arguments.task)[schedule, "paper"]))),
            }
            found.setdefault("difference", {})[schedule] = {
                name: {
                    "all seeds": _area(other[0], counts, paper[0]),
                    "one seed": _area(other[1], counts, paper[1]),
                }
                for name, other in others.items()
            }
    arguments.out.write_text(json.dumps(found) + "\n", encoding="utf-8")


def held_out(path: Path, task: str) -> tuple[list[Any], str]:
    """Rows of all kinds (they may come sorted), and the hash of the task."""
    _, test, content_hash = read_rows(path, task)
    return test[:: max(1, len(test) // ITEMS)][:ITEMS], content_hash


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _changes(losses: np.ndarray) -> list[list[float]]:
    """[[mean change of the target log-probability, its standard error]] of [set, item]."""
    return [[round(float(-one.mean()), 5), round(_error(one), 5)] for one in losses]


def _opened(fits: dict[str, np.ndarray], losses: Any) -> list[list[float]]:
    """Seed, layer, head of every gate that retain has shut, the change of the target log-probability if it
    alone is opened in G+, its standard error, and 1 if the gate had gone beyond where pressure acts."""
    found: list[list[float]] = []
    for seed, start in enumerate(fits["retain"]):
        places = np.argwhere(start < 0.5)
        sets = np.repeat(start[None], len(places) + 1, axis=0)
        sets[np.arange(len(places)), *places.T] = 1
        measured = losses(sets)
        beyond = logits(start)[*places.T] < -LIMIT
        for place, change, out in zip(places, _changes(measured[:-1] - measured[-1]), beyond, strict=True):
            found.append([seed, *map(int, place), *change, int(out)])
    return found


def _area(keep: np.ndarray, counts: list[int], less: np.ndarray | None = None) -> dict[str, float | None]:
    """Sufficiency of losses [order, share, item], the mean over orders (less that of others), with an
    interval over items."""
    shares = np.array(counts) / counts[-1]

    def area(places: np.ndarray) -> float:
        total = 0.0
        for sign, some in ((1, keep), (-1, less)):
            if some is not None:
                mean = -some[:, :, places].mean(axis=(0, 2))
                total += sign * float(np.trapezoid(_faithfulness(mean), shares))
        return total

    low, high = _bootstrap(keep.shape[-1], area)
    return {"mean": area(np.arange(keep.shape[-1])), "low": low, "high": high}


def _faithfulness(metric: np.ndarray) -> np.ndarray:
    """0 where the metric [share] is that of no heads, 1 where it is that of all; NaN unless all heads beat
    none."""
    gap = metric[-1] - metric[0]
    return (metric - metric[0]) / gap if gap > 0 else np.full_like(metric, np.nan)


def _bootstrap(count: int, statistic: Callable[[np.ndarray], float]) -> tuple[float | None, float | None]:
    """The percentile interval of `statistic(index)` over draws of `count` units with replacement, widened as
    a t quantile exceeds the normal one (Hesterberg); none if the statistic is mostly NaN or never changes."""
    rng = np.random.default_rng(0)
    values = np.array([statistic(rng.integers(count, size=count)) for _ in range(DRAWS)])
    values = values[~np.isnan(values)]
    if count < 2 or len(values) <= DRAWS / 2 or not np.ptp(values):
        return None, None
    tail = float(stats.norm.sf(stats.t.ppf(0.975, count - 1) * np.sqrt(count / (count - 1))))
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--rows", type=Path, required=True)
    measuring.add_argument("--task", choices=TASKS, required=True)
    measuring.add_argument("--model", default="smollm2")
    measuring.set_defaults(work=measure)
    measuring.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
