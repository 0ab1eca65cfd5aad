"""Paths of this machine, taken out of what leaves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any

__all__ = ["is_local_path", "without_local_paths"]

#: keys of texts that a model reads or writes; one may look like a path ("/no_think") and is none
_TEXTS = frozenset(
    {"prompt", "target", "instruction", "corrupted", "foil", "group", "pairs", "left_out", "texts"}
)
#: keys of names and hashes by which files of an atlas refer to each other
_NAMES = frozenset({"name", "task", "identity", "digest"})
#: keys of values that are a path, or a name in place of one: a path may hold spaces
_PATHS = frozenset(
    {"source", "file", "relation", "hub", "folder", "path", "out", "table", "model", "data_dir", "data_files"}
)
#: what stands before a path in the name of a task: "relation:/home/me/pairs.csv"
_SCHEME = re.compile(r"(?:relation|hub|file):(?!//\w)", re.IGNORECASE)
_PART = r"[^\s/\\'\"`<>|:;,?*()\[\]{}]+"
#: an absolute path or one of a home folder in a sentence; an address (https://…) is none
_IN_TEXT = re.compile(
    rf"(?<![\w/\\.<&%~-])(?:(?:~[\w.-]*|[A-Za-z]:)[/\\]+|\\\\|/(?={_PART}/))(?:{_PART}[/\\]+)*{_PART}[/\\]?"
)


def without_local_paths(data: Any) -> Any:
    """Plain data with every absolute path and every path of a home folder reduced to its last part.

    A path in a sentence ends at a space; a string alone, and one under a key of `_PATHS`, does not.
    """
    return _shortened(data, is_path=True)


def _shortened(data: Any, *, is_path: bool) -> Any:
    """`is_path`: a string is one path, whatever is in it; otherwise it may be a sentence."""
    if isinstance(data, str):
        return _without_folders(data, is_path)
    if isinstance(data, Mapping):
        return {
            key: value if _is_kept(key, value) else _shortened(value, is_path=key in _PATHS)
            for key, value in data.items()
        }
    return [_shortened(value, is_path=is_path) for value in data] if isinstance(data, list | tuple) else data


def _is_kept(key: Any, value: Any) -> bool:
    return key in _TEXTS or (key in _NAMES and isinstance(value, str))


def is_local_path(text: str) -> bool:
    """True for an absolute path, or one of a home folder, of any system."""
    kinds: tuple[type[PurePath], ...] = (PurePosixPath, PureWindowsPath)
    in_home = re.match(r"~[\w.-]*[/\\]", text) is not None
    return "\n" not in text and (in_home or any(kind(text).is_absolute() for kind in kinds))


def _without_folders(text: str, is_path: bool) -> str:
    scheme = _SCHEME.match(text)
    prefix, rest = (scheme.group(), text[scheme.end() :]) if scheme else ("", text)
    path, query_mark, query = rest.partition("?")
    if is_local_path(path) and (is_path or not re.search(r"\s", text)):
        return prefix + _last_part(path) + query_mark + _without_folders(query, is_path)
    return _IN_TEXT.sub(lambda match: _last_part(match.group()), text)


def _last_part(path: str) -> str:
    return str(PureWindowsPath(path).name) or path  # takes both kinds of slashes
