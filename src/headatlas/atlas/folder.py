"""An atlas in memory as a folder, and the other way round: where functions take either."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from headatlas.atlas.store import Store, result_files
from headatlas.core import AtlasError, RequestError, require_path, staged_folder

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["atlas_folder", "save_atlas"]


def save_atlas(atlas: Atlas, folder: str | Path) -> Path:
    """Write all results of an atlas into a new folder, which appears when all of it is there. A folder that
    holds the same results stays as it is."""
    target = require_path("the folder of an atlas", folder)
    if Store.exists(target):
        if _holds(target, atlas):
            return target
        raise AtlasError(f"{target} holds another atlas; choose a new folder, or merge the two and save.")
    if target.exists() or target.is_symlink():
        raise RequestError(f"{target} already exists; choose a new folder.")
    with staged_folder(target, "Choose another folder.") as draft:
        _write(draft, atlas)
    return target


def _write(folder: Path, atlas: Atlas) -> None:
    store = Store(folder, atlas.spec, dict(atlas.runs))
    store.save()
    for record in atlas.records():
        store.write(record)
    for name, (arrays, about) in atlas.notes.items():
        store.write_note(name, arrays, about)


def _holds(folder: Path, atlas: Atlas) -> bool:
    """True if saving the atlas would write the files of results that the folder has."""
    with TemporaryDirectory() as name:
        _write(Path(name), atlas)
        saved, known = (
            {path.relative_to(root): path.read_bytes() for path in result_files(root)}
            for root in (Path(name), folder)
        )
    return saved == known


@contextmanager
def atlas_folder(atlas: Atlas | str | Path) -> Iterator[Path]:
    """The folder of an atlas; of an atlas that is in memory only, a temporary copy until the block ends."""
    if isinstance(atlas, str | os.PathLike):
        yield Path(atlas)
    elif not hasattr(atlas, "records"):
        raise RequestError(f"{atlas!r:.60} is not an atlas; give an Atlas or its folder.")
    elif atlas.path is not None:
        yield atlas.path
    else:
        with TemporaryDirectory() as name:
            yield save_atlas(atlas, Path(name, "atlas"))
