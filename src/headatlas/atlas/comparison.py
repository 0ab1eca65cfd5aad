"""Two atlases, or two tasks of one: where do the same heads do the same?

Models of the same shape are compared head by head. Others have no heads in common; there, what is compared is
how much heads do at the same relative depth.

Heads of one layer are not independent of each other. Intervals therefore leave out whole layers, and tests
permute heads within their layers (same shape) or whole layers of the model with fewer of them (different
shapes).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, count, permutations, product
from math import comb, factorial, prod
from pathlib import Path
from typing import Any

import numpy as np

from headatlas.atlas.atlas import Atlas, require_atlas
from headatlas.atlas.finding import plural
from headatlas.atlas.finding.doubts import LEAST_SEEDS
from headatlas.atlas.interval import Interval
from headatlas.atlas.record import Run
from headatlas.atlas.roles import ROLE_WORDS, SCORES, roles_of
from headatlas.atlas.statistics import (
    PERMUTATIONS,
    TEST_LEVEL,
    layer_correlation_interval,
    permutation_p,
    rank_correlation,
    rank_correlations,
    shuffled_correlation,
    tail_p,
)
from headatlas.core import (
    THRESHOLD,
    AtlasError,
    RequestError,
    UnknownNameError,
    metric_name,
    ranked,
    require_share,
    warn_user,
)
from headatlas.core.lazy import xr

__all__ = [
    "BINS",
    "Comparison",
    "SeedAgreement",
    "compare",
    "compare_atlases",
    "correlation_by_depth",
    "correlation_by_heads",
    "depth_profile",
    "shared_tasks",
]

#: parts of the depth of a model, from its first layer to its last
BINS = 10
#: heads of which it is said how much they changed
_NAMED = 10
#: changes of roles, and of heads, that the text names
_SHOWN = 5
_COMPARED = tuple(SCORES.values())[:2]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """One task in one atlas beside one in another.

    `correlation`: score -> rank correlation of the means over seeds, over heads of models of the same shape
    (interval over layers), of the profiles over depth otherwise (no interval); None where a score
    is the same everywhere. `p` for each of these, as `test` says; None where the model is too small for
    p < 0.05. `roles` counts heads by (role here, role there), by the mean over seeds; `same` is the share
    with the same one, `within` that of pairs of seeds of the same atlas (here, there; None with one seed),
    `between` that of pairs of different seeds of both. `verdict` says whether the two differ more than two
    seeds do, and `verdict_p` is the p of that (None if there are too few seeds). `shared` says what the two
    have in common, so that they are not independent; `perhaps_shared` what they may have in common. `changed`
    are the heads whose importance differs most: (head, here, there). `differences` name the dtype, updates,
    objective, preset and metric of the two fits and the number of their items, where these differ: "dtype
    bfloat16 and float32".
    """

    names: tuple[str, str]
    tasks: tuple[str, str]
    by_heads: bool
    correlation: dict[str, Interval | None]
    p: dict[str, float | None]
    roles: dict[tuple[str, str], int] | None
    same: float | None
    within: tuple[float | None, float | None] | None
    between: float | None
    changed: list[tuple[str, float, float]]
    profiles: dict[str, tuple[list[float], list[float]]]
    relations: float | None
    test: str = ""
    verdict: str = ""
    verdict_p: float | None = None
    shared: tuple[str, ...] = ()
    perhaps_shared: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The comparison in sentences, the verdict last."""
        return [*self._correlation_lines(), *self._role_lines(), f"verdict: {self.verdict}"]

    def _correlation_lines(self) -> list[str]:
        first, second = (f"{name}, {task}" for name, task in zip(self.names, self.tasks, strict=True))
        lines = [f"{first} and {second}"]
        lines += [f"not fitted alike: {text}" for text in self.differences]
        lines += [f"not independent: {text}" for text in self.shared]
        lines += [f"perhaps not independent: {text}" for text in self.perhaps_shared]
        over = "heads" if self.by_heads else "profiles over depth"
        for score, interval in self.correlation.items():
            if interval is None:
                lines.append(f"{score}: the same everywhere in one of the two")
                continue
            p = "" if self.p[score] is None else f", p {self.p[score]:.2g}"
            correlation = f"{interval.mean:+.2f}{interval.brackets('+.2f')}"
            lines.append(f"{score}: rank correlation {correlation} of {over}{p} ({self.test})")
        return lines

    def _role_lines(self) -> list[str]:
        if self.roles is None or self.same is None:
            return []
        lines = [f"the same role: {100 * self.same:.0f} % of the heads, by the mean over seeds"]
        changes = {roles: heads for roles, heads in self.roles.items() if roles[0] != roles[1]}
        most = sorted(changes.items(), key=lambda change: -change[1])[:_SHOWN]
        if most:
            listed = ", ".join(f"{heads} {here} → {there}" for (here, there), heads in most)
            lines.append(f"changed roles: {listed}")
        changed = [entry for entry in self.changed[:_SHOWN] if entry[1] != entry[2]]
        if changed:
            listed = ", ".join(f"{head} ({here:+.2f} → {there:+.2f})" for head, here, there in changed)
            lines.append(f"changed most: {listed}")
        return lines

    def __repr__(self) -> str:
        return "\n".join(["<Comparison", *(f"  {line}" for line in self.lines())]) + ">"

    def _repr_html_(self) -> str:
        from headatlas.page.notebook import comparison_html

        return comparison_html(self)

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        for score, pair in self.profiles.items():
            found["profiles"][score] = [[None if np.isnan(x) else x for x in values] for values in pair]
        if self.roles is not None:
            found["roles"] = [{"here": a, "there": b, "heads": n} for (a, b), n in self.roles.items()]
        return found


def shared_tasks(one: Atlas, other: Atlas, tasks: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(task here, task there): the one or two that are asked for, or all that both have."""
    if len(tasks) > 2:
        raise RequestError("give one task, which both atlases have, or two: the first one's and the other's.")
    wanted = [*tasks, *tasks] if len(tasks) == 1 else list(tasks)
    for task, atlas in zip(wanted, (one, other), strict=False):
        if task not in atlas.tasks:
            where = atlas.path or atlas.spec.name
            raise UnknownNameError(f"gated task in {where}", task, atlas.tasks or ["none"])
    if tasks:
        pair = (tasks[0], tasks[-1])
        if one is other and pair[0] == pair[1]:
            raise RequestError(f"{tasks[0]} and itself: give two tasks, or two atlases.")
        return [pair]
    found = [(task, task) for task in one.tasks if task in other.tasks]
    if one is other or not found:
        if one is other:
            raise RequestError("an atlas and itself: give two of its tasks with tasks=….")
        have = [", ".join(atlas.tasks) or "none" for atlas in (one, other)]
        raise AtlasError(
            f"no task is gated in both ({have[0]}; {have[1]}): give two with tasks=…, the first one's and "
            "the other's."
        )
    return found


def compare(
    one: Atlas | str | Path,
    other: Atlas | str | Path,
    task: str | tuple[str, str] | None = None,
    *,
    threshold: float = THRESHOLD,
) -> Comparison:
    """Compare a gated task of two atlases, or two tasks of one atlas: `task=("sums", "words")`.

    Without `task`, the only one that both have. Warns if the two were not fitted alike: other dtype, updates,
    objective, preset, metric or items.
    """
    one, other = require_atlas(one), require_atlas(other)
    is_same_folder = one.path is not None and one.path == other.path
    other = one if is_same_folder else other
    pairs = shared_tasks(one, other, () if task is None else [task] if isinstance(task, str) else list(task))
    if len(pairs) > 1:
        names = ", ".join(name for name, _ in pairs)
        raise RequestError(f"both atlases have {names}; choose one with task=….")
    comparison = compare_atlases(one, other, *pairs[0], threshold)
    if comparison.differences:
        warn_user(
            f"the two were not fitted alike: {'; '.join(comparison.differences)}; heads may differ for that "
            "reason alone."
        )
    return comparison


def compare_atlases(
    one: Atlas, other: Atlas, task: str, other_task: str | None = None, threshold: float = THRESHOLD
) -> Comparison:
    """One task of each."""
    threshold = require_share("threshold", threshold)
    there = other_task or task
    by_heads = one.spec.heads == other.spec.heads
    atlases, tasks = (one, other), (task, there)
    means = [atlas.scores(name).mean("seed") for atlas, name in zip(atlases, tasks, strict=True)]
    correlation: dict[str, Interval | None] = {}
    p: dict[str, float | None] = {}
    profiles: dict[str, tuple[list[float], list[float]]] = {}
    for score in _COMPARED:
        maps = [mean[score].values for mean in means]
        depths = [depth_profile(values) for values in maps]
        profiles[score] = (depths[0].tolist(), depths[1].tolist())
        compared = correlation_by_heads(*maps) if by_heads else correlation_by_depth(*maps)
        correlation[score], p[score] = compared if compared is not None else (None, None)
    names, shared = (one.spec.name, other.spec.name), _shared(one, other, task, there)
    perhaps_shared = _perhaps_shared(one.run(task), other.run(there))
    if not by_heads:
        layers = min(sum(count > 0 for count in atlas.spec.heads) for atlas in atlases)
        test = f"whole layers permuted ({layers} layers)"
        if not _can_reach(factorial(layers)):
            test = f"no p: {plural(layers, 'layer')} cannot give p < {TEST_LEVEL}, 5 can"
        verdict = "different shapes have no heads in common, so seeds do not say how much the two may differ"
        if missing := _with_one_seed(
            [len(atlas.seeds(name)) for atlas, name in zip(atlases, tasks, strict=True)]
        ):
            verdict += (
                f"; {missing}: how much a profile varies between seeds cannot be said; {LEAST_SEEDS} seeds "
                "in each, as in the smallest preset, show it"
            )
        return Comparison(
            names, tasks, False, correlation, p, None, None, None, None, [], profiles, None, test, verdict,
            shared=shared, perhaps_shared=perhaps_shared,
            differences=_differences(one.run(task), other.run(there)),
        )  # fmt: skip
    roles = [roles_of(mean, threshold).values for mean in means]
    counted: dict[tuple[str, str], int] = {}
    for words in zip(*(values[roles[0] != ""] for values in roles), strict=True):
        counted[words] = counted.get(words, 0) + 1
    order = {word: place for place, word in enumerate(ROLE_WORDS)}
    counted = dict(sorted(counted.items(), key=lambda pair: (order[pair[0][0]], order[pair[0][1]])))
    seeds = [atlas.roles(name, threshold) for atlas, name in zip(atlases, tasks, strict=True)]
    agreement = SeedAgreement(*seeds)
    here, elsewhere = (atlas.importance(name).values for atlas, name in zip(atlases, tasks, strict=True))
    changed = ranked(np.abs(elsewhere - here))[:_NAMED]
    return Comparison(
        names=names,
        tasks=tasks,
        by_heads=True,
        correlation=correlation,
        p=p,
        roles=counted,
        same=sum(n for (a, b), n in counted.items() if a == b) / sum(counted.values()),
        within=agreement.within,
        between=agreement.between,
        changed=[
            (str(head), float(here[head.layer, head.head]), float(elsewhere[head.layer, head.head]))
            for head in changed
        ],
        profiles=profiles,
        relations=_relations(one, other),
        test="heads permuted within layers"
        if _can_reach(prod(map(factorial, one.spec.heads)))
        else f"no p: too few heads in each layer for p < {TEST_LEVEL}",
        verdict=agreement.verdict(),
        verdict_p=agreement.p,
        shared=shared,
        perhaps_shared=perhaps_shared,
        differences=_differences(one.run(task), other.run(there)),
    )


def correlation_by_heads(first: np.ndarray, second: np.ndarray) -> tuple[Interval, float | None] | None:
    """Rank correlation over heads with its interval over layers, and the p of heads permuted within layers.

    None where a map is the same everywhere.
    """
    layers, heads = np.nonzero(~np.isnan(first) & ~np.isnan(second))
    one, other = first[layers, heads], second[layers, heads]
    observed = rank_correlation(one, other)
    if np.isnan(observed):
        return None
    interval = layer_correlation_interval(one, other, layers)
    if not _can_reach(prod(factorial(int((layers == layer).sum())) for layer in set(layers.tolist()))):
        return interval, None
    return interval, permutation_p(observed, shuffled_correlation(one, other, _within(layers)))


def correlation_by_depth(first: np.ndarray, second: np.ndarray) -> tuple[Interval, float | None] | None:
    """Rank correlation of two depth profiles, and its p with whole layers of the model with fewer layers
    permuted. That model's layers are the observations: a deeper model beside it adds none.

    None where a profile is the same everywhere.
    """
    few, many = sorted((first, second), key=lambda values: int((~np.isnan(values).all(1)).sum()))
    means = np.array([np.nanmean(row) for row in few if not np.isnan(row).all()])  # of layers with heads
    weights = _bin_weights(few)
    fixed, known = depth_profile(many), weights.any(axis=1)
    known &= ~np.isnan(fixed)

    def correlations(orders: np.ndarray) -> np.ndarray:
        profiles = means[orders] @ weights[known].T
        return rank_correlations(profiles, np.broadcast_to(fixed[known], profiles.shape))

    identity, count = np.arange(len(means)), factorial(len(means))
    observed = float(correlations(identity[None])[0]) if known.sum() > 1 else float("nan")
    if np.isnan(observed):
        return None
    if not _can_reach(count):
        return Interval(observed), None
    if count > PERMUTATIONS:
        orders = np.random.default_rng(0).permuted(np.tile(identity, (PERMUTATIONS, 1)), axis=1)
    else:
        orders = np.array(list(permutations(identity))[1:])  # the first is the observed one
    return Interval(observed), tail_p(observed, correlations(orders))


def _can_reach(arrangements: int) -> bool:
    """True if a two-sided p can be smaller than the level with so many arrangements."""
    return 2 / arrangements < TEST_LEVEL


class SeedAgreement:
    """Shares of heads with the same role in pairs of seeds, within each of two atlases and between them.

    Pairs of the same seed number are left out between atlases: such seeds begin at the same gates, and draw
    the same items in the same order if the tasks have the same rows, so that they agree more than two seeds
    do.
    """

    def __init__(self, first: xr.DataArray, second: xr.DataArray) -> None:
        self._seeds = [first.seed.values.tolist(), second.seed.values.tolist()]
        words = np.concatenate([first.values, second.values])
        flat = words[:, words[0] != ""]
        self._same = (flat[:, None] == flat[None]).mean(axis=2)
        self._count = len(self._seeds[0])
        self._number = np.array([*self._seeds[0], *self._seeds[1]])
        self._is_second = np.arange(len(flat)) >= self._count
        parts = [self._mean(*np.triu_indices(self._count, 1))]
        offset = [index + self._count for index in np.triu_indices(len(flat) - self._count, 1)]
        parts.append(self._mean(*offset))
        self.within = (parts[0], parts[1])
        self.between = self._between(self._is_second)
        self.p = self._p()

    def _mean(self, one: np.ndarray, other: np.ndarray) -> float | None:
        return float(self._same[one, other].mean()) if len(one) else None

    def _between(self, is_second: np.ndarray) -> float | None:
        one, other = np.nonzero(~is_second[:, None] & is_second[None])
        apart = self._number[one] != self._number[other]
        return self._mean(one[apart], other[apart])

    def _excess(self, splits: np.ndarray) -> np.ndarray:
        """[split]: how much more alike seeds of one atlas are than different seeds of both; `splits` [split,
        seed] is True for seeds of the second."""
        second, first = splits.astype(float), (~splits).astype(float)
        apart = 1 - np.eye(len(self._number))
        different = (self._number[:, None] != self._number).astype(float)

        def mean(pairs: Sequence[tuple[np.ndarray, np.ndarray]], counted: np.ndarray) -> np.ndarray:
            sums, counts = (
                sum(np.einsum("ki,ij,kj->k", one, weights, other, optimize=True) for one, other in pairs)
                for weights in (self._same * counted, counted)
            )
            return np.asarray(sums / counts)

        within = mean([(first, first), (second, second)], apart)
        excess: np.ndarray = within - mean([(first, second)], different)
        return excess

    def _splits(self) -> Iterator[np.ndarray]:
        """Every way (or many ways, drawn at random) to deal the seeds out to two atlases of these sizes, the
        observed one first. A number that both have stays in both: the two are exchanged at most."""
        twice = [number for number in self._seeds[0] if number in self._seeds[1]]
        pairs = [np.flatnonzero(self._number == number).tolist() for number in twice]
        single = np.flatnonzero(~np.isin(self._number, twice))
        second = int(self._is_second[single].sum())

        def split(flips: Sequence[int], chosen: Sequence[int]) -> np.ndarray:
            is_second = np.zeros(len(self._number), dtype=bool)
            is_second[[*chosen, *(pair[flip] for pair, flip in zip(pairs, flips, strict=True))]] = True
            return is_second

        yield self._is_second
        if _number_of_splits(*self._seeds) <= PERMUTATIONS:
            every = product(product((1, 0), repeat=len(pairs)), combinations(single.tolist(), second))
            for one in (split(flips, chosen) for flips, chosen in every):
                if (one != self._is_second).any():
                    yield one
            return
        chance = np.random.default_rng(0)
        for _ in range(PERMUTATIONS):
            drawn = chance.permutation(single)[:second].tolist()
            yield split(chance.integers(2, size=len(pairs)).tolist(), drawn)

    def _p(self) -> float | None:
        """The p of seeds of both being less alike than seeds of one; None if it cannot reach the level."""
        if not _can_test_seeds(*self._seeds):
            return None
        excess = self._excess(np.array(list(self._splits())))  # the observed one comes first
        return tail_p(float(excess[0]), excess[1:], "more")

    def verdict(self) -> str:
        """Whether the two differ more than two seeds do, or what is missing to say it."""
        missing = _with_one_seed([len(seeds) for seeds in self._seeds])
        if missing:
            return (
                f"{missing}: whether the two differ more than two seeds do cannot be said; "
                f"{_enough_seeds(*self._seeds)}"
            )
        direction = "more" if self._excess(self._is_second[None])[0] > 0 else "no more"
        if self.p is None:
            return (
                f"the two differ {direction} than two seeds do, on average; too few seeds to test it "
                f"({_enough_seeds(*self._seeds)})"
            )
        if self.p < TEST_LEVEL:
            return f"the two differ more than two seeds do (p {self.p:.2g}, seeds permuted)"
        return f"the two do not clearly differ more than two seeds do (p {self.p:.2g}, seeds permuted)"


def _number_of_splits(first: Collection[int], second: Collection[int]) -> int:
    """Ways to deal these seeds out to two atlases of these sizes; a number that both have stays in both."""
    twice = len({*first} & {*second})
    return int(2**twice * comb(len(first) + len(second) - 2 * twice, len(second) - twice))


def _can_test_seeds(first: Collection[int], second: Collection[int]) -> bool:
    """True if the p of these seeds can be smaller than the level."""
    # exchanging two atlases of the same size changes nothing, so that two splits are always as far out
    most_extreme = 2 if len(first) == len(second) else 1
    return min(len(first), len(second)) > 1 and most_extreme / _number_of_splits(first, second) < TEST_LEVEL


def _enough_seeds(first: Collection[int], second: Collection[int]) -> str:
    """The seeds to add for a test. `map --seeds N` makes seeds 0 to N - 1, so they are counted from 0."""
    number = next(
        number for number in count(2) if _can_test_seeds({*first, *range(number)}, {*second, *range(number)})
    )
    lacking = [
        f"the {which}" for which, seeds in (("first", first), ("second", second))
        if not {*range(number)} <= {*seeds}
    ]  # fmt: skip
    return f"seeds 0 to {number - 1} in {lacking[0] if len(lacking) == 1 else 'both'} are enough"


def _with_one_seed(counts: Sequence[int]) -> str:
    """Which of the two has one seed; empty if neither has."""
    alone = [f"the {which}" for which, number in zip(("first", "second"), counts, strict=True) if number == 1]
    return f"{' and '.join(alone)} {'has' if len(alone) == 1 else 'have'} one seed" if alone else ""


def _differences(first: Run, second: Run) -> tuple[str, ...]:
    """How two fits were made differently, as far as both say so."""
    facts = [_fit_settings(run) for run in (first, second)]
    return tuple(
        f"{name} {here} and {there}"
        for name, here in facts[0].items()
        if (there := facts[1].get(name)) is not None and here != there
    ) + _item_differences(first, second)


def _item_differences(first: Run, second: Run) -> tuple[str, ...]:
    """How many items two fits of one task have, if the items differ."""
    counts, hashes = (
        [run.task_facts.get(key) for run in (first, second)] for key in ("train_rows", "content_hash")
    )
    is_known = None not in counts and None not in hashes
    if first.task != second.task or not is_known or (counts[0] == counts[1] and hashes[0] == hashes[1]):
        return ()
    return (f"items {counts[0]} and {counts[1]}{' others' if counts[0] == counts[1] else ''}",)


def _fit_settings(run: Run) -> dict[str, str]:
    """The dtype, updates, objective, preset and metric of a fit, without those that its run does not
    name."""
    resolved: Mapping[str, Any] = run.settings.get("resolved", {})
    settings = {"dtype": run.decides.get("dtype"), "objective": resolved.get("objective")}
    if "free" in resolved and "pressed" in resolved:
        settings["updates"] = "+".join(str(resolved[stage].get("updates")) for stage in ("free", "pressed"))
        settings["preset"] = run.settings.get("given", {}).get("preset") or "quick"
        settings["metric"] = metric_name(run.metric)
    return {name: str(value) for name, value in settings.items() if value is not None}


def _shared(one: Atlas, other: Atlas, task: str, there: str) -> tuple[str, ...]:
    """What two maps have in common, so that they are not independent of each other."""
    runs = one.run(task), other.run(there)
    seeds = sorted(set(one.seeds(task)) & set(other.seeds(there)))
    if one is not other and runs[0].identity == runs[1].identity and runs[0].settings and seeds:
        return (f"both hold the same fits of {plural(len(seeds), 'seed')}: agreement says nothing",)
    rows = [run.task_facts.get("content_hash") for run in runs]
    has_same_items = rows[0] is not None and rows[0] == rows[1]
    notes = ["both were fitted on the same items"] if has_same_items else []
    common = []
    if one.spec.heads == other.spec.heads:  # the first gates depend on the seed, the shape and a range
        ranges = [run.settings.get("resolved", {}).get("start") for run in runs]
        same = "the same gates" if ranges[0] == ranges[1] else "gates from the same random draw"
        common.append(f"begin at {same}")
    if has_same_items:
        common.append("draw the same items")
    is_imported = any("imported_from" in run.task_facts for run in runs)  # its seeds may mean anything
    if seeds and common and not is_imported:
        numbers = f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
        notes.append(f"both have {numbers}: fits with the same seed {' and '.join(common)}")
    return tuple(notes)


def _perhaps_shared(first: Run, second: Run) -> tuple[str, ...]:
    """What two maps may have in common: items, if tasks or files of one name differ. One may be a part of the
    other, and an atlas keeps the hash of its items only."""
    hashes = [run.task_facts.get("content_hash") for run in (first, second)]
    if None in hashes or hashes[0] == hashes[1]:
        return ()
    files = [_task_file(run) for run in (first, second)]
    if files[0] is not None and files[0] == files[1]:
        named = f"files named {files[0]!r}"
    elif first.task == second.task:
        named = f"tasks named {first.task!r}"
    else:
        return ()
    return (f"the two {named} hold different items; whether the two share items is not known",)


def _task_file(run: Run) -> str | None:
    """The name of the file that the items of a task come from; None if they come from elsewhere."""
    spec = run.task_facts.get("spec")
    source = spec.get("source") if isinstance(spec, Mapping) else None
    file = source.get("file") if isinstance(source, Mapping) else None
    return file if isinstance(file, str) else None


def depth_profile(values: np.ndarray, bins: int = BINS) -> np.ndarray:
    """[part of the depth]: the mean over the heads of the layers that lie there; where there are few layers,
    one counts for all parts that it reaches into."""
    layers = len(values)
    each = np.array([np.nanmean(row) if not np.isnan(row).all() else np.nan for row in values])
    fine = np.repeat(each, bins).reshape(bins, layers)  # every part is `layers` pieces long
    with np.errstate(invalid="ignore"):
        known = ~np.isnan(fine)
        sums = np.where(known, fine, 0).sum(1)
        found: np.ndarray = sums / np.where(known.any(1), known.sum(1), np.nan)
    return found


def _bin_weights(values: np.ndarray, bins: int = BINS) -> np.ndarray:
    """[part of the depth, layer with heads]: how much each layer counts in `depth_profile`."""
    rows = np.flatnonzero(~np.isnan(values).all(axis=1))
    single = np.full((len(rows), len(values), 1), np.nan)
    single[:, rows] = np.eye(len(rows))[:, :, None]
    weights: np.ndarray = np.nan_to_num(np.array([depth_profile(one, bins) for one in single]).T)
    return weights


def _within(layers: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """Orders that move heads only within their layers."""

    def order(chance: np.random.Generator) -> np.ndarray:
        return np.lexsort((chance.random(len(layers)), layers))

    return order


def _relations(one: Atlas, other: Atlas) -> float | None:
    """Correlation of relation scores over heads, for relations that both have."""
    shared = [name for name in one.relations if name in other.relations]
    if not shared or one is other:
        return None
    maps = [atlas.relation_scores().sel(relation=shared).values.ravel() for atlas in (one, other)]
    there = ~np.isnan(maps[0]) & ~np.isnan(maps[1])
    if not there.any() or not np.ptp(maps[0][there]) or not np.ptp(maps[1][there]):
        return None
    return float(np.corrcoef(maps[0][there], maps[1][there])[0, 1])
