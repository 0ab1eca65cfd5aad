"""`write_page`: one atlas, or two beside each other, as a file."""

from __future__ import annotations

from pathlib import Path

from headatlas.atlas import Atlas, require_atlas
from headatlas.core import RequestError, require_path, write_whole
from headatlas.page.html import page_of
from headatlas.page.payload import payload_of

__all__ = ["write_page"]


def write_page(
    atlas: Atlas | str | Path, out: str | Path, *, other: Atlas | str | Path | None = None
) -> Path:
    """Write the page of an atlas (and of another, to compare) and return its path. It works from a folder,
    without a server and without a network."""
    path = require_path("out", out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise RequestError(f"{str(out)!r} is no page; its name ends in .html.")
    given = [one for one in (atlas, other) if one is not None]
    folders = [folder for one in given if (folder := _folder_of(one)) is not None]
    if len(set(folders)) < len(folders):
        raise RequestError(f"{folders[0]} twice: an atlas is compared with another one.")
    both = [require_atlas(one) for one in given]
    write_whole(path, page_of(payload_of(both)))
    return path


def _folder_of(atlas: Atlas | str | Path) -> Path | None:
    folder = atlas.path if isinstance(atlas, Atlas) else require_path("the folder of an atlas", atlas)
    return folder and folder.resolve()
