"""Relations of one's own, from CSV and JSON files, and their pairs in tokens."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE, WordLevel
from tokenizers.pre_tokenizers import ByteLevel, Split
from transformers import PreTrainedTokenizerFast

from headatlas import TaskError, UnknownNameError, load_task
from headatlas.method.relation.scores import scored_pairs
from headatlas.task import (
    LEAST_PAIRS,
    OTHER,
    Relation,
    builtin_relations,
    distinct_relations,
    load_relation,
    relation_tokens,
)
from support.planted import word_tokenizer


@pytest.fixture
def write(tmp_path):
    def to_file(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            path.write_text(text, encoding="utf-8")
        return path

    return to_file


PAIRS = (("France", "Paris"), ("Japan", "Tokyo"))


# Files


def test_csv(write):
    path = write("my-capitals.csv", "source,target\nFrance,Paris\nJapan,Tokyo\n")
    found = load_relation(path)
    assert found == Relation("my-capitals", PAIRS)
    assert found == load_relation(str(path)) and load_relation(found) is found
    assert found.prompt is None and not found.published and found.licence is None


@pytest.mark.parametrize("text", [
    "target,source\nParis,France\nTokyo,Japan\n",  # columns in any order, and more of them
    "n,source,target\n1,France,Paris\n2,Japan,Tokyo\n",
    "source,target\r\nFrance,Paris\r\nJapan,Tokyo",  # Windows
    'source,target\n"France","Paris"\n" Japan ",Tokyo \n',  # quotes, spaces around words
    "\ufeffsource,target\nFrance,Paris\nJapan,Tokyo\n",  # the mark that Excel writes
    "source,target\nFrance,Paris\nJapan,Tokyo\nFrance,Paris\n",  # a pair counts once
    "source,target\nFrance,Paris\n\nJapan,Tokyo\n\n",  # blank lines
])  # fmt: skip
def test_ways_to_write_csv(write, text):
    assert load_relation(write("c.csv", text)).pairs == PAIRS


@pytest.mark.parametrize("data", [
    [["France", "Paris"], ["Japan", "Tokyo"]],
    [{"source": "France", "target": "Paris"}, ["Japan", "Tokyo"]],
    {"pairs": [["France", "Paris"], [" Japan", "Tokyo "], ["France", "Paris"]]},
])  # fmt: skip
def test_ways_to_write_json(write, data):
    assert load_relation(write("c.JSON", data)) == Relation("c", PAIRS)


def test_words_keep_their_signs(write):
    path = write("c.csv", 'source,target\ncôté,"Korea, South"\nNew York,été\n')
    assert load_relation(path).pairs == (("côté", "Korea, South"), ("New York", "été"))


def test_category_by_column_key_and_argument(write):
    """What the file says of itself counts; the argument is for files that say nothing."""
    column = write("a.csv", "source,target,category\nFrance,Paris,knowledge\nJapan,Tokyo,\n")
    key = write("b.json", {"category": "linguistic", "prompt": "{source} is", "pairs": PAIRS})
    assert load_relation(column).category == "knowledge" and load_relation(column).prompt is None
    assert load_relation(key).category == "linguistic" and load_relation(key).prompt == "{source} is"
    assert load_relation(column, category="mine").category == "knowledge"
    assert load_relation(key, category="mine").category == "linguistic"
    without = write("d.csv", "source,target,category\nFrance,Paris,\n")
    assert load_relation(without).category == OTHER == "other"
    assert load_relation(without, category="mine").category == "mine"


def test_the_hash_is_that_of_what_is_asked():
    one = Relation("a", PAIRS, prompt="{source}:")
    assert one.content_hash == Relation("b", PAIRS, prompt="{source}:").content_hash
    for different in (Relation("a", PAIRS), Relation("a", PAIRS[::-1], prompt="{source}:")):
        assert different.content_hash != one.content_hash


def test_copies():
    assert Relation("a", (("x", "x"), ("y", "y"))).copies
    assert not Relation("a", (("x", "x"), ("y", "Y"))).copies
    assert {name for name in builtin_relations() if load_relation(name).copies} == {"copying", "name-copying"}


# What is wrong with a file


NO_LIST = (
    'a.json holds no list of pairs; write [["France", "Paris"], …], or an object with the keys "pairs" and '
    '"category".'
)


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("a.csv", "from,to\nFrance,Paris\n", "a.csv has no column 'source'; its columns are from, to."),
    ("a.csv", "source,to,\nFrance,Paris,\n", "a.csv has no column 'target'; its columns are source, to."),
    ("a.csv", "source;target\na;b\n", "a.csv has no column 'source'; its columns are source;target."),
    ("a.csv", "", "a.csv has no column 'source'; its columns are none."),
    ("a.csv", "source,target\n", "a.csv holds no pairs."),
    ("a.csv", "source,target\nFrance,Paris\nJapan,\n", "a.csv: line 3 lacks a source or a target."),
    ("a.csv", "source,target\nFrance,Paris\n\n ,Tokyo\n", "a.csv: line 4 lacks a source or a target."),
    ("a.csv", "source,target\nFrance\n", "a.csv: line 2 lacks a source or a target."),
    ("a.csv", 'source,target\nFrance,"Paris\n', "a.csv: line 2 is not CSV (unexpected end of data)."),
    ("a.csv", "source,target,category\na,b,knowledge\nc,d,linguistic\n",
     "a.csv names several categories (knowledge, linguistic); a relation has one."),
    ("a.csv", "source,target\nCôte,x\n".encode("latin-1"), "a.csv is not valid UTF-8 (byte 15)."),
    ("a.json", b'[["\xff", "x"]]', "a.json is not valid UTF-8 (byte 3)."),
    ("a.json", "source,target", "a.json is not JSON."),
    ("a.json", "[" * 100_000, "a.json is not JSON."),
    ("a.json", {"words": []}, NO_LIST),
    ("a.json", '"France"', NO_LIST),
    ("a.json", [], "a.json holds no pairs."),
    ("a.json", [["a", "b"], ["c"]], 'a.json: entry 2 is not a pair: ["c"].'),
    ("a.json", [["a", "b"], "cd"], 'a.json: entry 2 is not a pair: "cd".'),
    ("a.json", [["a", "b", "c"]], 'a.json: entry 1 is not a pair: ["a", "b", "c"].'),
    ("a.json", {"pairs": [["a", "b"]], "category": 3}, "a.json: category is a text, not 3."),
    ("a.json", {"pairs": [["a", "b"]], "prompt": ["x"]}, "a.json: prompt is a text, not ['x']."),
])  # fmt: skip
def test_wrong_files(write, name, content, sentence):
    with pytest.raises(TaskError) as caught:
        load_relation(write(name, content))
    assert str(caught.value) == sentence


@pytest.mark.parametrize("pair", [["a", ""], ["a", None], {"source": "a"}, ["  ", "b"]])
def test_half_a_pair_in_json(write, pair):
    with pytest.raises(TaskError, match=r"^a\.json: \w+ 2 lacks a source or a target"):
        load_relation(write("a.json", [["x", "y"], pair]))


def test_a_comma_in_a_word_without_quotes(write):
    """'Korea, South,Seoul' is three fields: to take South for the capital of Korea would be wrong."""
    path = write("a.csv", "source,target\nFrance,Paris\nKorea, South,Seoul\n")
    with pytest.raises(TaskError, match="line 3"):
        load_relation(path)


@pytest.mark.parametrize("prompt", ["{x} is", "the {source", "{source.real.x}", "no place for it"])
def test_a_prompt_that_cannot_be_filled(write, prompt):
    """It would fail, or ask the same of all sources, only when the model is asked."""
    with pytest.raises(TaskError, match="prompt"):
        load_relation(write("a.json", {"pairs": PAIRS, "prompt": prompt}))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(TaskError, match=r"nowhere\.csv cannot be read: No such file or directory\."):
        load_relation(tmp_path / "nowhere.csv")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(TaskError, match=r"folder\.json cannot be read: Is a directory\."):
        load_relation(str(tmp_path / "folder.json"))


def test_unknown_names_are_answered_with_the_closest():
    with pytest.raises(UnknownNameError, match="did you mean 'country-capital'") as caught:
        load_relation("country-capitals")
    assert "columns source and target" in str(caught.value)
    with pytest.raises(UnknownNameError, match=r"no-such-thing\.txt"):
        load_relation("no-such-thing.txt")


@pytest.mark.parametrize(
    "pairs", [PAIRS, [list(pair) for pair in PAIRS], [*PAIRS, ["Japan", "Tokyo"]], iter(PAIRS)]
)
def test_pairs_may_be_lists(pairs):
    relation = Relation("capitals", pairs)
    assert relation.pairs == PAIRS and relation == Relation("capitals", PAIRS)


@pytest.mark.parametrize(
    "pairs", [None, "ab", {"a": "b"}, ["ab"], [["a"]], [["a", 1]], [("a", "b", "c")], [5]]
)
def test_pairs_that_are_none_are_one_sentence(pairs):
    with pytest.raises(TaskError, match=r"relation 'x': pair"):
        Relation("x", pairs)


@pytest.mark.parametrize("name", [None, "", 3, "a\x1b[31m"])
def test_the_name_of_a_relation_is_a_line_of_text(name):
    with pytest.raises(TaskError, match="the name of a relation is a line of text"):
        Relation(name, PAIRS)
    with pytest.raises(TaskError, match="the category of a relation is a line of text"):
        Relation("x", PAIRS, category=name)


@pytest.mark.parametrize("value", [5, None, ["a"]])
def test_what_is_no_relation_is_one_sentence(value):
    with pytest.raises(TaskError, match="is not a relation; give a name, a file"):
        load_relation(value)


# Tokens


def test_words_of_one_token():
    relation = Relation("r", (("w1", "w2"), ("w3", "w3"), ("w4 w5", "w6"), ("w7", "w8 w9")))
    found = relation_tokens(relation, word_tokenizer(10))
    assert [(pair.source, pair.target, pair.whole, pair.single) for pair in found.pairs] == [
        ((1,), 2, True, True),
        ((3,), 3, True, True),
        ((4, 5), 6, True, False),  # a source of several tokens
        ((7,), 8, False, False),  # a target of several: its first token stands for it
    ]
    assert [pair.words for pair in found.pairs] == list(relation.pairs)
    assert len(found.single) == 2 and not found.measurable and found.name == "r"


def many(*kinds):
    """So many single pairs, pairs with sources of two tokens, and pairs with targets of two."""
    shapes = ("w{0}", "w{1}"), ("w{0} w1", "w{1}"), ("w{0}", "w{1} w2")
    pairs = [
        (source.format(number, 0), target.format(0, (number * 7) % 97))
        for (source, target), count in zip(shapes, kinds, strict=True)
        for number in range(count)
    ]
    found = relation_tokens(Relation("r", tuple(pairs)), word_tokenizer(100))
    assert len(found.pairs) == sum(kinds)
    return found


def test_thirty_pairs_are_needed():
    assert LEAST_PAIRS == 30
    assert many(30, 0, 0).measurable and not many(29, 1, 9).measurable
    assert len(many(30, 5, 5).single) == 30


def test_pairs_that_are_left_out_have_a_reason():
    def counts(found):
        return {reason: len(pairs) for reason, pairs in found.left_out(scored_pairs(found)).items()}

    assert counts(many(40, 0, 0)) == {}
    assert counts(many(30, 2, 3)) == {"several tokens": 5}
    assert counts(many(20, 30, 4)) == {"several tokens": 4}  # in texts: whole targets are enough
    assert counts(many(29, 90, 0)) == {"not in the sample": 19}
    assert counts(many(9, 4, 3)) == {"several tokens": 7, "fewer than 30 pairs remain": 9}
    words = Relation("r", [[f"w{number}", "w0"] for number in range(40)] + [["w1", "zebra"]])
    found = relation_tokens(words, word_tokenizer(100))
    assert found.left_out(found.single) == {"not in the vocabulary": [("w1", "zebra")]}


@pytest.mark.parametrize("as_file", [True, False], ids=["file", "list"])
def test_pairs_that_are_given_again_are_counted(write, as_file):
    """Each pair is scored once; the listing says how many lines were copies of it."""
    pairs = [[f"w{number}", "w0"] for number in range(40)]
    again = [pairs[1], pairs[7], pairs[1]]
    given = [*pairs, *again]
    relation = load_relation(write("r.json", given)) if as_file else Relation("r", given)
    assert relation == Relation("r", pairs) and len(relation.pairs) == 40
    found = relation_tokens(relation, word_tokenizer(100))
    left_out = found.left_out(scored_pairs(found))
    assert left_out.keys() == {"repeats another pair"}
    assert sorted(left_out["repeats another pair"]) == sorted(map(tuple, again))


def test_pairs_for_a_text():
    """Whole targets if they are enough, else pieces of targets too."""
    assert len(many(20, 10, 9).in_text) == 30 and all(pair.whole for pair in many(20, 10, 9).in_text)
    assert len(many(20, 9, 9).in_text) == 38
    assert len(many(40, 3, 2).in_text) == 43


def letters(*more):
    """Letters, digits and the space are tokens of their own."""
    vocabulary = {letter: number for number, letter in enumerate(" abcdefgh0123456789")}
    vocabulary |= {word: len(vocabulary) + number for number, word in enumerate(more)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=" "))
    tokenizer.pre_tokenizer = Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer), vocabulary


@pytest.mark.parametrize(("pair", "piece"), [
    (("1985", "1986"), "6"),  # the first that is not blank and not in the same place of the source
    (("1989", "1990"), "9"),  # at the third digit, where the source has an 8
    (("199", "2000"), "2"),
    (("ab", "cd"), "c"),
    (("ab", "abc"), "c"),
    (("abc", "ab"), "b"),  # all of it is in the source: its last
    (("ba", "ab"), "a"),  # in the source, but elsewhere
])  # fmt: skip
def test_the_piece_that_stands_for_a_target(pair, piece):
    tokenizer, vocabulary = letters()
    (found,) = relation_tokens(Relation("r", (pair,)), tokenizer).pairs
    assert (found.target, found.whole) == (vocabulary[piece], False)
    assert found.source == tuple(vocabulary[letter] for letter in f" {pair[0]}")


def test_the_piece_of_a_copy_is_its_beginning():
    tokenizer, vocabulary = letters()
    pairs = (("abc", "abc"), ("dab", "dab"))
    found = relation_tokens(Relation("copying", pairs), tokenizer).pairs
    assert [pair.target for pair in found] == [vocabulary["a"], vocabulary["d"]]


def test_words_that_the_model_does_not_know_are_no_single_tokens():
    """The token for everything unknown says nothing about a word: such pairs would all be the same."""
    pairs = tuple((f"unheard{number}", f"unheard{number}") for number in range(40))
    found = relation_tokens(Relation("r", pairs), word_tokenizer(10))
    assert not found.measurable and len(found.single) == 0


def test_a_word_is_tokenised_as_it_follows_a_space():
    """' ab' is one token, 'ab' alone would be two."""
    vocabulary = {"a": 0, "b": 1, "Ġ": 2, "Ġa": 3, "Ġab": 4}
    tokenizer = Tokenizer(BPE(vocabulary, [("Ġ", "a"), ("Ġa", "b")]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    assert fast("ab", add_special_tokens=False)["input_ids"] == [0, 1]
    (pair,) = relation_tokens(Relation("r", (("ab", "ab"),)), fast).pairs
    assert pair.single and pair.source == (4,) and pair.target == 4


@pytest.mark.slow
def test_smollm2():
    """The embedded model writes numbers digit by digit, behind a space of its own."""
    from headatlas import load_model

    tokenizer = load_model("smollm2", check=False).tokenizer
    years = relation_tokens(load_relation("next-year"), tokenizer)
    assert not years.measurable and not any(pair.whole for pair in years.pairs)
    for pair in years.pairs:
        source, target = pair.words
        piece = tokenizer.decode([pair.target])
        place = next(place for place in range(4) if source[place] != target[place])
        assert piece == target[place], pair.words
    capitals = relation_tokens(load_relation("country-capital"), tokenizer)
    assert capitals.measurable
    known = {pair.words: pair for pair in capitals.single}
    pair = known["France", "Paris"]
    assert tokenizer.decode(pair.source) == " France" and tokenizer.decode([pair.target]) == " Paris"
    for pair in capitals.single:
        assert tokenizer.decode(pair.source) == f" {pair.words[0]}"
        assert tokenizer.decode([pair.target]) == f" {pair.words[1]}"


def test_a_relation_as_a_task(tmp_path):
    """Three worked examples, the relation's own prompt; the target of the question is never among them."""
    task = load_task("relation:country-capital")
    assert task.name == "relation:country-capital" and task.spec.kind == "relation"
    items = task.items()
    relation = load_relation("country-capital")
    assert len(items.train) + len(items.test) == len(relation.pairs)
    answers = dict(relation.pairs)
    for item in [*items.train[:20], *items.test[:20]]:
        lines = item.prompt.split("\n")
        assert len(lines) == 4 and all(line.startswith("The capital of ") for line in lines)
        source = lines[-1].removeprefix("The capital of ").removesuffix(" is")
        assert item.target == f" {answers[source]}" and all(item.target not in line for line in lines)
    file = tmp_path / "double.csv"
    file.write_text("source,target\n" + "".join(f"w{n},w{2 * n}\n" for n in range(1, 60)))
    own = load_task(f"relation:{file}")
    assert own.name == "relation:double" and own.items().train[0].prompt.endswith(" ->")
    with pytest.raises(UnknownNameError, match="no relation named 'capitals'"):
        load_task("relation:capitals")


def test_outer_spaces_of_words_are_stripped():
    """ " France" is the usual spelling of a token; every word is read after a space anyway."""
    spaced = Relation("capitals", [(f" {source}", f" {target} ") for source, target in PAIRS])
    assert spaced == Relation("capitals", PAIRS)
    assert spaced.content_hash == Relation("capitals", PAIRS).content_hash
    assert spaced.category == OTHER
    with pytest.raises(TaskError, match=r"pair 2 is \('a', ' '\); both texts need a word"):
        Relation("x", [("a", "b"), ("a", " ")])


def test_a_list_and_a_mapping_are_relations():
    expected = Relation("capitals", PAIRS)
    assert distinct_relations(list(PAIRS)) == [Relation("pairs", PAIRS)]
    assert distinct_relations({"capitals": list(PAIRS), "again": expected}) == [
        expected,
        Relation("again", PAIRS),
    ]
    names = [relation.name for relation in distinct_relations(["country-capital", {"mine": PAIRS}, PAIRS])]
    assert names == ["country-capital", "mine", "pairs"]
    assert [relation.name for relation in distinct_relations(("country-capital", "plural"))] == [
        "country-capital",
        "plural",
    ]
    assert load_relation(list(PAIRS), category="knowledge").category == "knowledge"
    with pytest.raises(UnknownNameError, match="no relation named 'Paris'"):
        distinct_relations({"France": "Paris"})
    with pytest.raises(TaskError, match="relation 'France': pairs are a list"):
        distinct_relations({"France": 5})


def test_min_pairs_decides_what_can_be_measured():
    relation = Relation("few", [("w0", "w1"), ("w2", "w3"), ("w4", "zebra")])
    usual, small = (relation_tokens(relation, word_tokenizer(10), count) for count in (30, 2))
    assert small.measurable and small.has_enough and not usual.has_enough
    assert usual.why_unmeasured == (
        "few: every score is NaN, because the vocabulary has 2 of its 3 pairs and min_pairs is 30; give more "
        "pairs, or set min_pairs=2."
    )
    assert usual.left_out([])["fewer than 30 pairs remain"] == [("w0", "w1"), ("w2", "w3")]


def test_tables_and_arrays_of_pairs():
    pairs = [("dog", "puppy"), ("cat", "kitten")]
    table = pd.DataFrame(pairs, columns=["source", "target"]).assign(rank=[1, 2])
    for given in (table, np.array(pairs)):
        assert load_relation(given).pairs == tuple(pairs)
        (relation,) = distinct_relations(given)
        assert relation.pairs == tuple(pairs)
        (relation,) = distinct_relations({"young": given})
        assert (relation.name, relation.pairs) == ("young", tuple(pairs))
        (relation,) = distinct_relations([given])
        assert relation.pairs == tuple(pairs)
    with pytest.raises(TaskError, match="no column 'source'; it has from, target"):
        load_relation(table[["target"]].assign(**{"from": "a"})[["from", "target"]])


def test_a_named_file_of_pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("source,target\ndog,puppy\n")
    (relation,) = distinct_relations({"young": path})
    assert (relation.name, relation.pairs) == ("young", (("dog", "puppy"),))
