"""The relation lists in the package: their form, and their facts as far as a test can know them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from importlib.resources import files

import pytest
import yaml
from lemminflect import getInflection

FOLDER = files("headatlas") / "task" / "relations"
ENTRIES = yaml.safe_load((FOLDER / "relations.yaml").read_text(encoding="utf-8"))
CATEGORIES = {
    "algorithmic": "copying name-copying first-letter last-letter next-year number-digit next-month-or-day",
    "knowledge": "country-capital country-language object-superclass product-company work-location",
    "linguistic": "antonym comparative superlative noun-pronoun past-tense homophone synonym compound plural "
    "ing-form opposite-gender",
    "translation": "english-french english-spanish",
}
OURS = {"number-digit", "next-month-or-day", "plural", "ing-form", "opposite-gender"}
COPYING = {"copying", "name-copying"}
BOTH_WAYS = ("homophone", "opposite-gender")

every_relation = pytest.mark.parametrize("name", sorted(ENTRIES))


def rows(name: str) -> list[list[str]]:
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def pairs(name: str) -> list[tuple[str, str]]:
    return [(source, target) for source, target in rows(name)[1:]]


def facts(text: str) -> set[tuple[str, str]]:
    """'France Paris, Japan Tokyo' as pairs; the source is the first word."""
    found = (fact.split(maxsplit=1) for fact in text.split(","))
    return {(source, target.strip()) for source, target in found}


# Form


def test_files_and_entries_name_the_same_relations():
    found = {path.name for path in FOLDER.iterdir()}
    assert found == {f"{name}.{kind}" for name in ENTRIES for kind in ("csv", "md")} | {"relations.yaml"}


def test_categories_are_the_known_ones():
    expected = {name: category for category, names in CATEGORIES.items() for name in names.split()}
    assert {name: entry["category"] for name, entry in ENTRIES.items()} == expected


def test_twenty_relations_are_the_published_ones():
    assert {name for name, entry in ENTRIES.items() if not entry["published"]} == OURS
    assert len(ENTRIES) - len(OURS) == 20


@every_relation
def test_entry_has_every_field(name):
    entry = ENTRIES[name]
    assert set(entry) == {"category", "about", "source", "target", "prompt", "licence", "published"}
    assert all(value and value == value.strip() for key, value in entry.items() if key != "published")
    assert isinstance(entry["published"], bool)
    assert entry["prompt"].count("{source}") == 1 and entry["prompt"].format(source="x") != entry["prompt"]


@every_relation
def test_csv_form(name):
    data = (FOLDER / f"{name}.csv").read_bytes()
    assert data.startswith(b"source,target\n") and data.endswith(b"\n")
    assert b"\r" not in data and b"\n\n" not in data
    assert all(len(row) == 2 for row in rows(name))
    for side in (side for pair in pairs(name) for side in pair):
        assert side and side == " ".join(side.split())


@every_relation
def test_at_least_a_hundred_pairs_and_none_twice(name):
    found = pairs(name)
    assert len(found) >= 100
    assert [pair for pair, count in Counter(found).items() if count > 1] == []


@every_relation
def test_at_most_three_targets_for_a_source(name):
    assert max(Counter(source for source, _ in pairs(name)).values()) <= 3


@every_relation
def test_identity_is_for_copying_only(name):
    same = [source == target for source, target in pairs(name)]
    assert all(same) if name in COPYING else not any(same)


@every_relation
def test_page_says_size_origin_licence_and_check(name):
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {name}\n")
    assert f"; {len(pairs(name))} pairs." in page
    assert f"- Licence: {ENTRIES[name]['licence']}" in " ".join(page.split())
    assert all(f"- {head}: " in page for head in ("Made", "Checked", "Weak"))


MONTHS = """
January February, February March, March April, April May, May June, June July, July August, August September,
September October, October November, November December, December January
"""
DAYS = """
Monday Tuesday, Tuesday Wednesday, Wednesday Thursday, Thursday Friday, Friday Saturday, Saturday Sunday,
Sunday Monday
"""
NAMES = """
I English French German Italian Spanish Belgium Belgique Bélgica China Chine England Angleterre Inglaterra
France Francia Germany Allemagne Alemania Greece Grèce Grecia Italy Italie Italia Japan Japon Japón London
Londres Russia Russie Rusia Spain Espagne España
"""
MIXED_CASE = {"name-copying", "next-month-or-day", "number-digit"}  # and the lists of names
NAMES_LISTS = {"country-capital", "country-language", "product-company"}


@pytest.mark.parametrize("name", sorted(set(ENTRIES) - MIXED_CASE - NAMES_LISTS))
def test_words_are_lower_case_except_names(name):
    upper = {side for pair in pairs(name) for side in pair if side != side.lower()}
    calendar = set(re.findall(r"\w+", MONTHS + DAYS))
    allowed = {
        "noun-pronoun": {source for source, target in pairs(name) if target in {"he", "she"}},
        "opposite-gender": {"Mr", "Mrs"} | {word for word in upper if re.fullmatch("[A-Z][a-z]+man", word)},
        "work-location": {"Vatican"},
        "english-french": calendar | set(NAMES.split()),
        "english-spanish": calendar | set(NAMES.split()),
    }
    assert upper <= allowed.get(name, set())


@every_relation
def test_licence_names_lemminflect_where_the_forms_are_its(name):
    inflected = name in {"past-tense", "plural", "ing-form", "comparative", "superlative"}
    licence = ENTRIES[name]["licence"]
    assert ("lemminflect, MIT licence, Copyright (C) 2019 Brad Jascob" in licence) == inflected
    assert licence.startswith("hand-written word choice, Apache-2.0") == inflected


@pytest.mark.parametrize("name", ["number-digit", "next-month-or-day"])
def test_page_says_how_many_pairs_differ_in_more_than_case(name):
    page = " ".join((FOLDER / f"{name}.md").read_text(encoding="utf-8").split())
    different = {(source.lower(), target.lower()) for source, target in pairs(name)}
    assert f"{len(different)} different pairs" in page


def test_workplace_prompt_has_no_article_before_the_profession():
    assert not re.search(r"\b(a|an) \{source\}", ENTRIES["work-location"]["prompt"])


# By computation


def test_first_letter():
    assert all(letter == word[0] for word, letter in pairs("first-letter"))
    assert len({letter for _, letter in pairs("first-letter")}) >= 24


def test_last_letter():
    assert all(letter == word[-1] for word, letter in pairs("last-letter"))
    assert len({letter for _, letter in pairs("last-letter")}) >= 20


def test_no_letter_fills_its_list():
    for name in ("first-letter", "last-letter"):
        assert max(Counter(letter for _, letter in pairs(name)).values()) <= 35


def test_next_year():
    assert pairs("next-year") == [(str(year), str(year + 1)) for year in range(1400, 2051)]


UNITS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen
"""
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def value(words: str) -> int:
    """A number word, read from left to right."""
    units, tens = UNITS.split(), TENS.split()
    sizes = {"hundred": 100, "thousand": 1000, "million": 1000000}
    total = 0
    for word in words.lower().replace("-", " ").split():
        if word in sizes:
            total = max(total, 1) * sizes[word]
        else:
            total += units.index(word) if word in units else 20 + 10 * tens.index(word)
    return total


def test_number_digit():
    found = pairs("number-digit")
    assert [(word, digits) for word, digits in found if str(value(word)) != digits] == []
    assert {str(number) for number in range(101)} <= {digits for _, digits in found}
    assert facts("seven 7, Seven 7, twenty-one 21, ninety-nine 99, thousand 1000") <= set(found)


def test_months_and_days():
    short = """
    Jan Feb, Feb Mar, Mar Apr, Apr May, May Jun, Jun Jul, Jul Aug, Aug Sep, Sep Oct, Oct Nov, Nov Dec,
    Dec Jan, Mon Tue, Tue Wed, Wed Thu, Thu Fri, Fri Sat, Sat Sun, Sun Mon
    """
    titled = facts(MONTHS) | facts(DAYS) | facts(short)
    changes = (str.title, str.lower, str.upper)
    expected = {(change(one), change(other)) for one, other in titled for change in changes}
    assert set(pairs("next-month-or-day")) == expected


# Inflection. Exceptions: words that lemminflect files under another part of speech, or spells wrong.

NOT_IN_LEMMINFLECT = {
    "comparative": facts("badly worse, free freer, little less, many more, true truer, vague vaguer"),
    "superlative": facts("badly worst, free freest, little least, many most, vague vaguest"),
}


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("past-tense", "VBD"),
        ("ing-form", "VBG"),
        ("plural", "NNS"),
        ("comparative", "JJR"),
        ("superlative", "JJS"),
    ],
)
def test_inflection_agrees_with_lemminflect(name, tag):
    found = set(pairs(name))
    apart = {(word, form) for word, form in found if form not in getInflection(word, tag, inflect_oov=False)}
    assert apart == NOT_IN_LEMMINFLECT.get(name, set())


@pytest.mark.parametrize(
    ("name", "known"),
    [
        (
            "past-tense",
            "go went, take took, buy bought, think thought, stop stopped, study studied, agree agreed",
        ),
        ("ing-form", "run running, make making, die dying, see seeing, study studying, begin beginning"),
        (
            "plural",
            "child children, city cities, box boxes, knife knives, foot feet, day days, potato potatoes",
        ),
        ("comparative", "big bigger, happy happier, large larger, dry drier, tall taller, true truer"),
        ("superlative", "big biggest, happy happiest, large largest, tall tallest, true truest, free freest"),
    ],
)
def test_inflection_by_hand(name, known):
    assert facts(known) <= set(pairs(name))


def test_inflected_forms_are_spelt_as_english_spells():
    """lemminflect knows 'freeer' and 'vagueer'; no form may double a vowel in this way."""
    for name in ("past-tense", "ing-form", "comparative", "superlative"):
        forms = [form for _, form in pairs(name)]
        assert [form for form in forms if re.search(r"(eee|uee|uei|iing$)", form)] == []


def test_negating_prefixes_stand_on_one_side_only():
    """happy, unhappy is listed once: the way back only takes the prefix off."""
    found = set(pairs("antonym"))
    assert ("happy", "unhappy") in found and ("unhappy", "happy") not in found
    assert facts("hot cold, cold hot, male female, female male") <= found


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_symmetric_lists_hold_both_ways(name):
    found = set(pairs(name))
    assert {(target, source) for source, target in found} == found


def test_homophones_differ_in_more_than_case():
    assert [pair for pair in pairs("homophone") if pair[0].casefold() == pair[1].casefold()] == []


def test_compounds_begin_with_their_part_and_add_a_word():
    """A suffix is no word, except in ships that are ships."""
    suffixes = ("ship", "hood", "dom", "ness", "less", "ment", "er", "ing", "ed", "s")
    for part, whole in pairs("compound"):
        assert whole.startswith(part) and len(whole) >= len(part) + 2
        assert whole[len(part) :] not in suffixes or whole in {"battleship", "spaceship"}


def test_synonyms_and_antonyms_share_no_pair():
    antonyms = set(pairs("antonym"))
    assert (
        antonyms
        & {pair for source, target in pairs("synonym") for pair in ((source, target), (target, source))}
        == set()
    )


def test_capitals_are_not_named_just_like_the_country():
    found = dict(pairs("country-capital"))
    cities = {country for country, capital in found.items() if capital == f"{country} City"}
    assert cities == {"Guatemala", "Kuwait", "Mexico", "Panama"}


def test_pronouns_are_four():
    assert {target for _, target in pairs("noun-pronoun")} == {"he", "she", "it", "they"}
    assert max(Counter(source for source, _ in pairs("noun-pronoun")).values()) == 1


# Spot facts

KNOWN = {
    "country-capital": "France Paris, Japan Tokyo, Australia Canberra, Canada Ottawa, Turkey Ankara, "
    "Nigeria Abuja, Switzerland Bern, Kazakhstan Astana, Peru Lima, India New Delhi, Tanzania Dodoma",
    "country-language": "Brazil Portuguese, Mexico Spanish, Austria German, Egypt Arabic, Iran Persian, "
    "Israel Hebrew, Belgium Dutch, Belgium French, Ireland Irish, Kenya Swahili, Angola Portuguese",
    "object-superclass": "dog animal, eagle bird, salmon fish, apple fruit, hammer tool, sofa furniture",
    "product-company": "Windows Microsoft, iPhone Apple, Android Google, Mustang Ford, Photoshop Adobe",
    "work-location": "doctor hospital, teacher school, chef restaurant, judge court, farmer farm",
    "antonym": "hot cold, up down, begin end, black white, buy sell, young old, love hate, true false",
    "synonym": "begin start, big large, buy purchase, automobile car, answer reply",
    "homophone": "sea see, knight night, two too, flour flower, their there, write right",
    "compound": "rain rainbow, sun sunlight, foot football, news newspaper, key keyboard",
    "noun-pronoun": "mother she, brother he, table it, dogs they, queen she, king he, cars they, book it",
    "opposite-gender": "king queen, actress actor, uncle aunt, he she, wife husband",
    "english-french": "house maison, dog chien, water eau, bread pain, book livre, red rouge, cat chat, "
    "two deux, eat manger, write écrire, sun soleil, night nuit, tree arbre, school école, king roi, "
    "white blanc, woman femme, Monday lundi, always toujours, egg œuf",
    "english-spanish": "house casa, dog perro, water agua, bread pan, book libro, red rojo, cat gato, "
    "two dos, eat comer, write escribir, sun sol, night noche, tree árbol, school escuela, king rey, "
    "white blanco, woman mujer, Monday lunes, always siempre, egg huevo",
}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_spot_facts(name):
    assert facts(KNOWN[name]) - set(pairs(name)) == set()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("country-capital", "Australia Sydney, Turkey Istanbul, Brazil Rio, Canada Toronto, Nigeria Lagos"),
        (
            "country-capital",
            "Indonesia Jakarta, Eswatini Mbabane, Benin Porto-Novo, Luxembourg Luxembourg City",
        ),
        ("product-company", "Teflon DuPont, Roundup Monsanto, Kubernetes Google, PyTorch Meta, Lumia Nokia"),
        ("work-location", "admiral navy, colonel army, king palace, knight castle, student school"),
        ("compound", "car carpet, kid kidnap, friend friendship, light lightning, counter counterpart"),
        ("object-superclass", "whale fish, spider insect, bat bird, tomato vegetable, puzzle toy"),
        ("antonym", "hardware software, software hardware, student teacher, predator prey, prey predator"),
        ("synonym", "kill murder, home house, small tiny, lady woman, dumb stupid, crazy insane"),
        ("homophone", "bazaar bizarre, root route, disc disk, story storey, vice vise"),
        ("noun-pronoun", "actor he, priest he, landlord he"),
        (
            "opposite-gender",
            "manly womanly, fraternity sorority, bachelor spinster, cock hen, madman madwoman",
        ),
        ("english-french", "potato pomme, library librairie, table table"),
        ("english-spanish", "idea idea, library librería, what qué, manager director, like gustar"),
    ],
)
def test_usual_errors_are_absent(name, wrong):
    assert facts(wrong) & set(pairs(name)) == set()
