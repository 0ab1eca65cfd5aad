"""What the page shows, as plain JSON: everything that the browser needs, and nothing that it could work out.

Scores, roles, Always and Any are worked out from the gates in the browser, because a reader moves the
threshold; the tests hold both sides against each other. The shape of the payload is `schema.json`, which both
sides read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jsonschema
import numpy as np

from headatlas.atlas import (
    IMPLEMENTS,
    THRESHOLD,
    TOPICS,
    Atlas,
    ContrastSummary,
    Finding,
    compare_atlases,
    contrast_doubts,
    contrasts_of,
    corruptions,
    doubts,
    effect_doubts,
    find,
    imported_effects,
    made_how,
    mean_of_seeds,
    seed_blocks_text,
    seeds_given,
    summarize_contrast,
    uneven_seeds,
)
from headatlas.core import IMPORTED, AtlasError, relation_words, title_of

__all__ = ["SCHEMA_VERSION", "payload_of", "schema"]

SCHEMA_VERSION = 1
#: bytes that gates on their way may take, before they are written as text
_ROOM_FOR_PATHS = 3_000_000
#: topics whose findings stand at the top of the page, so many of each
_HEADLINES = {"density": 2, "tasks": 1, "layers": 1, "categories": 1, "sufficiency": 1}


def schema() -> dict[str, Any]:
    text = files("headatlas.page").joinpath("schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def payload_of(atlases: Sequence[Atlas]) -> dict[str, Any]:
    """One atlas, or two to compare; checked against the schema."""
    made = {
        "schema": SCHEMA_VERSION,
        "atlases": [_atlas(one, label) for one, label in zip(atlases, _labels_of(atlases), strict=True)],
        "comparisons": _comparisons(atlases),
    }
    jsonschema.validate(made, schema())
    return made


def _comparisons(atlases: Sequence[Atlas]) -> list[dict[str, Any]]:
    """What the same tasks of two atlases have in common, and whether they differ more than seeds do."""
    if len(atlases) < 2:
        return []
    first, second = atlases
    compared = [compare_atlases(first, second, task) for task in first.tasks if task in second.tasks]
    return [
        {"task": title_of(one.tasks[0]), "verdict": one.verdict, "shared": [*one.shared, *one.perhaps_shared]}
        for one in compared
    ]


def _labels_of(atlases: Sequence[Atlas]) -> list[str]:
    """Names of models; where they are the same, of folders too."""
    names = [one.spec.name for one in atlases]
    if len(set(names)) == len(names):
        return names
    folders = [one.path.name if one.path else "" for one in atlases]
    if len(set(folders)) < len(folders):
        folders = [str(number) for number in range(1, len(atlases) + 1)]
    return [f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)]


def _atlas(atlas: Atlas, label: str) -> dict[str, Any]:
    if not (atlas.tasks or atlas.relations or atlas.effect_maps or atlas.imported or contrasts_of(atlas)):
        raise AtlasError(
            f"{atlas.path} has no finished task, relations, effects or contrast; there is nothing to show."
        )
    findings = find(atlas)
    imported = imported_effects(atlas)
    made = {(task, method): text for task, method, text in corruptions(atlas)}
    uneven = uneven_seeds(atlas)
    return {
        "label": label,
        "model": _model(atlas),
        "threshold": THRESHOLD,
        "implements": IMPLEMENTS,
        "headlines": _headlines(findings),
        "findings": [
            {
                "topic": one.topic,
                "question": TOPICS[one.topic],
                "text": one.text,
                "adjusted": one.adjusted,
                "published": one.published,
            }
            for one in findings
        ],
        "tasks": _tasks(atlas),
        "relations": _relations(atlas, uneven),
        "effects": [
            {
                "task": task,
                "method": method,
                "unit": atlas.run(task, method).unit,
                "imported": (task, method) in imported,
                "uneven": uneven.get((method, task), ""),
                "values": _floats(atlas.importance(task, method).values),
                "made": made.get((task, method), ""),
                "doubts": [doubt.text for doubt in effect_doubts(atlas, task, method)],
            }
            for task, method in atlas.effect_maps
        ],
        "imported": _imported(atlas, uneven),
        "contrasts": [_contrast(atlas, name) for name in contrasts_of(atlas)],
        "labels": _labels(atlas),
        "salient": _salient(atlas),
    }


def _text(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _floats(values: np.ndarray) -> str:
    return _text(np.asarray(values, dtype="<f4"))


def _model(atlas: Atlas) -> dict[str, Any]:
    spec = atlas.spec
    made = next((run.made_with for run in atlas.runs.values() if run.made_with), {})
    return {
        "name": spec.name,
        "architecture": spec.architecture,
        "layers": spec.layers,
        "width": spec.shape[1],
        "heads": list(spec.heads),
        "kvHeads": list(spec.kv_heads),
        "parameters": spec.parameters,
        "dtype": spec.dtype,
        "revision": spec.revision,
        "madeWith": {str(key): str(value) for key, value in made.items()},
    }


def _headlines(findings: Sequence[Finding]) -> list[str]:
    """Some findings that say most, in the words of the report."""
    chosen: list[str] = []
    for topic, most in _HEADLINES.items():
        some = [one for one in findings if one.topic == topic]
        if topic == "density":
            some = [one for one in some if "always, facilitation" in one.about]
        chosen += [one.text for one in some[:most]]
    return chosen


def _tasks(atlas: Atlas) -> list[dict[str, Any]]:
    places = atlas.spec.shape[0] * atlas.spec.shape[1]
    room = _ROOM_FOR_PATHS // max(1, 3 * len(atlas.tasks) * places)  # seeds × updates of one fit
    found = []
    for task in atlas.tasks:
        gates = atlas.gates(task)
        found.append(
            {
                "name": task,
                "title": title_of(task),
                "seeds": atlas.seeds(task),
                "retain": _floats(gates.sel(fit="retain").values),
                "remove": _floats(gates.sel(fit="remove").values),
                "made": made_how(atlas, task),
                "doubts": [doubt.text for doubt in doubts(atlas, task)],
                "paths": _paths(atlas, task, room),
            }
        )
    return found


def _paths(atlas: Atlas, task: str, room: int) -> list[dict[str, Any]] | None:
    """Gates on their way, in 256 steps, thinned out to fit: fewer seeds first, then fewer updates."""
    try:
        whole = {fit: atlas.trajectory(task, fit) for fit in ("free", "retain", "remove")}
    except AtlasError:
        return None  # imported
    found = []
    for fit, path in whole.items():
        updates = path.sizes["update"]
        seeds = int(np.clip(room // updates, min(2, path.sizes["seed"]), path.sizes["seed"]))
        kept = int(np.clip(room // seeds, 2, updates))
        steps = np.unique(np.linspace(0, updates - 1, kept).round().astype(int))
        some = np.nan_to_num(path.isel(seed=slice(seeds), update=steps).values)
        found.append(
            {
                "fit": fit,
                "updates": path["update"].values[steps].tolist(),
                "seeds": seeds,
                "values": _text(np.round(255 * some).astype(np.uint8)),
            }
        )
    return found


def _contrast(atlas: Atlas, name: str) -> dict[str, Any]:
    summary = summarize_contrast(atlas, name)
    return {
        "name": name,
        "retain": title_of(summary.retain),
        "forget": title_of(summary.forget),
        "seeds": summary.seeds,
        "gates": _floats(atlas.gates(name, "contrast").sel(fit="retain").values),
        "figures": [
            {"key": key, "before": summary.before[key], "after": after, **_change_of(summary, key)}
            for key, after in summary.after.items()
            if key in summary.before
        ],
        "made": seed_blocks_text(atlas, name, "contrast"),
        "doubts": [doubt.text for doubt in contrast_doubts(atlas, name)],
    }


def _change_of(summary: ContrastSummary, key: str) -> dict[str, float | None]:
    """The interval of the change of an NLL; of an accuracy there is none."""
    change = summary.change.get(key.removesuffix("_nll"))
    return {"low": change.low if change else None, "high": change.high if change else None}


def _relations(atlas: Atlas, uneven: Mapping[tuple[str, str], str]) -> list[dict[str, Any]]:
    if not atlas.relations:
        return []
    scores = atlas.relation_scores()
    return [
        {
            "name": name,
            "title": relation_words(name),
            "category": str(scores["category"].sel(relation=name).item()),
            "kind": str(scores["kind"].sel(relation=name).item()),
            "pairs": int(scores["pairs"].sel(relation=name).item()),
            "seeds": int(scores["seeds"].sel(relation=name).item()),
            "seedsKept": bool(scores["seeds_kept"].sel(relation=name).item()),
            "uneven": uneven.get(("relations", name), ""),
            "scores": _floats(scores.sel(relation=name).values),
        }
        for name in scores["relation"].values.tolist()
    ]


def _imported(atlas: Atlas, uneven: Mapping[tuple[str, str], str]) -> list[dict[str, Any]]:
    """Imported task scores: for each head the mean over the seeds that name it."""
    return [
        {
            "name": name,
            "title": title_of(name),
            "from": str(atlas.run(name, IMPORTED).task_facts.get("imported_from", "elsewhere")),
            "seeds": len(seeds_given(atlas, name)),
            "uneven": uneven.get((IMPORTED, name), ""),
            "values": _floats(mean_of_seeds(atlas, name).values),
        }
        for name in atlas.imported
    ]


def _labels(atlas: Atlas) -> list[str]:
    layers, width = atlas.spec.shape
    labels = [""] * (layers * width)
    for card in atlas.cards():
        labels[card.head.layer * width + card.head.head] = card.label
    return labels


def _salient(atlas: Atlas) -> dict[str, Any] | None:
    if "salient" not in atlas.notes:
        return None
    arrays, about = atlas.notes["salient"]
    tokens, strength, mapped = (arrays[name] for name in ("tokens", "strength", "mapped"))
    used, places = np.unique(np.concatenate([tokens.ravel(), mapped.ravel()]), return_inverse=True)
    texts = about["texts"]
    return {
        "texts": [texts.get(str(token), "") for token in used.tolist()],
        "sources": _text(places[: tokens.size].astype("<u4")),
        "strengths": _floats(np.nan_to_num(strength)),
        "mapped": _text(places[tokens.size :].astype("<u4")),
        "perHead": int(tokens.shape[-1]),
        "perToken": int(mapped.shape[-1]),
    }
