"""Findings that support or weaken the others: stability, other methods, validation, the weights."""

from __future__ import annotations

import numpy as np

from headatlas.atlas.atlas import Atlas
from headatlas.atlas.categories import IMPLEMENTS
from headatlas.atlas.effect_summary import COMPLETE, describe_corruption
from headatlas.atlas.finding import Finding, Heads, plural
from headatlas.atlas.finding.published import compares_with_paper
from headatlas.atlas.interval import Interval
from headatlas.atlas.stability import HALVES, by_seeds, half_overlap, retest
from headatlas.atlas.statistics import correlation_interval, difference_interval, tail_p
from headatlas.atlas.validation import ORDERS

__all__ = ["ablated", "held_out", "joined", "mediated", "stability", "sufficiency"]

#: mediation names a head whose effect lies so many standard deviations above the mean
_NAMED = 3
#: two maps that correlate so much count as the same
_SAME = 0.9
#: the share of heads that is switched off from G+
_OFF = 0.05


def stability(atlas: Atlas, heads: Heads, task: str, threshold: float) -> list[Finding]:
    found = []
    again = half_overlap(atlas.scores(task), threshold)
    if again is not None:
        text = (
            f"{task}: the facilitating heads of two disjoint sets of {plural(again.seeds, 'seed')} have a "
            f"Jaccard index of {again.jaccard:.2f}, {again.chance:.2f} by chance"
        )
        found.append(Finding("stability", f"{task}, seeds", text, again.jaccard))
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
                f"{numbers['jaccard']:.2f}, {numbers['chance']:.2f} by chance",
                numbers["facilitation"],
            )
        )
    return found


def joined(atlas: Atlas, heads: Heads, task: str, threshold: float, permutations: int) -> list[Finding]:
    """For a task that asks for a relation: do the heads that the task needs have the weights for it? Both
    views depend on depth, so heads are compared with the other heads of their layer."""
    relation = atlas.relation_of(task)
    if relation is None:
        return []
    scores = heads.flat(atlas.relation_scores().sel(relation=relation, direction="promote"))
    helps = heads.flat(atlas.scores(task)["facilitation"].mean("seed"))
    always = heads.flat(atlas.always(task)["facilitation"]) >= threshold
    is_scored = ~np.isnan(scores)
    heads, helps, scores, always = (
        heads.only(is_scored),
        helps[is_scored],
        scores[is_scored],
        always[is_scored],
    )
    rng = np.random.default_rng(0)
    orders = heads.within_layers(rng, permutations)
    rho, p = _layer_correlation(heads, helps, scores, orders)
    if np.isnan(rho.mean):
        return []
    strong = scores >= IMPLEMENTS
    both = np.flatnonzero(always & strong)
    expected = (always & strong[orders]).sum(axis=1).mean()
    named = [f"L{heads.layers[place]}H{heads.columns[place]}" for place in both]
    text = (
        f"{task}: within layers, facilitation and the score for {relation} have a rank correlation of "
        f"{rho.mean:.2f}{rho.brackets()}; of {plural(int(strong.sum()), 'promoting head')}, "
        f"{len(both)} facilitate the task in every seed ({', '.join(named) or 'none'}), {expected:.1f} by "
        f"chance with as many in each layer{_left_out(is_scored, 'score')}"
    )
    return [Finding("joined", task, text, rho.mean, rho.low, rho.high, p)]


def _left_out(is_known: np.ndarray, what: str) -> str:
    """Say how many heads have no value and are not compared."""
    missing = int((~is_known).sum())
    return (
        f"; {plural(missing, 'head')} without {'an' if what[0] in 'aeiou' else 'a'} {what} left out"
        if missing
        else ""
    )


def _layer_correlation(
    heads: Heads, first: np.ndarray, second: np.ndarray, orders: np.ndarray
) -> tuple[Interval, float | None]:
    """The correlation of ranks minus the mean rank of their layer, and its one-sided p; NaN if one of the two
    is constant in every layer."""
    from scipy import stats  # importing scipy takes a second; most commands do not need it

    left, right = (heads.centered(stats.rankdata(values)) for values in (first, second))
    length = float(np.sqrt((left @ left) * (right @ right)))
    if not length:
        return Interval(float("nan")), None
    observed, null = float(left @ right) / length, right[orders] @ left / length
    return correlation_interval(observed, null), tail_p(observed, null, "more")


def held_out(atlas: Atlas, task: str) -> list[Finding]:
    """The loss with the gates of retain and remove on held-out items of new groups, and of known groups."""
    summary = atlas.summary(task)
    findings = []
    for fit, sign in (("retain", "G+"), ("remove", "G−")):
        gain = summary.gain.get(fit)
        if gain is None:
            continue
        groups = "" if summary.groups == summary.held_out else f" in {plural(summary.groups or 0, 'group')}"
        text = (
            f"{task}: NLL {summary.nll['baseline']:.2f} without gates, {summary.nll[fit]:.2f} with {sign}: "
            f"{gain.mean:+.2f}{gain.brackets('+.2f')} nats gained on "
            f"{plural(summary.held_out or 0, 'item')}{groups} that no gate was fitted on"
        )
        known = summary.known.get("nll", {})
        if {"baseline", fit} <= known.keys():
            text += f"; on new items of known groups {known['baseline']:.2f} and {known[fit]:.2f}"
        findings.append(Finding("held-out", f"{task}, {fit}", text, gain.mean, gain.low, gain.high))
    return findings


def _then(atlas: Atlas, task: str) -> str:
    """What to say if seeds have come since the task was validated."""
    seeds = atlas.validation(task).facts.get("seeds")
    if seeds is None or list(seeds) == atlas.seeds(task):
        return ""
    return f"; measured with {plural(len(seeds), 'seed')} of now {len(atlas.seeds(task))}: validate it again"


def sufficiency(atlas: Atlas, task: str) -> list[Finding]:
    """Sufficiency of gating, and how far it is ahead of every other method: normalized where that means
    something, and in nats."""
    check = atlas.validation(task)
    in_nats = check.sufficiency("gating", nats=True)
    gained = f"{in_nats.mean:+.2f}{in_nats.brackets('+.2f')} nats over no heads"
    basis = f"{check.item_words()}; interval over {check.varies('gating')}"
    if check.is_normalized:
        value = check.sufficiency("gating")
        text = (
            f"{task}: the heads that gating puts first are sufficient to {value.mean:.2f}{value.brackets()} "
            f"(area under faithfulness; {gained}; {basis})"
        )
    else:
        value = in_nats
        text = (
            f"{task}: the heads that gating puts first gain {gained} along the curve ({basis}); "
            f"{check.why_not_normalized()}"
        )
    findings = [
        Finding(
            "sufficiency",
            f"{task}, gating",
            f"{text}{_then(atlas, task)}",
            value.mean,
            value.low,
            value.high,
        )
    ]
    for method in check.named():
        if method == "gating":
            continue
        gap = check.difference("gating", method, nats=True)
        text = f"{gap.mean:+.2f}{gap.brackets('+.2f')} nats"
        if check.is_normalized:
            gap = check.difference("gating", method)
            text = f"{gap.mean:+.2f}{gap.brackets('+.2f')} ({text})"
        about = f"{task}, gating − {method}"
        error = atlas.completeness_error(task, method) if (task, method) in atlas.effect_maps else None
        warning = "" if error is None or error <= COMPLETE else f"; {method} has not converged"
        text = f"{task}: gating − {method} = {text}{warning}"
        findings.append(Finding("sufficiency", about, text, gap.mean, gap.low, gap.high))
    return findings


_PREDICTED = {
    "facilitation": "negative",
    "irrelevance": "about zero",
    "interference": "positive, until those heads are used up",
}


def ablated(atlas: Atlas, task: str) -> list[Finding]:
    """The published ablation curves where 5 % of the heads are off, but at least one head."""
    check = atlas.validation(task)
    wanted = max(1, round(_OFF * check.heads))
    count = min((count for count in check.counts if count > 0), key=lambda count: abs(count - wanted))
    chance = check.ablation().sel(share=count / check.heads, method="nearest")
    findings = []
    for order in ORDERS:
        change = check.change(order, count / check.heads)
        text = (
            f"{task}: from G+, without the first {count} of {plural(check.heads, 'head')} by {order}, "
            f"{change.mean:+.3f}{change.brackets('+.3f')} nats of target log-probability; by chance "
            f"{float(chance['middle']):+.3f}{_then(atlas, task)}"
        )
        subject = f"{task}, {order}"
        published = _PREDICTED[order] if compares_with_paper(atlas, task) else None
        findings.append(
            Finding("ablation", subject, text, change.mean, change.low, change.high, published=published)
        )
    return findings


def mediated(atlas: Atlas, heads: Heads, task: str, permutations: int) -> list[Finding]:
    """Facilitation (the highest over seeds) of the heads that mediation names, as the paper names them,
    against the other heads of their layers. The paper's Welch test takes heads as independent."""
    if "mediate" not in atlas.methods(task):
        return []
    effect = heads.flat(atlas.importance(task, "mediate"))
    highest = heads.flat(atlas.any(task)["facilitation"])
    is_measured = ~np.isnan(effect)
    if not is_measured.any():
        return []
    heads, effect, highest = heads.only(is_measured), effect[is_measured], highest[is_measured]
    named = effect >= effect.mean() + _NAMED * effect.std()
    if named.sum() < 2:
        return []
    centered = heads.centered(highest)
    null = centered[heads.within_layers(np.random.default_rng(0), permutations)][:, named].mean(axis=1)
    if not np.ptp(null):
        return []  # every layer has one head, or one score
    gap = difference_interval(float(centered[named].mean()), null)
    corruption = describe_corruption(atlas.run(task, "mediate").settings.get("decides", {}))
    corruption = corruption or "where heads were patched was not recorded"
    text = (
        f"{task}: the {int(named.sum())} heads that mediation names (effect at least {_NAMED} standard "
        f"deviations above the mean) have a facilitation of {highest[named].mean():.2f}, the others "
        f"{highest[~named].mean():.2f} (in the seed where it is highest); against the mean of their layers "
        f"{gap.mean:+.2f}{gap.brackets('+.2f')}; {corruption}{_left_out(is_measured, 'effect')}"
    )
    return [
        Finding(
            "mediation",
            task,
            text,
            gap.mean,
            gap.low,
            gap.high,
            tail_p(gap.mean, null, "more"),
            published=(
                "higher in the heads that mediation names" if compares_with_paper(atlas, task) else None
            ),
        )
    ]
