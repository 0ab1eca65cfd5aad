"""Head names and model specs."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headatlas import Head, HeadNameError, ModelSpec, UnknownNameError
from headatlas.core import head_list, ranked

number = st.integers(0, 10_000)


@given(number, number)
def test_every_spelling_names_the_same_head(layer, head):
    expected = Head(layer, head)
    spellings = [
        f"L{layer}H{head}",
        f"l{layer}h{head}",
        f"{layer}.{head}",
        f"a{layer}.h{head}",
        f" L{layer}H{head} ",
        f"({layer}, {head})",
        f"{layer},{head}",
        (layer, head),
        (np.int64(layer), np.int32(head)),
        [layer, head],
        expected,
    ]
    assert {Head.parse(spelling) for spelling in spellings} == {expected}
    assert Head.parse(str(expected)) == expected


@given(st.text())
def test_other_text_names_no_head_and_says_how_to_write_one(text):
    named = re.fullmatch(
        r"\s*(L\d+H\d+|\d+\.\d+|a\d+\.h\d+|\(?\s*\d+\s*,\s*\d+\s*\)?)\s*", text, re.IGNORECASE
    )
    if named:
        assert Head.parse(text)
    else:
        with pytest.raises(HeadNameError, match="L5H3"):
            Head.parse(text)


@pytest.mark.parametrize(
    "name", ["", "5", "L5", "H3", "L5H3x", "5;3", "5,", "L-1H2", (1,), (1, 2, 3), ("a", "b"), 5, None]
)
def test_not_heads(name):
    with pytest.raises(HeadNameError):
        Head.parse(name)


def test_heads_sort_by_layer_then_head():
    assert sorted([Head(1, 0), Head(0, 5), Head(0, 2)]) == [Head(0, 2), Head(0, 5), Head(1, 0)]
    with pytest.raises(HeadNameError):
        Head(-1, 0)


def ragged() -> ModelSpec:
    return ModelSpec(
        name="m", architecture="A", model_type="a", layers=3, heads=(2, 0, 3), kv_heads=(1, 0, 3),
        head_dim=(8, 0, 4), hidden=16, vocabulary=10, parameters=100, dtype="float32",
        revision=None, content_hash="ab",
    )  # fmt: skip


def test_a_ragged_model_has_holes():
    spec = ragged()
    assert spec.shape == (3, 3)
    assert [str(head) for head in spec] == ["L0H0", "L0H1", "L2H0", "L2H1", "L2H2"]
    assert len(spec) == 5
    assert Head(2, 2) in spec and "L0H0" in spec and (0, 1) in spec
    assert Head(1, 0) not in spec and "L0H2" not in spec and "nonsense" not in spec and 7 not in spec
    assert spec.require("0.1") == Head(0, 1)


@pytest.mark.parametrize(
    ("name", "words"), [("L1H0", "no attention heads"), ("L0H2", "heads 0 to 1"), ("L9H0", "layers 0 to 2")]
)
def test_a_missing_head_is_explained(name, words):
    with pytest.raises(HeadNameError, match=words):
        ragged().require(name)


def test_a_spec_survives_json():
    import json

    assert ModelSpec.from_json(json.loads(json.dumps(ragged().to_json()))) == ragged()


def test_a_spec_must_fit_its_layers():
    with pytest.raises(ValueError, match="heads has 1 entries for 3 layers"):
        ModelSpec.from_json({**ragged().to_json(), "heads": [1]})


def test_an_unknown_name_answers_with_the_closest():
    error = UnknownNameError("model", "smolm2", ["smollm2", "other"])
    assert error.closest == ("smollm2",)
    assert str(error) == "no model named 'smolm2'; did you mean 'smollm2'?"
    assert error.exit_code == 2
    assert "there are: other, smollm2" in str(UnknownNameError("model", "zzz", ["smollm2", "other"]))
    assert str(UnknownNameError("task", "mine", [])) == "no task named 'mine'; there are none."


def names(heads):
    return [str(head) for head in heads]


def test_heads_are_ranked_by_falling_value_then_by_rising_second_key():
    values = np.array([[0.2, 0.9, np.nan], [0.9, 0.2, 0.2]])
    assert names(ranked(values)) == ["L0H1", "L1H0", "L0H0", "L1H1", "L1H2"]
    then = np.array([[0.5, 0.5, 0.5], [0.1, 0.5, 0.1]])
    assert names(ranked(values, then)) == ["L1H0", "L0H1", "L1H2", "L0H0", "L1H1"]
    assert ranked(np.full((2, 2), np.nan)) == []


def test_ties_by_lot_are_always_the_same_and_never_by_layer():
    """The lot decides about rankings in atlases that exist: these are its first heads."""
    by_lot = ranked(np.zeros((6, 4)), ties="lot")
    assert names(by_lot[:6]) == ["L4H2", "L0H3", "L0H0", "L4H0", "L1H0", "L4H3"]
    assert sorted(by_lot) == ranked(np.zeros((6, 4)))
    values = np.arange(24.0).reshape(6, 4)
    assert ranked(values, ties="lot") == ranked(values)


def test_a_head_is_a_named_tuple():
    head = Head(5, 3)
    layer, number = head
    assert (layer, number) == (head.layer, head.head) == head == (5, 3)
    assert {(5, 3): "induction"}[head] == "induction"
    assert np.arange(80).reshape(8, 10)[head] == 53
    assert (str(head), f"{head:>6}", repr(head)) == ("L5H3", "  L5H3", "Head(layer=5, head=3)")
    assert type(head.layer) is int and type(Head(np.int64(5), np.int64(3)).layer) is int
    assert pickle.loads(pickle.dumps(head)) == copy.deepcopy(head) == head
    assert isinstance(head._replace(head=4), Head)


def test_a_head_is_validated_however_it_is_made():
    for make in (lambda: Head(0, -1), lambda: Head._make((-1, 0)), lambda: Head(1, 2)._replace(layer=-3)):
        with pytest.raises(HeadNameError, match="both count from 0"):
            make()
    for layer, head in ((1.5, 0), ("5", 3)):
        with pytest.raises(HeadNameError, match="both are whole numbers"):
            Head(layer, head)


@pytest.mark.parametrize("heads", ["L5H3", (5, 3), Head(5, 3), ["L5H3"], [(5, 3)], (Head(5, 3),)])
def test_one_head_or_several(heads):
    assert [Head.parse(name) for name in head_list(heads)] == [Head(5, 3)]
