"""What reading relations off weights costs, and what its heads are worth.

python bench/relations.py measure --out bench/reference/relations.json
    scores all relations on SmolLM2, compares with the straightforward loop, with texts and with heads
    switched off (hours on a CPU for --checks all, minutes on a GPU)
python bench/relations.py speed --out bench/reference/relations-speed.json
    only the comparison with the loop, on this machine
python bench/relations.py report --out docs/relations.md
    tables from both files
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np

REFERENCE = Path(__file__).parent / "reference"
#: a relation is checked by switching heads off if the model knows it at least this well
KNOWN = 0.3
#: every so many layers take part in the comparison with the loop
LAYERS = 10


def loop_scores(
    model: Any, pairs: list[list[Any]], k: list[int], source: str, heads: list[Any], double: bool = False
) -> np.ndarray:
    """The published way: for every head and relation the matrix W_V · W_O, all numbers of the vocabulary, and
    two full top-k."""
    import torch

    dtype = torch.float64 if double else torch.float32
    unembedding = model.unembedding().to(dtype)
    found = np.full((len(pairs), 2, *model.spec.shape), np.nan)
    for head in heads:
        for place, some in enumerate(pairs):
            kind = "embedding" if model.attention(head.layer).value.layer == 0 else source
            value, output = (part.to(dtype) for part in model.value_output(head))
            matrix = value @ output
            x = model.source_vectors([pair.source[0] for pair in some], kind).to(dtype)
            numbers = x @ matrix @ unembedding
            targets = torch.tensor([pair.target for pair in some])[:, None].to(numbers.device)
            for direction, sign in enumerate((1, -1)):
                top = (sign * numbers).topk(k[place], dim=1).indices
                found[place, direction, head.layer, head.head] = float((top == targets).any(1).float().mean())
    return found


def memory(what: str) -> float:
    """GiB of this process: VmRSS, what it holds, or VmHWM, the most that it held."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 2**20


def forget_peak() -> float:
    """The most that was held begins anew; gives what is held now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return memory("VmRSS")


def speed(model: Any) -> dict[str, Any]:
    """All heads with the product code, then both ways in turn on the heads of some layers."""
    import torch

    from headatlas.method import relation_scores
    from headatlas.method.relation.scorer import Writer, choose_k, relations_for, static_scores
    from headatlas.task import builtin_relations

    found = [one for one in relations_for(model, builtin_relations()) if one.measurable]
    pairs, k = [list(one.single) for one in found], [choose_k(one, model.spec.vocabulary) for one in found]
    writer = Writer(model)
    model.source_vectors([0, 1])  # what is found out once per model
    began = time.monotonic()
    static_scores(writer, pairs, k, "first_mlp")
    whole = time.monotonic() - began
    del writer
    held = forget_peak()
    began = time.monotonic()
    relation_scores(model)
    complete = time.monotonic() - began
    peak = memory("VmHWM") - held
    writer = Writer(model)
    ours = loop = 0.0
    differ, largest, still = 0, 0.0, 0
    layers = range(0, model.spec.layers, LAYERS)
    for layer in layers:
        heads = [head for head in model.spec if head.layer == layer]
        began = time.monotonic()
        quick = static_scores(writer, pairs, k, "first_mlp", heads=heads)
        middle = time.monotonic()
        slow = loop_scores(model, pairs, k, "first_mlp", heads)
        ours, loop = ours + middle - began, loop + time.monotonic() - middle
        apart = np.nan_to_num(np.abs(quick - slow)) > 1e-6
        differ, largest = differ + int(apart.sum()), max(largest, float(np.nanmax(np.abs(quick - slow))))
        for relation in np.flatnonzero(apart.any((1, 2, 3))):
            some = [head for head in heads if apart[relation, :, head.layer, head.head].any()]
            again = loop_scores(model, [pairs[relation]], [k[relation]], "first_mlp", some, double=True)
            still += int((np.nan_to_num(np.abs(quick[relation] - again[0])) > 1e-6).sum())
    return {
        "device": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else f"cpu, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "pairs": sum(map(len, pairs)),
        "relations": len(pairs),
        "heads": len(model.spec),
        "seconds": whole,
        "complete": complete,
        "peak_gib": peak,
        "compared_heads": sum(model.spec.heads[layer] for layer in layers),
        "ours": ours,
        "loop": loop,
        "differ": differ,
        "largest": largest,
        "differ_in_double": still,
        "cells": 2 * len(pairs) * sum(model.spec.heads[layer] for layer in layers),
    }


def measure(arguments: argparse.Namespace) -> None:
    import torch

    from headatlas import load_model
    from headatlas.method import relation_scores
    from headatlas.method.relation.causal_check import accuracy, causal_check, questions
    from headatlas.method.relation.scorer import Writer, relations_for
    from headatlas.method.relation.scores import scores_in_texts
    from headatlas.task import builtin_relations

    model = load_model(arguments.model, dtype="float32", check=False)
    began = time.monotonic()
    static = relation_scores(model)
    facts: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
        "seconds": time.monotonic() - began,
        "source": dict(static.attrs),
        "relations": [],
        "checks": [],
    }
    found = relations_for(model, builtin_relations())
    with model.measuring():
        dynamic = scores_in_texts(Writer(model), found)
    facts["agreement"] = agreement(static, dynamic)
    tokens = {one.name: one for one in found}
    for name in static.relation.values:
        one = static.sel(relation=name)
        best: dict[str, Any] = {}
        for direction in ("promote", "suppress"):
            values = one.sel(direction=direction).values
            place = np.unravel_index(np.nanargmax(values), values.shape)
            best[direction] = [f"L{place[0]}H{place[1]}", round(float(values[place]), 3)]
        about = {key: one[key].item() for key in ("category", "kind", "pairs", "single", "listed", "k")}
        try:
            about["accuracy"] = accuracy(model, questions(model, tokens[str(name)]), [])
        except Exception as error:
            about["accuracy"], about["why"] = None, str(error)
        about["shuffled"] = shuffled(model, tokens[str(name)], about, best["promote"][0], static)
        facts["relations"].append({"relation": str(name), **about, **best})
    able = [one["relation"] for one in facts["relations"] if (one["accuracy"] or 0) >= KNOWN]
    for name in able if arguments.checks == "all" else arguments.checks.split(","):
        check = causal_check(model, static, name, controls=[other for other in able if other != name])
        facts["checks"].append(check.to_json())
        arguments.out.write_text(json.dumps(facts, indent=1), encoding="utf-8")  # as it goes
        print(name, check.top, flush=True)


def shuffled(model: Any, relation: Any, about: dict[str, Any], head: str, static: Any) -> float | None:
    """The head's score with targets that belong to other sources; None where it is not read off weights."""
    from dataclasses import replace

    from headatlas.core import Head
    from headatlas.method.relation.scorer import Writer, static_scores

    if about["kind"] != "static":
        return None
    right: dict[Any, set[int]] = {}
    for pair in relation.single:
        right.setdefault(pair.source, set()).add(pair.target)
    chance, targets = random.Random(0), [pair.target for pair in relation.single]
    wrong = []
    for pair in relation.single:
        others = [target for target in targets if target not in right[pair.source]]
        wrong.append(replace(pair, target=chance.choice(others)))
    place = Head.parse(head)
    found = static_scores(Writer(model), [wrong], [about["k"]], static.attrs["source"], heads=[place])
    return round(float(found[0, 0, place.layer, place.head]), 3)


def agreement(static: Any, dynamic: dict[str, Any]) -> dict[str, Any]:
    """kind -> Pearson correlation with the static scores, over all heads, for all relations together and for
    each that has a head of 0.15 or more."""
    found: dict[str, Any] = {}
    for kind, scores in dynamic.items():
        names = [str(n) for n in scores.relation.values if static.sel(relation=n).kind.item() == "static"]
        each, x, y = {}, [], []
        for name in names:
            one = static.sel(relation=name, direction="promote").values.ravel()
            other = scores.sel(relation=name, direction="promote").values.ravel()
            there = ~np.isnan(one) & ~np.isnan(other)
            x.append(one[there])
            y.append(other[there])
            if np.nanmax(one) >= 0.15:
                each[name] = round(float(np.corrcoef(one[there], other[there])[0, 1]), 3)
        found[kind] = {"all": float(np.corrcoef(np.concatenate(x), np.concatenate(y))[0, 1]), "each": each}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, work in (("measure", measure), ("speed", write_speed), ("report", report)):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, required=True)
        command.set_defaults(work=work)
        if name != "report":
            command.add_argument("--model", default="smollm2")
        if name == "measure":
            command.add_argument("--checks", default="all", help="relations, with commas, or all")
    arguments = parser.parse_args()
    arguments.work(arguments)


def write_speed(arguments: argparse.Namespace) -> None:
    from headatlas import load_model

    found = speed(load_model(arguments.model, dtype="float32", check=False))
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


def interval(hits: float, count: int) -> str:
    """A 95 % interval (Wilson) of a share of so many questions."""
    z, share = 1.96, hits
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5 / (1 + z * z / count)
    return f"{max(0.0, middle - half):.2f}–{min(1.0, middle + half):.2f}"


def _cost(times: dict[str, Any]) -> str:
    ratio = times["loop"] / times["ours"]
    return (
        f"{times['pairs']:,} single-token pairs of {times['relations']} relations on all {times['heads']} "
        f"heads, promote and suppress: **{times['seconds']:.0f} s**; all of `relation_scores(model)`, with "
        "tokens, the choice of source and the relations that are scored in texts, "
        f"**{times['complete']:.0f} s** and at most {times['peak_gib']:.2f} GiB above what the loaded model "
        f"holds ({times['device']}). Side by side on {times['compared_heads']} of the heads, layer by "
        f"layer in turn: {times['ours']:.1f} s against {times['loop']:.1f} s for the straightforward loop "
        f"(W_V · W_O for every head and relation, two full top-k): **{ratio:.0f} times faster**. Of "
        f"{times['cells']:,} scores {times['differ'] or 'none'} differ."
    )


def _switched_off(checks: list[dict[str, Any]]) -> list[str]:
    """Where few heads promote a relation, there are fewer steps."""
    steps = sorted({step for check in checks for step in check["steps"]})

    def row(check: dict[str, Any], first: str, second: str, cells: list[str]) -> str:
        by_step = dict(zip(check["steps"], cells, strict=True))
        return f"| {first} | {second} | " + " | ".join(by_step.get(step, "") for step in steps) + " |"

    lines = [
        "Accuracy when the top heads of a relation are switched off at the last position, next to as many",
        "random heads (mean of five draws, lowest and highest in brackets) and to other relations while the",
        "same heads are off (controls: up to three relations that the model knows and that share less than",
        "15 % of those heads; where there is none, none is shown). Below each accuracy of the top heads its",
        "95 % interval. Heads that get no pair of the relation right are not switched off, so that some rows",
        "end early. Random heads come from all layers, top heads mostly from the last third.",
        "",
        "| relation | heads off | " + " | ".join(str(step) for step in steps) + " |",
        "|---|---" + "|---" * len(steps) + "|",
    ]
    for check in checks:
        draws = np.array(check["random"])
        spread = [f"{draw.mean():.2f} ({draw.min():.2f}–{draw.max():.2f})" for draw in draws.T]
        lines += [
            row(check, check["relation"], "top", [f"**{value:.2f}**" for value in check["top"]]),
            row(check, "", "", [interval(value, check["questions"]) for value in check["top"]]),
            row(check, "", "random", spread),
        ]
        for name, curve in check["controls"].items():
            lines.append(row(check, "", f"control: {name}", [f"{value:.2f}" for value in curve]))
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def report(arguments: argparse.Namespace) -> None:
    facts = json.loads((REFERENCE / "relations.json").read_text(encoding="utf-8"))
    times = json.loads((REFERENCE / "relations-speed.json").read_text(encoding="utf-8"))
    lines = [
        "# Relations of SmolLM2",
        "",
        "Made by `bench/relations.py report`; SmolLM2, 270 heads, the 25 built-in relations.",
        "",
        "## Cost",
        "",
        _cost(times),
        "",
        "## Relations",
        "",
        f"Source vectors: {facts['source']['source']} ({facts['source']['source_because']}). *shuffled*: the "
        "score of the head that promotes it most, with the targets dealt out to wrong sources: high where a "
        "head likes all of the few targets. *accuracy*: the model's own, asked with three worked examples. "
        "*: fewer than 30 pairs are single tokens, and it is scored in texts. Measured on "
        f"{facts['device']}, as are the two sections below.",
        "",
        "| relation | category | pairs | of listed | k | promoted by | shuffled | suppressed by | accuracy |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in facts["relations"]:
        accuracy = _number(one["accuracy"])
        mark = "*" if one["kind"] == "multi-token" else ""
        best = [f"{head} {score:.2f}" for head, score in (one["promote"], one["suppress"])]
        lines.append(
            f"| {one['relation']} | {one['category']} | {one['pairs']}{mark} | {one['listed']} "
            f"| {one['k']} | {best[0]} | {_number(one['shuffled'])} | {best[1]} | {accuracy} |"
        )
    words = {"forced": "attention forced onto the source", "attending": "as the heads attend"}
    lines += ["", "## What the weights say and what the heads do", ""]
    lines.append(
        "Pearson correlation of static and dynamic scores over all heads (three templates, at most 100 "
        "pairs of a relation):"
    )
    lines.append("")
    names = list(facts["agreement"]["forced"]["each"])
    lines += ["| | all relations | " + " | ".join(names) + " |", "|---|---" + "|---" * len(names) + "|"]
    for kind, word in words.items():
        found = facts["agreement"][kind]
        each = " | ".join(f"{found['each'][name]:.2f}" for name in names)
        lines.append(f"| {word} | {found['all']:.2f} | {each} |")
    lines += ["", "## Heads switched off", ""]
    lines += _switched_off(facts["checks"])
    arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
