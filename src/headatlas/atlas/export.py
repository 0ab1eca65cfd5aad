"""The tidy table as a file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from headatlas.atlas.layout import write_whole

__all__ = ["write_table"]


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """CSV or Parquet, by the name's ending; whole or not at all."""
    if path.suffix.lower() == ".csv":
        write_whole(path, lambda draft: frame.to_csv(draft, index=False))
    else:
        write_whole(path, lambda draft: frame.to_parquet(draft, index=False))
