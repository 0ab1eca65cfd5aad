"""The tidy table, and texts, as files: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from headatlas.atlas.layout import write_whole

__all__ = ["write_table", "write_text"]


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """CSV or Parquet, by the name's ending."""
    if path.suffix.lower() == ".csv":
        write_whole(path, lambda draft: frame.to_csv(draft, index=False))
    else:
        write_whole(path, lambda draft: frame.to_parquet(draft, index=False))


def write_text(path: Path, text: str) -> None:
    def write(draft: Path) -> None:
        draft.write_text(text, encoding="utf-8")

    write_whole(path, write)
