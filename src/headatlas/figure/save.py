"""A figure as a file: whole or not at all, and the same bytes for the same figure."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from headatlas.core import RequestError, write_whole
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

    def write(draft: Path) -> None:
        figure.savefig(
            draft, format=kind, dpi=dpi * _FINER[kind], bbox_inches="tight", pad_inches=0.02,
            facecolor="white", metadata=FORMATS[kind],
        )  # fmt: skip

    write_whole(path, write, "Choose another place.")
    return path
