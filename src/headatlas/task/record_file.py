"""Records from a file, one at a time: JSON lines, CSV, Parquet. No file is ever read whole."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headatlas.core import TaskError, first_line

__all__ = ["FORMATS", "Record", "file_format", "read_file"]

Record = dict[str, Any]
FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_LONGEST_LINE = 16 * 2**20


def file_format(path: Path, given: str | None = None) -> str:
    """How the file is written, by its ending unless it is given."""
    chosen = given or FORMATS.get(path.suffix.lower())
    if chosen is None or chosen not in FORMATS.values():
        raise TaskError(f"{path.name} is not a task file; allowed are .yaml, {', '.join(FORMATS)}.")
    return chosen


def read_file(path: Path, given: str | None = None) -> Iterator[Record]:
    """The records of a file, in its order."""
    form = file_format(path, given)
    if not path.is_file():
        raise TaskError(f"{path} does not exist or is not a file.")
    readers = {"jsonl": _json_lines, "csv": _csv, "parquet": _parquet}
    try:
        yield from readers[form](path)
    except UnicodeDecodeError as error:
        for _ in _lines(path):  # says where
            pass
        raise TaskError(f"{path.name} is not valid UTF-8: {error.reason}.") from None
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {error.strerror or error}.") from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    read = 0
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                raise TaskError(
                    f"{path.name}: line {number} is longer than 16 MiB: one line holds one object."
                )
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise TaskError(
                    f"{path.name} is not valid UTF-8: line {number}, byte {read + error.start} of the file."
                ) from None
            read += len(line)
            if text.strip():
                yield number, text


def _json_lines(path: Path) -> Iterator[Record]:
    for number, text in _lines(path):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            raise TaskError(f"{path.name}: line {number} is not JSON; each line holds one object.") from None
        if not isinstance(record, dict):
            raise TaskError(f"{path.name}: line {number} is not an object with columns such as 'prompt'.")
        yield record


def _csv(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            names = list(reader.fieldnames or [])
            if len(set(names)) < len(names):
                raise TaskError(f"{path.name}: two columns have the same name: {', '.join(names)}.")
            for record in reader:
                if None in record or None in record.values():
                    raise TaskError(
                        f"{path.name}: line {reader.line_num} has not as many fields as the header "
                        f"({len(reader.fieldnames or [])})."
                    )
                yield record
        except csv.Error as error:
            raise TaskError(f"{path.name}: line {reader.line_num} is not CSV ({error}).") from None


def _parquet(path: Path) -> Iterator[Record]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OverflowError, ValueError) as error:
        raise TaskError(f"{path.name} cannot be read as Parquet: {first_line(error)}") from None
