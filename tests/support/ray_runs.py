"""Small runs on Ray beside the same ones here: python -m support.ray_runs FOLDER WORKERS DRIVERS SEED.

A cluster of two nodes on this machine. So many workers and drivers are killed at random moments, every run is
carried to its end; then a validation, relations, requests that cannot be met, and a node that goes away.
Prints JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from headatlas import HeadatlasError, Ray, Relation, load_model, map_heads, relate_heads, validate_atlas
from headatlas.atlas import Store
from headatlas.core import Event, Note, Progress, Workers, silent
from support.planted import word_tokenizer
from support.small_run import differences, same_numbers, write_task
from support.tiny import build_tiny

#: two blocks of seeds
ASKED: dict[str, Any] = {"seeds": 7, "updates": 250, "batch": 4, "preset": "quick", "resume": True}
CHECKED: dict[str, Any] = {"items": 5, "draws": 2, "methods": ["ablate", "attribute-integrated"]}


def on_ray(root: Path, out: Path, address: str | None, progress: Progress = silent) -> None:
    ray = Ray(address, load={"dtype": "float32"}, handing_seconds=0.1)
    task, model = str(root / "words.jsonl"), str(root / "model")
    asked = {**ASKED, "checkpoint_seconds": 0.1}
    map_heads(model, task, out=out, executor=ray, progress=progress, **asked)


class Watching:
    """Who was at work, and at how many steps."""

    def __init__(self) -> None:
        self.processes: set[int] = set()
        self.finished = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Workers):
            self.processes |= {worker.process for worker in event.running}
            self.finished += event.total * (event.done == event.total)  # a stage has ended


class Killing:
    """Kills a worker that is at a fit, now and then; at least one of them after its first update."""

    def __init__(self, kills: int, chance: random.Random) -> None:
        self.left, self.chance, self.lost, self.inside = kills, chance, 0, 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note):
            self.lost += "was lost" in event.text
        elif isinstance(event, Workers):
            self.look(event)

    def look(self, workers: Workers) -> None:
        last_must_be_inside = self.left == 1 and not self.inside
        fitting = [
            worker
            for worker in workers.running
            if worker.update.total and (worker.update.done or not last_must_be_inside)
        ]
        if self.left and fitting and self.chance.random() < 0.5:
            worker = self.chance.choice(fitting)
            try:
                os.kill(worker.process, signal.SIGKILL)
            except ProcessLookupError:
                return  # it was killed before, and the board has not heard of its successor yet
            self.left -= 1
            self.inside += worker.update.done > 0


def kill_workers(root: Path, kills: int, chance: random.Random) -> dict[str, Any]:
    progress = Killing(kills, chance)
    same: list[bool] = []
    while progress.left:
        out = root / f"workers{len(same)}"
        on_ray(root, out, None, progress)
        same.append(same_numbers(root / "whole", out))
    return {"same": same, "lost": progress.lost, "inside": progress.inside}


def kill_drivers(root: Path, kills: int, chance: random.Random, address: str) -> dict[str, Any]:
    killed, inside, same = 0, 0, []
    out = root / "drivers0"
    while killed < kills or out.exists():
        child = subprocess.Popen(
            [sys.executable, "-m", "support.ray_runs", "drive", str(root), str(out), address]
        )
        if killed < kills:
            before = _handed_over(out)
            while child.poll() is None and _handed_over(out) == before:
                time.sleep(0.05)
            time.sleep(chance.uniform(0, 3))
            child.kill()
        if child.wait() == -signal.SIGKILL:
            killed += 1
            inside += bool(_handed_over(out))
        else:
            assert child.returncode == 0
            same.append(same_numbers(root / "whole", out))
            out = root / f"drivers{len(same)}"
    left = [str(path) for name in ("parts", "work") for path in root.rglob(name) if any(path.rglob("*"))]
    return {"killed": killed, "inside": inside, "same": same, "left": left}


def kill_node(root: Path, remove: Callable[[], None]) -> dict[str, Any]:
    """The node goes away while both are at a fit."""

    class Cutting(Killing):
        def look(self, workers: Workers) -> None:
            if self.left and sum(worker.update.done > 20 for worker in workers.running) == 2:
                self.left = 0
                remove()

    progress = Cutting(1, random.Random(0))
    on_ray(root, root / "node", None, progress)
    return {
        "cut": not progress.left,
        "lost": progress.lost,
        "same": same_numbers(root / "whole", root / "node"),
    }


def _handed_over(out: Path) -> set[Path]:
    return set((out / "parts").rglob("unit-*.json"))


def compare(root: Path) -> dict[str, Any]:
    """All else that can be handed out, here and there: what differs."""
    model, task = str(root / "model"), str(root / "words.jsonl")
    here = load_model(model, dtype="float32")
    ray = Ray(exchange=(root / "exchange").as_uri(), load={"dtype": "float32"})
    shifts = [
        Relation(
            f"next{by}", tuple((f"w{n}", f"w{(n + by) % 100}") for n in range(60)), category="algorithmic"
        )
        for by in range(1, 7)
    ]
    pieces = Relation(
        "phrase", tuple((f"w{n} w{n + 1}", f"w{n + 2}") for n in range(40)), category="knowledge"
    )
    related: dict[str, Any] = {"relations": [*shifts, pieces], "dynamic": True, "causal": ["next2"]}
    watching = Watching()
    for name, which, executor in (("a", here, None), ("b", model, ray)):
        out = root / f"other-{name}"
        small: dict[str, Any] = {**ASKED, "updates": 5, "executor": executor}
        map_heads(which, task, out=out, **small)
        validate_atlas(out, model=which, tasks=[task], executor=executor, progress=watching, **CHECKED)
        relate_heads(which, out=out, resume=True, executor=executor, **related)
    return {
        "differ": differences(root / "other-a", root / "other-b"),
        "runs": len(Store.open(root / "other-a").runs),
        "exchange": (root / "exchange").exists(),
        "processes": len(watching.processes),
        "steps": watching.finished,
    }


def refused(root: Path) -> dict[str, str]:
    """Sentences, by what was wrong."""
    task, found = str(root / "words.jsonl"), {}
    (root / "empty").mkdir()
    requests: dict[str, tuple[Any, Ray, dict[str, Any]]] = {
        "no weights": (str(root / "empty"), Ray(), {}),
        "other settings": (str(root / "model"), Ray(load={"dtype": "float32"}), {"out": root / "other-b"}),
        "too many GPUs": (str(root / "model"), Ray(gpus=2), {}),
        "a loaded model": (load_model(str(root / "model")), Ray(), {}),
        "an odd exchange": (str(root / "model"), Ray(exchange="nothing-like-it://there"), {}),
    }
    for name, (model, ray, changes) in requests.items():
        try:
            map_heads(model, task, executor=ray, **{**ASKED, "updates": 7, "out": root / name, **changes})
        except HeadatlasError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def main(root: Path, workers: int, drivers: int, seed: int) -> None:
    import ray
    from ray.cluster_utils import Cluster

    torch.set_num_threads(1)
    build_tiny("llama").save_pretrained(root / "model")
    word_tokenizer(100).save_pretrained(root / "model")
    write_task(root / "words.jsonl", 120)
    model = load_model(str(root / "model"), dtype="float32")
    map_heads(model, str(root / "words.jsonl"), out=root / "whole", **ASKED)
    chance = random.Random(seed)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # GPUs by name only: each worker has one to itself
    has: dict[str, Any] = {"num_cpus": 1, "num_gpus": 1}
    cluster = Cluster(initialize_head=True, head_node_args={**has, "include_dashboard": False})
    node = cluster.add_node(**has)
    ray.init(address=cluster.address, log_to_driver=False)
    found = {
        "workers": kill_workers(root, workers, chance),
        "drivers": kill_drivers(root, drivers, chance, cluster.address),
        "others": compare(root),
        "refused": refused(root),
        "node": kill_node(root, lambda: cluster.remove_node(node)),
    }
    ray.shutdown()
    cluster.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1] == "drive":
        torch.set_num_threads(1)
        on_ray(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
    else:
        main(Path(sys.argv[1]).resolve(), *(int(one) for one in sys.argv[2:5]))
