"""Findings as sentences: the one place where a finding becomes text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from headatlas.atlas.finding import Finding, plural
from headatlas.atlas.interval import Interval
from headatlas.atlas.statistics import TEST_LEVEL
from headatlas.atlas.validation import item_words

__all__ = ["sentence"]

_VERBS = {"facilitation": "facilitate", "interference": "interfere"}


def sentence(finding: Finding) -> str:
    """What a finding says, in words and numbers."""
    numbers = dict(finding.numbers)
    is_imported = numbers.pop("imported", False)
    text = _SENTENCES[finding.topic, finding.kind](finding, **numbers)
    return f"{text} (imported scores)" if is_imported else text


def _share_per_seed(finding: Finding, *, task: str, score: str, seeds: int) -> str:
    share = f"{100 * finding.value:.1f} %{finding.interval.brackets('.1f', 100)}"
    return f"{task}: {share} of heads {_VERBS[score]}, mean over {plural(seeds, 'seed')}"


def _share_over_seeds(when: str) -> Callable[..., str]:
    def share(finding: Finding, *, task: str, score: str, seeds: int) -> str:
        return (
            f"{task}: {100 * finding.value:.1f} % of heads {_VERBS[score]} {when} ({plural(seeds, 'seed')})"
        )

    return share


def _task_difference(finding: Finding, *, first: str, second: str) -> str:
    return (
        f"{first} − {second}: {100 * finding.value:+.1f} points{finding.interval.brackets('+.1f', 100)} in "
        "the share of heads that facilitate, mean over seeds"
    )


def _shared_heads(
    finding: Finding, *, first: str, second: str, seeds: Sequence[int], by_chance: float, jaccard: float
) -> str:
    limit = "" if seeds[0] == seeds[1] else f", in the first {plural(min(seeds), 'seed')} of each"
    return (
        f"{first} and {second} share {finding.value} of the heads that facilitate in every seed{limit}; "
        f"{by_chance:.1f} by chance with as many in each layer (Jaccard {jaccard:.2f})"
    )


def _trend(finding: Finding, *, task: str, score: str) -> str:
    """A trend has a direction in words only if its adjusted test does."""
    is_certain = finding.adjusted is not None and finding.adjusted < TEST_LEVEL
    verb = ("rises" if finding.value > 0 else "falls") if is_certain else "has no clear trend"
    rho = f"{finding.value:.2f}{finding.interval.brackets()}"
    return f"{task}: {score} {verb} with depth, rank correlation {rho}"


def _columns(what: str) -> Callable[..., str]:
    def columns(finding: Finding, *, subject: str, column: int, heads_in_column: int, heads: int) -> str:
        return (
            f"{what.format(subject)} are spread over the head columns with a variance of {finding.value:.2f} "
            f"times their mean; column {column} has most, {heads_in_column} of {heads}"
        )

    return columns


def _both_roles(finding: Finding, *, task: str) -> str:
    return f"{task}: heads that facilitate in one seed and interfere in another: {finding.value}"


def _first_layer(
    finding: Finding, *, category: str, heads: int, depth: int, mean_layer: float, layers: int
) -> str:
    return (
        f"90 % of the {plural(heads, 'head')} of category {category} lie in layer {finding.value} of {depth} "
        f"or above; mean layer {mean_layer:.1f}, in {plural(layers, 'layer')}"
    )


def _several_categories(finding: Finding, *, by_chance: float) -> str:
    return (
        f"heads with two or more categories: {finding.value}; {by_chance:.1f} by chance with as many of each "
        "category in each layer"
    )


def _halves_of_seeds(finding: Finding, *, task: str, seeds: int, by_chance: float) -> str:
    return (
        f"{task}: the facilitating heads of two disjoint sets of {plural(seeds, 'seed')} have a "
        f"Jaccard index of {finding.value:.2f}, {by_chance:.2f} by chance"
    )


def _number_of_seeds(finding: Finding, *, task: str, seeds: int, same: float, enough: int | None) -> str:
    reached = f"{same} is not reached" if enough is None else f"{same} is reached with {enough}"
    return (
        f"{task}: maps of facilitation from {plural(seeds, 'seed')} each, no seed in common, correlate "
        f"{finding.value:.2f} (ranks); {reached}"
    )


def _other_items(
    finding: Finding,
    *,
    task: str,
    seeds: int,
    facilitation: float,
    interference: float,
    jaccard: float,
    chance: float,
) -> str:
    return (
        f"{task}: fitted on two halves of the items ({plural(seeds, 'seed')} each) "
        f"the maps correlate {facilitation:.2f} in facilitation and "
        f"{interference:.2f} in interference (ranks); Jaccard index "
        f"{jaccard:.2f}, {chance:.2f} by chance"
    )


def _weights(
    finding: Finding,
    *,
    task: str,
    relation: str,
    promoting: int,
    heads: Sequence[str],
    by_chance: float,
    left_out: int,
) -> str:
    return (
        f"{task}: within layers, facilitation and the score for {relation} have a rank correlation of "
        f"{finding.value:.2f}{finding.interval.brackets()}; of {plural(promoting, 'promoting head')}, "
        f"{len(heads)} facilitate the task in every seed ({', '.join(heads) or 'none'}), {by_chance:.1f} by "
        f"chance with as many in each layer{_left_out(left_out, 'a score')}"
    )


def _left_out(heads: int, what: str) -> str:
    """How many heads have no value and are not compared."""
    return f"; {plural(heads, 'head')} without {what} left out" if heads else ""


def _held_out_gain(
    finding: Finding,
    *,
    task: str,
    gates: str,
    nll: Sequence[float],
    items: int,
    groups: int | None,
    known_nll: Sequence[float] | None,
) -> str:
    in_groups = "" if groups == items else f" in {plural(groups or 0, 'group')}"
    text = (
        f"{task}: NLL {nll[0]:.2f} without gates, {nll[1]:.2f} with {gates}: "
        f"{finding.value:+.2f}{finding.interval.brackets('+.2f')} nats gained on "
        f"{plural(items, 'item')}{in_groups} that no gate was fitted on"
    )
    if known_nll is not None:
        text += f"; on new items of known groups {known_nll[0]:.2f} and {known_nll[1]:.2f}"
    return text


def _seeds_since(seeds: Sequence[int] | None) -> str:
    """What to say if seeds have come since the task was validated."""
    if seeds is None:
        return ""
    return f"; measured with {plural(seeds[0], 'seed')} of now {seeds[1]}: validate it again"


def _signed(value: float, low: float | None = None, high: float | None = None) -> str:
    interval = Interval(value, low, high)
    return f"{interval.mean:+.2f}{interval.brackets('+.2f')}"


def _sufficiency(
    finding: Finding,
    *,
    task: str,
    nats: Sequence[float],
    items: int,
    groups: int,
    varies: str,
    not_normalized: str | None,
    seeds_since: Sequence[int] | None,
    unit: str = "nats",
) -> str:
    gained = f"{_signed(*nats)} {unit} over no heads"
    basis = f"{item_words(items, groups)}; interval over {varies}"
    if not_normalized is None:
        text = (
            f"{task}: the heads that gating puts first are sufficient to "
            f"{finding.value:.2f}{finding.interval.brackets()} "
            f"(area under faithfulness; {gained}; {basis})"
        )
    else:
        text = (
            f"{task}: the heads that gating puts first gain {gained} along the curve ({basis}); "
            f"{not_normalized}"
        )
    return f"{text}{_seeds_since(seeds_since)}"


def _lead(
    finding: Finding,
    *,
    task: str,
    method: str,
    nats: Sequence[float],
    is_normalized: bool,
    has_converged: bool,
    unit: str = "nats",
) -> str:
    in_nats = f"{_signed(*nats)} {unit}"
    gap = f"{_signed(finding.value, finding.low, finding.high)} ({in_nats})" if is_normalized else in_nats
    warning = "" if has_converged else f"; {method} has not converged"
    return f"{task}: gating − {method} = {gap}{warning}"


def _ablated(
    finding: Finding,
    *,
    task: str,
    order: str,
    off: int,
    heads: int,
    by_chance: float,
    seeds_since: Sequence[int] | None,
    unit: str = "nats",
    gain: str = "target log-probability",
) -> str:
    return (
        f"{task}: from G+, without the first {off} of {plural(heads, 'head')} by {order}, "
        f"{finding.value:+.3f}{finding.interval.brackets('+.3f')} {unit} of {gain}; by chance "
        f"{by_chance:+.3f}{_seeds_since(seeds_since)}"
    )


def _mediated(
    finding: Finding,
    *,
    task: str,
    named: int,
    deviations: int,
    means: Sequence[float],
    corruption: str | None,
    left_out: int,
) -> str:
    patched = corruption or "where heads were patched was not recorded"
    return (
        f"{task}: the {named} heads that mediation names (effect at least {deviations} standard "
        f"deviations above the mean) have a facilitation of {means[0]:.2f}, the others "
        f"{means[1]:.2f} (in the seed where it is highest); against the mean of their layers "
        f"{finding.value:+.2f}{finding.interval.brackets('+.2f')}; {patched}"
        f"{_left_out(left_out, 'an effect')}"
    )


#: (topic, kind) -> the sentence of a finding
_SENTENCES: Mapping[tuple[str, str], Callable[..., str]] = {
    ("density", "per seed"): _share_per_seed,
    ("density", "always"): _share_over_seeds("in every seed"),
    ("density", "any"): _share_over_seeds("in at least one seed"),
    ("tasks", "difference"): _task_difference,
    ("layers", "trend"): _trend,
    ("categories", "first layer"): _first_layer,
    ("columns", "task"): _columns("{}: the heads that facilitate in every seed"),
    ("columns", "category"): _columns("heads of category {}"),
    ("several", "roles"): _both_roles,
    ("several", "categories"): _several_categories,
    ("overlap", "tasks"): _shared_heads,
    ("held-out", "gain"): _held_out_gain,
    ("ablation", "change"): _ablated,
    ("mediation", "facilitation"): _mediated,
    ("sufficiency", "gating"): _sufficiency,
    ("sufficiency", "lead"): _lead,
    ("stability", "halves"): _halves_of_seeds,
    ("stability", "seeds"): _number_of_seeds,
    ("stability", "items"): _other_items,
    ("joined", "weights"): _weights,
}
