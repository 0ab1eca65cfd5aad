"""Findings that support or weaken the others: stability, other methods, validation, the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.effect_summary import COMPLETE, describe_corruption
from headatlas.atlas.finding import Finding
from headatlas.atlas.finding.flat_heads import Heads
from headatlas.atlas.finding.published import compares_with_paper
from headatlas.atlas.interval import Interval
from headatlas.atlas.statistics import correlation_interval, difference_interval, tail_p
from headatlas.atlas.validation import ORDERS
from headatlas.core import IMPLEMENTS, NLL, Head

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["ablated", "held_out", "joined", "layer_correlation", "mediated", "stability", "sufficiency"]

#: mediation names a head whose effect lies so many standard deviations above the mean
_NAMED = 3
#: two maps that correlate at least so much count as the same
_SAME = 0.9
#: the share of heads that is switched off from G+
_OFF = 0.05


def stability(atlas: Atlas, task: str, threshold: float) -> list[Finding]:
    """Agreement of maps from other seeds, from fewer seeds, and from other items."""
    found = atlas.stability(task, threshold)
    findings = []
    if found.halves is not None:
        findings.append(
            Finding.of(
                "stability",
                "halves",
                f"{task}, seeds",
                found.halves.jaccard,
                task=task,
                seeds=found.halves.seeds,
                by_chance=found.halves.chance,
            )
        )
    table = found.by_seeds
    apart = table[table["facilitation_with_others"].notna()]
    if len(apart):
        agreement = float(apart["facilitation_with_others"].iloc[-1])
        enough = apart["seeds"][apart["facilitation_with_others"] >= _SAME]
        findings.append(
            Finding.of(
                "stability",
                "seeds",
                f"{task}, number of seeds",
                agreement,
                task=task,
                seeds=int(apart["seeds"].max()),
                same=_SAME,
                enough=int(enough.min()) if len(enough) else None,
            )
        )
    if found.retest is not None:
        facilitation = found.retest["facilitation"]
        about = f"{task}, items"
        numbers: dict[str, Any] = {"task": task, "seeds": found.retest_seeds, **found.retest}
        findings.append(Finding.of("stability", "items", about, facilitation, **numbers))
    return findings


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
    rho, p = layer_correlation(heads, helps, scores, orders)
    if np.isnan(rho.mean):
        return []
    strong = scores >= IMPLEMENTS
    both = np.flatnonzero(always & strong)
    expected = (always & strong[orders]).sum(axis=1).mean()
    named = [str(Head(int(heads.layers[place]), int(heads.columns[place]))) for place in both]
    return [
        Finding.of(
            "joined",
            "weights",
            task,
            rho,
            p,
            task=task,
            relation=relation,
            promoting=int(strong.sum()),
            heads=named,
            by_chance=float(expected),
            left_out=int((~is_scored).sum()),
        )
    ]


def layer_correlation(
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
        known = summary.known.get("nll", {})
        numbers: dict[str, Any] = {
            "task": task,
            "gates": sign,
            "nll": [summary.nll["baseline"], summary.nll[fit]],
            "items": summary.held_out or 0,
            "groups": summary.groups,
            "known_nll": [known["baseline"], known[fit]] if {"baseline", fit} <= known.keys() else None,
        }
        findings.append(Finding.of("held-out", "gain", f"{task}, {fit}", gain, **numbers))
    return findings


def _seeds_since(atlas: Atlas, task: str) -> list[int] | None:
    """[seeds when the task was validated, seeds now], if some have come since."""
    seeds = atlas.validation(task).facts.get("seeds")
    if seeds is None or list(seeds) == atlas.seeds(task):
        return None
    return [len(seeds), len(atlas.seeds(task))]


def sufficiency(atlas: Atlas, task: str) -> list[Finding]:
    """Sufficiency of gating, and how far it is ahead of every other method: normalized where that means
    something, and in nats."""
    check = atlas.validation(task)
    in_nats = check.sufficiency("gating", nats=True)
    unit: dict[str, Any] = {} if check.metric.name == NLL else {"unit": check.metric.unit}
    findings = [
        Finding.of(
            "sufficiency",
            "gating",
            f"{task}, gating",
            check.sufficiency("gating") if check.is_normalized else in_nats,
            task=task,
            nats=[in_nats.mean, in_nats.low, in_nats.high],
            items=check.items,
            groups=check.independent,
            varies=check.varies("gating"),
            not_normalized=check.why_not_normalized() or None,
            seeds_since=_seeds_since(atlas, task),
            **unit,
        )
    ]
    for method in check.named():
        if method == "gating":
            continue
        gap_in_nats = check.difference("gating", method, nats=True)
        error = atlas.completeness_error(task, method) if (task, method) in atlas.effect_maps else None
        findings.append(
            Finding.of(
                "sufficiency",
                "lead",
                f"{task}, gating − {method}",
                check.difference("gating", method) if check.is_normalized else gap_in_nats,
                task=task,
                method=method,
                nats=[gap_in_nats.mean, gap_in_nats.low, gap_in_nats.high],
                is_normalized=check.is_normalized,
                has_converged=error is None or error <= COMPLETE,
                **unit,
            )
        )
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
    is_nll = check.metric.name == NLL
    measured: dict[str, Any] = {} if is_nll else {"unit": check.metric.unit, "gain": check.metric.gain}
    for order in ORDERS:
        change = check.change(order, count / check.heads)
        published = _PREDICTED[order] if is_nll and compares_with_paper(atlas, task) else None
        findings.append(
            Finding.of(
                "ablation",
                "change",
                f"{task}, {order}",
                change,
                published=published,
                task=task,
                order=order,
                off=count,
                heads=check.heads,
                by_chance=float(chance["middle"]),
                seeds_since=_seeds_since(atlas, task),
                **measured,
            )
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
    corruption = describe_corruption(atlas.run(task, "mediate").decides)
    return [
        Finding.of(
            "mediation",
            "facilitation",
            task,
            gap,
            tail_p(gap.mean, null, "more"),
            "higher in the heads that mediation names" if compares_with_paper(atlas, task) else None,
            task=task,
            named=int(named.sum()),
            deviations=_NAMED,
            means=[float(highest[named].mean()), float(highest[~named].mean())],
            corruption=corruption or None,
            left_out=int((~is_measured).sum()),
        )
    ]
