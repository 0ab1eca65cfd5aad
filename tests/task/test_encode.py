"""Tokenisation: prompt and target joined without changing the tokens of either."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, Unigram, WordLevel
from transformers import PreTrainedTokenizerFast

from headatlas import TaskError, load_task
from headatlas.task import Item, Items, Relation, encode, load_relation, relation_tokens, tokens_of
from headatlas.task.generators.patterns import records, single_token_words


def byte_level():
    """GPT-2's kind: a space belongs to the word after it; digits and line ends merge."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "a"), ("1", "2"), ("Ċ", "Ċ"), ("Ġa", "b"), (":", "Ġ")]
    vocabulary = {token: place for place, token in enumerate([*letters, *(a + b for a, b in merges)])}
    tokenizer = Tokenizer(BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=None)


def sentence_piece():
    """Llama 2's kind: every text gets a space before it."""
    pieces = ["<unk>", "▁", "a", "b", "ab", "▁a", "▁ab", "▁b", ":", "\n", "=", "x"]
    tokenizer = Tokenizer(
        Unigram([(piece, -float(len(pieces) - n)) for n, piece in enumerate(pieces)], unk_id=0)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def rows(tokenizer, *pairs, bos=None, most=99):
    items = [Item(prompt, target) for prompt, target in pairs]
    return encode(
        Items(items, items[:1], len(items), ""),
        tokenizer,
        first=() if bos is None else (bos,),
        max_tokens=most,
    )


@pytest.mark.parametrize("pair", [("x1", "2"), ("x\n", "\ny"), ("q:", " a"), ("q: ", "a"), ("say", " ab a")])
def test_no_token_reaches_over_the_seam(pair):
    tokenizer = byte_level()
    prompt, target = pair
    (row,) = rows(tokenizer, pair).train
    assert list(row.prompt) == tokenizer(prompt)["input_ids"]
    assert list(row.target) == tokenizer(target)["input_ids"]
    assert tokenizer.decode(row.prompt) == prompt and tokenizer.decode(row.target) == target


def test_the_seam_would_have_changed_tokens():
    """The cases above are real: joined as one text, they tokenise otherwise."""
    tokenizer = byte_level()
    for prompt, target in [("x1", "2"), ("x\n", "\ny")]:
        (row,) = rows(tokenizer, (prompt, target)).train
        assert tokenizer(prompt + target)["input_ids"] != list(row.ids)


def test_a_tokeniser_that_puts_a_space_before_every_text():
    tokenizer = sentence_piece()
    pieces = tokenizer.convert_ids_to_tokens
    assert pieces(tokenizer("ab")["input_ids"]) == ["▁ab"]
    bare, spaced = tokens_of(tokenizer, ["ab", " ab"])
    assert pieces(bare) == ["ab"]  # the text goes on: no space
    assert pieces(spaced) == ["▁ab"]  # one space, not two
    (row,) = rows(tokenizer, ("x:", " ab a")).train
    assert pieces(list(row.ids)) == ["▁", "x", ":", "▁ab", "▁a"]
    assert row.start == 3


def test_the_first_token_goes_before_every_prompt():
    tokenizer = byte_level()
    (row,) = rows(tokenizer, ("ab", " a"), bos=7).train
    assert row.ids[0] == 7 and row.start == 1 + len(tokenizer("ab")["input_ids"])
    (row,) = rows(tokenizer, ("", " a"), bos=7).train
    assert row.prompt == (7,)
    with pytest.raises(TaskError, match="nothing to predict from"):
        rows(tokenizer, ("", " a"))


def test_too_long_rows_are_left_out_and_counted():
    tokenizer = byte_level()
    found = rows(tokenizer, ("ab", " a"), ("abcdefghij", " a"), ("abc", " a"), most=5)
    assert [len(row.ids) for row in found.train] == [3, 4] and found.too_long == 1
    with pytest.raises(TaskError, match=r"no row fits in 2 tokens \(the shortest has 3\)"):
        rows(tokenizer, ("ab", " a"), most=2)


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "answer"), [("aba", 0), ("abb", 1)])
def test_patterns(pattern, answer):
    from headatlas import load_model

    tokenizer = load_model("smollm2", check=False).tokenizer
    words = set(single_token_words(tokenizer))
    assert len(words) > 1000 and {"house", "water", "green"} <= words
    items = load_task(pattern).items(tokenizer)
    for item in (*items.train, *items.test)[:300]:
        lines = item.prompt.split("\n")
        assert len(lines) == 5
        for line in lines[:-1]:
            a, b, c = line.split()
            assert c == (a, b)[answer] and a != b
        assert item.target == " " + lines[-1].split()[answer]
        used = {word for line in lines for word in line.split()}
        assert used <= words and len(used) == 10
    assert all(
        len(row.ids) == 19 and len(row.target) == 1 for row in encode(items, tokenizer, max_tokens=64).train
    )


def test_patterns_need_words():
    with pytest.raises(TaskError, match="only 0 words of one token"):
        list(records(byte_level()))
    with pytest.raises(TaskError, match="give one"):
        load_task("aba").items()


def test_targets_outside_the_vocabulary_are_left_out_and_counted():
    made = rows(sentence_piece(), ("a:", " ab"), ("b:", " q"), ("q:", " b"))
    assert len(made.train) == 2 and made.unknown_targets == 1 and made.unknown_example == " q"
    assert made.unknown_prompts == 1
    with pytest.raises(TaskError, match="vocabulary has no token for a part of each, such as ' q'"):
        rows(sentence_piece(), ("a:", " q"))


def word_level(unknown="[UNK]", **declared):
    """Whole words; the backend alone knows the unknown token, unless the tokenizer declares one."""
    vocabulary = {word: number for number, word in enumerate([unknown, "a", "b", "ab", "<end>"])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **declared)


def undeclared_unigram():
    tokenizer = sentence_piece()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)


@pytest.mark.parametrize(
    "tokenizer",
    [
        word_level(),
        word_level(unk_token="<end>", eos_token="<end>"),  # another one is declared than the backend writes
        word_level(unk_token="[UNK]", eos_token="[UNK]"),
        word_level(unk_token="[UNK]", bos_token="[UNK]"),
        undeclared_unigram(),
    ],
    ids=["backend", "other", "is eos", "is bos", "unigram"],
)
def test_the_unknown_token_need_not_be_declared(tokenizer):
    """Fitted as answers, unknown targets would all be one and the same token."""
    made = rows(tokenizer, ("a b", " ab"), ("a b", " q"), ("q b", " b"))
    assert [len(row.target) for row in made.train] == [1, 1]
    assert made.unknown_targets == 1 and made.unknown_example == " q" and made.unknown_prompts == 1
    pairs = tuple((f"{word}", "b") for word in ("a", "ab", "q"))
    found = relation_tokens(Relation("r", pairs), tokenizer)
    assert found.unknown == (("q", "b"),) and len(found.pairs) == 2


def test_the_text_of_the_unknown_token_is_no_gap():
    """A vocabulary with `?` as its unknown token knows the answer `?`."""
    made = rows(word_level("?"), ("a b", " ?"), ("a ?", " b"), ("a b", " ? q"))
    assert [list(row.target) for row in made.train] == [[0], [2]]
    assert made.unknown_targets == 1 and made.unknown_prompts == 0


def test_an_end_token_that_is_declared_unknown_is_no_gap():
    """GPT-2's kind: every byte is known, and the end of a text stands for what is unknown."""
    tokenizer = byte_level()
    tokenizer.add_special_tokens(dict.fromkeys(("unk_token", "bos_token", "eos_token"), "<|end|>"))
    made = rows(tokenizer, ("a:", " ähm ∀"), ("a:", " a<|end|>"), ("<|end|>b", "c"))
    assert len(made.train) == 3 and made.train[1].target[-1] == tokenizer.eos_token_id
    assert made.unknown_targets == made.unknown_prompts == 0


def test_the_side_without_usable_targets_is_named():
    good, bad = Item("a:", " ab"), Item("b:", " q")
    for train, test, which in (
        ([good], [bad], "held-out target"),
        ([bad], [good], "target to fit with"),
        ([bad], [bad], "target"),
    ):
        with pytest.raises(TaskError, match=rf": no {which} can be used: .* such as ' q'"):
            encode(Items(train, test, 2, ""), sentence_piece(), max_tokens=9)


@pytest.mark.slow
def test_the_embedded_tokenizer_loses_nothing():
    """SmolLM2 declares a token as the unknown one that its vocabulary of bytes never needs."""
    from headatlas import load_model

    tokenizer = load_model("smollm2", check=False).tokenizer
    assert tokenizer.unk_token_id is not None
    items = load_task("syntax").items(tokenizer)
    made = encode(items, tokenizer, max_tokens=512)
    assert len(made.train) == len(items.train) and made.unknown_targets == made.unknown_prompts == 0
    for name in ("english-french", "synonym"):
        assert relation_tokens(load_relation(name), tokenizer).unknown == ()
