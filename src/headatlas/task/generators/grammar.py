"""English word forms and simple clauses: what the syntax task is built from."""

from __future__ import annotations

from typing import NamedTuple

from headatlas.task.generators import lexicon

__all__ = [
    "Clause",
    "Person",
    "auxiliary_clause",
    "gerund",
    "negation",
    "participle",
    "past",
    "past_clause",
    "phrase",
    "plural",
    "present_clause",
    "question",
    "sentence",
    "statement",
    "third_person",
    "with_article",
]

_VOWELS = "aeiou"


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in _VOWELS


def _with_s(word: str) -> str:
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    return word + "s"


def _doubles_last_letter(lemma: str) -> bool:
    """Whether the last letter doubles before -ed and -ing: stop, prefer; not visit, play, rain."""
    vowels = [letter in _VOWELS for letter in lemma.replace("qu", "qw")]
    short_and_closed = len(lemma) > 2 and vowels[-2] and not (vowels[-1] or vowels[-3])
    return (
        short_and_closed and lemma[-1] not in "wxy" and (sum(vowels) == 1 or lemma in lexicon.DOUBLING_VERBS)
    )


def third_person(lemma: str) -> str:
    if lemma == "have":
        return "has"
    return lemma + "es" if lemma.endswith("o") else _with_s(lemma)


def past(lemma: str) -> str:
    if lemma in lexicon.IRREGULAR_VERBS:
        return lexicon.IRREGULAR_VERBS[lemma][1]
    if lemma.endswith("e"):
        return lemma + "d"
    if _ends_in_consonant_y(lemma):
        return lemma[:-1] + "ied"
    return lemma + (lemma[-1] if _doubles_last_letter(lemma) else "") + "ed"


def participle(lemma: str) -> str:
    return lexicon.IRREGULAR_VERBS[lemma][2] if lemma in lexicon.IRREGULAR_VERBS else past(lemma)


def gerund(lemma: str) -> str:
    if lemma.endswith("ie"):
        return lemma[:-2] + "ying"
    if lemma.endswith("e") and not lemma.endswith(("ee", "ye", "oe")):
        return lemma[:-1] + "ing"
    return lemma + (lemma[-1] if _doubles_last_letter(lemma) else "") + "ing"


def plural(noun: str) -> str:
    if noun in lexicon.IRREGULAR_NOUNS:
        return lexicon.IRREGULAR_NOUNS[noun]
    return noun + "es" if noun in lexicon.OES_NOUNS else _with_s(noun)


def with_article(noun: str) -> str:
    article = lexicon.AN_EXCEPTIONS.get(noun, "an" if noun[0] in _VOWELS else "a")
    return f"{article} {noun}"


class Person(NamedTuple):
    """Who acts or is acted upon, as written within a sentence, and the pronoun that stands for them."""

    text: str
    pronoun: str

    @property
    def is_plural(self) -> bool:
        return self.pronoun in {"they", "we"}


class Clause(NamedTuple):
    """A statement taken apart: what is shown after the subject, and the same with its auxiliary split off.
    `lemma` is its verb, or the adjective of a state."""

    subject: str
    shown: str  # likes tea
    auxiliary: str  # does
    rest: str  # like tea
    lemma: str = ""


def sentence(text: str, mark: str = ".") -> str:
    return text[0].upper() + text[1:] + mark


def statement(clause: Clause) -> str:
    return sentence(f"{clause.subject} {clause.shown}")


def question(clause: Clause) -> str:
    return sentence(f"{clause.auxiliary} {clause.subject} {clause.rest}", "?")


def negation(clause: Clause) -> str:
    negated = "cannot" if clause.auxiliary == "can" else f"{clause.auxiliary} not"
    return sentence(f"{clause.subject} {negated} {clause.rest}")


def phrase(verb: str, complement: str) -> str:
    return f"{verb} {complement}".rstrip()


def present_clause(subject: Person, lemma: str, complement: str = "") -> Clause:
    shown = lemma if subject.is_plural else third_person(lemma)
    auxiliary = "do" if subject.is_plural else "does"
    return Clause(subject.text, phrase(shown, complement), auxiliary, phrase(lemma, complement), lemma)


def past_clause(subject: Person, lemma: str, complement: str = "") -> Clause:
    return Clause(subject.text, phrase(past(lemma), complement), "did", phrase(lemma, complement), lemma)


def auxiliary_clause(subject: Person, auxiliary: str, rest: str, lemma: str = "") -> Clause:
    return Clause(subject.text, f"{auxiliary} {rest}", auxiliary, rest, lemma)
