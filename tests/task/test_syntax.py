"""Syntax items: every form against lemminflect, every transformation undone by code that shares nothing."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from lemminflect import getInflection

from headatlas.task.generators import lexicon, syntax

KINDS = ["past_tense", "plural", "agreement", "question", "negation", "pronoun"]
RECORDS = syntax.records()
ITEMS = {kind: [(r["question"], r["answer"]) for r in RECORDS if r["kind"] == kind] for kind in KINDS}
NOUNS = [noun for nouns in lexicon.NOUNS_BY_CLASS.values() for noun in nouns]
SUBJECT_TEXTS = sorted((subject.text for subject in syntax.SUBJECTS), key=len, reverse=True)


@cache
def forms(lemma: str, tag: str) -> tuple[str, ...]:
    """What lemminflect has in its dictionary, not what its rules would guess."""
    return getInflection(lemma, tag=tag, inflect_oov=False)


# ------------------------------------------------------------------------------------------- the whole


def test_counts():
    counts = Counter(record["kind"] for record in RECORDS)
    assert list(counts) == KINDS
    assert set(counts.values()) == {syntax.ITEMS_PER_KIND}
    assert len(RECORDS) >= 4000


def test_same_each_time():
    assert syntax.records() == RECORDS


def test_distinct():
    assert len({(record["kind"], record["question"]) for record in RECORDS}) == len(RECORDS)
    assert all(record["question"] != record["answer"] for record in RECORDS)


def test_clean_and_short_text():
    for record in RECORDS:
        assert set(record) == {"kind", "instruction", "question", "answer", "line", "end", "lemma"}
        for text in record.values():
            assert text and text == text.strip() and "  " not in text and text.isascii()
        assert len(f"{record['question']} {record['answer']}".split()) < 22


def test_one_short_instruction_per_kind():
    assert len({(record["kind"], record["instruction"]) for record in RECORDS}) == len(KINDS)
    assert all(len(record["instruction"].split()) <= 8 for record in RECORDS)


def test_sentence_marks():
    for kind in ("negation", "pronoun"):
        assert all(asked.endswith(".") and answer.endswith(".") for asked, answer in ITEMS[kind])
    assert all(asked.endswith(".") and answer.endswith("?") for asked, answer in ITEMS["question"])
    assert all(asked.endswith(")") for asked, _ in ITEMS["agreement"])
    for asked, answer in ITEMS["past_tense"]:
        assert asked.endswith(".") == answer.endswith(".") == (" " in asked)


def test_capitals():
    for kind in ("question", "negation", "pronoun"):
        for asked, answer in ITEMS[kind]:
            assert asked.lstrip("[")[0].isupper() and answer[0].isupper()
            for word in re.findall(r"\w+", answer)[1:]:
                proper = {*lexicon.FEMALE_NAMES, *lexicon.MALE_NAMES, "French", "Greek", "Spanish", "Latin"}
                assert word.islower() or word in proper


# ------------------------------------------------------------------------------------- the word tables


def test_every_word_is_listed_once():
    assert len(set(lexicon.VERBS)) == len(lexicon.VERBS)
    assert len(set(NOUNS)) == len(NOUNS)
    assert not set(NOUNS) & {syntax.plural(noun) for noun in NOUNS}


@pytest.mark.parametrize(
    ("tag", "inflect"),
    [
        ("VBZ", syntax.third_person),
        ("VBD", syntax.past),
        ("VBN", syntax.participle),
        ("VBG", syntax.gerund),
    ],
)
def test_every_verb_form(tag, inflect):
    wrong = {v: (inflect(v), forms(v, tag)) for v in lexicon.VERBS if inflect(v) not in forms(v, tag)}
    assert not wrong


def test_no_past_equals_its_present():
    assert not [lemma for lemma in lexicon.VERBS if lemma in forms(lemma, "VBD")]


def test_every_plural():
    wrong = {n: (syntax.plural(n), forms(n, "NNS")) for n in NOUNS if syntax.plural(n) not in forms(n, "NNS")}
    assert not wrong


def test_all_words_of_the_frames_are_in_the_tables():
    verbs = {
        *lexicon.HABIT_VERBS,
        *lexicon.HABITS,
        *lexicon.EVENTS,
        *lexicon.ANIMAL_EVENTS,
        *lexicon.PERSON_EVENTS,
        *lexicon.RELATIVE_VERBS,
        *lexicon.UNINTENDED,
        *(
            verb
            for table in (lexicon.THING_RELATIVES, lexicon.INANIMATE_EVENTS)
            for vs in table.values()
            for verb in vs
        ),
        *(verb for verbs in lexicon.VERBS_BY_CLASS.values() for verb in verbs if not verb.startswith("be")),
    }
    assert verbs <= set(lexicon.VERBS)
    nouns = {
        *lexicon.FEMALE_NOUNS,
        *lexicon.MALE_NOUNS,
        *lexicon.THING_RELATIVES,
        *lexicon.INANIMATE_EVENTS,
        *(
            noun
            for table in (lexicon.EVENTS, lexicon.ANIMAL_EVENTS)
            for nouns in table.values()
            for noun in nouns
        ),
    }
    for table in lexicon.PHRASES_WITH_ATTRACTOR.values():
        nouns |= set(table) | {phrase.split()[1] for phrases in table.values() for phrase in phrases}
    assert nouns <= set(NOUNS)


@pytest.mark.parametrize(
    ("lemma", "past"),
    [
        ("stop", "stopped"),
        ("carry", "carried"),
        ("hope", "hoped"),
        ("mix", "mixed"),
        ("play", "played"),
        ("visit", "visited"),
        ("prefer", "preferred"),
        ("rain", "rained"),
        ("agree", "agreed"),
        ("sing", "sang"),
    ],
)
def test_past_spelling(lemma, past):
    assert syntax.past(lemma) == past


@pytest.mark.parametrize(
    ("noun", "plural"),
    [
        ("box", "boxes"),
        ("city", "cities"),
        ("watch", "watches"),
        ("hero", "heroes"),
        ("piano", "pianos"),
        ("toy", "toys"),
        ("wolf", "wolves"),
        ("child", "children"),
        ("dish", "dishes"),
    ],
)
def test_plural_spelling(noun, plural):
    assert syntax.plural(noun) == plural


@pytest.mark.parametrize(
    ("lemma", "third", "gerund"),
    [
        ("go", "goes", "going"),
        ("have", "has", "having"),
        ("watch", "watches", "watching"),
        ("study", "studies", "studying"),
        ("swim", "swims", "swimming"),
        ("tie", "ties", "tying"),
        ("agree", "agrees", "agreeing"),
    ],
)
def test_present_spelling(lemma, third, gerund):
    assert (syntax.third_person(lemma), syntax.gerund(lemma)) == (third, gerund)


def test_articles():
    for noun, article in [("apple", "an"), ("hour", "an"), ("uniform", "a"), ("wolf", "a"), ("house", "a")]:
        assert syntax.with_article(noun) == f"{article} {noun}"


# -------------------------------------------------------------------------------------- hand examples


SHE, HE, ANNA = syntax.Person("she", "she"), syntax.Person("he", "he"), syntax.Person("Anna", "she")
THEY, BOYS = syntax.Person("they", "they"), syntax.Person("the boys", "they")


@pytest.mark.parametrize(
    ("clause", "statement", "question", "negation"),
    [
        (
            syntax.present_clause(SHE, "like", "tea"),
            "She likes tea.",
            "Does she like tea?",
            "She does not like tea.",
        ),
        (
            syntax.present_clause(BOYS, "play", "chess"),
            "The boys play chess.",
            "Do the boys play chess?",
            "The boys do not play chess.",
        ),
        (syntax.past_clause(THEY, "leave"), "They left.", "Did they leave?", "They did not leave."),
        (
            syntax.auxiliary_clause(THEY, "can", "swim"),
            "They can swim.",
            "Can they swim?",
            "They cannot swim.",
        ),
        (syntax.auxiliary_clause(HE, "is", "tired"), "He is tired.", "Is he tired?", "He is not tired."),
        (
            syntax.auxiliary_clause(ANNA, "has", "won"),
            "Anna has won.",
            "Has Anna won?",
            "Anna has not won.",
        ),
    ],
)
def test_sentences_by_hand(clause, statement, question, negation):
    assert syntax.statement(clause) == statement
    assert syntax.question(clause) == question
    assert syntax.negation(clause) == negation


EXAMPLES = {
    "past_tense": [
        ("sing", "sang"),
        ("stop", "stopped"),
        ("prefer", "preferred"),
        ("Anna sings.", "Anna sang."),
        ("My uncle studies art.", "My uncle studied art."),
        ("The woman loses the ticket.", "The woman lost the ticket."),
    ],
    "plural": [
        ("a wolf", "wolves"),
        ("a child", "children"),
        ("an hour", "hours"),
        ("a piano", "pianos"),
        ("one young hero", "two young heroes"),
        ("one quiet cemetery", "two quiet cemeteries"),
    ],
    "agreement": [
        ("The guard of the princes (walks/walk)", "walks"),
        ("The mice under the box (eat/eats)", "eat"),
        ("The teacher who likes the boys (sleep/sleeps)", "sleeps"),
        ("The students that the woman helps (listen/listens)", "listen"),
        ("The house near the rivers (were/was)", "was"),
        ("The girls who like the nurse (is/are)", "are"),
    ],
    "question": [
        ("Alice avoids sugar.", "Does Alice avoid sugar?"),
        ("The girls grow tomatoes.", "Do the girls grow tomatoes?"),
        ("Peter bought the house.", "Did Peter buy the house?"),
        ("She must rest.", "Must she rest?"),
        ("The king was happy.", "Was the king happy?"),
        ("Peter and Maria have visited the castle.", "Have Peter and Maria visited the castle?"),
    ],
    "negation": [
        ("She tells jokes.", "She does not tell jokes."),
        ("They play cards.", "They do not play cards."),
        ("They chose the dress.", "They did not choose the dress."),
        ("They can walk.", "They cannot walk."),
        ("Julia is safe.", "Julia is not safe."),
        ("The prince has eaten the cake.", "The prince has not eaten the cake."),
    ],
    "pronoun": [
        ("[Alice] threw the stone.", "She threw the stone."),
        ("[My father] visited the church.", "He visited the church."),
        ("[The tower] shook.", "It shook."),
        ("[Robert and Sarah] will bake the pie.", "They will bake the pie."),
        ("Lucy will meet [the boy].", "Lucy will meet him."),
        ("Paul greeted [the princess].", "Paul greeted her."),
        ("Julia opened [the box].", "Julia opened it."),
        ("James closed [the windows].", "James closed them."),
    ],
}


@pytest.mark.parametrize(("kind", "item"), [(kind, item) for kind in EXAMPLES for item in EXAMPLES[kind]])
def test_examples_by_hand(kind, item):
    assert item in ITEMS[kind]


# ------------------------------------------------------------------------- the items, read back again


def test_past_tense_items_read_back():
    """The two sides differ in one word, which goes from VBZ (or the lemma) to VBD of one verb."""
    for asked, answer in ITEMS["past_tense"]:
        if " " not in asked:
            assert answer in forms(asked, "VBD")
            continue
        before, after = asked.rstrip(".").split(), answer.rstrip(".").split()
        assert len(before) == len(after)
        [(present, past)] = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
        assert [v for v in lexicon.VERBS if present in forms(v, "VBZ") and past in forms(v, "VBD")]
    assert 0.4 < sum(" " in asked for asked, _ in ITEMS["past_tense"]) / len(ITEMS["past_tense"]) < 0.6


def test_plural_items_read_back():
    for asked, answer in ITEMS["plural"]:
        before, after = asked.split(), answer.split()
        assert after[-1] in forms(before[-1], "NNS") and after[-1] != before[-1]
        if before[0] == "one":
            assert after[:-1] == ["two", *before[1:-1]] and len(before) == 3
        else:
            assert before[:-1] in (["a"], ["an"]) and len(after) == 1


NUMBER = dict.fromkeys(NOUNS, "singular") | {
    form: "plural" for n in NOUNS for form in forms(n, "NNS") if form != n
}
PLURAL_VERBS = {"are", "were", "have"}
SINGULAR_VERBS = {"is", "was", "has"}


def numbers_in(subject: str) -> list[str]:
    """The numbers of the nouns of a subject: the first word after each "the", adjectives left out."""
    adjectives = {word for words in lexicon.ADJECTIVES.values() for word in words}
    words = subject.lower().split()
    numbers = []
    for place, word in enumerate(words):
        if word == "the":
            noun = next(later for later in words[place + 1 :] if later not in adjectives)
            numbers.append(NUMBER[noun])
    return numbers


def test_agreement_items():
    first_is_right, attracted, opposite, plural_heads = 0, 0, 0, 0
    for asked, answer in ITEMS["agreement"]:
        subject, first, second = re.fullmatch(r"(The [a-z ]+) \((\w+)/(\w+)\)", asked).groups()
        assert answer in (first, second) and first != second
        head, *attractors = numbers_in(subject)
        other = second if answer == first else first
        singular, plural = (answer, other) if head == "singular" else (other, answer)
        assert (singular, plural) in [("is", "are"), ("was", "were"), ("has", "have")] or (
            singular in forms(plural, "VBZ") and plural in lexicon.VERBS
        )
        first_is_right += answer == first
        plural_heads += head == "plural"
        attracted += bool(attractors)
        opposite += bool(attractors) and attractors != [head]
    count = len(ITEMS["agreement"])
    assert 0.45 <= first_is_right / count <= 0.55
    assert 0.45 <= plural_heads / count <= 0.55
    assert 0.4 <= attracted / count <= 0.6
    assert 0.6 <= opposite / attracted < 1


def test_agreement_within_relative_clauses():
    """ "who" clauses agree with the head, "that" clauses in the present with the noun within."""
    seen = 0
    for asked, _ in ITEMS["agreement"]:
        words = asked.split(" (")[0].split()
        if words[2:3] == ["who"]:
            noun, verb = words[1], words[3]
        elif words[2:3] == ["that"]:
            noun, verb = words[4], words[5]
        else:
            continue
        seen += 1
        if NUMBER[noun] == "singular":
            assert any(verb in forms(v, "VBZ") or verb in forms(v, "VBD") for v in lexicon.VERBS)
        else:
            assert verb in lexicon.VERBS or any(verb in forms(v, "VBD") for v in lexicon.VERBS)
    assert seen > 100


def split_subject(text: str) -> tuple[str, str]:
    """A known subject at the start of the text, and the rest."""
    for subject in SUBJECT_TEXTS:
        if text.lower().startswith(f"{subject.lower()} "):
            return text[: len(subject)], text[len(subject) + 1 :]
    raise AssertionError(text)


def undone(subject: str, auxiliary: str, rest: str) -> set[str]:
    """The statements that a subject, an auxiliary and the rest of the predicate may come from."""
    subject = subject[0].upper() + subject[1:]
    tags = {"do": "VBP", "does": "VBZ", "did": "VBD"}
    if auxiliary not in tags:
        return {f"{subject} {auxiliary} {rest}."}
    verb, *others = rest.split()
    return {" ".join([subject, form, *others]) + "." for form in forms(verb, tags[auxiliary])}


def test_questions_undone():
    for asked, answer in ITEMS["question"]:
        auxiliary, after = answer.rstrip("?").split(" ", 1)
        subject, rest = split_subject(after)
        assert asked in undone(subject, auxiliary.lower(), rest)


def test_negations_undone():
    for asked, answer in ITEMS["negation"]:
        subject, after = split_subject(answer.rstrip("."))
        auxiliary, rest = after.replace("cannot ", "can not ", 1).split(" not ")
        assert asked in undone(subject, auxiliary, rest)
        assert "can not" not in answer


@pytest.mark.parametrize("kind", ["question", "negation"])
def test_auxiliaries_agree_and_are_mixed(kind):
    counts = Counter()
    for asked, _ in ITEMS[kind]:
        subject, predicate = split_subject(asked.rstrip("."))
        is_plural = (
            subject.lower() in {"they", "we"} or " and " in subject or NUMBER.get(subject[4:]) == "plural"
        )
        verb, *others = predicate.split()
        if verb in PLURAL_VERBS | SINGULAR_VERBS:
            assert verb in (PLURAL_VERBS if is_plural else SINGULAR_VERBS)
            if verb in {"has", "have"}:
                assert any(others[0] in forms(v, "VBN") for v in lexicon.VERBS)
            elif others[0].endswith("ing"):
                assert any(others[0] in forms(v, "VBG") for v in lexicon.VERBS)
        elif verb in lexicon.MODALS:
            assert others[0] in lexicon.VERBS
        elif not any(verb in forms(v, "VBD") for v in lexicon.VERBS):
            tag = "VBP" if is_plural else "VBZ"
            assert any(verb in forms(v, tag) for v in lexicon.VERBS)
            verb = tag
        else:
            verb = "VBD"
        counts[verb] += 1
    assert all(count >= 20 for count in counts.values())
    assert set(counts) == {*PLURAL_VERBS, *SINGULAR_VERBS, *lexicon.MODALS, "VBD", "VBP", "VBZ"}


WOMEN = {*lexicon.FEMALE_NAMES, "girl", "woman", "queen", "princess", "lady", "aunt", "sister", "mother"}
MEN = {*lexicon.MALE_NAMES, "boy", "man", "king", "prince", "uncle", "nephew", "father"}


def test_pronoun_items():
    counts = Counter()
    for asked, answer in ITEMS["pronoun"]:
        before, phrase, after = re.fullmatch(r"(.*)\[(.+)\](.+)", asked).groups()
        noun = phrase.split()[-1]
        if " and " in phrase or NUMBER.get(noun) == "plural":
            pronouns = ("They", "them")
        elif noun in WOMEN:
            pronouns = ("She", "her")
        elif noun in MEN:
            pronouns = ("He", "him")
        else:
            assert noun in {
                n for c in ("thing", "food", "place", "notion") for n in lexicon.NOUNS_BY_CLASS[c]
            }
            pronouns = ("It", "it")
        pronoun = pronouns[bool(before)]
        assert answer == f"{before}{pronoun}{after}"
        counts[pronoun] += 1
    assert set(counts) == {"She", "He", "It", "They", "her", "him", "it", "them"}
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize(
    ("kind", "question", "answer", "line", "end"),
    [
        ("past_tense", "catch", "caught", "Today: They catch. Yesterday:", "They caught."),
        ("past_tense", "Anna sings.", "Anna sang.", "Today: Anna sings. Yesterday:", "Anna sang."),
        ("plural", "a wolf", "wolves", "Here is one wolf. ->", "Here are two wolves."),
        ("plural", "one small shelf", "two small shelves", None, "They mentioned two small shelves."),
        (
            "agreement",
            "The author of the books (have/has)",
            "has",
            "The author of the books (have/has) changed. ->",
            "The author of the books has changed.",
        ),
        ("agreement", "The monk (sings/sing)", "sings", "The monk (sings/sing). ->", "The monk sings."),
        ("question", "They pray.", "Do they pray?", "They pray. ->", "Do they pray?"),
        ("negation", "Tom can swim.", "Tom cannot swim.", "Positive: Tom can swim. Negative:", None),
        ("pronoun", "[Anna] fed the dog.", "She fed the dog.", "[Anna] fed the dog. =", None),
    ],
)
def test_items_as_lines_to_complete(kind, question, answer, line, end):
    found = syntax._line(kind, question, answer)
    assert found[0] == (line or found[0]) and found[1] == (end or answer)


def test_lines_are_distinct_sentences():
    lines = [record["line"] for record in RECORDS]
    assert len(set(lines)) > 0.99 * len(lines)
    for record in RECORDS:
        assert record["end"][0].isupper() and record["end"][-1] in ".?" and " " in record["end"]
