"""What was made in several atlas folders, put into one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headatlas.atlas.store import (
    ATLAS,
    LOCK,
    Store,
    drop_drafts,
    is_sound_file,
    locked,
    result_files,
)
from headatlas.core import AtlasError, write_whole, writing

__all__ = ["gathering", "put_in_order"]


@contextmanager
def gathering(root: Path) -> Iterator[Callable[[Path], None]]:
    """A function that takes all results of another atlas folder over into `root`, which is held for writing.

    The other must be of the same model; what both have must have been made with the same settings, and stays
    as it is (notes become those of the other). Files are looked at before they are taken.
    """
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
    try:
        with locked(root):
            drop_drafts(root)
            yield lambda part: _take(root, part)
    finally:
        if not Store.exists(root) and not any(path.name != LOCK for path in root.iterdir()):
            shutil.rmtree(root, ignore_errors=True)  # nothing has come of it


def _take(root: Path, part: Path) -> None:
    other = Store.open(part)
    if Store.exists(root):
        store = Store.open(root)
        store.require_same_model(other.spec)
    else:
        store = Store(root, other.spec, {})
        store.save()
    store.add(*other.runs.values())
    for run in other.runs.values():
        known = store.runs[run.method, run.task]
        if run.baseline and not known.baseline:
            store.update(known, baseline=run.baseline)
    for path in result_files(part):
        name = path.relative_to(part)
        own = root / name
        if path.name == ATLAS or (own.exists() and name.parts[0] != "notes"):
            continue
        if not is_sound_file(path):
            raise AtlasError(f"{path} is damaged; it was not taken over.")
        data = path.read_bytes()
        if not own.exists() or own.read_bytes() != data:
            write_whole(own, data)


def put_in_order(root: Path, wanted: Sequence[tuple[str, str]]) -> None:
    """Runs in the order in which they were asked for, after those that were there before."""
    store = Store.open(root)
    places = {key: place for place, key in enumerate(wanted)}
    runs = sorted(store.runs.items(), key=lambda item: places.get(item[0], -1))
    if list(store.runs) != [key for key, _ in runs]:
        store.runs = dict(runs)
        store.save()
