"""Records from a data set on the Hugging Face hub, streamed through the `datasets` library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headatlas.core import TaskError, UnknownNameError, first_line
from headatlas.task.transforms import TRANSFORMS

__all__ = ["read_hub", "require_datasets"]


def read_hub(source: Mapping[str, Any], split: str) -> Iterator[dict[str, Any]]:
    """The records of one split, of all the configurations that `source` names (or of the only one)."""
    transform = source.get("transform")
    if transform is not None and transform not in TRANSFORMS:
        raise UnknownNameError("transform", str(transform), TRANSFORMS)
    for config in source.get("configs") or [None]:
        for record in _rows(source, config, split):
            labelled = {"config": config, **record} if config else record
            yield from _transformed(transform, labelled, source["hub"]) if transform else [labelled]


def require_datasets() -> None:
    """The library is an extra."""
    try:
        import datasets  # noqa: F401 (the import is the question)
    except ImportError:
        raise TaskError(
            "hub data sets need the datasets library (extra 'hub'): pip install datasets."
        ) from None


def _transformed(transform: str, record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    try:
        return list(TRANSFORMS[transform](record))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TaskError(
            f"data set {name!r} is not laid out as the transform {transform!r} expects "
            f"({type(error).__name__}: {error}); its columns are {', '.join(map(str, record))}."
        ) from error


def _rows(source: Mapping[str, Any], config: str | None, split: str) -> Iterator[dict[str, Any]]:
    require_datasets()
    from datasets import load_dataset

    name = source["hub"]
    try:
        data = load_dataset(name, name=config, split=split, revision=source.get("revision"), streaming=True)
        yield from data
    except Exception as error:  # the library raises whatever its file systems raise
        reason = first_line(error)
        raise TaskError(
            f"data set {name!r} ({config or 'default'}, {split}) cannot be read: {reason}"
        ) from error
