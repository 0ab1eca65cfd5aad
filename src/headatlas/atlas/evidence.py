"""Findings that say how far the others can be believed: stability, other methods, the weights."""

from __future__ import annotations

import numpy as np

from headatlas.atlas.atlas import Atlas
from headatlas.atlas.categories import IMPLEMENTS
from headatlas.atlas.finding import Finding, Heads, plural
from headatlas.atlas.stability import HALVES, by_seeds, facilitating_jaccard, retest
from headatlas.atlas.statistics import bootstrap, correlated, permutation_p, shuffled_correlation
from headatlas.atlas.validation import ORDERS

__all__ = ["ablated", "joined", "mediated", "stability", "sufficiency"]

#: mediation names a head whose effect lies so many standard deviations above the mean
_NAMED = 3
#: two maps that correlate so much count as the same
_SAME = 0.9
#: the share of heads that is switched off from G+
_OFF = 0.05


def stability(atlas: Atlas, task: str, threshold: float) -> list[Finding]:
    found = []
    again = facilitating_jaccard(atlas.scores(task), threshold, draws=500)
    if again is not None:
        found.append(
            Finding(
                "stability",
                f"{task}, seeds",
                f"{task}: the facilitating heads of seeds drawn again overlap with those of all seeds by a "
                f"Jaccard index of {again.mean:.2f} [{again.low:.2f}–{again.high:.2f}]",
                again.mean,
                again.low,
                again.high,
            )
        )
    table = by_seeds(atlas.scores(task), threshold)
    apart = table[table["facilitation_with_others"].notna()]
    if len(apart):
        most, agreement = int(apart["seeds"].max()), float(apart["facilitation_with_others"].iloc[-1])
        enough = apart["seeds"][apart["facilitation_with_others"] >= _SAME]
        reached = f"{_SAME} is reached with {int(enough.min())}" if len(enough) else f"{_SAME} is not reached"
        text = (
            f"{task}: maps of facilitation from {plural(most, 'seed')} each, no seed in common, correlate "
            f"{agreement:.2f} (ranks); {reached}"
        )
        found.append(Finding("stability", f"{task}, number of seeds", text, agreement))
    halves = [half for half in HALVES if atlas.seeds(task, half)]
    if len(halves) == len(HALVES):
        numbers = retest(atlas.scores(task, halves[0]), atlas.scores(task, halves[1]), threshold)
        seeds = len(atlas.seeds(task, halves[0]))
        found.append(
            Finding(
                "stability",
                f"{task}, items",
                f"{task}: fitted on two halves of the items ({plural(seeds, 'seed')} each) "
                f"the maps correlate {numbers['facilitation']:.2f} in facilitation and "
                f"{numbers['interference']:.2f} in interference (ranks); Jaccard index "
                f"{numbers['jaccard']:.2f}",
                numbers["facilitation"],
            )
        )
    return found


def joined(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    """For a task that asks for a relation: the causal view and that of the weights. Both have their heads in
    certain layers, so heads are permuted within their layers."""
    relation = atlas.relation_of(task)
    if relation is None:
        return []
    scores = heads.flat(atlas.relation_scores().sel(relation=relation, direction="promote"))
    helps = heads.flat(atlas.scores(task)["facilitation"].mean("seed"))
    if np.isnan(scores).any():
        return []
    rho = correlated(helps, scores)
    if np.isnan(rho.mean):
        return []

    p = permutation_p(rho.mean, shuffled_correlation(helps, scores, heads.within_layers), sides="more")
    always = heads.flat(atlas.always(task)["facilitation"]) >= threshold
    strong = scores >= IMPLEMENTS
    both = np.flatnonzero(always & strong)
    chance = np.random.default_rng(1)
    expected = np.mean([(always & strong[heads.within_layers(chance)]).sum() for _ in range(500)])
    named = [f"L{heads.layers[place]}H{heads.columns[place]}" for place in both]
    text = (
        f"{task}: facilitation and the score for {relation} have a rank correlation of {rho.mean:.2f} "
        f"[{rho.low:.2f} to {rho.high:.2f}]; of {int(strong.sum())} heads that promote it, {len(both)} "
        f"facilitate the task in every seed ({', '.join(named) or 'none'}), {expected:.1f} by chance with "
        "as many in each layer"
    )
    return [Finding("joined", task, text, rho.mean, rho.low, rho.high, p)]


def _then(atlas: Atlas, task: str) -> str:
    """What to say if seeds have come since the task was validated."""
    seeds = atlas.validation(task).facts.get("seeds")
    if seeds is None or list(seeds) == atlas.seeds(task):
        return ""
    return f"; measured with {plural(len(seeds), 'seed')} of now {len(atlas.seeds(task))}: validate it again"


def sufficiency(atlas: Atlas, task: str) -> list[Finding]:
    check = atlas.validation(task)
    found = []
    own = check.sufficiency("gating")
    found.append(
        Finding(
            "sufficiency",
            f"{task}, gating",
            f"{task}: the heads that gating puts first are sufficient to {own.mean:.2f} "
            f"[{own.low:.2f}–{own.high:.2f}] (area under faithfulness, {check.items} held-out items)"
            f"{_then(atlas, task)}",
            own.mean,
            own.low,
            own.high,
        )
    )
    for method in check.named():
        if method != "gating":
            gap = check.difference("gating", method)
            found.append(
                Finding(
                    "sufficiency",
                    f"{task}, gating − {method}",
                    f"{task}: gating less {method} {gap.mean:+.2f} [{gap.low:+.2f} to {gap.high:+.2f}]",
                    gap.mean,
                    gap.low,
                    gap.high,
                )
            )
    return found


_SAID = {
    "facilitation": "negative",
    "irrelevance": "about zero",
    "interference": "positive, until those heads are used up",
}


def ablated(atlas: Atlas, task: str) -> list[Finding]:
    """The published curves at one place."""
    check = atlas.validation(task)
    found = []
    then = _then(atlas, task)
    chance = check.ablation().sel(share=_OFF, method="nearest")
    for order in ORDERS:
        change = check.change(order, _OFF)
        found.append(
            Finding(
                "ablation",
                f"{task}, {order}",
                f"{task}: from G+, without the first {100 * float(chance.share):.0f} % of heads by {order}, "
                f"{change.mean:+.3f} [{change.low:+.3f} to {change.high:+.3f}] nats of target "
                f"log-probability; by chance {float(chance['middle']):+.3f}{then}",
                change.mean,
                change.low,
                change.high,
                published=_SAID[order],
            )
        )
    return found


def mediated(atlas: Atlas, heads: Heads, task: str) -> list[Finding]:
    """Heads that mediation names, as the paper does it, and the facilitation of all (the most over seeds)."""
    if "mediate" not in atlas.methods(task):
        return []
    effect = heads.flat(atlas.importance(task, "mediate"))
    most = heads.flat(atlas.any(task)["facilitation"])
    named = effect >= effect.mean() + _NAMED * effect.std()
    if named.sum() < 2:
        return []
    from scipy.stats import ttest_ind  # takes a second, which most commands need not wait for

    def gap(places: np.ndarray) -> float:
        some = named[places]
        both = some.any() and not some.all()
        return float(most[places][some].mean() - most[places][~some].mean()) if both else float("nan")

    found = bootstrap(heads.count, gap)
    test = ttest_ind(most[named], most[~named], equal_var=False, alternative="greater")
    text = (
        f"{task}: the {int(named.sum())} heads that mediation names (effect above the mean by {_NAMED} "
        f"standard deviations) have a facilitation of {most[named].mean():.2f}, the others "
        f"{most[~named].mean():.2f} (in the seed where it is highest): {found.mean:+.2f} "
        f"[{found.low:+.2f} to {found.high:+.2f}]"
    )
    said = "higher in the heads that mediation names (Welch's test)"
    return [
        Finding(
            "mediation", task, text, found.mean, found.low, found.high, float(test.pvalue), published=said
        )
    ]
