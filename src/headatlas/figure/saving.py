"""A figure as a file: whole or not at all, and the same bytes for the same figure."""

from __future__ import annotations

import os
from pathlib import Path

from matplotlib.figure import Figure

from headatlas.core import RequestError, StoreError
from headatlas.figure.style import house_style

__all__ = ["FORMATS", "save_figure"]

#: file ending -> what to leave out of the file, because it changes from one run to the next
FORMATS: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "png": {}, "svg": {"Date": None}}
#: maps are images also in vector files: this much finer there, so that cells stay sharp when magnified
_FINER = {"pdf": 2, "png": 1, "svg": 2}


@house_style()
def save_figure(figure: Figure, path: str | Path, dpi: int = 300) -> Path:
    """Write a figure as png, pdf or svg, by the ending of `path`, and return the path."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise RequestError(
            f"{str(path)!r} cannot be drawn: figures are written as {', '.join(sorted(FORMATS))}; "
            f"give a file name that ends in one of them, such as '{path.stem or 'figure'}.pdf'."
        )
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(
            draft, format=kind, dpi=dpi * _FINER[kind], bbox_inches="tight", pad_inches=0.02,
            facecolor="white", metadata=FORMATS[kind],
        )  # fmt: skip
        draft.replace(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}; choose another place."
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return path
