"""What the papers read off their pictures by eye, as numbers with intervals and tests.

Shares of heads vary with the seeds, so seeds are the units of their intervals and tests. Statements about
depth permute whole layers, other statements permute heads within their layers (`Heads`). The p-values of one
question are adjusted together (Holm). tests/calibration shows that every test keeps its level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import ceil, factorial, isnan, prod

import numpy as np

from headatlas.atlas.atlas import Atlas
from headatlas.atlas.categories import categories
from headatlas.atlas.finding import TOPICS, Finding, Heads, plural
from headatlas.atlas.finding.evidence import ablated, held_out, joined, mediated, stability, sufficiency
from headatlas.atlas.finding.published import (
    PUBLISHED_MODELS,
    PUBLISHED_SEEDS,
    PUBLISHED_SHARES,
    are_published_relations,
    compares_with_paper,
    has_papers_data,
)
from headatlas.atlas.imported import relations_of_one_origin
from headatlas.atlas.interval import LEVEL, Interval, t_interval
from headatlas.atlas.roles import THRESHOLD
from headatlas.atlas.statistics import (
    PERMUTATIONS,
    concentration,
    depth_correlation_interval,
    holm,
    jaccard,
    rank_correlation,
    standardized_ranks,
    tail_p,
)

__all__ = ["depth_trend", "find"]

#: the share of a category's heads that lie in or above its first layer
_MOST = 0.9
#: an adjusted p-value below it makes a trend certain; `_TREND` stands for the verb that depends on it
_LEVEL, _TREND = 0.05, "{trend}"
#: layers of the models whose categories are published
_PUBLISHED_LAYERS = 32
#: (score, verb) of the two roles that a task gives to heads
_ROLES = (("facilitation", "facilitate"), ("interference", "interfere"))


def find(atlas: Atlas, threshold: float = THRESHOLD, permutations: int = PERMUTATIONS) -> list[Finding]:
    """All findings that the atlas has evidence for."""
    heads = Heads(atlas)
    findings: list[Finding] = []
    for task in atlas.tasks:
        findings += _density(atlas, heads, task, threshold)
    for first, second in combinations(atlas.tasks, 2):
        findings += _task_difference(atlas, heads, first, second, threshold)
        findings += _shared_heads(atlas, heads, first, second, threshold, permutations)
    for task in atlas.tasks:
        findings += held_out(atlas, task)
        findings += _depth(atlas, heads, task, permutations)
        always = heads.flat(atlas.always(task)["facilitation"]) >= threshold
        subject = f"{task}: the heads that facilitate in every seed"
        findings += _columns(heads, always, task, subject, permutations)
        findings += _both_roles(atlas, heads, task, threshold)
        findings += stability(atlas, heads, task, threshold)
        findings += mediated(atlas, heads, task, permutations)
        findings += joined(atlas, heads, task, threshold, permutations)
    for task in atlas.validated:
        findings += [*ablated(atlas, task), *sufficiency(atlas, task)]
    if atlas.relations:
        findings += _categories(atlas, heads, permutations)
    order = list(TOPICS)
    return sorted(map(_word_trend, _adjust(findings)), key=lambda finding: order.index(finding.topic))


def _adjust(findings: list[Finding]) -> list[Finding]:
    """Adjust p-values for all tests of the same question."""
    adjusted = list(findings)
    for topic in TOPICS:
        tested = [
            index
            for index, finding in enumerate(findings)
            if finding.topic == topic and finding.p is not None
        ]
        for index, p in zip(tested, holm([findings[index].p or 0.0 for index in tested]), strict=True):
            adjusted[index] = replace(findings[index], adjusted=p)
    return adjusted


def _word_trend(finding: Finding) -> Finding:
    """Give a trend a direction in words only if its adjusted test does."""
    is_certain = finding.adjusted is not None and finding.adjusted < _LEVEL
    verb = ("rises" if finding.value > 0 else "falls") if is_certain else "has no clear trend"
    return replace(finding, text=finding.text.replace(_TREND, verb))


def _seed_shares(atlas: Atlas, heads: Heads, task: str, score: str, threshold: float) -> np.ndarray:
    """[seed]: the share of heads whose score reaches the threshold."""
    scores = atlas.scores(task)[score]
    each = [heads.flat(scores.isel(seed=seed)) >= threshold for seed in range(scores.sizes["seed"])]
    shares: np.ndarray = np.mean(each, axis=1)
    return shares


def _percent(value: Interval) -> str:
    return f"{100 * value.mean:.1f} %{value.brackets('.1f', 100)}"


def _density(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    """Shares of heads with a role: per seed with an interval, in every seed and in any as plain counts."""
    findings = []
    seeds = plural(len(atlas.seeds(task)), "seed")
    for score, verb in _ROLES:
        share = t_interval(_seed_shares(atlas, heads, task, score, threshold), bounds=(0, 1))
        text = f"{task}: {_percent(share)} of heads {verb}, mean over {seeds}"
        subject = f"{task}, per seed, {score}"
        findings.append(Finding("density", subject, text, share.mean, share.low, share.high))
    if len(atlas.seeds(task)) == 1:
        return findings
    for when, words, maps in (
        ("always", "in every seed", atlas.always(task)),
        ("any", "in at least one seed", atlas.any(task)),
    ):
        for role, (score, verb) in enumerate(_ROLES):
            value = float((heads.flat(maps[score]) >= threshold).mean())
            text = f"{task}: {100 * value:.1f} % of heads {verb} {words} ({seeds})"
            published = _published_share(atlas, task, when, role)
            findings.append(Finding("density", f"{task}, {when}, {score}", text, value, published=published))
    return findings


def _published_share(atlas: Atlas, task: str, when: str, role: int) -> str | None:
    name = task.removeprefix("paper/")
    if name not in PUBLISHED_SHARES:
        return None
    if not task.startswith("paper/"):
        return f"none: paper/{name} is another data set of this name"
    if not has_papers_data(atlas, task):
        return f"none: this is another data set than the paper's {name}"
    if not compares_with_paper(atlas, task):
        return f"none: the paper has {PUBLISHED_SEEDS} seeds"
    shares = [pair[role] for pair in PUBLISHED_SHARES[name][when]]
    listed = ", ".join(f"{model} {share:g} %" for model, share in zip(PUBLISHED_MODELS, shares, strict=True))
    return f"{listed} ({PUBLISHED_SEEDS} seeds)"


def _task_difference(atlas: Atlas, heads: Heads, first: str, second: str, threshold: float) -> list[Finding]:
    """The difference in the share of facilitating heads, by Welch's test over seeds."""
    samples = [_seed_shares(atlas, heads, task, "facilitation", threshold) for task in (first, second)]
    gap, p = _welch(*samples)
    text = (
        f"{first} − {second}: {100 * gap.mean:+.1f} points{gap.brackets('+.1f', 100)} in the share of heads "
        "that facilitate, mean over seeds"
    )
    published = None
    names = [task.removeprefix("paper/") for task in (first, second)]
    if all(compares_with_paper(atlas, task) for task in (first, second)):
        pairs = zip(*(PUBLISHED_SHARES[name]["always"] for name in names), strict=True)
        gaps = [left[0] - right[0] for left, right in pairs]
        listed = zip(PUBLISHED_MODELS, gaps, strict=True)
        published = "in every seed: " + ", ".join(f"{model} {value:+.1f}" for model, value in listed)
    subject = f"{first} − {second}"
    return [Finding("tasks", subject, text, gap.mean, gap.low, gap.high, p, published=published)]


def _welch(first: np.ndarray, second: np.ndarray) -> tuple[Interval, float | None]:
    """The difference of two means with Welch's interval and p; none of these with one value on a side, or if
    neither side varies."""
    from scipy import stats  # importing scipy takes a second; most commands do not need it

    gap = float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2 or not (np.ptp(first) or np.ptp(second)):
        return Interval(gap), None
    parts = np.array([values.var(ddof=1) / len(values) for values in (first, second)])
    freedom = parts.sum() ** 2 / (parts**2 / [len(first) - 1, len(second) - 1]).sum()
    error = float(np.sqrt(parts.sum()))
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error
    return Interval(gap, gap - half, gap + half), float(2 * stats.t.sf(abs(gap) / error, freedom))


def _always(atlas: Atlas, heads: Heads, task: str, seeds: int, threshold: float) -> np.ndarray:
    """[head]: True if it facilitates in each of the first `seeds` seeds."""
    lowest = atlas.scores(task)["facilitation"].isel(seed=slice(seeds)).min("seed", skipna=False)
    return heads.flat(lowest) >= threshold


def _shared_heads(
    atlas: Atlas, heads: Heads, first: str, second: str, threshold: float, permutations: int
) -> list[Finding]:
    """How many heads two tasks share, with equally many seeds of each: more seeds leave fewer heads."""
    counts = [len(atlas.seeds(task)) for task in (first, second)]
    left, right = (_always(atlas, heads, task, min(counts), threshold) for task in (first, second))
    if not (left.any() and right.any()):
        return []
    both = int((left & right).sum())
    null = (left & right[heads.within_layers(np.random.default_rng(0), permutations)]).sum(axis=1)
    p = None if np.ptp(null) == 0 else tail_p(both, null, "more")
    seeds = "" if counts[0] == counts[1] else f", in the first {plural(min(counts), 'seed')} of each"
    text = (
        f"{first} and {second} share {both} of the heads that facilitate in every seed{seeds}; "
        f"{null.mean():.1f} by chance with as many in each layer (Jaccard {jaccard(left, right):.2f})"
    )
    return [Finding("overlap", f"{first}, {second}", text, both, p=p)]


def _depth(atlas: Atlas, heads: Heads, task: str, permutations: int) -> list[Finding]:
    """Rank correlations of scores with depth; whole layers are permuted."""
    scores, highest = atlas.scores(task).mean("seed"), atlas.any(task)
    maps = {
        "mean facilitation": scores["facilitation"],
        "facilitation in any seed": highest["facilitation"],
        "interference in any seed": highest["interference"],
    }
    if len(atlas.seeds(task)) == 1:
        del maps["facilitation in any seed"]  # the same as the mean
    findings = []
    for name, values in maps.items():
        rho, p = depth_trend(heads, heads.flat(values), permutations)
        if isnan(rho.mean):
            continue
        text = f"{task}: {name} {_TREND} with depth, rank correlation {rho.mean:.2f}{rho.brackets()}"
        is_published = compares_with_paper(atlas, task) and "any" in name
        published = "higher in deeper layers (read off the figures)" if is_published else None
        findings.append(
            Finding("layers", f"{task}, {name}", text, rho.mean, rho.low, rho.high, p, published=published)
        )
    return findings


def depth_trend(heads: Heads, values: np.ndarray, permutations: int) -> tuple[Interval, float | None]:
    """The rank correlation of `values` [head] with depth, its interval over layers, and its p with whole
    layers permuted.

    With few layers no p can be small: then there is neither a p nor an interval.
    """
    observed = rank_correlation(heads.layers, values)
    if isnan(observed) or 2 / factorial(len(heads.sizes)) >= _LEVEL:
        return Interval(observed), None
    sums = heads.layer_sums(standardized_ranks(values))
    depths = heads.shuffled_layers(np.random.default_rng(0), permutations)
    ranks = heads.depth_ranks(depths) - (heads.count + 1) / 2
    null = ranks @ sums / np.sqrt((heads.sizes * ranks**2).sum(axis=1))
    return depth_correlation_interval(heads.layers, values), tail_p(observed, null)


def _columns(heads: Heads, chosen: np.ndarray, subject: str, what: str, permutations: int) -> list[Finding]:
    """Are the chosen heads gathered in some head columns?"""
    if chosen.sum() < 2:
        return []
    is_column = (heads.columns[:, None] == np.arange(heads.width)).astype(float)
    counts = chosen @ is_column
    orders = heads.within_layers(np.random.default_rng(0), permutations)
    null = concentration(chosen[orders].astype(float) @ is_column)
    value, best = float(concentration(counts)), int(counts.argmax())
    p = None if np.ptp(null) == 0 else tail_p(value, null, "more")
    text = (
        f"{what} are spread over the head columns with a variance of {value:.2f} times their mean; "
        f"column {best} has most, {counts[best]:.0f} of {int(chosen.sum())}"
    )
    return [Finding("columns", subject, text, value, p=p)]


def _both_roles(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    """Heads that facilitate in one seed and interfere in another."""
    scores = atlas.scores(task)
    count = scores.sizes["seed"]
    if count < 2:
        return []
    helps, hurts = (
        np.stack([heads.flat(scores[score].isel(seed=seed)) >= threshold for seed in range(count)])
        for score, _ in _ROLES
    )
    in_two_seeds = helps.sum(axis=0) * hurts.sum(axis=0) > (helps & hurts).sum(axis=0)
    value = int(in_two_seeds.sum())
    text = f"{task}: heads that facilitate in one seed and interfere in another: {value}"
    return [Finding("several", f"{task}, both roles", text, value)]


def _categories(atlas: Atlas, heads: Heads, permutations: int) -> list[Finding]:
    scores, is_imported = relations_of_one_origin(atlas)
    if not scores.sizes["relation"]:
        return []
    implements = categories(scores).sel(direction="promote")
    names = [str(name) for name in implements["category"].values]
    relations = {
        name: scores["relation"].values[scores["category"].values == name].tolist() for name in names
    }
    is_published = {name: are_published_relations(atlas, relations[name]) for name in names}
    sets = {name: heads.flat(implements.sel(category=name)) for name in names}
    findings = []
    for name, chosen in sets.items():
        if chosen.any():
            published = _published_category(name, heads.depth) if is_published[name] else None
            findings.append(_first_layer(heads, name, chosen, permutations, published))
            findings += _columns(heads, chosen, name, f"heads of category {name}", permutations)
    if len(names) > 1:
        published = "few heads have 2 or 3" if all(is_published.values()) else None
        findings += _several_categories(heads, list(sets.values()), permutations, published)
    if is_imported:  # the paper scores relations in one way, the author of a table in any
        findings = [replace(one, text=f"{one.text} (imported scores)", published=None) for one in findings]
    return findings


def _published_category(name: str, layers: int) -> str | None:
    """Where the heads of a category lie in the published models, which have 32 layers."""
    published = {
        "algorithmic": "from layer 18 of 32 on",
        "knowledge": "from layer 18 of 32 on",
        "linguistic": "over all layers, more with depth",
    }.get(name)
    return f"of other models: {published}" if published and layers != _PUBLISHED_LAYERS else published


def _first_layer(
    heads: Heads, name: str, chosen: np.ndarray, permutations: int, published: str | None = None
) -> Finding:
    """The highest layer in or above which 90 % of the heads of a category lie. The test asks whether their
    mean depth is larger than with whole layers permuted."""
    layers = np.sort(heads.layers[chosen])
    first = int(layers[len(layers) - ceil(_MOST * len(layers) - 1e-9)])
    counts = heads.layer_sums(chosen)
    depths = heads.shuffled_layers(np.random.default_rng(0), permutations)
    observed = float(np.arange(len(counts)) @ counts)
    same = np.unique(counts, return_counts=True)[1]
    arrangements = factorial(len(counts)) // prod(factorial(int(times)) for times in same)
    p = None if 1 / arrangements > _LEVEL else tail_p(observed, depths @ counts, "more")
    text = (
        f"90 % of the {plural(len(layers), 'head')} of category {name} lie in layer {first} of {heads.depth} "
        f"or above; mean layer {layers.mean():.1f}, in {plural(int((counts > 0).sum()), 'layer')}"
    )
    return Finding("categories", name, text, first, p=p, published=published)


def _several_categories(
    heads: Heads, sets: Sequence[np.ndarray], permutations: int, published: str | None = None
) -> list[Finding]:
    value = int((np.sum(sets, axis=0) >= 2).sum())
    rng = np.random.default_rng(0)
    shuffled = sum(chosen[heads.within_layers(rng, permutations)].astype(int) for chosen in sets)
    null = (shuffled >= 2).sum(axis=1)
    p = None if np.ptp(null) == 0 else tail_p(value, null, "more")
    text = (
        f"heads with two or more categories: {value}; {null.mean():.1f} by chance with as many of each "
        "category in each layer"
    )
    return [Finding("several", "categories", text, value, p=p, published=published)]
