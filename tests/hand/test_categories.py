"""Categories of heads, and labels in plain words, worked out on paper."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from headatlas import Head
from headatlas.atlas.category import categories, category_words, in_order
from headatlas.atlas.head_card import HeadCard, RelationOfHead, SalientToken, TaskOfHead, plain_label
from headatlas.core import IMPLEMENTS

NAMES = {"copying": "algorithmic", "capital": "knowledge", "plural": "linguistic", "past": "linguistic",
         "mine": "other"}  # fmt: skip


def scores():
    """One layer of four heads and a hole, another with two heads.

    promote   head 0: copying; head 1: capital and plural; head 2: plural and past; head 3: just too little
    suppress  head 0: capital; head 3: mine
    layer 1   head 0: all; head 1: none
    """
    values = np.zeros((5, 2, 2, 5), dtype=np.float32)
    values[0, 0, 0, 0] = 0.15  # just enough, although single precision cannot write it
    values[1, 0, 0, 1] = values[2, 0, 0, 1] = 0.9
    values[2, 0, 0, 2], values[3, 0, 0, 2] = 0.2, 1
    values[0, 0, 0, 3] = np.nextafter(np.float32(0.15), np.float32(0))
    values[1, 1, 0, 0] = values[4, 1, 0, 3] = 0.5
    values[:, 0, 1, 0] = 1
    values[:, :, 0, 4] = values[:, :, 1, 2:] = np.nan
    return xr.DataArray(
        values,
        dims=["relation", "direction", "layer", "head"],
        coords={
            "relation": list(NAMES),
            "direction": ["promote", "suppress"],
            "layer": [0, 1],
            "head": range(5),
            "category": ("relation", list(NAMES.values())),
            "k": ("relation", [1, 10, 10, 10, 10]),
        },
    )


def test_categories():
    found = categories(scores())
    assert found.dims == ("category", "direction", "layer", "head") and found.dtype == bool
    assert found.category.values.tolist() == ["algorithmic", "knowledge", "linguistic", "other"]
    assert found.attrs["threshold"] == IMPLEMENTS == 0.15
    promote = found.sel(direction="promote", layer=0).astype(int).values.tolist()
    assert promote == [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]
    suppress = found.sel(direction="suppress", layer=0).astype(int).values.tolist()
    assert suppress == [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert found.sel(layer=1, direction="promote").values.tolist() == [[True, *[False] * 4]] * 4
    assert not found.sel(layer=1, direction="suppress").any()


def test_another_threshold():
    found = categories(scores(), 0.95)
    assert found.attrs["threshold"] == 0.95
    assert found.sel(direction="promote", layer=0).any("category").values.tolist() == [
        False, False, True, False, False
    ]  # fmt: skip


def test_words():
    found = categories(scores())
    assert category_words(found).values.tolist() == [
        ["algorithmic", "2 categories", "linguistic", "", ""],
        ["4 categories", "", "", "", ""],
    ]
    assert category_words(found, "suppress").values.tolist() == [
        ["knowledge", "", "", "other", ""],
        ["", "", "", "", ""],
    ]
    assert category_words(found, None).values.tolist() == [
        ["2 categories", "2 categories", "linguistic", "other", ""],
        ["4 categories", "", "", "", ""],
    ]
    assert category_words(found).dims == ("layer", "head") and category_words(
        found
    ).layer.values.tolist() == [0, 1]


def test_the_order_of_axes_and_relations_does_not_matter():
    plain = categories(scores())
    mixed = categories(
        scores().isel(relation=[4, 2, 0, 3, 1]).transpose("head", "relation", "layer", "direction")
    )
    assert mixed.identical(plain)


def test_a_relation_that_was_not_measured_counts_for_nothing():
    some = scores()
    some[0] = np.nan
    found = categories(some)
    assert not found.sel(category="algorithmic").any() and found.sel(category="knowledge").any()


def test_order_of_categories():
    given = ["zebra", "translation", "apple", "knowledge", "algorithmic", "linguistic", "knowledge"]
    assert in_order(given) == [
        "algorithmic", "knowledge", "linguistic", "translation", "apple", "zebra"
    ]  # fmt: skip
    assert in_order([]) == []


# Labels


def relation(name, score, direction="promote"):
    return RelationOfHead(name, "knowledge", direction, score, "static", 40)


def card(**parts):
    return HeadCard(Head(5, 3), "tiny", **parts)


def task(name, *roles):
    return TaskOfHead(name, roles, (0.1, 0.2, 0.3), (0.1, 0.2, 0.3), 0.9, 0.1)


def test_relations_come_first_three_at_most():
    found = plain_label(card(relations=(
        relation("country-capital", 0.836), relation("copying", 0.5, "suppress"),
        relation("name-copying", 0.2), relation("antonym", 0.18), relation("plural", 0.1),
    )))  # fmt: skip
    assert found == "country → capital (0.84); suppresses copying (0.50); name copying (0.20)"


@pytest.mark.parametrize(("name", "words"), [
    ("work-location", "work → location"), ("next-month-or-day", "next month or day"), ("antonym", "antonym"),
    ("name-copying", "name copying"), ("english-french", "English → French"),
])  # fmt: skip
def test_relations_in_words(name, words):
    assert plain_label(card(relations=(relation(name, 0.15),))) == f"{words} (0.15)"


SALIENT = (
    SalientToken(" France", 2.0, (" Paris", " Lyon")),
    SalientToken("\x00\x1f", 1.9, (" Paris",)),
    SalientToken(" Japan", 1.5, ("\x07", " Tokyo")),
    SalientToken("   ", 1.0, ()),
)


def test_tokens_only_where_no_relation_is_strong():
    """Tokens that cannot be printed, and blank ones, are not words."""
    assert plain_label(card(salient=SALIENT)) == "top tokens: France, Japan → Paris"
    strong = card(relations=(relation("antonym", 0.15),), salient=SALIENT)
    assert plain_label(strong) == "antonym (0.15)"
    weak = card(relations=(relation("antonym", 0.14),), salient=SALIENT)
    assert plain_label(weak) == "top tokens: France, Japan → Paris"
    assert plain_label(card(salient=SALIENT[1:2])) == "nothing stands out"
    unprintable = (SalientToken(" Japan", 1.5, ("\x07",)),)
    assert plain_label(card(salient=unprintable)) == "nothing stands out"


def test_roles_that_all_seeds_agree_on():
    found = plain_label(card(tasks=(
        task("math", "facilitating", "facilitating"), task("syntax", "facilitating", "interfering"),
        task("aba", "interfering"), task("abb", "irrelevant", "irrelevant"), task("sums", "anomaly"),
    )))  # fmt: skip
    assert found == "facilitates math; interferes with aba"


def test_everything_together_and_nothing():
    whole = card(
        relations=(relation("copying", 1.0),), salient=SALIENT, tasks=(task("math", "facilitating"),)
    )
    assert plain_label(whole) == "copying (1.00); facilitates math"
    assert plain_label(card()) == "nothing stands out"
    assert plain_label(card(relations=(relation("copying", float("nan")),))) == "nothing stands out"


def test_a_card_as_json():
    whole = card(
        relations=(relation("copying", 1.0),), salient=SALIENT[:1], tasks=(task("math", "facilitating"),)
    )
    found = json.loads(json.dumps(whole.to_json()))
    assert found["head"] == "L5H3" and found["model"] == "tiny" and found["label"] == ""
    assert found["relations"] == [{"relation": "copying", "category": "knowledge", "direction": "promote",
                                   "score": 1.0, "kind": "static", "pairs": 40}]  # fmt: skip
    assert found["salient"] == [{"token": " France", "strength": 2.0, "mapped": [" Paris", " Lyon"]}]
    assert found["tasks"][0]["facilitation"] == [0.1, 0.2, 0.3]
