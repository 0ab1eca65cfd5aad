"""All numbers that headatlas computes, to prove that a change of structure changes none.

python scripts/compare_numbers.py half DIR
    atlases of the tiny model that were interrupted inside a fit and between two fits (made by the old code)
python scripts/compare_numbers.py take DIR [--part tiny] [--part smollm2] [--part gallery] [--part half=HALF]
    run the commands and keep their atlases, checkpoints, tables and JSON output in DIR
python scripts/compare_numbers.py compare FIRST SECOND
    compare two such folders: arrays by their bytes, JSON numbers exactly

Everything runs through the command line, which stays the same when modules move. Times, versions and texts
are ignored; identities, what decides them, and all other numbers are compared. Compare only runs of one
machine with the same versions of torch and transformers.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
PARTS = ("tiny", "smollm2", "gallery")
#: layouts of heads: grouped, fused, multi-query, norms after attention, latent, holes, parallel blocks
LAYOUTS = ("llama", "gpt2", "gemma2", "qwen3", "falcon", "olmo2", "deepseek_v3", "lfm2")
EFFECTS = (
    "ablate-zero",
    "ablate-mean",
    "ablate-resample",
    "attribute-gradient",
    "attribute-integrated",
    "mediate",
)
#: what differs between two runs of the same code
IGNORED = {
    "seconds", "tokens_per_second", "made_with", "environment", "digest", "time", "version", "headatlas",
    "atlas", "path", "text", "made", "doubts", "request", "about",
}  # fmt: skip


def run(*words: str) -> str:
    """The standard output of a headatlas command that succeeds."""
    from headatlas.cli import main

    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["headatlas", *words]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as error:
        if error.code:
            raise RuntimeError(f"headatlas {' '.join(words)}: {err.getvalue().strip()}") from None
    finally:
        sys.argv = argv
    return out.getvalue()


def write_inputs(folder: Path) -> dict[str, str]:
    """A task, a second one, and a relation, in words that every tiny model knows."""
    from support.small_run import write_task

    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / file for name, file in (("task", "words.jsonl"), ("other", "others.jsonl"))}
    for seed, path in enumerate(paths.values()):
        write_task(path, 80, seed)
    rng = np.random.default_rng(0)
    pairs = {
        (int(source), int(target)) for source, target in rng.integers(1, 99, (60, 2)) if source != target
    }
    relation = folder / "pairs.csv"
    lines = [f"w{source},w{target}" for source, target in sorted(pairs)]
    relation.write_text("\n".join(["source,target", *lines]) + "\n", encoding="utf-8")
    return {name: str(path) for name, path in {**paths, "relation": relation}.items()}


def write_model(folder: Path, layout: str) -> str:
    from support.planted import word_tokenizer
    from support.tiny import build_tiny

    build_tiny(layout).save_pretrained(folder)
    word_tokenizer(100).save_pretrained(folder)
    return str(folder)


def take_tiny(out: Path, layouts: Sequence[str]) -> None:
    import torch

    inputs = write_inputs(out / "inputs")
    threads = torch.get_num_threads()
    for layout in layouts:
        model = write_model(out / "models" / layout, layout)
        for dtype in ("float32", "bfloat16"):
            torch.set_num_threads(1)
            take_commands(out / f"{layout}-{dtype}", model, inputs, dtype)
            print(layout, dtype, flush=True)
    torch.set_num_threads(threads)
    first = layouts[0]
    take_commands(out / f"{first}-all-threads", str(out / "models" / first), inputs, "float32")
    shutil.rmtree(out / "models")


def take_commands(out: Path, model: str, inputs: dict[str, str], dtype: str) -> None:
    """Every command that computes, on one model."""
    out.mkdir(parents=True)
    atlas, task, other = str(out / "atlas"), inputs["task"], inputs["other"]
    small = ["--seeds", "2", "--updates", "5", "--dtype", dtype, "--json"]
    for preset in ("quick", "paper"):
        words = ["--preset", preset, "--batch", "4", "-o", atlas if preset == "quick" else str(out / preset)]
        keep(out, f"map-{preset}", run("map", model, "-t", task, "-t", other, *words, *small))
    for method in EFFECTS:
        words = ["--method", method, "--items", "6", "--seeds", "2", "--resume", "--dtype", dtype, "--json"]
        keep(out, method, run("map", model, "-t", task, "-o", atlas, *words))
    words = ["--retain", task, "--forget", other, "--resume"]
    keep(out, "contrast", run("contrast", model, *words, "-o", atlas, *small))
    relations = ["--relation", inputs["relation"], "--dynamic", "--resume", "--json"]
    keep(out, "relations", run("relations", model, *relations, "--dtype", dtype, "-o", atlas))
    words = ["--items", "8", "--draws", "5", "--effect-items", "6", "--method", "ablate-zero"]
    words += ["--dtype", dtype, "--json"]
    keep(out, "validate", run("validate", atlas, "--model", model, "--task", task, *words))
    read_atlas(out, atlas)
    for gates in ("retain", "remove"):
        words = ["--task", task, "--gates", gates, "--hard", "0.5", "--force", "--items", "8", "--json"]
        checkpoint = str(out / f"checkpoint-{gates}")
        keep(out, f"export-{gates}", run("export", atlas, "--model", model, "--out", checkpoint, *words))


def read_atlas(out: Path, atlas: str) -> None:
    """What is read off an atlas: findings, table, page, cards."""
    keep(out, "report", run("report", atlas, "--json"))
    run("table", atlas, "--out", str(out / "table.csv"))
    run("page", atlas, "--out", str(out / "page.html"))
    page = (out / "page.html").read_text(encoding="utf-8")
    payload = re.search('<script type="application/json" id="payload">(.*?)</script>', page, re.DOTALL)
    assert payload is not None
    keep(out, "page", payload[1])
    (out / "page.html").unlink()
    for head in ("L0H0", "L2H3"):
        try:
            keep(out, f"head-{head}", run("head", atlas, head, "--json"))
        except RuntimeError:  # a layer without attention heads
            continue


def take_smollm2(out: Path) -> None:
    out.mkdir(parents=True)
    atlas = str(out / "atlas")
    keep(out, "map", run("map", "smollm2", "-t", "syntax", "--seeds", "2", "-o", atlas, "--json"))
    keep(out, "relations", run("relations", "smollm2", "--resume", "-o", atlas, "--json"))
    read_atlas(out, atlas)


def take_gallery(out: Path) -> None:
    out.mkdir(parents=True)
    atlas = str(out / "atlas")
    run("share", "unpack", str(ROOT / "docs" / "gallery" / "atlas.zip"), "--out", atlas)
    read_atlas(out, atlas)
    shutil.rmtree(atlas)  # the file of the repository, whose numbers are read above


def take_half(out: Path, halves: Path) -> None:
    """Finish what another version of the code began."""
    for half in sorted(path for path in halves.iterdir() if (path / "atlas").is_dir()):
        shutil.copytree(half / "atlas", out / half.name / "atlas")
        small = ["--seeds", "2", "--updates", "5", "--batch", "4", "--dtype", "float32", "--json"]
        words = [
            "-t",
            str(halves / "inputs" / "words.jsonl"),
            "-o",
            str(out / half.name / "atlas"),
            "--resume",
        ]
        keep(out / half.name, "map", run("map", str(halves / "model"), *words, *small))


class _StopError(Exception):
    """Raised instead of a kill."""


class _StopAt:
    """Progress that stops the run after a number of events, whatever form events have."""

    def __init__(self, events: int) -> None:
        self.left = events

    def __call__(self, *_: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise _StopError

    def __getattr__(self, name: str) -> Any:
        return self


def write_halves(out: Path) -> None:
    from headatlas import load_model, map_heads

    task = write_inputs(out / "inputs")["task"]
    model = load_model(write_model(out / "model", "llama"), dtype="float32")
    for events in (4, 9, 14):
        folder = out / f"after-{events}" / "atlas"
        try:
            map_heads(
                model, task, out=folder, seeds=2, updates=5, batch=4, checkpoint_seconds=0.0,
                progress=_StopAt(events),
            )  # fmt: skip
        except _StopError:
            continue
        raise RuntimeError(f"{events} events were too many: the run had ended")


def keep(out: Path, name: str, text: str) -> None:
    (out / f"{name}.json").write_text(text, encoding="utf-8")


def compare(first: Path, second: Path) -> int:
    """Print every difference; the number of differences."""
    files = [
        sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        for root in (first, second)
    ]
    missing = sorted(set(files[0]) ^ set(files[1]))
    differences = [f"{name}: only in one of the two" for name in missing if not ignored_file(name)]
    counted = 0
    for name in sorted(set(files[0]) & set(files[1])):
        if ignored_file(name):
            continue
        one, other = (list(values_of(root / name)) for root in (first, second))
        counted += len(one)
        if len(one) != len(other):
            differences.append(f"{name}: {len(one)} values and {len(other)}")
        differences += [
            f"{name}: {key}: {str(left)[:60]} and {str(right)[:60] if key == there else there}"
            for (key, left), (there, right) in zip(one, other, strict=False)
            if (key, left) != (there, right)
        ][:5]
    print("\n".join(differences))
    print(f"{counted:,} values in {len(set(files[0]) & set(files[1]))} files, {len(differences)} differences")
    return len(differences)


def ignored_file(name: str) -> bool:
    return name.endswith((".lock", ".md", ".jinja")) or "/.cache" in name


def values_of(path: Path) -> Iterator[tuple[str, Any]]:
    """(name, value) of all that a file says: arrays as bytes, JSON values that are not ignored."""
    if path.suffix == ".safetensors":
        header = path.read_bytes()
        length = int.from_bytes(header[:8], "little")
        about = json.loads(header[8 : 8 + length])
        data = header[8 + length :]
        metadata = about.pop("__metadata__", {})
        for name, entry in sorted(about.items()):
            begin, end = entry["data_offsets"]
            yield name, (entry["dtype"], entry["shape"], sha256(data[begin:end]).hexdigest())
        for key, text in sorted(metadata.items()):
            yield from flat(key if key != "headatlas" else "", parsed(text))
    elif path.suffix == ".json":
        yield from flat("", json.loads(path.read_text(encoding="utf-8")))
    elif path.suffix == ".csv":
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            yield f"line {number}", line
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            for entry in sorted(packed.namelist()):
                yield entry, sha256(packed.read(entry)).hexdigest()


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name in sorted(value):
            if name not in IGNORED:
                yield from flat(f"{key}/{name}", value[name])
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from flat(f"{key}/{number}", part)
    else:
        yield key, value


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("half").add_argument("folder", type=Path)
    taking = commands.add_parser("take")
    taking.add_argument("folder", type=Path)
    taking.add_argument(
        "--part", action="append", help=f"{', '.join(PARTS)} or half=FOLDER (default: all but half)"
    )
    taking.add_argument("--layout", action="append", choices=LAYOUTS, help="for the part tiny (default: all)")
    comparing = commands.add_parser("compare")
    comparing.add_argument("folder", type=Path)
    comparing.add_argument("other", type=Path)
    chosen = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT / "tests"))
    if chosen.command == "compare":
        return int(compare(chosen.folder, chosen.other) > 0)
    if chosen.command == "half":
        write_halves(chosen.folder)
        return 0
    for part in chosen.part or PARTS:
        name, _, halves = part.partition("=")
        if name == "half":
            take_half(chosen.folder / name, Path(halves))
        elif name == "tiny":
            take_tiny(chosen.folder / name, chosen.layout or LAYOUTS)
        else:
            {"smollm2": take_smollm2, "gallery": take_gallery}[name](chosen.folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
