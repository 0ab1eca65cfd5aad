"""Items of English syntax from a small grammar of our own: six kinds, equally many of each.

The kinds are past tense, plural, subject-verb agreement, question formation, negation and pronoun
replacement. Every item has one right answer, which follows from the word lists and the rules here; nothing
is random but the fixed choice of which combinations are kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import TypeVar

from headatlas.task.generators import lexicon
from headatlas.task.generators.grammar import (
    Clause,
    Person,
    auxiliary_clause,
    gerund,
    negation,
    participle,
    past,
    past_clause,
    phrase,
    plural,
    present_clause,
    question,
    sentence,
    statement,
    third_person,
    with_article,
)

__all__ = ["INSTRUCTIONS", "ITEMS_PER_KIND", "SUBJECTS", "records", "verb_forms"]

ITEMS_PER_KIND = 1100

INSTRUCTIONS = {
    "past_tense": "Write the past tense.",
    "plural": "Write the plural; one becomes two.",
    "agreement": "Choose the correct verb form.",
    "question": "Turn the sentence into a yes/no question.",
    "negation": "Make the sentence negative, without contractions.",
    "pronoun": "Replace the words in brackets by a pronoun.",
}

_OBJECT_PRONOUNS = {"she": "her", "he": "him", "it": "it", "they": "them"}

#: singular and plural of the agreement verbs that no rule gives
_AUXILIARY_FORMS = {"be": ("is", "are"), "be_past": ("was", "were"), "have": ("has", "have")}

#: Share of attractor items whose attractor has the other number than the head.
_OPPOSITE_SHARE = 0.75

#: question, answer, and the word that related items share: a verb or a noun
_Item = tuple[str, str, str]
_T = TypeVar("_T")


_SINGULAR_PERSONS = (
    *(Person(name, "she") for name in lexicon.FEMALE_NAMES),
    *(Person(name, "he") for name in lexicon.MALE_NAMES),
    *(Person(f"the {noun}", "she") for noun in lexicon.FEMALE_NOUNS),
    *(Person(f"the {noun}", "he") for noun in lexicon.MALE_NOUNS),
)
_FAMILY = (
    *(Person(f"my {noun}", "she") for noun in ("aunt", "sister", "mother")),
    *(Person(f"my {noun}", "he") for noun in ("uncle", "nephew", "father")),
)
_COUPLES = tuple(
    Person(f"{male} and {female}", "they")
    for male, female in zip(lexicon.MALE_NAMES, lexicon.FEMALE_NAMES, strict=True)
)
_GROUPS = tuple(
    Person(f"the {plural(noun)}", "they")
    for noun in ("girl", "boy", "woman", "man", "child", "student", "teacher", "farmer")
)
# "My" and "you" are left out of statements that become questions: an answerer may well turn them round.
SUBJECTS = (
    *_SINGULAR_PERSONS,
    *_COUPLES,
    *_GROUPS,
    Person("she", "she"),
    Person("he", "he"),
    Person("they", "they"),
    Person("we", "we"),
)

_Predicate = tuple[str, str]

_INTRANSITIVE: tuple[_Predicate, ...] = tuple((lemma, "") for lemma in lexicon.HABIT_VERBS)
_HABITS: tuple[_Predicate, ...] = (
    *_INTRANSITIVE,
    *((lemma, complement) for lemma, complements in lexicon.HABITS.items() for complement in complements),
)
_EVENTS: tuple[_Predicate, ...] = tuple(
    (lemma, f"the {noun}")
    for table in (lexicon.EVENTS, lexicon.ANIMAL_EVENTS)
    for lemma, nouns in table.items()
    for noun in nouns
)
_INTENDED: tuple[_Predicate, ...] = tuple(
    (lemma, complement) for lemma, complement in (*_INTRANSITIVE, *_EVENTS) if lemma not in lexicon.UNINTENDED
)


def _clauses() -> dict[str, list[Clause]]:
    """Statements by the way in which they form questions and negations."""
    singular = [subject for subject in SUBJECTS if not subject.is_plural]
    plurals = [subject for subject in SUBJECTS if subject.is_plural]
    return {
        "does": [present_clause(subject, *habit) for subject, habit in product(singular, _HABITS)],
        "do": [present_clause(subject, *habit) for subject, habit in product(plurals, _HABITS)],
        "did": [past_clause(subject, *event) for subject, event in product(SUBJECTS, (*_HABITS, *_EVENTS))],
        "modal": [
            auxiliary_clause(subject, modal, phrase(*deed), deed[0])
            for subject, modal, deed in product(SUBJECTS, lexicon.MODALS, _INTENDED)
        ],
        "state": [
            auxiliary_clause(
                subject, ("are", "were")[was] if subject.is_plural else ("is", "was")[was], state, state
            )
            for subject, was, state in product(SUBJECTS, (0, 1), lexicon.STATES)
        ],
        "progressive": [
            auxiliary_clause(
                subject,
                ("are", "were")[was] if subject.is_plural else ("is", "was")[was],
                phrase(gerund(lemma), complement),
                lemma,
            )
            for subject, was, (lemma, complement) in product(SUBJECTS, (0, 1), _INTENDED)
        ],
        "perfect": [
            auxiliary_clause(
                subject, "have" if subject.is_plural else "has", phrase(participle(lemma), complement), lemma
            )
            for subject, (lemma, complement) in product(SUBJECTS, (*_INTRANSITIVE, *_EVENTS))
        ],
    }


# ---------------------------------------------------------------------------------------------- kinds


def _sample(pool: Iterable[_T], count: int, seed: int = 0) -> list[_T]:
    return random.Random(seed).sample(list(pool), count)


def _shares(total: int, parts: int) -> list[int]:
    """`total` in `parts` whole numbers that differ by one at most."""
    return [total // parts + (part < total % parts) for part in range(parts)]


def _past_tense_items() -> list[_Item]:
    verbs = _sample([(lemma, past(lemma), lemma) for lemma in lexicon.VERBS], ITEMS_PER_KIND // 2)
    singular = [subject for subject in (*SUBJECTS, *_FAMILY) if not subject.is_plural]
    pairs = product(singular, (*_HABITS, *_EVENTS))
    sentences = [
        (
            statement(present_clause(subject, *predicate)),
            statement(past_clause(subject, *predicate)),
            predicate[0],
        )
        for subject, predicate in _sample(pairs, ITEMS_PER_KIND - len(verbs))
    ]
    return verbs + sentences


def _plural_items() -> list[_Item]:
    nouns = [
        (with_article(noun), plural(noun), noun)
        for nouns in lexicon.NOUNS_BY_CLASS.values()
        for noun in nouns
    ]
    phrases = [
        (f"one {adjective} {noun}", f"two {adjective} {plural(noun)}", noun)
        for noun_class, nouns_of_class in lexicon.NOUNS_BY_CLASS.items()
        for noun, adjective in product(nouns_of_class, lexicon.ADJECTIVES[noun_class])
    ]
    return nouns + _sample(phrases, ITEMS_PER_KIND - len(nouns))


def _numbered(noun: str, is_plural: bool) -> str:
    return plural(noun) if is_plural else noun


def verb_forms(verb: str) -> tuple[str, str]:
    """The form after a singular and the form after a plural subject."""
    return _AUXILIARY_FORMS[verb] if verb in _AUXILIARY_FORMS else (third_person(verb), verb)


def _simple_subjects(is_plural: bool) -> list[_Item]:
    """Subjects without an attractor, each with a verb."""
    return [
        (f"The {adjective}{_numbered(noun, is_plural)}", verb, noun)
        for noun_class, verbs in lexicon.VERBS_BY_CLASS.items()
        for noun in lexicon.NOUNS_BY_CLASS[noun_class]
        for adjective in ("", *(f"{word} " for word in lexicon.ADJECTIVES[noun_class][:2]))
        for verb in verbs
    ]


def _prepositional_subjects(head_plural: bool, attractor_plural: bool) -> list[_Item]:
    return [
        (
            f"The {_numbered(head, head_plural)} {preposition} the {_numbered(noun, attractor_plural)}",
            verb,
            head,
        )
        for noun_class, table in lexicon.PHRASES_WITH_ATTRACTOR.items()
        for head, phrases in table.items()
        for preposition, noun in (phrase.split() for phrase in phrases)
        for verb in lexicon.VERBS_BY_CLASS[noun_class]
    ]


def _relative_subjects(head_plural: bool, attractor_plural: bool) -> list[_Item]:
    persons = ("boy", "girl", "teacher", "doctor", "nurse", "farmer", "student", "singer", "guest", "woman")
    subjects = []
    for head, attractor, lemma in product(persons, persons, lexicon.RELATIVE_VERBS):
        if head != attractor:
            heads, attractors = _numbered(head, head_plural), _numbered(attractor, attractor_plural)
            inner = verb_forms(lemma)
            subjects.append(("person", f"The {heads} who {inner[head_plural]} the {attractors}", head))
            subjects.append(("person", f"The {heads} that the {attractors} {inner[attractor_plural]}", head))
    for (head, lemmas), attractor in product(lexicon.THING_RELATIVES.items(), persons):
        heads, attractors = _numbered(head, head_plural), _numbered(attractor, attractor_plural)
        subjects += [("thing", f"The {heads} that the {attractors} {past(lemma)}", head) for lemma in lemmas]
    return [
        (subject, verb, head)
        for noun_class, subject, head in subjects
        for verb in lexicon.VERBS_BY_CLASS[noun_class]
    ]


def _with_choice(subjects: Sequence[_Item], is_plural: bool) -> list[_Item]:
    """Add the two verb forms to each subject; the right one comes first for every second subject."""
    items = []
    for number, (subject, verb, head) in enumerate(subjects):
        forms = verb_forms(verb)
        right, wrong = forms[is_plural], forms[not is_plural]
        first, second = (right, wrong) if number % 2 else (wrong, right)
        items.append((f"{subject} ({first}/{second})", right, head))
    return items


def _agreement_items() -> list[_Item]:
    with_attractor = ITEMS_PER_KIND // 2
    simple = ITEMS_PER_KIND - with_attractor
    opposite = round(with_attractor * _OPPOSITE_SHARE)
    items = []
    for is_plural, count in zip((False, True), _shares(simple, 2), strict=True):
        items += _with_choice(_sample(_simple_subjects(is_plural), count), is_plural)
    for is_opposite, total in ((True, opposite), (False, with_attractor - opposite)):
        cells = list(product((_prepositional_subjects, _relative_subjects), (False, True)))
        for (subjects, is_plural), count in zip(cells, _shares(total, len(cells)), strict=True):
            pool = subjects(is_plural, is_plural != is_opposite)
            items += _with_choice(_sample(pool, count), is_plural)
    return items


def _transformed_items(transform: Callable[[Clause], str], seed: int) -> list[_Item]:
    pools = _clauses().values()
    shares = _shares(ITEMS_PER_KIND, len(pools))
    return [
        (statement(clause), transform(clause), clause.lemma)
        for pool, count in zip(pools, shares, strict=True)
        for clause in _sample(pool, count, seed)
    ]


def _verb_groups(lemma: str) -> tuple[str, ...]:
    """Verb groups whose form does not depend on the subject, so that the pronoun is all that changes."""
    return (past(lemma),) if lemma in lexicon.UNINTENDED else (past(lemma), f"will {lemma}")


def _subject_replacements() -> dict[str, list[_Item]]:
    """Items that replace the subject, by pronoun."""
    items: dict[str, list[_Item]] = {"she": [], "he": [], "it": [], "they": []}
    for person, (lemma, rest) in product((*_SINGULAR_PERSONS, *_FAMILY, *_COUPLES, *_GROUPS), _EVENTS):
        for verb in _verb_groups(lemma):
            items[person.pronoun].append(
                (
                    "[" + sentence(f"{person.text}] {verb} {rest}"),
                    sentence(f"{person.pronoun} {verb} {rest}"),
                    lemma,
                )
            )
    for (noun, lemmas), is_plural in product(lexicon.INANIMATE_EVENTS.items(), (False, True)):
        pronoun = "they" if is_plural else "it"
        for lemma in lemmas:
            for verb in (past(lemma), f"will {lemma}", f"may {lemma}", f"did not {lemma}"):
                subject = f"[The {_numbered(noun, is_plural)}]"
                items[pronoun].append((f"{subject} {verb}.", sentence(f"{pronoun} {verb}"), lemma))
    return items


def _object_replacements() -> dict[str, list[_Item]]:
    """Items that replace the object, by pronoun."""
    items: dict[str, list[_Item]] = {"she": [], "he": [], "it": [], "they": []}
    things = [
        (lemma, f"the {_numbered(noun, is_plural)}", "they" if is_plural else "it")
        for lemma, nouns in lexicon.EVENTS.items()
        for noun in nouns
        for is_plural in (False, True)
    ]
    persons = [
        (lemma, person.text, person.pronoun)
        for lemma, person in product(lexicon.PERSON_EVENTS, (*_SINGULAR_PERSONS, *_GROUPS, *_COUPLES))
    ]
    for subject, (lemma, target, pronoun) in product(_SINGULAR_PERSONS, (*things, *persons)):
        if subject.text in target:
            continue
        for verb in _verb_groups(lemma):
            items[pronoun].append(
                (
                    sentence(f"{subject.text} {verb} [{target}]"),
                    sentence(f"{subject.text} {verb} {_OBJECT_PRONOUNS[pronoun]}"),
                    lemma,
                )
            )
    return items


def _pronoun_items() -> list[_Item]:
    pools = [*_subject_replacements().values(), *_object_replacements().values()]
    shares = _shares(ITEMS_PER_KIND, len(pools))
    return [item for pool, count in zip(pools, shares, strict=True) for item in _sample(pool, count)]


#: how a thing is mentioned once and twice; any countable noun fits
_MENTIONS = (
    ("There was one {}.", "There were two {}."),
    ("Here is one {}.", "Here are two {}."),
    ("They mentioned one {}.", "They mentioned two {}."),
)
#: what can follow the verb forms that need something after them
_AFTER = {
    "is": " here",
    "are": " here",
    "was": " there",
    "were": " there",
    "has": " changed",
    "have": " changed",
}


def _line(kind: str, asked: str, answer: str) -> tuple[str, str]:
    """The item as a line of text: its beginning, and the whole sentence that completes it.

    Whole sentences, because a single word can be had in many ways: with words as targets the seeds of a
    fit agree far less on the heads that a model needs.
    """
    if kind == "past_tense":
        if " " not in asked:
            asked, answer = f"They {asked}.", f"They {answer}."
        return f"Today: {asked} Yesterday:", answer
    if kind == "plural":
        thing, things = asked.partition(" ")[2], answer.removeprefix("two ")
        once, twice = _MENTIONS[len(thing) % len(_MENTIONS)]
        return f"{once.format(thing)} ->", twice.format(things)
    if kind == "agreement":
        subject, _, forms = asked.removesuffix(")").rpartition(" (")
        after = _AFTER.get(answer, "")
        return f"{subject} ({forms}){after}. ->", f"{subject} {answer}{after}."
    if kind == "negation":
        return f"Positive: {asked} Negative:", answer
    return f"{asked} ->" if kind == "question" else f"{asked} =", answer


def records() -> list[dict[str, str]]:
    """All items, in a fixed order: {"kind", "instruction", "question", "answer", "line", "end", "lemma"}.

    `line` and `end` are question and answer as one line of text, which is to be completed. `lemma` is the
    word that related items share: the noun of a plural and of the subject of an agreement, the verb (or the
    adjective of a state) of all other sentences.
    """
    items_by_kind = {
        "past_tense": _past_tense_items(),
        "plural": _plural_items(),
        "agreement": _agreement_items(),
        # two seeds, so that the two kinds differ in their statements
        "question": _transformed_items(question, seed=0),
        "negation": _transformed_items(negation, seed=1),
        "pronoun": _pronoun_items(),
    }
    made = []
    for kind, items in items_by_kind.items():
        for asked, answer, lemma in _sample(items, len(items)):  # in mixed order
            line, end = _line(kind, asked, answer)
            item = {"kind": kind, "instruction": INSTRUCTIONS[kind], "question": asked, "answer": answer}
            word_class = "noun" if kind in ("plural", "agreement") else "verb"
            made.append({**item, "line": line, "end": end, "lemma": f"{word_class} {lemma}"})
    return made
