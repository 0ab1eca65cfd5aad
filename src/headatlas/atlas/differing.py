"""What two runs of one name do not have in common, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headatlas.atlas.record import Run

__all__ = ["difference"]


def difference(known: Run, wanted: Run) -> str:
    """What decides about the numbers and is not the same, in words."""
    old, new = (_flat(run.settings.get("decides", {})) for run in (known, wanted))
    if not old or not new:  # one of the two was imported
        return "numbers of another origin: one was measured here, the other imported; give one another name"
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    parts = []
    for key in changed:
        kind = key.rpartition(" ")[2]
        if kind == "weights":  # another dtype or algorithm has another hash of the same weights
            if not {"dtype", "algorithm"} & set(changed):
                parts.append("other weights")
        elif kind == "content":  # a hash says nothing to a person
            parts.append("other items (the task, or the file behind it, has changed since)")
        elif kind == "tokens":  # other items have other tokens, and so has a longer limit
            if not any(other.endswith((" content", " max_tokens")) for other in changed):
                parts.append("the same items cut into other tokens")
        else:
            parts.append(f"{key} {old.get(key)} instead of {new.get(key)}")
    return ", ".join(dict.fromkeys(parts)) or "other settings"


def _flat(data: Mapping[str, Any]) -> dict[str, str]:
    """`{"a": {"b": 1}}` as `{"a b": "1"}`; long hashes shortened."""
    found: dict[str, str] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            found |= {f"{key} {inner}": text for inner, text in _flat(value).items()}
        else:
            found[key] = json.dumps(value).strip('"')[:40]
    return found
