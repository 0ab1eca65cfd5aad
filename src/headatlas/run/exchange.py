"""The place where workers leave what they make: a folder that all of them reach, or a URL of any store that
fsspec knows.

    <place>/<name>/base.json            the atlas as it was when a stage began: its files and their hashes
    <place>/<name>/unit-<hash>.json     an atlas folder of what one step has made so far, work included
    <place>/<name>/<either>/<hash>      the files

A worker fits in a folder of its own machine. What it hands over is that folder as it is at one moment: files
first, then the list of them, so that whoever goes on when it is gone finds what a process that was killed at
that moment would have left. A file is taken only if it has its hash.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from uuid import uuid4

import fsspec

from headatlas.atlas import is_result, is_work
from headatlas.core import HeadatlasError, StoreError, parse_json

__all__ = ["Exchange"]

_ATLAS, _BASE = "atlas.json", "base"
#: stores in which a file is there whole or not at all
_WHOLE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"}

_HASH = re.compile("[0-9a-f]{64}")
#: names of files, each with its hash
Listing = Mapping[str, str]


class _DamagedError(Exception):
    """Something of a listing is not there as it was."""


class Exchange:
    """`place` is a folder or a URL, `name` that of one request there."""

    def __init__(self, place: str, name: str) -> None:
        self.place, self.name = place, name
        try:
            self._files, root = fsspec.core.url_to_fs(place)
        except (ImportError, ValueError) as error:
            raise StoreError(f"{place} cannot be used to hand results over: {error}") from None
        self._root = f"{root.rstrip('/')}/{name}"
        protocol = self._files.protocol
        self._whole = bool(_WHOLE & set([protocol] if isinstance(protocol, str) else protocol))
        #: what is known to be there
        self._there: dict[str, dict[str, str]] = {}

    # the driver's side

    def publish(self, atlas: Path) -> None:
        """The atlas as all steps of the next stage find it."""
        self._leave(_BASE, {name: _hash(path) for name, path in _files_of(atlas)}, atlas)

    def fetch(self, step: str, into: Path) -> bool:
        """What the step has made; False if that is not there, or not whole."""
        with self._reached("read"):
            listing = self._listing(_folder_of(step))
            if listing is None:
                return False
            try:
                self._take(_folder_of(step), listing, into)
            except _DamagedError:
                return False
            return True

    def has_parts(self) -> bool:
        """Has any step handed something over?"""
        with self._reached("read"):
            self._files.invalidate_cache()
            return bool(self._files.glob(f"{self._root}/unit-*.json"))

    def clear(self) -> None:
        """Nothing but what was put there."""
        with self._reached("written"):
            if self._files.exists(self._root):
                self._files.rm(self._root, recursive=True)
            with suppress(OSError):  # not empty, or no folder at all
                self._files.rmdir(self._root.rpartition("/")[0])

    # the worker's side

    def begin(self, step: str, folder: Path, needs: Callable[[str], bool]) -> None:
        """The atlas as it was when the stage began (of it what is needed), and what the step has made of it
        so far."""
        with self._reached("read"):
            base = self._listing(_BASE)
            if base is None:
                raise StoreError(
                    f"nothing is at {self.place}: exchange=… is to be a folder or a URL that driver and "
                    "workers reach."
                )
            base = {name: digest for name, digest in base.items() if name == _ATLAS or needs(name)}
            part = self._listing(_folder_of(step)) or {}
            try:
                self._take(_BASE, base, folder)
                self._take(_folder_of(step), part, folder)
            except _DamagedError as error:
                if error.args[0] == _BASE:
                    raise StoreError(f"what was left at {self.place} is damaged.") from None
                _empty(folder)  # what was made is lost, and made again
                self._take(_BASE, base, folder)
        self._there[_BASE] = dict(base)

    def hand_over(self, step: str, folder: Path) -> None:
        """The folder as it is now."""
        base = self._there.get(_BASE, {})
        found = {name: _hash(path) for name, path in _files_of(folder)}
        # atlas.json always: a part is an atlas of its own
        new = {name: digest for name, digest in found.items() if name == _ATLAS or base.get(name) != digest}
        self._leave(_folder_of(step), new, folder)

    def _leave(self, where: str, listing: dict[str, str], folder: Path) -> None:
        before = self._there.get(where)
        if before == listing:
            return
        known = set((before or {}).values())
        with self._reached("written"):
            self._files.makedirs(f"{self._root}/{where}", exist_ok=True)
            for name, digest in listing.items():
                if digest not in known:
                    self._put((folder / name).read_bytes(), f"{where}/{digest}")
            self._put(json.dumps(listing).encode(), f"{where}.json")
            self._there[where] = listing
            for digest in known - set(listing.values()):
                with suppress(FileNotFoundError):
                    self._files.rm_file(f"{self._root}/{where}/{digest}")

    def _put(self, data: bytes, name: str) -> None:
        if self._whole:
            self._files.pipe_file(f"{self._root}/{name}", data)
            return
        draft = f"{self._root}/{name}.{uuid4().hex}.part"
        self._files.pipe_file(draft, data)
        self._files.mv(draft, f"{self._root}/{name}")

    def _listing(self, where: str) -> Listing | None:
        self._files.invalidate_cache()
        try:
            found = parse_json(self._files.cat_file(f"{self._root}/{where}.json"))
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(found, dict) or not all(_HASH.fullmatch(str(one)) for one in found.values()):
            return None
        for name in found:
            if not (is_result(name) or is_work(name)):
                raise StoreError(f"{self.place} holds a file that is not one of an atlas: {name}.")
        return found

    def _take(self, where: str, listing: Listing, folder: Path) -> None:
        for name, digest in listing.items():
            try:
                data = self._files.cat_file(f"{self._root}/{where}/{digest}")
            except FileNotFoundError:
                raise _DamagedError(where) from None
            if sha256(data).hexdigest() != digest:
                raise _DamagedError(where)
            own = folder / name
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_bytes(data)
        self._there[where] = dict(listing)

    @contextmanager
    def _reached(self, how: str) -> Iterator[None]:
        """What a store of any kind has to say against it, in a sentence."""
        try:
            yield
        except (HeadatlasError, _DamagedError):
            raise
        except Exception as error:  # each store has errors of its own
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise StoreError(f"{self.place} cannot be {how}: {said}.") from error


def _files_of(folder: Path) -> Iterable[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and (is_result(name) or is_work(name)):
            yield name, path


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _folder_of(step: str) -> str:
    return f"unit-{sha256(step.encode()).hexdigest()[:16]}"
