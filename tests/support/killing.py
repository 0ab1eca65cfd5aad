"""Kills a small run again and again and goes on with it: python -m support.killing FOLDER KILLS SEED.

A process of its own, with one thread: it forks for every run, which is quick and safe only so. Prints JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from headatlas.atlas import Store, open_atlas
from support.small_run import same_numbers, small_model, small_run, write_task


def main(root: Path, kills: int, seed: int) -> None:
    torch.set_num_threads(1)
    model, task = small_model(), write_task(root / "words.jsonl")
    small_run(model, task, root / "whole")
    began = time.monotonic()
    small_run(model, task, root / "again")
    whole_seconds = time.monotonic() - began
    chance = random.Random(seed)
    killed, finished, moments, steps = 0, 0, [], 0
    folder = root / "run0"
    same = [same_numbers(root / "whole", root / "again")]
    while killed < kills or folder.exists():  # the last run is carried to its end too
        child = os.fork()
        if child == 0:
            try:
                small_run(model, task, folder, resume=True)
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        if killed < kills:
            time.sleep(chance.uniform(0, whole_seconds))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
            if Store.exists(folder):  # whatever is there can be read
                moments.append(len(open_atlas(folder).to_table()))
                steps += bool(list((folder / "work").glob("*"))) if (folder / "work").exists() else 0
        elif os.WEXITSTATUS(status):
            sys.exit(1)
        else:
            same.append(same_numbers(root / "whole", folder))
            finished += 1
            folder = root / f"run{finished}"
    left = [str(path) for path in root.rglob(".*.tmp")] + [str(p) for p in root.rglob("work/*")]
    found = {"killed": killed, "finished": finished, "same": same, "left": left}
    print(json.dumps({**found, "moments": len(set(moments)), "inside_a_fit": steps}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
