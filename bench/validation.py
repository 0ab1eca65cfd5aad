"""What the maps of SmolLM2 are worth: every method, held-out items, all findings.

python bench/validation.py measure --out FOLDER
    maps math, syntax and arithmetic (ten quick seeds) and all relations into an atlas, validates it
    (minutes on a GPU, hours on a CPU) and writes results.json next to it
python bench/validation.py report --atlas FOLDER --out docs/results.md
    the page and its figures
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

TASKS = ("math", "syntax", "arithmetic")
SEEDS, ITEMS, DRAWS, RETEST = 10, 128, 20, 3


def measure(arguments: argparse.Namespace) -> None:
    import torch

    from headatlas import load_model, map_heads, relate_heads, validate_atlas

    out = arguments.out
    times: dict[str, float] = {}
    began = time.monotonic()
    relate_heads(load_model(arguments.model, dtype="float32"), out=out, resume=True)
    times["relations"] = time.monotonic() - began
    model = load_model(arguments.model, dtype="fast")
    for task in TASKS:
        began = time.monotonic()
        map_heads(model, task, out=out, resume=True, seeds=SEEDS)
        times[f"map {task}"] = time.monotonic() - began
        print(task, times, flush=True)
    for task in TASKS:
        began = time.monotonic()
        atlas = validate_atlas(out, model=model, tasks=[task], items=ITEMS, draws=DRAWS, retest=RETEST)
        times[f"validate {task}"] = time.monotonic() - began
        print(atlas.validation(task).table(200).to_string(), times, flush=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    facts = {"device": device, "torch": torch.__version__, "seconds": times}
    (Path(out) / "bench.json").write_text(json.dumps(facts, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    work: Any
    for name, work in (("measure", measure),):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--model", default="smollm2")
        command.set_defaults(work=work)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
