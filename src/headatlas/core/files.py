"""Folders that are made aside and then put in their place."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["as_others_are"]


def as_others_are(folder: Path) -> None:
    """A temporary folder is for its owner alone, and so are some files in it; what is made of it is for
    whom the user's other files are."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (folder, *folder.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
