"""Reasons to doubt a map, as data; the text is rendered here, once, for every place that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.effect_summary import COMPLETE
from headatlas.atlas.finding import plural
from headatlas.atlas.method_agreement import MethodAgreement, compare_methods
from headatlas.atlas.record import EffectMap, Run
from headatlas.core import NLL

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = [
    "LEAST_SEEDS",
    "LEAST_UPDATES",
    "Doubt",
    "chance_doubt",
    "contrast_doubts",
    "doubts",
    "effect_doubts",
    "made_how",
    "seed_blocks_text",
    "share_moving",
    "validation_doubts",
]

#: updates and seeds of the smallest preset; tests compare them with `PRESETS`, which imports torch
LEAST_UPDATES = {"free": 25, "pressed": 50}
LEAST_SEEDS = 3
#: a result is doubtful with fewer measured items, groups of these, training items or random orders
_FEW_ITEMS, _FEW_GROUPS, _FEW_TRAINED, _FEW_DRAWS = 20, 10, 50, 39
#: a mean |G+ - G-| outside this range is doubtful
_SEPARATION = (0.1, 0.95)
#: correlation between seeds below which they disagree
_LITTLE_ALIKE = 0.5
#: a gate moves if it changes by more than `_MOVED` in the last `_LAST` of the updates; so many may
_MOVED, _LAST, _MOST_MOVING = 0.1, 0.2, 0.15

_CHANCE = (
    "the model is not clearly better than chance here: baseline NLL {nll:.2f} (targets of other rows "
    "{chance_nll:.2f}), accuracy {accuracy:.2f}; a map of a task that the model cannot do describes "
    "noise; use an easier task or a stronger model"
)
_NO_HELD_OUT = "no figure shows how the gates do on items that they were not fitted on; map it with test=0.1"


def _unknown_chance(groups: int, targets: int | None) -> str:
    if groups == 1:
        reason = "all held-out items are of one group; add groups to the task"
    elif targets == 1:
        reason = "all held-out items have the same target; add items with other targets to the task"
    else:
        reason = "no other target is short enough to swap in; add items with other targets to the task"
    return f"whether the model is better than chance cannot be judged: {reason}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _updates(free: int, pressed: int | None = None) -> str:
    least = " + ".join(str(LEAST_UPDATES[stage]) for stage in ("free", "pressed")[: 2 - (pressed is None)])
    return (
        f"{_update_counts(free, pressed)}, fewer than any preset has ({least}): the gates still depend on "
        "where they started; leave out updates=…, or raise it"
    )


def _update_counts(free: int, pressed: int | None = None) -> str:
    return plural(free, "update") if pressed is None else f"{free} + {pressed} updates"


def _effect_items(items: int, groups: int) -> str:
    return plural(items, "distinct item") + (f" of {plural(groups, 'group')}" if groups < items else "")


def _low_separation(separation: float, moving: float | None = None, few_updates: bool = False) -> str:
    if few_updates or moving is None or moving > _MOST_MOVING:
        why = "there were too few updates to tell which heads matter; raise updates=…"
    else:
        why = "the gates have settled, so nearly every head would matter; check that with validate_atlas"
    return f"mean |G+ − G−| is {separation:.2f}: hardly any gate follows the pressure; {why}"


def _methods_differ(
    other: str, differing: int, correlation: float, shared: int, top: int, head: str, rank: int, heads: int
) -> str:
    more = f" and {plural(differing - 1, 'other method')}" if differing > 1 else ""
    return (
        f"ranks heads differently from {other}{more}: against {other} the rank correlation is "
        f"{correlation:.2f}, {shared} of the top {top} heads are the same, and {head}, first there, ranks "
        f"{rank} of {heads} here; rely on heads that several methods put first, or run validate_atlas, which "
        "measures each ranking"
    )


#: key -> text of a doubt: what is doubtful, why, and what to change
_TEXTS: Mapping[str, Callable[..., str]] = {
    "chance": _CHANCE.format,
    "retain-chance": f"task to keep: {_CHANCE}".format,
    "forget-chance": f"task to forget: {_CHANCE}".format,
    "chance-unknown": _unknown_chance,
    "retain-chance-unknown": lambda **numbers: f"task to keep: {_unknown_chance(**numbers)}",
    "forget-chance-unknown": lambda **numbers: f"task to forget: {_unknown_chance(**numbers)}",
    "updates": _updates,
    "seeds": lambda seeds: (
        f"{plural(seeds, 'seed')}, fewer than any preset has ({LEAST_SEEDS}): other seeds may give another "
        f"map; seeds={LEAST_SEEDS} with resume=True adds some"
    ),
    "imported-seeds": lambda seeds: f"{plural(seeds, 'seed')} imported: other seeds may give another map",
    "separation-low": _low_separation,
    "imported-separation-low": lambda separation: (
        f"mean |G+ − G−| is {separation:.2f}: G+ and G− hardly differ, so they do not show which heads "
        "matter; check the imported columns, or fit the gates longer where they were made"
    ),
    "separation-high": lambda separation: (
        f"mean |G+ − G−| is {separation:.2f}: nearly every gate follows the pressure, so the task hardly "
        "depends on any head; check that the model can do the task"
    ),
    "moving": lambda moving: (
        f"{_percent(moving)} of gates still moved by more than {_MOVED} in the last fifth of the updates: "
        "their roles may change with more updates; raise updates=…"
    ),
    "seeds-differ": lambda correlation: (
        f"seeds correlate {correlation:.2f} in facilitation: each seed gives another map; rely on heads with "
        "the same role in every seed, or raise updates=…"
    ),
    "imported-seeds-differ": lambda correlation: (
        f"seeds correlate {correlation:.2f} in facilitation: each seed gives another map; rely on heads with "
        "the same role in every seed"
    ),
    "trained-items": lambda items: (
        f"fitted on {plural(items, 'item')}: gates can fit these items instead of the task; add items to it"
    ),
    "no-held-out": lambda: f"nothing is held out: {_NO_HELD_OUT}",
    "retain-no-held-out": lambda: f"task to keep: nothing is held out: {_NO_HELD_OUT}",
    "forget-no-held-out": lambda: f"task to forget: nothing is held out: {_NO_HELD_OUT}",
    "held-out": lambda items: (
        f"{plural(items, 'distinct held-out item')}: too few for small differences in loss or accuracy; add "
        "items to the task"
    ),
    "held-out-groups": lambda groups: (
        f"held-out items of {plural(groups, 'group')}: too few for small differences in loss or accuracy; "
        "add groups to the task"
    ),
    "retain-held-out": lambda items: (
        f"task to keep: {plural(items, 'held-out item')}, too few for small differences; add items to it"
    ),
    "forget-held-out": lambda items: (
        f"task to forget: {plural(items, 'held-out item')}, too few for small differences; add items to it"
    ),
    "validation-items": lambda items: (
        f"validated on {items}: its intervals are wide; raise items=…, or add items to the task"
    ),
    "not-normalized": lambda reason, unit="nats": f"sufficiency and necessity are in {unit}; {reason}",
    "validation-draws": lambda draws: (
        f"validated with {plural(draws, 'random order')}: their band holds fewer than 95 % of new orders; "
        f"raise draws=… to {_FEW_DRAWS} or more"
    ),
    "effect-items": lambda items, groups: (
        f"effects measured on {_effect_items(items, groups)}: too few to tell small effects from noise; "
        f"raise items=… or seeds=…, or add items{' of other groups' if groups < items else ''} to the task"
    ),
    "methods-differ": _methods_differ,
    "completeness": lambda error, is_single: (
        f"integrated gradients miss the loss difference that they should add up to by {_percent(error)}: "
        f"they have not converged; measure {'more items' if is_single else 'them again, into a new atlas'}"
    ),
}

#: key -> a few words for the caption of a figure
_BRIEF: Mapping[str, Callable[..., str]] = {
    "chance": lambda **_: "model at chance",
    "retain-chance": lambda **_: "model at chance in the task to keep",
    "forget-chance": lambda **_: "model at chance in the task to forget",
    "chance-unknown": lambda **_: "chance cannot be judged",
    "retain-chance-unknown": lambda **_: "chance cannot be judged in the task to keep",
    "forget-chance-unknown": lambda **_: "chance cannot be judged in the task to forget",
    "updates": _update_counts,
    "seeds": lambda seeds: plural(seeds, "seed"),
    "imported-seeds": lambda seeds: plural(seeds, "seed"),
    "separation-low": lambda separation, **_: f"mean |G+ − G−| {separation:.2f}",
    "imported-separation-low": lambda separation: f"mean |G+ − G−| {separation:.2f}",
    "separation-high": lambda separation: f"mean |G+ − G−| {separation:.2f}",
    "moving": lambda moving: f"{_percent(moving)} of gates still moving",
    "seeds-differ": lambda correlation: f"seeds correlate {correlation:.2f}",
    "imported-seeds-differ": lambda correlation: f"seeds correlate {correlation:.2f}",
    "trained-items": lambda items: f"fitted on {plural(items, 'item')}",
    "no-held-out": lambda: "nothing held out",
    "retain-no-held-out": lambda: "nothing held out to keep",
    "forget-no-held-out": lambda: "nothing held out to forget",
    "held-out": lambda items: plural(items, "held-out item"),
    "held-out-groups": lambda groups: f"{plural(groups, 'group')} held out",
    "retain-held-out": lambda items: f"{plural(items, 'held-out item')} to keep",
    "forget-held-out": lambda items: f"{plural(items, 'held-out item')} to forget",
    "validation-items": lambda items: f"validated on {items}",
    "not-normalized": lambda unit="nats", **_: f"sufficiency in {unit}",
    "validation-draws": lambda draws: f"validated with {plural(draws, 'random order')}",
    "effect-items": lambda items, groups: f"effects of {_effect_items(items, groups)}",
    "methods-differ": lambda other, **_: f"ranks differ from {other}",
    "completeness": lambda error, **_: f"integrated gradients {_percent(error)} off",
}


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason to doubt a result: which one (`key`) and the `numbers` behind it."""

    key: str
    numbers: Mapping[str, Any]

    @property
    def text(self) -> str:
        """What is doubtful, why, and what to change."""
        return _TEXTS[self.key](**self.numbers)

    @property
    def brief(self) -> str:
        """A few words."""
        return _BRIEF[self.key](**self.numbers)

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "numbers": dict(self.numbers), "text": self.text}


def doubts(atlas: Atlas, task: str) -> list[Doubt]:
    """Reasons to doubt the gates of a task and their validation, the most serious first."""
    run, summary = atlas.run(task), atlas.summary(task)
    imported = _is_imported(run)
    prefix = "imported-" if imported else ""
    found = [chance_doubt(run.baseline)]
    updates = _update_doubt(run)
    moving = share_moving(atlas, task)
    low, high = _SEPARATION
    found.append(updates)
    if summary.seeds < LEAST_SEEDS:
        found.append(Doubt(f"{prefix}seeds", {"seeds": summary.seeds}))
    if summary.parted < low and imported:
        found.append(Doubt("imported-separation-low", {"separation": summary.parted}))
    elif summary.parted < low:
        numbers = {"separation": summary.parted, "moving": moving, "few_updates": updates is not None}
        found.append(Doubt("separation-low", numbers))
    elif summary.parted > high and not imported:
        found.append(Doubt("separation-high", {"separation": summary.parted}))
    if moving is not None and moving > _MOST_MOVING:
        found.append(Doubt("moving", {"moving": moving}))
    alike = summary.correlation.get("facilitation")
    if alike is not None and alike < _LITTLE_ALIKE:
        found.append(Doubt(f"{prefix}seeds-differ", {"correlation": alike}))
    facts = run.task_facts
    trained = facts.get("train_items", facts.get("train_rows"))  # older atlases count rows, copies included
    if trained is not None and trained < _FEW_TRAINED:
        found.append(Doubt("trained-items", {"items": int(trained)}))
    if summary.held_out == 0:
        found.append(Doubt("no-held-out", {}))
    elif summary.held_out is not None and summary.held_out < _FEW_ITEMS:
        found.append(Doubt("held-out", {"items": summary.held_out}))
    elif summary.groups is not None and summary.groups < _FEW_GROUPS:
        found.append(Doubt("held-out-groups", {"groups": summary.groups}))
    found += _validation_doubts(atlas, task, summary.groups)
    return [doubt for doubt in found if doubt is not None]


def validation_doubts(atlas: Atlas, task: str) -> list[Doubt]:
    """The doubts of a task, and reasons to doubt the rankings of the methods that were compared."""
    compared = [name for name in atlas.validation(task).named() if (task, name) in atlas.effect_maps]
    of_methods = [doubt for name in compared for doubt in effect_doubts(atlas, task, name)]
    return [*doubts(atlas, task), *(doubt for doubt in of_methods if doubt.key == "completeness")]


def _validation_doubts(atlas: Atlas, task: str, groups: int | None) -> list[Doubt]:
    if task not in atlas.validated:
        return []
    check = atlas.validation(task)
    found = []
    has_few_groups = groups is not None and groups < _FEW_GROUPS  # a doubt about all held-out figures
    is_small = check.items < _FEW_ITEMS or check.independent < _FEW_GROUPS
    if is_small and not has_few_groups:
        found.append(Doubt("validation-items", {"items": check.item_words()}))
    if not check.is_normalized:
        unit = {} if check.metric.name == NLL else {"unit": check.metric.unit}
        found.append(Doubt("not-normalized", {"reason": check.why_not_normalized(), **unit}))
    if len(check.by_chance) < _FEW_DRAWS:
        found.append(Doubt("validation-draws", {"draws": len(check.by_chance)}))
    return found


def effect_doubts(atlas: Atlas, task: str, method: str) -> list[Doubt]:
    """Reasons to doubt the effects of single heads."""
    runs = [atlas.run(task, method), *(run for (_, name), run in atlas.runs.items() if name == task)]
    # Effects of older atlases have no baseline: that of the gates stands for it.
    baseline = next((run.baseline for run in runs if run.baseline), {})
    maps = [atlas.effect(task, method, int(seed)) for seed in atlas.effects(task, method)["seed"].values]
    found = [chance_doubt(baseline), _effect_items_doubt(maps)]
    error = atlas.completeness_error(task, method)
    if error is not None and error > COMPLETE:
        dtypes = {one.facts.get("dtype") for one in maps}
        found.append(Doubt("completeness", {"error": error, "is_single": dtypes <= {"float32", "float64"}}))
    found.append(_method_doubt(compare_methods(atlas, task, method), method))
    return [doubt for doubt in found if doubt is not None]


def _method_doubt(agreements: Sequence[MethodAgreement], method: str) -> Doubt | None:
    """A doubt if the method ranks heads differently from every other; it names the method that it agrees with
    least. `Atlas.method_agreement` compares all pairs."""
    differing = [agreement for agreement in agreements if agreement.disagree]
    if not agreements or len(differing) < len(agreements):
        return None
    worst = min(differing, key=lambda agreement: agreement.correlation)
    is_first = worst.first == method
    numbers = {
        "other": worst.second if is_first else worst.first,
        "differing": len(differing),
        "correlation": worst.correlation,
        "shared": worst.shared,
        "top": worst.top,
        "head": str(worst.second_head if is_first else worst.first_head),
        "rank": worst.second_rank if is_first else worst.first_rank,
        "heads": worst.heads,
    }
    return Doubt("methods-differ", numbers)


def _effect_items_doubt(maps: Sequence[EffectMap]) -> Doubt | None:
    """A doubt if few items or groups were measured. None if a map does not name its items."""
    measured = [one.per_item for one in maps if one.per_item is not None]
    if len(measured) < len(maps):
        return None
    items, groups = (
        len(np.unique(np.concatenate([getattr(one, name) for one in measured])))
        for name in ("items", "groups")
    )
    is_small = items < _FEW_ITEMS or groups < _FEW_GROUPS
    return Doubt("effect-items", {"items": items, "groups": groups}) if is_small else None


def contrast_doubts(atlas: Atlas, name: str) -> list[Doubt]:
    """Reasons to doubt the gates of a contrast."""
    run, seeds = atlas.run(name, "contrast"), len(atlas.seeds(name, "contrast"))
    found = [chance_doubt(run.baseline, "retain"), chance_doubt(run.baseline, "forget"), _update_doubt(run)]
    if seeds < LEAST_SEEDS:
        found.append(Doubt("imported-seeds" if _is_imported(run) else "seeds", {"seeds": seeds}))
    moving = share_moving(atlas, name, "contrast")
    if moving is not None and moving > _MOST_MOVING:
        found.append(Doubt("moving", {"moving": moving}))
    for side in ("retain", "forget"):
        facts = run.task_facts.get("parts", {}).get(side, {})
        if facts.get("test_rows") == 0:
            found.append(Doubt(f"{side}-no-held-out", {}))
        rows = run.baseline.get(f"{side}_rows")
        if rows is not None and rows < _FEW_ITEMS:
            found.append(Doubt(f"{side}-held-out", {"items": int(rows)}))
    return [doubt for doubt in found if doubt is not None]


def chance_doubt(baseline: Mapping[str, Any], side: str = "") -> Doubt | None:
    """A doubt if the model does not clearly prefer the right targets to those of other rows: if zero lies in
    the 95 % interval of its gain over groups of items, or above it.

    Another doubt if the baseline was measured and cannot tell. `side` is "retain" or "forget" for the
    baseline of a contrast.
    """
    from scipy import stats  # importing scipy takes a second; most commands do not need it

    prefix, key = (f"{side}_", f"{side}-chance") if side else ("", "chance")
    if f"{prefix}nll" not in baseline:  # nothing is held out: the figures are of items to fit with
        prefix += "train_"
    names = ("gain", "gain_error", "nll", "chance_nll", "accuracy")
    numbers = {name: baseline.get(f"{prefix}{name}") for name in names}
    groups = baseline.get(f"{prefix}groups")
    if groups and numbers["gain"] is None and numbers["nll"] is not None:
        targets = baseline.get(f"{prefix}targets")
        counts = {"groups": len(set(groups)), "targets": None if targets is None else int(targets)}
        return Doubt(f"{key}-unknown", counts)
    if any(value is None for value in numbers.values()):
        return None
    gain, error = (float(numbers.pop(name) or 0) for name in ("gain", "gain_error"))
    freedom = max(1, len(set(groups)) - 1) if groups else 100
    if gain > stats.t.ppf(0.975, freedom) * error:
        return None
    return Doubt(key, numbers)


def _is_imported(run: Run) -> bool:
    return "imported_from" in run.task_facts


def _update_doubt(run: Run) -> Doubt | None:
    settings = run.settings.get("resolved", {})
    stages = ("free",) if run.method == "contrast" else ("free", "pressed")
    is_known = run.method in ("gating", "contrast")  # how many a method of a plugin needs, nobody knows
    if not is_known or not set(stages) <= set(settings):
        return None
    updates = {stage: int(settings[stage]["updates"]) for stage in stages}
    few = any(count < LEAST_UPDATES[stage] for stage, count in updates.items())
    return Doubt("updates", updates) if few else None


def share_moving(atlas: Atlas, task: str, method: str | None = None) -> float | None:
    """The share of gates that moved by more than 0.1 in the last fifth of the updates.

    None if the gates were imported or too few of the updates were kept."""
    if _is_imported(atlas.run(task, method)):
        return None
    changes = []
    for seed in atlas.seeds(task, method):
        for name in ("retain",) if method == "contrast" else ("retain", "remove"):
            fit = atlas.fit(task, seed, name, method)
            if len(fit.path_updates) < 2:
                return None
            updates = fit.path_updates.astype(float) / float(fit.path_updates[-1])
            earlier = max(int(np.searchsorted(updates, 1 - _LAST, side="right")) - 1, 0)
            if updates[earlier] < 1 - 2 * _LAST:  # the path is too coarse to tell
                return None
            changes.append(np.abs(fit.path[-1] - fit.path[earlier]))
    stacked = np.array(changes)
    return float((stacked[~np.isnan(stacked)] > _MOVED).mean())


def made_how(atlas: Atlas, task: str) -> str:
    """How the gates of a task were fitted, in a line."""
    run, summary = atlas.run(task), atlas.summary(task)
    settings = run.settings.get("resolved", {})
    if {"objective", "free", "pressed", "batch"} <= set(settings):
        updates = " + ".join(str(settings[stage]["updates"]) for stage in ("free", "pressed"))
        how = f"objective {settings['objective']}, {updates} updates, batch {settings['batch']}"
    elif run.method != "gating" and not _is_imported(run):
        how = run.about.get("summary", "")
    else:
        how = f"imported from {run.task_facts.get('imported_from', 'elsewhere')}"
    if run.method != "gating":
        how = f"{run.about.get('label', run.method)}{': ' if how else ''}{how}"
    alike = summary.correlation.get("facilitation")
    seeds = plural(summary.seeds, "seed") + ("" if alike is None else f" that correlate {alike:.2f}")
    rows = "" if summary.held_out is None else f", {plural(summary.held_out, 'held-out item')}"
    rows = ", nothing held out" if summary.held_out == 0 else rows
    rows = f", {fitted}{rows}" if (fitted := _fitted_items(run)) else rows
    parts = (f"{how}, {seeds}{rows}", seed_blocks_text(atlas, task), _separation(atlas, task, summary.parted))
    return "; ".join(part for part in parts if part)


def _fitted_items(run: Run) -> str:
    """ "fitted on 16 of 20 items" for a task in memory of which items are left out; else empty."""
    facts = run.task_facts
    fitted, records = facts.get("train_rows", 0), facts.get("records", 0)
    in_memory = (facts.get("spec") or {}).get("kind") == "items"
    return f"fitted on {fitted} of {plural(records, 'item')}" if in_memory and fitted != records else ""


def seed_blocks_text(atlas: Atlas, task: str, method: str | None = None) -> str:
    """Which seeds were fitted together, if that was more than one block in any stage; otherwise empty."""
    gates = atlas.gates(task, method)
    recorded: list[str] = []
    by_blocks: dict[str, list[str]] = {}
    for name in gates["fit"].values.tolist():
        facts = [atlas.fit(task, seed, name, method).facts for seed in gates["seed"].values.tolist()]
        blocks = sorted({tuple(one["seeds_together"]) for one in facts if one.get("seeds_together")})
        recorded += [name] if blocks else []
        if len(blocks) > 1:
            listed = ", ".join(f"({_seed_range(block)})" for block in blocks)
            by_blocks.setdefault(f"seeds fitted in {len(blocks)} blocks: {listed}", []).append(name)
    return "; ".join(
        text if fits == recorded else f"{text} ({' and '.join(fits)} fits)"
        for text, fits in by_blocks.items()
    )


def _seed_range(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}–{seeds[-1]}"
    return ", ".join(str(seed) for seed in seeds)


def _separation(atlas: Atlas, task: str, separation: float) -> str:
    """Mean |G+ - G-| with what it means. In a settled fit it is about the share of irrelevant heads."""
    low, high = _SEPARATION
    if _is_imported(atlas.run(task)):
        verdict = (
            "too low to show which heads matter"
            if separation < low
            else "no range is known for imported gates"
        )
        return f"mean |G+ − G−| {separation:.2f}, {verdict}"
    moving = share_moving(atlas, task)
    if _update_doubt(atlas.run(task)) or (moving is not None and moving > _MOST_MOVING):
        verdict = "which says little: there were too few updates, or the gates still move"
    elif separation < low:
        verdict = "too low: hardly any gate follows the pressure"
    elif separation > high:
        verdict = "too high: nearly every gate follows the pressure"
    else:
        verdict = "in the healthy range: some gates follow the pressure, others resist it"
    scale = "(0: no gate follows the pressure, 1: every gate does)"
    still = "" if moving is None else f"; {_percent(moving)} of gates moved in the last fifth of updates"
    return f"mean |G+ − G−| {separation:.2f}, {verdict} {scale}{still}"
