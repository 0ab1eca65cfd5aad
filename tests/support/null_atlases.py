"""Atlases without any effect: what every test and interval of headatlas is calibrated on.

A null atlas has everything that a real one has, except an effect: no trend with depth, no preferred head
column, nothing in common between tasks, relations and effects. It keeps what makes naive tests fail:

* Heads of one layer are correlated: a random effect of the layer, exchangeable over layers.
* Seeds of one task are correlated: they share a map and add noise of their own.
* Scores pile up near 0 and 1, effects have heavy tails, losses are skewed and correlated within groups.

Constants come from the ten seeds of SmolLM2-135M (30 x 9 heads) in docs/gallery/atlas.zip. Measured there,
for arithmetic, syntax and math, on the logits of the scores (clipped to -6..6):

    mean correlation between two seeds      facilitation 0.74, 0.82, 0.90   interference 0.53, 0.68, 0.91
    the same of the scores                  facilitation 0.70, 0.82, 0.95   interference 0.50, 0.65, 0.90
    intra-layer correlation of the mean map facilitation 0.23, 0.06, -0.03  interference 0.10, 0.00, -0.03
    intra-layer correlation of seed noise   0.02, 0.00, 0.03                0.01, 0.04, 0.03
    mean, sd of facilitation logits         -1.1, 4.2    -0.3, 4.2    0.8, 3.6
    mean, sd of interference logits         -3.8, 3.1    -4.0, 2.8    -4.4, 2.6
    correlation of both mean maps           -0.42, -0.50, -0.53
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headatlas.atlas import IMPLEMENTS, Atlas, Fit, Run, ScoreMap
from headatlas.atlas.record import EffectMap, ItemEffects
from headatlas.atlas.roles import role_scores
from headatlas.core import DIRECTIONS, FITS
from support.atlases import spec_of

__all__ = [
    "EVEN",
    "LARGE",
    "LAYER_SHARE",
    "RAGGED",
    "RELATIONS",
    "SEED_CORRELATION",
    "category_maps",
    "null_atlas",
    "null_gates",
    "null_item_effects",
    "null_maps",
    "null_score_arrays",
    "null_scores",
    "read_once",
]

#: 12 layers of 8 heads
EVEN = (8,) * 12
#: the shape of SmolLM2-135M: 30 layers of 9 heads
LARGE = (9,) * 30
#: 12 layers with 2 to 8 heads, one of them without heads
RAGGED = (8, 4, 8, 0, 6, 8, 2, 8, 8, 4, 8, 6)

#: share of the variance of a map that lies between layers: the largest of the gallery
LAYER_SHARE = 0.2
#: the same of the noise of a seed
NOISE_LAYER_SHARE = 0.03
#: correlation between the logits of two seeds of one task; their facilitation then correlates 0.79
SEED_CORRELATION = 0.85
#: mean and standard deviation of the logits of facilitation and interference, and their correlation
_FACILITATION, _INTERFERENCE, _BOTH = (-0.3, 4.0), (-4.0, 2.9), -0.5
#: category -> how many relations of it a null atlas has
RELATIONS = {"algorithmic": 3, "knowledge": 3, "linguistic": 3, "translation": 2}


def null_maps(
    rng: np.random.Generator,
    heads_per_layer: Sequence[int],
    count: int = 1,
    *,
    layer_share: float = LAYER_SHARE,
    layer_effects: np.ndarray | None = None,
) -> np.ndarray:
    """[map, layer, head]: independent maps of standard normal values; NaN where a layer has no such head.

    Heads of one layer have the correlation `layer_share`, heads of different layers none. `layer_effects`
    [layer] replaces the random effects of the layers, so that several maps can have them in common.
    """
    layers, width = len(heads_per_layer), max(heads_per_layer)
    shared = rng.standard_normal((count, layers)) if layer_effects is None else layer_effects
    single = rng.standard_normal((count, layers, width))
    values = np.sqrt(layer_share) * shared[..., None] + np.sqrt(1 - layer_share) * single
    values[:, np.arange(width) >= np.asarray(heads_per_layer)[:, None]] = np.nan
    return values


def null_gates(
    rng: np.random.Generator,
    heads_per_layer: Sequence[int],
    seeds: int,
    *,
    seed_correlation: float = SEED_CORRELATION,
    layer_share: float = LAYER_SHARE,
    layer_effects: np.ndarray | None = None,
) -> np.ndarray:
    """[seed, fit, layer, head]: logits of the gates of free, retain (G+) and remove (G-).

    The logit of each score is a map that all seeds share (weight `seed_correlation`) plus noise of the seed.
    Random are the map and the noise; both scores have negatively correlated maps, as in the gallery. The free
    fit is 0 throughout.
    """

    def fields() -> np.ndarray:
        shared = null_maps(rng, heads_per_layer, layer_share=layer_share, layer_effects=layer_effects)
        noise = null_maps(rng, heads_per_layer, seeds, layer_share=NOISE_LAYER_SHARE)
        return np.sqrt(seed_correlation) * shared + np.sqrt(1 - seed_correlation) * noise

    first, second = fields(), fields()
    facilitation = _FACILITATION[0] + _FACILITATION[1] * first
    mixed = _BOTH * first + np.sqrt(1 - _BOTH**2) * second
    interference = _INTERFERENCE[0] + _INTERFERENCE[1] * mixed
    return np.stack([0 * facilitation, -interference, facilitation], axis=1)


def null_scores(
    rng: np.random.Generator,
    heads_per_layer: Sequence[int],
    seeds: int = 10,
    *,
    seed_correlation: float = SEED_CORRELATION,
    layer_share: float = LAYER_SHARE,
    layer_effects: np.ndarray | None = None,
) -> xr.Dataset:
    """`Atlas.scores` of a task without any effect, from `null_gates`: facilitation, interference and
    irrelevance over seed, layer and head; NaN where a layer has no such head."""
    logits = null_gates(
        rng,
        heads_per_layer,
        seeds,
        seed_correlation=seed_correlation,
        layer_share=layer_share,
        layer_effects=layer_effects,
    )
    layers, heads = logits.shape[-2:]
    coords = {"seed": range(seeds), "fit": list(FITS), "layer": range(layers), "head": range(heads)}
    return role_scores(xr.DataArray(1 / (1 + np.exp(-logits)), dims=list(coords), coords=coords))


def null_score_arrays(
    rng: np.random.Generator, heads_per_layer: Sequence[int], seeds: int, **options: Any
) -> dict[str, np.ndarray]:
    """Facilitation and interference [seed, layer, head] of `null_scores` without labels, which take thirty
    times as long as the numbers."""
    gates = 1 / (1 + np.exp(-null_gates(rng, heads_per_layer, seeds, **options)))
    return {"facilitation": gates[:, 2], "interference": 1 - gates[:, 1]}


def read_once(atlas: Atlas) -> Atlas:
    """Let an atlas keep its scores without labels: they are computed again for every statement otherwise."""
    kept: dict[str, tuple[xr.Dataset, ...]] = {}
    for task in atlas.tasks:
        retain, remove = (
            np.stack([1 / (1 + np.exp(-atlas.fit(task, seed, fit).logits)) for seed in atlas.seeds(task)])
            for fit in ("retain", "remove")
        )
        scores = {"facilitation": remove, "interference": 1 - retain}
        kept[task] = tuple(
            xr.Dataset({name: (dims, reduced(values)) for name, values in scores.items()})
            for dims, reduced in (
                (("seed", "layer", "head"), lambda values: values),
                (("layer", "head"), lambda values: values.min(axis=0)),
                (("layer", "head"), lambda values: values.max(axis=0)),
            )
        )
    for place, name in enumerate(("scores", "always", "any")):
        setattr(atlas, name, lambda task, place=place: kept[task][place])
    return atlas


def null_item_effects(
    rng: np.random.Generator,
    heads_per_layer: Sequence[int],
    groups: Sequence[int] | np.ndarray,
    *,
    true: np.ndarray | None = None,
) -> np.ndarray:
    """[item, layer, head]: effects of heads on items in nats; `groups` [item] numbers their groups.

    Random: skewed noise of each group (half of the variance) and of each item, together with a standard
    deviation of 0.1 and a skewness of 1.2. `true` [layer, head] is the mean; by default the cube of a null
    map over ten, whose tails are about as heavy as those of the effects in the gallery.
    """
    if true is None:
        true = null_maps(rng, heads_per_layer)[0] ** 3 / 10
    labels = np.unique(np.asarray(groups), return_inverse=True)[1]
    common, single = (
        (rng.gamma(1.4, size=(size, *true.shape)) - 1.4) / np.sqrt(1.4)
        for size in (int(labels.max()) + 1, len(labels))
    )
    found: np.ndarray = true + 0.1 * np.sqrt(0.5) * (common[labels] + single)
    return found


def null_atlas(
    rng: np.random.Generator,
    heads_per_layer: Sequence[int] = EVEN,
    *,
    tasks: Sequence[str] = ("first", "second", "third"),
    seeds: int = 10,
    relations: Mapping[str, int] = RELATIONS,
    effects: Sequence[str] = ("ablate-zero", "mediate"),
    first_seed: int = 0,
    seed_correlation: float = SEED_CORRELATION,
    layer_share: float = LAYER_SHARE,
    layer_effects: np.ndarray | None = None,
) -> Atlas:
    """An atlas in memory without any effect, of a model with these heads.

    Independent of each other are the maps of all tasks, the scores of all relations in both directions, and
    the effects of each task by each method. Tasks and relations have `layer_effects` in common if given:
    tests that permute heads within layers must hold then too. `relations`: category -> how many it has; about
    4 % of the heads implement each. The first task asks for the first relation. Seeds are numbered from
    `first_seed`.

    A task's effects come from 24 items in 8 groups per seed, of 2 seeds that share half of their items.
    """
    spec = spec_of(*heads_per_layer)
    shape: dict[str, Any] = {"layer_share": layer_share, "layer_effects": layer_effects}
    names = {
        f"{category} {number}": category
        for category, count in relations.items()
        for number in range(1, count + 1)
    }
    runs, fits, maps = [], [], []
    for place, task in enumerate(tasks):
        asked = {"spec": {"source": {"relation": next(iter(names))}}} if relations and not place else {}
        runs.append(Run("gating", task, "id", asked))
        logits = null_gates(rng, heads_per_layer, seeds, seed_correlation=seed_correlation, **shape)
        for seed, by_fit in zip(range(first_seed, first_seed + seeds), logits, strict=True):
            fits += [_fit(task, seed, fit, values) for fit, values in zip(FITS, by_fit, strict=True)]
        for method in effects:
            settings = (
                {"decides": {"prompts": "others", "positions": "target"}} if method == "mediate" else {}
            )
            runs.append(Run(method, task, "id", settings=settings))
            maps += _effect_maps(rng, heads_per_layer, task, method)
    scores = []
    for name, category in names.items():
        values = _relation_scores(null_maps(rng, heads_per_layer, len(DIRECTIONS), **shape))
        facts: dict[str, Any] = {"category": category, "kind": "weights", "pairs": 40, "listed": 40, "k": 1}
        runs.append(Run("relations", name, "id"))
        scores.append(ScoreMap("relations", name, "id", values, facts))
    return Atlas(spec, runs, fits, scores=scores, effects=maps)


def category_maps(
    rng: np.random.Generator,
    heads_per_layer: Sequence[int],
    relations: Mapping[str, int] = RELATIONS,
    *,
    layer_effects: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """category -> [layer, head]: True if the head implements one of its relations, as in `null_atlas`."""
    maps = {
        category: null_maps(rng, heads_per_layer, count, layer_effects=layer_effects)
        for category, count in relations.items()
    }
    return {
        category: np.asarray((_relation_scores(values) >= IMPLEMENTS).any(axis=0))
        for category, values in maps.items()
    }


def _relation_scores(maps: np.ndarray) -> np.ndarray:
    scores: np.ndarray = 1 / (1 + np.exp(4.4 - 1.5 * maps))
    return scores


def _fit(task: str, seed: int, fit: str, logits: np.ndarray) -> Fit:
    gates = 1 / (1 + np.exp(-logits))
    path, updates = gates[None].astype(np.float32), np.array([1], np.int32)
    losses = np.array([1.0], np.float32)
    return Fit("gating", task, seed, fit, "id", logits.astype(np.float32), path, updates, losses)


def _effect_maps(
    rng: np.random.Generator, heads_per_layer: Sequence[int], task: str, method: str
) -> list[EffectMap]:
    """Two seeds with 24 items each, 12 of them in both; three items make a group."""
    groups = np.arange(36) // 3
    every = null_item_effects(rng, heads_per_layer, groups)
    maps = []
    for seed, items in enumerate((np.arange(24), np.arange(12, 36))):
        values = every[items]
        errors = values.std(axis=0, ddof=1) / np.sqrt(len(items))
        per_item = ItemEffects(values, items, groups[items])
        maps.append(EffectMap(method, task, seed, "id", values.mean(axis=0), errors, {}, *per_item))
    return maps
