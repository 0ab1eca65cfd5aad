"""Where things lie in an atlas folder, and how they are written so that nothing is ever half there.

    atlas.json                              what was mapped, how, with which settings
    fits/<method>/<task>/<seed>-<fit>.safetensors    one file per finished fit
    effects/<method>/<task>/<seed>.safetensors       effects of single heads
    scores/<method>/<relation>.safetensors           one file per relation
    notes/<name>.safetensors                         what is known of all heads together (salient tokens, …)
    work/<method>-<task>-<stage>.safetensors         a fit in progress; gone when it is finished
    atlas.lock                              held while a process writes

A file is written under another name, flushed to the disk and renamed. Renaming is all or nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from headatlas.core import AtlasError, StoreError

__all__ = [
    "ATLAS",
    "LOCK",
    "RESULTS",
    "RESUME",
    "SCHEMA",
    "drafts",
    "effect_path",
    "fit_path",
    "is_result",
    "is_work",
    "note_names",
    "note_path",
    "result_files",
    "score_path",
    "slug",
    "work_path",
    "write_whole",
    "writing",
]

#: raised when an older headatlas could no longer read what this one writes
SCHEMA = 1
ATLAS, LOCK = "atlas.json", "atlas.lock"
#: the folders that hold results
RESULTS = ("fits", "effects", "scores", "notes")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_DRAFT = ".*.safetensors.*.tmp"
RESUME = (
    "What is finished is safe; when this is mended, the same command goes on (with --resume, if it has one)."
)
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")


def slug(name: str) -> str:
    """A task's name as a file name: itself where it can be, else made plain, with a hash to stay distinct."""
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-.")[:60] or "task"
    return f"{plain}-{sha256(name.encode()).hexdigest()[:8]}"


def is_result(name: str) -> bool:
    """Is this the path, in an atlas folder, of a file that holds results?"""
    top, *others = name.split("/")
    if name == ATLAS:
        return True
    plain = bool(others) and all(_PART.fullmatch(part) for part in others)
    return top in RESULTS and plain and name.endswith(".safetensors")


def result_files(root: Path) -> Iterator[Path]:
    """All files of an atlas folder that hold results; links are refused."""
    for path in sorted(root.rglob("*")):
        if is_result(path.relative_to(root).as_posix()):
            if path.is_symlink() or not path.is_file():
                raise AtlasError(f"{path} is no plain file; an atlas that is shared has no links.")
            yield path


def is_work(name: str) -> bool:
    """Is this the path of work in progress?"""
    top, _, rest = name.partition("/")
    return top == "work" and bool(_PART.fullmatch(rest)) and rest.endswith(".safetensors")


def fit_path(root: Path, method: str, task: str, seed: int, fit: str) -> Path:
    return root / "fits" / method / slug(task) / f"{seed}-{fit}.safetensors"


def effect_path(root: Path, method: str, task: str, seed: int) -> Path:
    return root / "effects" / method / slug(task) / f"{seed}.safetensors"


def score_path(root: Path, method: str, relation: str) -> Path:
    return root / "scores" / method / f"{slug(relation)}.safetensors"


def note_path(root: Path, name: str) -> Path:
    return root / "notes" / f"{name}.safetensors"


def note_names(root: Path) -> list[str]:
    """All notes that are there."""
    return sorted(
        path.stem for path in (root / "notes").glob("*.safetensors") if not path.name.startswith(".")
    )


def work_path(root: Path, method: str, task: str, stage: str) -> Path:
    return root / "work" / f"{method}-{slug(task)}-{stage}.safetensors"


def drafts(root: Path) -> Iterator[Path]:
    """What a process that was killed may have left half written: only names that we give."""
    folders = [(root / name, _DRAFT) for name in (*RESULTS, "work")]
    for folder, pattern in ((root, f".{ATLAS}.*.tmp"), *folders):
        found = folder.glob(pattern) if folder == root else folder.rglob(pattern)
        yield from (path for path in found if path.name.split(".")[-2].isdecimal())


def write_whole(path: Path, write: Callable[[Path], None], advice: str = "") -> None:
    """Have `write` fill a file next to `path`, then put it in its place."""
    with writing(path, advice):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            write(draft)
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
            draft.replace(path)
            _flush_folder(path.parent)
        finally:
            draft.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def writing(path: Path, advice: str = "") -> Iterator[None]:
    """Whatever keeps a file from being written, in one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{path} cannot be written: {reason}. {advice}".rstrip()) from error
