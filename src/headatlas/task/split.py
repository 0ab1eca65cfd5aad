"""Which records are held out: whole groups of related records, and some records of the other groups.

Records of one group (problems of one template, sentences about one verb, a sum and its commuted twin) tell
so much about each other that a held-out record says little if its group was fitted on. A hash of the group's
text decides, so that records of other groups move nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate

__all__ = ["Keys", "known_prompts", "merge_labels", "split_groups", "split_items", "word_groups"]

#: the share of the prompts of a fitted group that is held out
_KNOWN_SHARE = 0.1
#: the most pairs of a relation that one group may hold: this many, or a share of all pairs. Pairs of one
#: source have one prompt, so the share that a source may tie together is larger than that for all words.
_LARGEST_COUNT, _LARGEST_SHARES = 4, (0.03, 0.1)


@dataclass(frozen=True, slots=True)
class Keys:
    """What decides about a record: the text of its question, and the label of its group."""

    prompt: str
    group: str


def _hash_share(text: str) -> float:
    """A number from 0 to 1 that depends on the text alone."""
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:4]) / 2**32


def _component_labels(keys: Sequence[Iterable[Hashable]]) -> list[int]:
    """One label per entry: entries that share a key, directly or through others, have the same label."""
    parents = list(range(len(keys)))

    def root(entry: int) -> int:
        while parents[entry] != entry:
            parents[entry] = parents[parents[entry]]
            entry = parents[entry]
        return entry

    first_with: dict[Hashable, int] = {}
    for entry, shared in enumerate(keys):
        for key in shared:
            parents[root(entry)] = root(first_with.setdefault(key, entry))
    return [root(entry) for entry in range(len(keys))]


def merge_labels(labels: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Labels in which groups that share a prompt are one group; the first label by alphabet names it."""
    components = _component_labels(
        [(("group", label), ("prompt", prompt)) for label, prompt in zip(labels, prompts, strict=True)]
    )
    names: dict[int, str] = {}
    for component, label in zip(components, labels, strict=True):
        names[component] = min(label, names.get(component, label))
    return [names[component] for component in components]


def word_groups(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """One label per pair of a relation: pairs that share a word, in any case, are in one group.

    Some words tie too many pairs together: years form a chain, and many nouns share a pronoun. Only such
    groups are broken up, in two steps. First, pairs of one source and reversed pairs stay together. Where
    that ties too many pairs together as well (neighboring countries, in both directions), only reversed
    pairs do.
    """
    pairs = [(source.casefold(), target.casefold()) for source, target in pairs]
    finer_keys: list[Sequence[Iterable[Hashable]]] = [
        [(source, frozenset((source, target))) for source, target in pairs],
        [(frozenset(pair),) for pair in pairs],
    ]
    labels = [(0, component) for component in _component_labels(pairs)]
    for step, (keys, share) in enumerate(zip(finer_keys, _LARGEST_SHARES, strict=True), 1):
        sizes, largest = Counter(labels), max(_LARGEST_COUNT, share * len(pairs))
        labels = [
            (step, component) if sizes[label] > largest else label
            for label, component in zip(labels, _component_labels(keys), strict=True)
        ]
    names: dict[tuple[int, int], str] = {}
    for label, pair in zip(labels, pairs, strict=True):
        text = " ".join(sorted(pair))
        names[label] = min(text, names.get(label, text))
    return [names[label] for label in labels]


def split_groups(keys: Sequence[Keys], share: float) -> tuple[list[int], list[int], list[int]]:
    """Indexes of the records to fit with, of held-out records of the same groups, and of the records of
    held-out groups. Nothing is held out if there is only one group."""
    groups = {key.group for key in keys}
    held_out = _below(groups, share, _hash_share, at_least=1) if len(groups) > 1 else set()
    fitted = [index for index, key in enumerate(keys) if key.group not in held_out]
    known = known_prompts([keys[index] for index in fitted])
    return (
        [index for index in fitted if keys[index].prompt not in known],
        [index for index in fitted if keys[index].prompt in known],
        [index for index, key in enumerate(keys) if key.group in held_out],
    )


def split_items(keys: Sequence[Keys], count: int) -> tuple[list[int], list[int]]:
    """Indexes of the items to fit with, and of `count` held-out items: whole groups in the order of their
    hashes, as many as come closest. One group at least is on each side."""
    sizes = Counter(key.group for key in keys)
    ordered = sorted(sizes, key=lambda group: (_hash_share(group), group))
    totals = list(accumulate(sizes[group] for group in ordered[:-1]))
    last = min(range(len(totals)), key=lambda index: abs(totals[index] - count))
    held_out = set(ordered[: last + 1])
    return (
        [index for index, key in enumerate(keys) if key.group not in held_out],
        [index for index, key in enumerate(keys) if key.group in held_out],
    )


def known_prompts(fitted: Sequence[Keys]) -> set[str]:
    """Prompts to hold out of fitted groups: at least one prompt of every group remains."""
    prompts: defaultdict[str, set[str]] = defaultdict(set)
    for key in fitted:
        prompts[key.group].add(key.prompt)
    chosen: set[str] = set()
    for members in prompts.values():
        chosen |= _below(members, _KNOWN_SHARE, lambda prompt: _hash_share(f"known\0{prompt}"), at_least=0)
    return chosen


def _below(texts: set[str], share: float, value: Callable[[str], float], at_least: int) -> set[str]:
    """The texts whose value is below `share`; never all of them, and at least so many."""
    ordered = sorted(texts, key=lambda text: (value(text), text))
    count = sum(value(text) < share for text in ordered)
    return set(ordered[: min(max(count, at_least), len(ordered) - 1)])
