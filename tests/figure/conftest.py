"""Atlases made by hand: gates of 0 and 1 give scores that need no calculator."""

from __future__ import annotations

import numpy as np
import pytest

from headatlas.atlas import SHARES, Atlas, EffectMap, Fit, Run, ScoreMap, validation_name
from headatlas.core import FITS, METHOD_ORDER, ModelSpec

#: role -> (gate of retain, gate of remove)
GATES = {"facilitating": (1.0, 1.0), "interfering": (0.0, 0.0), "irrelevant": (1.0, 0.0)}

_BUILTIN = {
    "algorithmic": ("copying", "first-letter", "last-letter", "name-copying", "next-month-or-day",
                    "next-year", "number-digit"),
    "knowledge": ("country-capital", "country-language", "object-superclass", "product-company",
                  "work-location"),
    "linguistic": ("antonym", "comparative", "compound", "homophone", "ing-form", "noun-pronoun",
                   "opposite-gender", "past-tense", "plural", "superlative", "synonym"),
    "translation": ("english-french", "english-spanish"),
}  # fmt: skip
#: relation -> category
RELATIONS = {name: category for category, names in _BUILTIN.items() for name in names}
SOME = ("copying", "next-year", "number-digit", "country-language", "plural", "english-french")


def make_spec(heads: tuple[int, ...]) -> ModelSpec:
    widths = tuple(64 if count else 0 for count in heads)
    return ModelSpec(
        "tiny", "Tiny", "tiny", len(heads), heads, heads, widths, 64, 100, 1000, "float32", None, None
    )


def make_scores(values: dict[str, np.ndarray], method: str = "relations", **facts) -> list[ScoreMap]:
    """From relation -> [direction, layer, head]; `facts`: fact -> relation -> value, where not the usual."""
    usual = {"kind": "static", "pairs": 100, "single": 100, "listed": 200, "k": 10}
    found = []
    for name, scores in values.items():
        known = {"category": RELATIONS.get(name, "other")}
        own = {fact: of_relation[name] for fact, of_relation in facts.items() if name in of_relation}
        found.append(ScoreMap(method, name, "x", np.asarray(scores, dtype=float), {**usual, **known, **own}))
    return found


def make_relations(
    values: dict[str, np.ndarray],
    heads: tuple[int, ...] | None = None,
    more: tuple[ScoreMap, ...] | list[ScoreMap] = (),
    **facts,
) -> Atlas:
    """An atlas of relations alone; `more`: dynamic scores."""
    scores = [*make_scores(values, **facts), *more]
    layers, most = scores[0].values.shape[1:]
    runs = [Run(one.method, one.relation, "x") for one in scores]
    return Atlas(make_spec(heads or (most,) * layers), runs, [], scores=scores)


def random_scores(layers: int, heads: int, names=SOME, holes=()) -> list[ScoreMap]:
    """Static and dynamic; of next-year too few pairs are there, number-digit is measured in texts."""
    draw = np.random.default_rng(1)
    values = {name: draw.beta(0.2, 1, size=(2, layers, heads)) for name in names}
    for name, scores in values.items():
        scores[:, list(holes)] = np.nan
        if name == "next-year":
            scores[:] = np.nan
    facts = {"kind": {"next-year": "none", "number-digit": "multi-token"}, "single": {"next-year": 6}}
    static = make_scores(values, **facts)
    dynamic = {name: np.clip(one + draw.normal(0, 0.1, one.shape), 0, 1) for name, one in values.items()}
    return [
        *static,
        *(one for kind in ("forced", "attending") for one in make_scores(dynamic, kind, **facts)),
    ]


def make_atlas(
    gates: dict[str, np.ndarray],
    heads: tuple[int, ...] | None = None,
    scores: tuple[ScoreMap, ...] | list[ScoreMap] = (),
    effects: tuple[EffectMap, ...] | list[EffectMap] = (),
) -> Atlas:
    """From task -> [seed, (retain, remove), layer, head]; free gates are 0.5, updates 10 and 20 are kept.

    The gates of retain are also there as a contrast of the same name.
    """
    first = next(iter(gates.values()))
    heads = heads or (first.shape[3],) * first.shape[2]
    fits = []
    for task, values in gates.items():
        for seed, (retain, remove) in enumerate(values):
            for fit, gate in zip(
                FITS, (np.where(np.isnan(retain), np.nan, 0.5), retain, remove), strict=True
            ):
                with np.errstate(divide="ignore"):
                    logits = np.log(gate) - np.log1p(-gate)
                path = np.stack([(gate + 0.5) / 2, gate])
                updates = np.array([10, 20])
                methods = ("gating", *(["contrast"] if fit == "retain" else []))
                rest = (task, seed, fit, "x", logits, path, updates, np.zeros(20))
                fits.extend(Fit(method, *rest) for method in methods)
    runs = [Run(method, task, "x") for method in ("gating", "contrast") for task in gates]
    runs.extend(Run(one.method, one.relation, "x") for one in scores)
    runs.extend(Run(one.method, one.task, "x") for one in effects)
    return Atlas(make_spec(heads), runs, fits, scores=scores, effects=effects)


def random_atlas(
    layers: int, heads: int, tasks: int | list[str] = 1, seeds: int = 2, holes=(), relations=SOME
) -> Atlas:
    names = ["math", "syntax", "aba", "paper/math"][:tasks] if isinstance(tasks, int) else tasks
    draw = np.random.default_rng(0)
    gates = {}
    for name in names:
        values = draw.beta(0.3, 0.3, size=(seeds, 2, layers, heads))
        values[:, :, list(holes)] = np.nan
        gates[name] = values
    scores = random_scores(layers, heads, relations, holes)
    imported = []
    for name in names:
        values = draw.normal(size=(layers, heads))
        values[draw.uniform(size=values.shape) < 0.2] = np.nan  # not in the table
        values[list(holes)] = np.nan
        imported.append(EffectMap("imported", name, 0, "x", values, values))
    widths = tuple(0 if layer in holes else heads for layer in range(layers))
    atlas = make_atlas(gates, widths, scores, imported)
    atlas.notes |= {validation_name(name): random_validation(name, len(atlas.spec), seeds) for name in names}
    return atlas


def random_validation(task: str, heads: int, seeds: int):
    """Curves of random numbers between the losses of no heads and of all."""
    draw = np.random.default_rng(1)
    methods = [*METHOD_ORDER, "random 1", "random 2"]
    counts = sorted({round(share * heads) for share in SHARES})
    shape = (len(counts), 5)
    arrays = {
        "keep": draw.uniform(1, 4, size=(len(methods), *shape)),
        "drop": draw.uniform(1, 4, size=(len(methods), *shape)),
        "off": draw.uniform(1, 4, size=(seeds, 3, *shape)),
        "by_chance": draw.uniform(1, 4, size=(4, *shape)),
    }
    for side, ends in {"keep": (5, 1), "drop": (1, 5)}.items():
        arrays[side][:, 0], arrays[side][:, -1] = ends
        arrays[f"{side}_right"] = np.zeros_like(arrays[side])
    about = {"task": task, "methods": methods, "counts": counts, "heads": heads, "facts": {}}
    return arrays, about


@pytest.fixture
def hand_made() -> Atlas:
    """Two seeds, two layers of three heads.

    L0: helps, hurts, is idle in both seeds. L1: helps then hurts, helps then is idle, is idle in both.
    """
    seeds = [
        [["facilitating", "interfering", "irrelevant"], ["facilitating", "facilitating", "irrelevant"]],
        [["facilitating", "interfering", "irrelevant"], ["interfering", "irrelevant", "irrelevant"]],
    ]
    gates = np.array([[[GATES[role] for role in layer] for layer in seed] for seed in seeds])
    return make_atlas({"math": np.moveaxis(gates, -1, 1)})


@pytest.fixture
def any_atlas():
    """A function: random gates and relation scores for a model of any shape."""
    return random_atlas


@pytest.fixture
def from_gates():
    """A function: an atlas with exactly these gates."""
    return make_atlas


@pytest.fixture
def from_scores():
    """A function: an atlas with exactly these relation scores."""
    return make_relations


@pytest.fixture
def scores_of():
    """A function: score maps of another method."""
    return make_scores


@pytest.fixture
def every_relation():
    """The names of the built-in relations."""
    return tuple(RELATIONS)
