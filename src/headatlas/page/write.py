"""`write_page`: one atlas, or two beside each other, as a file."""

from __future__ import annotations

from pathlib import Path

from headatlas.atlas import Atlas, open_atlas, write_text
from headatlas.core import RequestError
from headatlas.page.html import page_of
from headatlas.page.payload import payload_of

__all__ = ["write_page"]


def write_page(
    atlas: Atlas | str | Path, out: str | Path, *, other: Atlas | str | Path | None = None
) -> Path:
    """Write the page of an atlas (and of another, to compare) and return its path. It works from a folder,
    without a server and without a network."""
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise RequestError(f"{str(out)!r} is no page; its name ends in .html.")
    if other is not None and _place(other) is not None and _place(atlas) == _place(other):
        raise RequestError(f"{_place(other)} twice: an atlas is compared with another one.")
    both = [one if isinstance(one, Atlas) else open_atlas(one) for one in (atlas, other) if one is not None]
    write_text(path, page_of(payload_of(both)))
    return path


def _place(atlas: Atlas | str | Path) -> Path | None:
    path = atlas.path if isinstance(atlas, Atlas) else Path(atlas)
    return path and path.resolve()
