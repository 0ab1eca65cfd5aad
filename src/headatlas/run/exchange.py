"""The place where workers leave what they make: a folder that all of them reach, or a URL of any store that
fsspec knows.

    <place>/base/…            the atlas as it was when a stage began
    <place>/parts/<unit>/…    an atlas folder of what one unit has made so far, its work in progress included

A worker fits in a folder of its own machine and copies from there what is new, so that another one can go on
when it is gone. A file that was cut off on the way is noticed by its hash and left.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import fsspec

from headatlas.atlas import is_result, is_sound_file, is_work
from headatlas.core import AtlasError, StoreError

__all__ = ["Exchange"]

_ATLAS = "atlas.json"
#: a file and the time at which it was written
#: a file's name and what tells its states apart, also when the clock jumps
Stamp = tuple[str, tuple[int, int, int]]


class Exchange:
    """`place` is a folder or a URL."""

    def __init__(self, place: str) -> None:
        self.place = place
        try:
            self._files, self._root = fsspec.core.url_to_fs(place)
        except (ImportError, ValueError) as error:
            raise StoreError(f"{place} cannot be used to hand results over: {error}") from None

    # the driver's side

    def publish(self, atlas: Path) -> None:
        """The atlas as all units of the next stage find it."""
        self._copy_out(atlas, f"{self._root}/base", set())

    def fetch(self, unit: str, into: Path) -> None:
        """What the unit has made."""
        self._copy_in(f"{self._root}/parts/{_folder_of(unit)}", into)

    def clear(self) -> None:
        """Nothing but what was put there."""
        for name in ("base", "parts"):
            if self._files.exists(f"{self._root}/{name}"):
                self._files.rm(f"{self._root}/{name}", recursive=True)
        with suppress(OSError):  # not empty, or no folder at all
            self._files.rmdir(self._root)

    # the worker's side

    def begin(self, unit: str, folder: Path) -> set[Stamp]:
        """The atlas as it was when the stage began, and what the unit has made of it so far. Gives what need
        not be handed over."""
        self._copy_in(f"{self._root}/base", folder)
        self._copy_in(f"{self._root}/parts/{_folder_of(unit)}", folder)
        # atlas.json always is: a part is one of an atlas of its own
        return {_stamp(folder, path) for path in _files_of(folder) if path.name != _ATLAS}

    def hand_over(self, unit: str, folder: Path, known: set[Stamp]) -> None:
        """What is new in the folder; `known` is what was handed over, and grows."""
        self._copy_out(folder, f"{self._root}/parts/{_folder_of(unit)}", known)

    def _copy_out(self, folder: Path, place: str, known: set[Stamp]) -> None:
        there = {name for name, _ in known}
        found = {path.relative_to(folder).as_posix(): path for path in _files_of(folder)}
        try:
            # what says that something is there comes after what it is
            for name, path in sorted(found.items(), key=lambda item: item[0] == _ATLAS):
                stamp = _stamp(folder, path)
                if stamp not in known:
                    self._files.makedirs(f"{place}/{name}".rpartition("/")[0], exist_ok=True)
                    self._files.put_file(str(path), f"{place}/{name}")
                    known.add(stamp)
            for name in there - found.keys():
                if self._files.exists(f"{place}/{name}"):
                    self._files.rm_file(f"{place}/{name}")
                known -= {stamp for stamp in known if stamp[0] == name}
        except OSError as error:
            raise StoreError(f"{self.place} cannot be written: {error.strerror or error}.") from error

    def _copy_in(self, place: str, folder: Path) -> None:
        if not self._files.exists(f"{place}/{_ATLAS}"):
            return
        self._files.invalidate_cache()
        for found in self._files.find(place):
            name = found[len(place) :].lstrip("/")
            own = folder / name
            if not (is_result(name) or is_work(name)):
                raise AtlasError(f"{self.place} holds a file that is not one of an atlas: {name}.")
            own.parent.mkdir(parents=True, exist_ok=True)
            self._files.get_file(found, str(own))
            if own.suffix == ".safetensors" and not is_sound_file(own):
                own.unlink()


def _stamp(folder: Path, path: Path) -> Stamp:
    facts = path.stat()
    return path.relative_to(folder).as_posix(), (facts.st_mtime_ns, facts.st_ino, facts.st_size)


def _files_of(folder: Path) -> Iterable[Path]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and (is_result(name) or is_work(name)):
            yield path


def _folder_of(unit: str) -> str:
    return sha256(unit.encode()).hexdigest()[:16]
