"""How well does a preset agree with the published schedule, and what are its heads worth?

python bench/agreement.py rows --out rows.json
    the rows of the tasks for SmolLM2, for a machine that lacks the task generators
python bench/agreement.py fit --rows rows.json --task syntax --preset paper --out bench/reference/x
    fits ten seeds (on a GPU), writes x.parquet (gates) and x.json (settings, held-out figures, seconds)
python bench/agreement.py take --atlas atlas-demo
    takes the runs of an atlas, of `headatlas demo` for one, into bench/reference
python bench/agreement.py report --out docs/quick.md
    compares what lies in bench/reference
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

REFERENCE = Path(__file__).parent / "reference"
#: for the pages whose runs were made before tasks held out whole groups
FIRST_VERSION = (
    "These runs used version 1 of the tasks, which held out single items: their held-out figures for math "
    "are about new problems of known templates ([changes.md](changes.md))."
)
TASKS = ("math", "syntax", "arithmetic")
#: the tasks of `headatlas demo`
DEMO = TASKS[:2]
#: of an atlas that was made on a CPU, where measuring takes its time
HELD_OUT_ROWS, HELD_OUT_SEEDS = 64, 3


def export_rows(out: Path) -> None:
    from headatlas import load_model, load_task
    from headatlas.task import encode

    tokenizer = load_model("smollm2", check=False).tokenizer
    found: dict[str, Any] = {}
    for name in TASKS:
        rows = encode(load_task(name).items(tokenizer), tokenizer, max_tokens=512, name=name)
        sides = {side: [[row.ids, row.start] for row in getattr(rows, side)] for side in ("train", "test")}
        found[name] = {**sides, "content_hash": rows.content_hash}
    out.write_text(json.dumps(found), encoding="utf-8")


def read_rows(path: Path, task: str) -> tuple[list[Any], list[Any], str]:
    """Rows to fit with, held-out rows, and the hash of the task."""
    from headatlas.task import Row

    data = json.loads(path.read_text(encoding="utf-8"))[task]
    train, test = ([Row(tuple(ids), start) for ids, start in data[side]] for side in ("train", "test"))
    return train, test, data["content_hash"]


def fit_both(model: Any, rows: list[Any], settings: Any, name: str) -> tuple[list[Any], float, int]:
    """All fits of all seeds, the seconds and the tokens that they took."""
    import torch

    from headatlas.method.engine.gate_fit import GateFit, random_starts
    from headatlas.method.engine.objective import Pressure
    from headatlas.method.engine.rows import RowTable

    table, seeds, tokens = RowTable(rows), range(settings.seeds), 0

    def count(step: Any) -> None:
        nonlocal tokens
        tokens += step.tokens

    began = time.monotonic()
    starts = random_starts(model, settings, seeds)
    sets = [(seed, "free") for seed in seeds]
    free = GateFit(model, Pressure(model, table, settings, "free", sets), starts, name=name)
    free.run(count)
    starts = torch.from_numpy(np.stack([one.logits for one in free.results()])).repeat_interleave(2, 0)
    sets = [(seed, kind) for seed in seeds for kind in ("retain", "remove")]
    pressed = GateFit(model, Pressure(model, table, settings, "pressed", sets), starts, name=name)
    pressed.run(count)
    return [*free.results(), *pressed.results()], time.monotonic() - began, tokens


def fit(arguments: argparse.Namespace) -> None:
    import torch

    from headatlas import load_model
    from headatlas.method.gating import resolve

    train, test, content_hash = read_rows(Path(arguments.rows), arguments.task)
    model = load_model(arguments.model, dtype="fast", check=False)
    settings = resolve(
        arguments.preset, seeds=arguments.seeds, objective=arguments.objective, updates=arguments.updates
    ).for_targets(float(np.mean([len(row.target) for row in train])))
    results, seconds, _ = fit_both(model, train, settings, arguments.task)
    facts = {
        "task": arguments.task,
        "content_hash": content_hash,
        "preset": arguments.preset,
        "settings": settings.to_json(),
        "seconds": seconds,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
        "held_out": held_out(model, test, results),
    }
    write_run(Path(arguments.out), facts, results)


def take(arguments: argparse.Namespace) -> None:
    """The runs of an atlas, with what its kept heads are worth."""
    from headatlas import load_model, load_task, open_atlas
    from headatlas.task import encode

    atlas, model = open_atlas(arguments.atlas), load_model("smollm2", dtype="fast", check=False)
    for task in DEMO:
        run, seeds = atlas.run(task), atlas.seeds(task)
        fits = [atlas.fit(task, seed, kind) for kind in ("free", "retain", "remove") for seed in seeds]
        items = load_task(task).items(model.tokenizer)
        test = encode(items, model.tokenizer, max_tokens=512, name=task).test
        rows = test[:: -(-len(test) // HELD_OUT_ROWS)]  # of all kinds: they may come sorted
        facts = {
            "task": task,
            "content_hash": run.task_facts["content_hash"],
            "preset": run.settings["given"]["preset"],
            "settings": run.settings["resolved"],
            "seconds": sum(one.facts["seconds"] for one in fits),
            "device": run.made_with["device"],
            "torch": run.made_with["torch"],
            "held_out": held_out(model, list(rows), [one for one in fits if one.seed < HELD_OUT_SEEDS]),
        }
        write_run(REFERENCE / f"{task}-{facts['preset']}", facts, fits)


def gates_of(one: Any) -> np.ndarray:
    gates: np.ndarray = 1 / (1 + np.exp(-one.logits.astype(np.float64)))
    return gates


def write_run(out: Path, facts: dict[str, Any], results: list[Any]) -> None:
    """`out.parquet` with the gates and `out.json` with all else."""
    lines = [
        {"seed": one.seed, "fit": one.fit, "layer": layer, "head": head, "value": float(gate)}
        for one in results
        for (layer, head), gate in np.ndenumerate(gates_of(one))
    ]
    pd.DataFrame(lines).astype({"value": "float32"}).to_parquet(out.with_suffix(".parquet"), index=False)
    out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def held_out(model: Any, rows: list[Any], results: list[Any], draws: int = 3) -> dict[str, Any]:
    """NLL on held-out rows: ungated, gated, with only the kept heads, with random sets of that size."""
    from headatlas.method.engine.likelihood import evaluate

    def nll(gates: np.ndarray | None) -> float:
        return evaluate(model, rows, gates, budget).mean_nll

    budget = 16_384 if model.device.type == "cuda" else 1024
    plain = evaluate(model, rows, None, budget)
    found: dict[str, Any] = {"rows": len(rows), "baseline": plain.mean_nll, "accuracy": plain.accuracy}
    for kind in ("retain", "remove"):
        found[kind] = [nll(gates_of(one)) for one in results if one.fit == kind]
    chance = np.random.default_rng(0)
    kept = [(gates_of(one) >= 0.5).astype(np.float32) for one in results if one.fit == "remove"]
    found["kept_heads"] = [int(mask.sum()) for mask in kept]
    found["kept"] = [nll(mask) for mask in kept]
    found["random"] = [
        nll(chance.permutation(mask.ravel()).reshape(mask.shape)) for mask in kept for _ in range(draws)
    ]
    return found


# Comparison


def scores(path: Path) -> dict[str, np.ndarray]:
    """Facilitation and interference, [seed, head]."""
    frame = pd.read_parquet(path)
    wide = frame.pivot_table(index="seed", columns=["fit", "layer", "head"], values="value")
    return {"facilitation": wide["remove"].to_numpy(), "interference": 1 - wide["retain"].to_numpy()}


def seed_to_seed(values: np.ndarray) -> float:
    pairs = np.corrcoef(values)
    return float(pairs[np.triu_indices(len(values), 1)].mean())


def with_seeds(values: np.ndarray, reference: np.ndarray, count: int) -> float:
    """Mean correlation of the mean over `count` seeds with the reference's mean over its (other) seeds."""
    chosen = list(combinations(range(len(values)), count))
    if len(chosen) > 200:
        chosen = [chosen[place] for place in np.random.default_rng(0).choice(len(chosen), 200, replace=False)]
    found = []
    for one in chosen:
        rest = reference
        if values is reference:  # a part of the run is compared with the rest of it
            rest = np.delete(reference, list(one), axis=0)
        found.append(np.corrcoef(values[list(one)].mean(axis=0), rest.mean(axis=0))[0, 1])
    return float(np.mean(found))


def always_any(values: np.ndarray, count: int = 3) -> tuple[float, float]:
    """Shares of heads that reach 0.5 in every one and in at least one of `count` seeds, over the choices."""
    chosen = list(combinations(range(len(values)), count))
    always = [(values[list(one)].min(axis=0) >= 0.5).mean() for one in chosen]
    some = [(values[list(one)].max(axis=0) >= 0.5).mean() for one in chosen]
    return float(np.mean(always)), float(np.mean(some))


def report() -> str:
    """Markdown: how the runs in the reference folder agree with the published schedule."""
    lines = [
        "# What `quick` is worth",
        "",
        FIRST_VERSION,
        "",
        "Made by `bench/agreement.py report`; SmolLM2, 270 heads. Reference: the published schedule and",
        "objective (`--preset paper`: 500 + 500 updates, batch 64, ten seeds) on a GPU. Under *1 seed* to",
        "*10 seeds*: Pearson correlation over the heads between the mean over so many seeds of a run and the",
        "mean over the ten seeds of the reference (for the reference itself: over its other seeds), averaged",
        "over the choices of seeds. *Seeds*: mean correlation between two seeds of the same run. *Always,",
        "Any*: per cent of heads whose score reaches 0.5 in all, and in at least one, of three seeds. The",
        "GPU was shared with another process, so that its minutes are upper bounds.",
        "",
    ]
    for task in TASKS:
        first = REFERENCE / f"{task}-paper.parquet"
        if first.exists():
            paths = [first, *sorted(set(REFERENCE.glob(f"{task}-*.parquet")) - {first})]
            lines += [f"## {task.capitalize()}", "", *_agreement_table(task, paths), ""]
            lines += [*_held_out_table(paths), ""]
    return "\n".join([*lines, *_search_table()])


def _agreement_table(task: str, paths: list[Path]) -> list[str]:
    reference = scores(paths[0])
    runs = {path.stem.removeprefix(f"{task}-"): (scores(path), _facts(path)) for path in paths[1:]}
    runs = {"paper": (reference, _facts(paths[0])), **runs}
    asked = {facts["content_hash"] for _, facts in runs.values()}
    if len(asked) > 1:
        raise SystemExit(f"{task}: the runs were made with different versions of the task")
    lines = [
        "| run | updates, batch | device, minutes | score | seeds | 1 seed | 3 seeds | 5 seeds | 10 seeds "
        "| Always, Any |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (values, facts) in runs.items():
        settings = facts["settings"]
        schedule = f"{settings['free']['updates']} + {settings['pressed']['updates']}, {settings['batch']}"
        for score, one in values.items():
            cells = [
                f"{with_seeds(one, reference[score], count):.2f}"
                if count <= len(one) - (one is reference[score])
                else ""
                for count in (1, 3, 5, 10)
            ]
            about = [name, schedule, f"{facts['device']}, {facts['seconds'] / 60:.1f}"]
            about = about if score == "facilitation" else [""] * 3
            cells.append(", ".join(f"{100 * share:.0f}" for share in always_any(one)))
            lines.append("| " + " | ".join([*about, score, f"{seed_to_seed(one):.2f}", *cells]) + " |")
    return lines


def _search_table() -> list[str]:
    found = json.loads((REFERENCE / "search.json").read_text(encoding="utf-8"))
    lines = [
        "## What buys agreement",
        "",
        "Changes to a shorter schedule (15 + 30 updates, batches of 4 and 12, rates 0.5 → 0.15 and",
        "0.5 → 0.1, start in 0.5 … 1, usual momentum, clip 1), from `bench/search_quick.py` on a GPU, ten",
        "seeds each; `smaller 2` is half the batch. In the columns: correlation of the",
        "mean over three seeds with the reference (facilitation / interference), correlation of two seeds,",
        "and the per cent of heads that facilitate in all and in any of three seeds.",
        "",
        "| change | task | rows per seed | agreement | seeds | Always, Any |",
        "|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        for one in found:
            if one["task"] == task:
                pairs = [
                    " / ".join(f"{one[key][score]:.2f}" for score in ("facilitation", "interference"))
                    if key in one
                    else ""
                    for key in ("agreement", "seeds")
                ]
                always, some = one["shares"]["facilitation"]
                cells = [_variant(one["variant"]), task, f"{one.get('rows', ''):,}" if "rows" in one else ""]
                lines.append("| " + " | ".join([*cells, *pairs, f"{always}, {some}"]) + " |")
    return [*lines, ""]


def _variant(variant: Any) -> str:
    if isinstance(variant, str):
        return f"(`{variant}`)"
    words = [
        f"{name.replace('_', ' ')} {' → '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in variant.items()
    ]
    return ", ".join(words) or "(none)"


def _facts(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return found


def _held_out_table(paths: list[Path]) -> list[str]:
    lines = [
        "Held-out negative log-likelihood (nats per target token): ungated, under G+ and G−, with only the",
        "heads that `remove` keeps (gate ≥ 0.5, the others off), and with random sets of as many heads.",
        "",
        "| run | rows | ungated | G+ | G− | kept heads only | how many | random sets |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for path in paths:
        held = _facts(path)["held_out"]
        cells = [str(held["rows"]), f"{held['baseline']:.2f}"]
        cells += [f"{np.mean(held[key]):.2f}" for key in ("retain", "remove", "kept")]
        cells += [
            f"{np.mean(held['kept_heads']):.0f}",
            f"{np.mean(held['random']):.2f} ({min(held['random']):.2f}–{max(held['random']):.2f})",
        ]
        lines.append("| " + " | ".join([path.stem.partition("-")[2], *cells]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    rows = commands.add_parser("rows")
    rows.add_argument("--out", type=Path, required=True)
    fitting = commands.add_parser("fit")
    for name, default in (("rows", None), ("task", None), ("preset", "paper"), ("out", None)):
        fitting.add_argument(f"--{name}", default=default, required=default is None)
    fitting.add_argument("--model", default="smollm2")
    fitting.add_argument("--objective")
    fitting.add_argument("--seeds", type=int, default=10)
    fitting.add_argument("--updates", type=int)
    taking = commands.add_parser("take")
    taking.add_argument("--atlas", type=Path, required=True)
    reporting = commands.add_parser("report")
    reporting.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.command == "rows":
        export_rows(arguments.out)
    elif arguments.command == "fit":
        fit(arguments)
    elif arguments.command == "take":
        take(arguments)
    else:
        arguments.out.write_text(report() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
