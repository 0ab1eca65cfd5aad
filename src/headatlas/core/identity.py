"""Everything that the numbers of a run depend on: its hash, and in words where two of them differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from headatlas.core.metrics import NLL, metric_name

__all__ = ["difference", "identity_of"]


def identity_of(decides: Any) -> str:
    """The hash of plain data, whatever the order of its keys."""
    return sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def difference(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What decides about the numbers and is not the same, in words."""
    old, new = (_flat(_with_metric(decides)) for decides in (known, wanted))
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
        elif kind == "source":
            if "metric" not in changed:
                parts.append("another function of the same name as metric")
        else:
            parts.append(f"{key} {old.get(key)} instead of {new.get(key)}")
    return ", ".join(dict.fromkeys(parts)) or "other settings"


def _with_metric(decides: Mapping[str, Any]) -> dict[str, Any]:
    """With the name of the metric, which is not stored for the default one; and the source of a function."""
    if "method" not in decides:
        return dict(decides)
    metric = decides.get("metric", NLL)
    source = {"source": metric["source"]} if isinstance(metric, Mapping) and "source" in metric else {}
    return {**decides, "metric": metric_name(metric), **source}


def _flat(data: Mapping[str, Any]) -> dict[str, str]:
    """`{"a": {"b": 1}}` as `{"a b": "1"}`; long hashes shortened."""
    flat: dict[str, str] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat |= {f"{key} {inner}": text for inner, text in _flat(value).items()}
        else:
            flat[key] = json.dumps(value).strip('"')[:40]
    return flat
