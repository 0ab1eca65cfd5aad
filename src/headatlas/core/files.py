"""Files and folders that appear whole or not at all, and names for them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from headatlas.core.errors import StoreError

__all__ = ["file_stamps", "slug", "staged_folder", "write_whole", "writing"]

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")


def slug(name: str) -> str:
    """A task's name as a file name: itself where it can be, else made plain, with a hash to stay distinct."""
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-.")[:60] or "task"
    return f"{plain}-{sha256(name.encode()).hexdigest()[:8]}"


def file_stamps(paths: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of each file: another tuple once a file changes."""
    facts = [(str(path), path.stat()) for path in paths if path.is_file()]
    return tuple(sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in facts))


def write_whole(path: Path, content: bytes | str | Callable[[Path], object], advice: str = "") -> None:
    """Write a draft next to `path`, flush it to the disk and rename it to `path`.

    `content` is what the file holds, or a function that fills the draft. `advice` ends the error if that
    fails.
    """
    with writing(path, advice):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            if callable(content):
                content(draft)
            else:
                draft.write_bytes(content.encode() if isinstance(content, str) else content)
            _flush(draft)
            draft.replace(path)
            _flush(path.parent)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def staged_folder(target: Path, advice: str = "") -> Iterator[Path]:
    """A new folder beside `target`. At the end of the block it is flushed and renamed to `target`; if the
    block fails, it is removed. `target` must not exist by then."""
    with writing(target, advice):
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield draft
        with writing(target, advice):
            _apply_umask(draft)
            for path in (*draft.rglob("*"), draft):
                _flush(path)
            draft.rename(target)
            _flush(target.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def writing(path: Path, advice: str = "") -> Iterator[None]:
    """Whatever keeps a file or folder from being written, in one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{path} cannot be written: {reason}. {advice}".rstrip()) from error


def _apply_umask(folder: Path) -> None:
    """`mkdtemp` makes 0700, and some libraries write private files."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (folder, *folder.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
