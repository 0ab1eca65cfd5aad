"""A mapping run small enough to be made, killed and made again many times."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from headatlas.atlas import Atlas, EffectMap, Fit, ScoreMap, Store, open_atlas
from headatlas.model import Model, load_model
from headatlas.run import map_heads
from support.planted import word_tokenizer
from support.tiny import build_tiny

__all__ = ["SMALL", "differences", "numbers", "same_numbers", "small_model", "small_run", "write_task"]

#: 2 seeds, 5 + 5 updates
SMALL = {"seeds": 2, "updates": 5, "batch": 4, "preset": "quick"}


def small_model() -> Model:
    return load_model(build_tiny("llama"), tokenizer=word_tokenizer(100), check=False)


def write_task(path: Path, records: int = 60, seed: int = 0) -> Path:
    """Random words in, a random word out."""
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(100)]
    with path.open("w") as file:
        for _ in range(records):
            drawn = chance.sample(words, chance.randint(3, 7))
            file.write(json.dumps({"prompt": " ".join(drawn[:-1]), "target": f" {drawn[-1]}"}) + "\n")
    return path


def small_run(model: Model, task: Path, out: Path | None, **changes: Any) -> Atlas:
    return map_heads(model, str(task), out=out, **{**SMALL, "checkpoint_seconds": 0.0, **changes})


def numbers(folder: Path) -> dict[tuple[str, str, int, str], dict[str, np.ndarray]]:
    """All arrays of an atlas."""
    atlas = open_atlas(folder)
    return {
        (method, task, seed, fit): {
            name: getattr(one, name) for name in ("logits", "path", "path_updates", "losses")
        }
        | {"held out": np.array([one.facts.get("nll", 0.0), one.facts.get("accuracy", 0.0)])}
        for (method, task), fits in atlas._fits.items()
        for (seed, fit), one in fits.items()
    }


def same_numbers(one: Path, other: Path) -> bool:
    """Bit for bit."""
    first, second = numbers(one), numbers(other)
    return first.keys() == second.keys() and all(
        np.array_equal(first[key][name], second[key][name], equal_nan=True)
        for key in first
        for name in first[key]
    )


def differences(first: Path, second: Path) -> list[str]:
    """What differs between two atlases: runs, and the names of arrays."""
    one, other = Store.open(first), Store.open(second)
    found = [] if list(one.runs) == list(other.runs) else ["the order of runs"]
    pairs = [(str(key), run, other.runs[key]) for key, run in one.runs.items()]
    found += [
        key
        for key, mine, theirs in pairs
        if (mine.identity, mine.settings, mine.baseline)
        != (theirs.identity, theirs.settings, theirs.baseline)
    ]
    arrays: list[dict[str, np.ndarray]] = []
    for store in (one, other):
        every: dict[str, np.ndarray] = {}
        for key, run in store.runs.items():
            every |= {f"{key} {fit.seed} {fit.fit}": fit.logits for fit in store.read_all(Fit, run)}
            every |= {f"{key} {effect.seed}": effect.values for effect in store.read_all(EffectMap, run)}
            scores = store.read(ScoreMap, run)
            every |= {} if scores is None else {f"{key} scores": scores.values}
        for name, (values, _) in store.notes().items():
            every |= {f"{name} {part}": array for part, array in values.items()}
        arrays.append(every)
    known, made = arrays
    found += sorted(known.keys() ^ made.keys())
    shared = known.keys() & made.keys()
    return found + sorted(key for key in shared if not np.array_equal(known[key], made[key], equal_nan=True))
