"""What a notebook shows: whole, escaped, and well-formed."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from headatlas.atlas import HeadCard
from headatlas.atlas.head_card import RelationOfHead, SalientToken, TaskOfHead
from headatlas.core import Head
from headatlas.figure import plot_agreement
from support.atlases import atlas_of, spec_of, without_fits

EVIL = "<script>alert(1)</script>&"


def parsed(html):
    """Well-formed, so that nothing is left open in the notebook."""
    return ElementTree.fromstring(f"<div>{html}</div>")


def test_an_atlas():
    high, low = np.full((2, 3), 0.9), np.full((2, 3), 0.1)
    low[0, 1], high[1, 0], low[1, 0] = 0.8, 0.2, 0.1
    atlas = atlas_of({EVIL: {0: (high, low), 1: (high, low)}}, spec_of(3, 2))
    found = parsed(atlas._repr_html_())
    cells = [cell.text for cell in found.findall(".//td")]
    assert cells[:3] == [EVIL, "2", "20 %"] and not found.findall(".//script")
    rects = found.findall(".//rect")
    assert len(rects) == 5  # no cell where there is no head
    by_place = {(one.get("x"), one.get("y")): one.get("fill") for one in rects}
    assert by_place["1", "1"] == "#1acc00" and by_place["0", "0"] == "#cc1900"  # layer 0 is below


def test_a_large_and_an_empty_one():
    large = np.full((60, 60), 0.9)
    assert "too large" in atlas_of({"sums": {0: (large, large)}})._repr_html_()
    single = atlas_of({"sums": {0: (large[:1, :1], large[:1, :1])}})
    assert ": 1 head in 1 layer<" in single._repr_html_()
    empty = atlas_of({"sums": {0: (large[:2, :2], large[:2, :2])}})
    empty = without_fits(empty, (0, "retain"), (0, "remove"))
    assert "nothing is finished yet" in empty._repr_html_()


def test_a_card():
    card = HeadCard(
        Head(3, 1),
        EVIL,
        (TaskOfHead(EVIL, ("facilitating", "unclear"), (0.1, 0.5, 0.9), (0, 0.1, 0.2), 0.9, 0.5),),
        (RelationOfHead(EVIL, "knowledge", "promote", 0.4, "static", 50),),
        (SalientToken("\n<b>", 1.5, (EVIL,)),),
        label=EVIL,
    )
    found = parsed(card._repr_html_())
    text = "".join(found.itertext())
    assert (
        text.startswith(f"L3H1 of {EVIL}")
        and "0.10 / 0.50 / 0.90" in text
        and "1 facilitating, 1 unclear" in text
    )
    assert not found.findall(".//script") and len(found.findall(".//table")) == 3


def test_a_figure():
    gates = np.full((2, 3), 0.9)
    shown = plot_agreement(atlas_of({"sums": {0: (gates, gates)}}))._repr_html_()
    assert shown.startswith('<img alt="figure" src="data:image/png;base64,iVBOR') and shown.endswith('">')
