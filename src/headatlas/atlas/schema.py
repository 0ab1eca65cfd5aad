"""What a file of an atlas must hold to be one: kinds and shapes, before anything is made of it.

A hash says that a file is as it was written; this says that it was written as an atlas is. What is not named
here may be anything: it is shown or handed on, never reckoned with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from headatlas.atlas.record import Record
from headatlas.atlas.validation import ORDERS, is_validation
from headatlas.core import DIRECTIONS, AtlasError, ModelSpec, is_printable

__all__ = ["MOST_HEADS", "has_form", "require_form", "require_names", "require_note", "require_record"]

#: notes that have a form
_NOTES = ("salient", "causal", "source", "validation")

_WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**53}
_TEXT, _NAME = {"type": "string"}, {"type": "string", "minLength": 1, "maxLength": 1000}
_MAYBE = {"type": ["string", "null"]}
_NUMBER = {"type": "number"}
_NUMBERS = {"type": "array", "items": _NUMBER}
_COUNTS = {"type": "array", "items": {**_WHOLE, "maximum": 100_000}, "maxItems": 100_000}
_SEEDS = {"anyOf": [_WHOLE, {"type": "array", "items": _WHOLE, "maxItems": 100_000}]}
_ANY = {"type": "object"}
_TEXTS = {"type": "array", "items": _TEXT}
_PAIRS = {"type": "array", "items": {**_TEXTS, "minItems": 2, "maxItems": 2}}
#: six times those of the largest model that is known
MOST_HEADS = 100_000


#: findings that use the NLL of single items also give the mean
_NLL_OF_ITEMS = {"dependentRequired": {"held_out_nll": ["nll"]}}


def _form(needed: Mapping[str, Any] = {}, **known: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(needed), "properties": {**needed, **known}}


_MODEL = _form(
    {"name": _TEXT, "layers": {**_WHOLE, "maximum": 100_000}, "heads": _COUNTS, "kv_heads": _COUNTS}
    | {"head_dim": _COUNTS, "hidden": _WHOLE, "vocabulary": _WHOLE, "dtype": _TEXT}
    | {"parameters": {**_WHOLE, "type": ["integer", "null"]}},
    architecture=_TEXT,
    model_type=_TEXT,
    revision=_MAYBE,
    content_hash=_MAYBE,
)
_STAGE = _form({"updates": _WHOLE})
_RESOLVED = _form(
    seeds=_SEEDS,
    batch={"type": ["integer", "null"]},
    objective=_TEXT,
    free=_STAGE,
    pressed=_STAGE,
    k=_WHOLE,
    items=_WHOLE,
    source=_TEXT,
)


def _held_out(**more: Any) -> dict[str, Any]:
    names = [
        f"{side}{name}" for side in ("", "known_") for name in ("nll", "accuracy", "token_accuracy", "metric")
    ]
    return _form(held_out_nll=_NUMBERS, **dict.fromkeys(names, _NUMBER), **more) | _NLL_OF_ITEMS


_FACTS = _form(
    category=_TEXT,
    imported_from=_TEXT,
    ignored_columns=_TEXTS,
    averaged_over=_TEXTS,
    rows_per_score={**_COUNTS, "minItems": 2, "maxItems": 2},
    max_tokens={"type": ["integer", "null"]},
    spec=_form(source={"type": ["object", "string", "null"]}),
    parts={"type": "object", "additionalProperties": _ANY},
)
#: figures of a baseline that say whether the model is better than chance
_CHANCE = ("nll", "accuracy", "chance_nll", "gain", "gain_error", "rows", "targets")
#: where commands find the model, the tasks and the relations of an atlas again
_REQUEST = _form(
    kind=_TEXT,
    model=_form(
        source=_MAYBE,
        dtype=_TEXT,
        device=_MAYBE,
        device_map={"type": ["string", "object", "null"]},
        revision=_MAYBE,
    ),
    tasks={"type": "array", "items": _form({"name": _NAME}, spec=_ANY, folder=_TEXT)},
    relations={
        "type": "array",
        "items": _form({"name": _NAME}, category=_TEXT, pairs=_PAIRS, prompt=_MAYBE, about=_TEXT)
        | {"dependentRequired": {"pairs": ["category"]}},
    },
    k={"type": ["integer", "null"]},
    max_tokens={"type": ["integer", "null"]},
)
_SIDES = ("", "retain_", "forget_")
_BASELINE = {
    "type": "object",
    "properties": {f"{side}groups": _COUNTS for side in _SIDES}
    | {f"{side}{name}": _NUMBER for side in _SIDES for name in _CHANCE},
    "additionalProperties": {"anyOf": [_NUMBER, _NUMBERS]},
} | _NLL_OF_ITEMS
_RUN = _form(
    {"method": _NAME, "task": _NAME, "identity": _TEXT},
    task_facts=_FACTS,
    settings=_form(given=_form(preset=_TEXT), resolved=_RESOLVED, decides=_form(dtype=_TEXT)),
    baseline=_BASELINE,
    made_with={"type": "object", "additionalProperties": _TEXT},
    request=_REQUEST,
    about={"type": "object", "additionalProperties": _TEXT},
)
_EFFECT_FACTS = _form(
    items=_WHOLE,
    nll=_NUMBER,
    metric=_NUMBER,
    whole=_NUMBER,
    sum=_NUMBER,
    points=_NUMBER,
    completeness_error=_NUMBER,
    expected_error=_NUMBER,
    dtype=_MAYBE,
    prompts={"enum": ["own", "others"]},
    positions={"enum": ["all", "target"]},
)
#: as `CausalCheck.to_json` writes it
_CHECK = _form(
    {"relation": _NAME, "heads": _TEXTS, "steps": _COUNTS, "top": _NUMBERS, "questions": _WHOLE}
    | {"random": {"type": "array", "items": _NUMBERS, "minItems": 1}}
    | {"controls": {"type": "object", "additionalProperties": _NUMBERS}}
)
_FORMS: dict[str, dict[str, Any]] = {
    "request": _REQUEST,
    "atlas": _form({"model": _MODEL, "runs": {"type": "array", "items": _RUN}}),
    "fits": _form({"facts": _held_out(seconds=_NUMBER)}),
    "effects": _form({"facts": _EFFECT_FACTS}),
    "scores": _form(
        {
            "facts": _form(
                {"category": _TEXT},
                kind=_TEXT,
                pairs=_WHOLE,
                single=_WHOLE,
                listed=_WHOLE,
                k=_WHOLE,
                whole={"type": "boolean"},
                source=_TEXT,
                seeds={"anyOf": [_COUNTS, _WHOLE]},
                averaged_seeds=_WHOLE,
                stated_method=_NAME,
                left_out={"type": "object", "additionalProperties": _PAIRS},
            )
        }
    ),
    "salient": _form({"texts": {"type": "object", "additionalProperties": _TEXT}}),
    "causal": _form({"checks": {"type": "array", "items": _CHECK}}),
    "source": _form(source=_TEXT, because=_TEXT, agreement=_ANY),
    "validation": _form(
        {
            "task": _NAME,
            "methods": {"type": "array", "items": _NAME, "minItems": 1},
            "counts": _COUNTS,
            "heads": {**_WHOLE, "minimum": 1},
            "facts": _form(
                seeds=_COUNTS,
                groups=_COUNTS,
                rankings={"type": "object", "additionalProperties": _TEXT},
            ),
        }
    ),
}
#: as records state theirs
_NOTE_ARRAYS: dict[str, dict[str, str]] = {
    "salient": {"tokens": "i layer head k", "strength": "f layer head k", "mapped": "i layer head k j"},
    "validation": {
        **dict.fromkeys(("keep", "drop", "keep_right", "drop_right"), "f method share item"),
        "off": "f seed order share item",
        "by_chance": "f draw share item",
    },
}


@cache
def _validator(kind: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_FORMS[kind])


def require_form(kind: str, data: Any, where: Any) -> None:
    """The words of a file have the form of their kind."""
    error = next(_validator(kind).iter_errors(data), None)
    if error is not None:
        place = " ".join(str(part)[:40] for part in error.absolute_path)
        said = error.message if len(error.message) < 120 else f"{error.message[:60]} …"
        raise AtlasError(f"{where} is damaged: {f'{place}: ' if place else ''}{said}.")
    if kind == "atlas":
        model = data["model"]
        if any(len(model[one]) != model["layers"] for one in ("heads", "kv_heads", "head_dim")):
            raise AtlasError(f"{where} is damaged: its model has not a number of heads for every layer.")
        if sum(model["heads"]) > MOST_HEADS:
            raise AtlasError(f"{where} is damaged: no model has more than {MOST_HEADS:,} heads.")
        keys = [(run["method"], run["task"]) for run in data["runs"]]
        if len(keys) > len(set(keys)):
            raise AtlasError(f"{where} is damaged: it names a run twice.")
    for check in data["checks"] if kind == "causal" else ():
        rows = [check["top"], *check["random"], *check["controls"].values()]
        if any(len(row) != len(check["steps"]) for row in rows):
            name, steps = check["relation"][:40], len(check["steps"])
            raise AtlasError(f"{where} is damaged: the check of {name!r} has not {steps} accuracies per row.")
    require_names(kind, data, where)


def has_form(kind: str, data: Any) -> bool:
    """True if the data have the form of their kind."""
    return bool(_validator(kind).is_valid(data))


def require_names(kind: str, data: Mapping[str, Any], where: Any) -> None:
    """Names reach terminals and Markdown, so they hold printable characters only."""
    for name in _names(kind, data):
        if not is_printable(name):
            raise AtlasError(
                f"{where}: the name {name[:80]!r} holds control or invisible characters; a name has "
                "printable characters only."
            )


def _names(kind: str, data: Mapping[str, Any]) -> Iterator[str]:
    if kind == "atlas":
        yield from _texts(data["model"])
        for run in data["runs"]:
            yield from _texts([run["method"], run["task"], run.get("made_with"), run.get("about")])
            facts, settings = run.get("task_facts", {}), run.get("settings", {})
            yield from _texts([facts.get(key) for key in ("category", "imported_from", "version", "licence")])
            parts = facts.get("parts", {})
            yield from _texts([list(parts), [part.get("task") for part in parts.values()]])
            yield from _texts(settings.get("resolved"))
    elif kind == "scores":
        yield from _texts({key: value for key, value in data["facts"].items() if isinstance(value, str)})
    elif kind in ("validation", "source", "causal"):
        yield from _texts(data)


def _texts(data: Any) -> Iterator[str]:
    """All strings in plain data, keys too."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        yield from (text for pair in data.items() for part in pair for text in _texts(part))
    elif isinstance(data, list | tuple):
        yield from (text for part in data for text in _texts(part))


def require_record(
    kind: type[Record], arrays: Mapping[str, np.ndarray], about: Any, spec: ModelSpec, where: Any
) -> None:
    """The file of a record has the words and the arrays of its kind."""
    require_form(kind.FOLDER, about, where)
    has_optional = any(name in arrays for name in kind.OPTIONAL)
    _require_arrays({**kind.ARRAYS, **(kind.OPTIONAL if has_optional else {})}, arrays, spec, where)


def require_note(
    name: str, arrays: Mapping[str, np.ndarray], about: Any, spec: ModelSpec, where: Any
) -> None:
    """A note has its form; notes without one may hold anything."""
    kind = "validation" if is_validation(name) else name
    if kind in _NOTES:
        require_form(kind, about, where)
        _require_arrays(_NOTE_ARRAYS.get(kind, {}), arrays, spec, where)


def _require_arrays(
    stated: Mapping[str, str], arrays: Mapping[str, np.ndarray], spec: ModelSpec, where: Any
) -> None:
    """The numbers of a file have the kinds and shapes that are stated for this model (see `Record`)."""
    layers, heads = spec.shape
    sizes = {"layer": layers, "head": heads, "direction": len(DIRECTIONS), "order": len(ORDERS)}
    for name, form in stated.items():
        kind, *axes = form.split()
        array = arrays.get(name)
        if array is None:
            raise AtlasError(f"{where} is damaged: it has no {name!r}.")
        fits = array.dtype.kind in {"f": "f", "i": "iu"}[kind] and array.ndim == len(axes)
        if not fits or any(
            size != sizes.setdefault(axis, size) for axis, size in zip(axes, array.shape, strict=True)
        ):
            raise AtlasError(
                f"{where} is damaged: its {name!r} is {array.dtype} {array.shape}, not that of this model."
            )
