"""The model that was loaded by name last: the next call that names it need not load it again.

At most one model waits, and none that is large: memory is the user's. A model is lent to one call at a time.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from headatlas.core.files import file_stamps
from headatlas.model.embedded import EMBEDDED, cache_folder

if TYPE_CHECKING:
    from headatlas.model.model import Model

__all__ = ["borrowed_model", "forget_model"]

#: bytes of weights up to which a model is kept
_LARGEST = 2 << 30

_lock = Lock()
_idle: list[tuple[Hashable, Model]] = []


@contextmanager
def borrowed_model(source: str | os.PathLike[str], **options: Any) -> Iterator[Model]:
    """The model that `load_model(source, **options)` gives, for the length of the block.

    A model that waits is taken if it was loaded with the same options from the same files. After an error in
    the block it is not kept.
    """
    from headatlas.model import load_model

    key = _key(source, options)
    model = _take(key)
    if model is None:
        model = load_model(source, **options)
    yield model
    key = key or _key(source, options)  # a download gives the files that the key needs
    if key is not None and _bytes(model) <= _LARGEST:
        with _lock:
            _idle[:] = [(key, model)]


def forget_model() -> None:
    """Let go of the model that waits."""
    with _lock:
        had_model = bool(_idle)
        _idle.clear()
    if had_model:
        gc.collect()  # a model refers to itself


def _take(key: Hashable) -> Model | None:
    """The model that waits, if it has this key; otherwise it is let go, to make room."""
    with _lock:
        if key is not None and _idle and _idle[0][0] == key:
            return _idle.pop()[1]
    forget_model()
    return None


def _key(source: str | os.PathLike[str], options: dict[str, Any]) -> Hashable:
    """What the model is loaded from and how; None if its files are not on this machine."""
    text = os.fspath(source)
    stamps: Hashable
    if text in EMBEDDED:
        stamps = file_stamps((cache_folder() / "models").glob(f"{text}-*/*"))
    elif Path(text).expanduser().exists():
        path = Path(text).expanduser()
        stamps = file_stamps([path] if path.is_file() else path.rglob("*"))
    else:
        from huggingface_hub import try_to_load_from_cache

        try:
            config = try_to_load_from_cache(text, "config.json", revision=options.get("revision"))
        except ValueError:  # no name that a hub has
            return None
        stamps = str(config) if isinstance(config, str) else None
    return (text, str(sorted(options.items(), key=str)), stamps) if stamps else None


def _bytes(model: Model) -> int:
    return sum(weight.numel() * weight.element_size() for weight in model.hf.parameters())
