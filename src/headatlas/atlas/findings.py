"""What the papers read off their pictures by eye, as numbers with intervals and tests.

Heads are the units: intervals are bootstraps over heads, tests permute heads (within their layers where
depth would explain the finding). The p-values of one question are adjusted together (Holm).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import ceil

import numpy as np

from headatlas.atlas.agreement import Interval
from headatlas.atlas.atlas import Atlas
from headatlas.atlas.evidence import ablated, joined, mediated, stability, sufficiency
from headatlas.atlas.finding import TOPICS, Finding, Heads, plural
from headatlas.atlas.published import PUBLISHED_MODELS, PUBLISHED_SHARES
from headatlas.atlas.scores import THRESHOLD
from headatlas.atlas.statistics import (
    bootstrap,
    concentration,
    correlated,
    holm,
    mcnemar,
    overlap,
    permutation_p,
    proportion,
    shuffled_correlation,
)

__all__ = ["find"]

#: the share of a category's heads that lie above its first layer
_MOST = 0.9
#: fewer heads than these have no interval
_FEW = 10
#: below it an adjusted p-value is called sure; `_WAY` stands for the word that depends on it
_LEVEL, _WAY = 0.05, "{way}"


def find(atlas: Atlas, threshold: float = THRESHOLD) -> list[Finding]:
    """All findings that the atlas has evidence for."""
    heads = Heads(atlas)
    found: list[Finding] = []
    for task in atlas.tasks:
        found += _density(atlas, heads, task, threshold)
    for one, other in combinations(atlas.tasks, 2):
        found += _contrast(atlas, heads, one, other, threshold)
        found += _overlap(atlas, heads, one, other, threshold)
    for task in atlas.tasks:
        found += _layers(atlas, heads, task)
        found += _columns(atlas, heads, task, threshold)
        found += _several_roles(atlas, heads, task, threshold)
        found += stability(atlas, task, threshold)
        found += mediated(atlas, heads, task)
        found += joined(atlas, heads, task, threshold)
    for task in atlas.validated:
        found += [*ablated(atlas, task), *sufficiency(atlas, task)]
    if atlas.relations:
        found += _categories(atlas, heads)
    found = [_worded(one) for one in _adjusted(found)]
    order = list(TOPICS)
    return sorted(found, key=lambda one: order.index(one.topic))


def _adjusted(found: list[Finding]) -> list[Finding]:
    """With p-values adjusted for all tests of the same question."""
    found = list(found)
    for topic in TOPICS:
        tested = [place for place, one in enumerate(found) if one.topic == topic and one.p is not None]
        adjusted = holm([found[place].p or 0.0 for place in tested])
        for place, value in zip(tested, adjusted, strict=True):
            found[place] = replace(found[place], adjusted=value)
    return found


def _worded(one: Finding) -> Finding:
    """A trend has a direction in words only if its adjusted test says so."""
    sure = one.adjusted is not None and one.adjusted < _LEVEL
    way = ("rises" if one.value > 0 else "falls") if sure else "hardly changes"
    return replace(one, text=one.text.replace(_WAY, way))


def _always(atlas: Atlas, heads: Heads, task: str, seeds: int, threshold: float) -> np.ndarray:
    """Which heads facilitate in every one of the first so many seeds."""
    some = atlas.scores(task)["facilitation"].isel(seed=slice(seeds)).min("seed", skipna=False)
    return heads.flat(some) >= threshold


def _common(atlas: Atlas, one: str, other: str) -> tuple[int, str]:
    """So many seeds both tasks have, and what to say if one has more: the more seeds, the fewer heads are
    in all of them."""
    counts = [len(atlas.seeds(task)) for task in (one, other)]
    said = "" if counts[0] == counts[1] else f", in the first {plural(min(counts), 'seed')} of each"
    return min(counts), said


def _share(chosen: np.ndarray) -> Interval:
    return proportion(int(chosen.sum()), len(chosen))


def _percent(found: Interval) -> str:
    return f"{100 * found.mean:.1f} % [{100 * found.low:.1f}–{100 * found.high:.1f}]"


def _density(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    found = []
    published = PUBLISHED_SHARES.get(task.removeprefix("paper/"))
    several = len(atlas.seeds(task)) > 1  # of one seed both say the same
    for when, maps in (("always", atlas.always(task)), ("any", atlas.any(task)))[: 1 + several]:
        for place, (role, score) in enumerate(
            (("facilitate", "facilitation"), ("interfere", "interference"))
        ):
            share = _share(heads.flat(maps[score]) >= threshold)
            words = "in every seed" if when == "always" else "in at least one seed"
            words = words if several else "in its seed"
            said = None
            if published:
                numbers = [pair[place] for pair in published[when]]
                said = ", ".join(
                    f"{model} {n:g} %" for model, n in zip(PUBLISHED_MODELS, numbers, strict=True)
                )
                said += " (ten seeds)"
            found.append(
                Finding(
                    "density",
                    f"{task}, {when}, {score}",
                    f"{task}: {_percent(share)} of heads {role} {words} "
                    f"({plural(len(atlas.seeds(task)), 'seed')})",
                    share.mean,
                    share.low,
                    share.high,
                    published=said,
                )
            )
    return found


def _contrast(atlas: Atlas, heads: Heads, one: str, other: str, threshold: float) -> list[Finding]:
    seeds, said = _common(atlas, one, other)
    sets = [_always(atlas, heads, task, seeds, threshold) for task in (one, other)]
    gap = bootstrap(heads.count, lambda places: float(sets[0][places].mean() - sets[1][places].mean()))
    published = None
    if {one, other} == {"math", "syntax"}:
        shares = [PUBLISHED_SHARES[task]["always"] for task in (one, other)]
        gaps = [first[0] - second[0] for first, second in zip(*shares, strict=True)]
        named = zip(PUBLISHED_MODELS, gaps, strict=True)
        published = ", ".join(f"{model} {value:+.1f}" for model, value in named)
    text = (
        f"{one} less {other}: {100 * gap.mean:+.1f} points [{100 * gap.low:+.1f} to {100 * gap.high:+.1f}] "
        f"in the share of heads that facilitate in every seed{said}"
    )
    return [
        Finding(
            "tasks", f"{one} − {other}", text, gap.mean, gap.low, gap.high, mcnemar(*sets),
            published=published,
        )
    ]  # fmt: skip


def _overlap(atlas: Atlas, heads: Heads, one: str, other: str, threshold: float) -> list[Finding]:
    seeds, said = _common(atlas, one, other)
    sets = [_always(atlas, heads, task, seeds, threshold) for task in (one, other)]
    found = overlap(*sets)
    if not (sets[0].any() and sets[1].any()):
        return []  # nothing to share

    def drawn(chance: np.random.Generator) -> float:
        return float((sets[0] & sets[1][heads.within_layers(chance)]).sum())

    p = permutation_p(found.both, drawn, sides="more")
    text = (
        f"{one} and {other} share {found.both} heads that facilitate in every seed{said}; chance would give "
        f"{found.expected:.1f}, and {_expected(drawn):.1f} with as many in each layer (Jaccard "
        f"{found.jaccard:.2f})"
    )
    return [Finding("overlap", f"{one}, {other}", text, found.both, p=p)]


def _expected(draw: Callable[[np.random.Generator], float], draws: int = 500) -> float:
    chance = np.random.default_rng(1)
    return float(np.mean([draw(chance) for _ in range(draws)]))


def _layers(atlas: Atlas, heads: Heads, task: str) -> list[Finding]:
    scores = atlas.scores(task).mean("seed")
    maps = {
        "mean facilitation": scores["facilitation"],
        "facilitation in any seed": atlas.any(task)["facilitation"],
        "interference in any seed": atlas.any(task)["interference"],
    }
    if len(atlas.seeds(task)) == 1:
        del maps["facilitation in any seed"]  # the same as the mean
    found = []
    for name, values in maps.items():
        flat = heads.flat(values)
        rho = correlated(heads.layers, flat)
        if np.isnan(rho.mean):
            continue
        p = permutation_p(
            rho.mean, shuffled_correlation(heads.layers, flat, lambda chance: chance.permutation(heads.count))
        )
        found.append(
            Finding(
                "layers",
                f"{task}, {name}",
                f"{task}: {name} {_WAY} with depth, rank correlation {rho.mean:.2f} [{rho.low:.2f} to "
                f"{rho.high:.2f}]",
                rho.mean,
                rho.low,
                rho.high,
                p,
                published="deeper layers higher under Any (read off the figures)" if "any" in name else None,
            )
        )
    return found


def _columns(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    chosen = heads.flat(atlas.always(task)["facilitation"]) >= threshold
    return _gathered(heads, chosen, task, f"{task}: the heads that facilitate in every seed")


def _gathered(heads: Heads, chosen: np.ndarray, about: str, what: str) -> list[Finding]:
    if chosen.sum() < 2:
        return []
    value = concentration(heads.columns, chosen, heads.width)
    p = permutation_p(
        value,
        lambda chance: concentration(heads.columns, chosen[heads.within_layers(chance)], heads.width),
        sides="more",
    )
    counts = np.bincount(heads.columns[chosen], minlength=heads.width)
    best = int(counts.argmax())
    text = (
        f"{what} are spread over the head columns with a variance of {value:.2f} times their mean; "
        f"column {best} has most, {counts[best]} of {int(chosen.sum())}"
    )
    return [Finding("columns", about, text, value, p=p)]


def _several_roles(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    """Against heads dealt out anew in every seed: a head cannot well have both roles in the same seed."""
    scores = atlas.scores(task)
    if scores.sizes["seed"] < 2:
        return []
    roles = np.stack(
        [
            np.stack(
                [heads.flat(scores[name].isel(seed=seed)) >= threshold for seed in range(len(scores.seed))]
            )
            for name in ("facilitation", "interference")
        ]
    )

    def both(some: np.ndarray) -> float:
        """Heads that facilitate in one seed and interfere in another."""
        helps, hurts = some
        same = (helps & hurts).sum(axis=0)
        return float((helps.sum(axis=0) * hurts.sum(axis=0) > same).sum())

    def dealt(chance: np.random.Generator) -> float:
        seeds = [roles[:, seed, chance.permutation(heads.count)] for seed in range(roles.shape[1])]
        return both(np.stack(seeds, axis=1))

    value = both(roles)
    p = permutation_p(value, dealt, draws=2000)
    text = (
        f"{task}: {value:.0f} heads facilitate in one seed and interfere in another; {_expected(dealt):.1f} "
        "if seeds had nothing in common"
    )
    return [Finding("several", f"{task}, both roles", text, value, p=p)]


def _categories(atlas: Atlas, heads: Heads) -> list[Finding]:
    implements = atlas.categories().sel(direction="promote")
    names = [str(name) for name in implements["category"].values]
    sets = {name: heads.flat(implements.sel(category=name)) for name in names}
    found = []
    for name, chosen in sets.items():
        if chosen.any():
            found += [_begins(heads, name, chosen), *_gathered(heads, chosen, name, f"{name} heads")]
    if len(names) > 1:
        found += _several_categories(heads, list(sets.values()))
    return found


def _begins(heads: Heads, name: str, chosen: np.ndarray) -> Finding:
    layers = heads.layers[chosen]

    def first(some: np.ndarray) -> float:
        """The highest layer at or above which 90 % of the heads lie."""
        return float(np.sort(some)[len(some) - ceil(_MOST * len(some) - 1e-9)])

    found = bootstrap(len(layers), lambda places: first(layers[places]))
    p = permutation_p(
        found.mean,
        lambda chance: first(chance.choice(heads.layers, len(layers), replace=False)),
        sides="more",
    )
    published = "from layer 18 of 32 on" if name in ("algorithmic", "knowledge") else None
    if name == "linguistic":
        published = "over all layers, more with depth"
    text = (
        f"90 % of the {plural(len(layers), f'{name} head')} lie in layer {found.mean:.0f} of {heads.depth} "
        f"or above"
    )
    if len(layers) < _FEW:  # of so few an interval by drawing them again says nothing
        return Finding("categories", name, text, found.mean, p=p, published=published)
    text = f"{text} [{found.low:.0f}–{found.high:.0f}]"
    return Finding("categories", name, text, found.mean, found.low, found.high, p, published=published)


def _several_categories(heads: Heads, sets: Sequence[np.ndarray]) -> list[Finding]:
    def several(some: Sequence[np.ndarray]) -> float:
        return float((np.sum(some, axis=0) >= 2).sum())

    value = several(sets)
    draw: Callable[[np.random.Generator], float] = lambda chance: several(  # noqa: E731
        [one[heads.within_layers(chance)] for one in sets]
    )
    p = permutation_p(value, draw, sides="more")
    text = (
        f"{value:.0f} heads have two or more categories; {_expected(draw):.1f} if categories were dealt out "
        "to the heads of each layer one by one"
    )
    return [Finding("several", "categories", text, value, p=p, published="few heads have 2 or 3")]
