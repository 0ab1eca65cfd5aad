"""`headatlas relations`, `head`, `import`, `list relations` and figures of relations, as they are typed."""

from __future__ import annotations

import json
import re
from collections import Counter
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from headatlas import open_atlas
from headatlas.atlas import Atlas, Run, ScoreMap
from headatlas.atlas.head_card import HeadCard, SalientToken
from headatlas.cli.head import _show as show_card
from headatlas.cli.relations import show_summaries
from headatlas.core import Head
from support.atlases import spec_of
from support.cli import assert_refused, invoke


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    """Two lists of one's own: a CSV that names its category, a JSON list that is too short."""
    folder = tmp_path_factory.mktemp("lists")
    lines = "".join(f"w{n},w{n + 1},counting\n" for n in range(60))
    lines += "zebra,w1,counting\nw2 w3,w4,counting\n"
    (folder / "next.csv").write_text("source,target,category\n" + lines)
    (folder / "few.json").write_text(json.dumps([[f"w{n}", f"w{n + 5}"] for n in range(6)]))
    return folder / "next.csv", folder / "few.json"


@pytest.fixture(scope="module")
def atlas(tiny, lists, tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlases") / "atlas"
    one, other = lists
    arguments = ("--relation", one, "--relation", other, "--category", "knowledge", "--dynamic")
    result = invoke("relations", tiny, *arguments, "--out", folder)
    assert result.returncode == 0, result.stderr
    return folder, result


def test_what_relations_says(atlas):
    _, result = atlas
    text = result.stdout
    assert text.startswith("tiny: 12 heads, float32 on cpu; 2 relations\n")
    assert re.search(r"^counting\s*$", text, re.M) and re.search(r"^knowledge\s*$", text, re.M)
    assert re.search(r"next +60/62 +10  L\dH\d \d\.\d\d", text)
    assert re.search(r"few +0†/6 +10  not measurable \(n = 6\)", text)
    assert "† not measurable with this tokenizer" in text
    assert re.search(r"heads that promote a relation \(score ≥ 0\.15\): ", text)
    assert "few: not measurable: its list has 6 pairs, 30 are needed" in result.stderr
    assert "source vectors: " in result.stderr


def test_json_and_resume(atlas, tiny, lists):
    folder, _ = atlas
    result = invoke("relations", tiny, "-r", lists[0], "--out", folder, "--resume", "--json")
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(result.stdout)["relations"]
    assert (row["relation"], row["category"], row["kind"], row["pairs"]) == ("next", "counting", "static", 60)
    assert all(0 < one["score"] <= 1 for one in row["promote"])


def test_pairs_that_are_left_out_are_counted_and_named_on_request(atlas, tiny, lists):
    folder, result = atlas
    counts = "not in the vocabulary: next 1", "several tokens: next 1", "fewer than 30 pairs remain: few 6"
    listing = "".join(f"  {line}\n" for line in counts)
    assert f"\npairs left out (--left-out names them):\n{listing}" in result.stdout
    assert "zebra" not in result.stdout
    again = ("relations", tiny, "-r", lists[0], "--out", folder, "--resume", "--left-out")
    named = invoke(*again).stdout
    assert "next, not in the vocabulary (1): zebra → w1\n" in named
    assert "next, several tokens (1): w2 w3 → w4\n" in named and "names them" not in named
    (row,) = json.loads(invoke(*again, "--json").stdout)["relations"]
    assert row["left_out"] == {"not in the vocabulary": 1, "several tokens": 1}
    assert row["left_out_pairs"]["several tokens"] == [["w2 w3", "w4"]]
    assert open_atlas(folder).left_out_pairs("next") == {
        "not in the vocabulary": [("zebra", "w1")],
        "several tokens": [("w2 w3", "w4")],
    }


def test_heads_of_a_category_named_other_are_counted_as_such():
    """ "14 other" would mean heads that promote no relation."""
    values = np.zeros((2, 2, 7))
    values[0] = 0.5
    runs = [Run("relations", "mine", "id")]
    scores = [ScoreMap("relations", "mine", "id", values, {"category": "other", "kind": "static"})]
    atlas = Atlas(spec_of(7, 7), runs, [], scores=scores)
    console = Console(file=StringIO(), width=100)
    show_summaries(console, atlas, atlas.relation_summaries(["mine"]))
    assert "heads that promote a relation (score ≥ 0.15): 14 of category other\n" in console.file.getvalue()


def test_a_card(atlas):
    folder, _ = atlas
    result = invoke("head", folder, "1.2")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("L1H2 of tiny: ")
    assert len(re.findall(r"'w\d+'", result.stdout)) >= 15  # tokens that it amplifies
    card = json.loads(invoke("head", folder, "L1H2", "--json").stdout)
    assert card["head"] == "L1H2" and len(card["salient"]) == 15 and len(card["salient"][0]["mapped"]) == 5
    assert {one["direction"] for one in card["relations"]} == {"promote", "suppress"}


@pytest.mark.parametrize("width", [20, 24, 40, 80])
def test_a_card_has_all_its_tokens_at_every_width(width):
    tokens = (
        SalientToken(" Paris", 2.5, (" France", " Lyon")),
        SalientToken("an unusually long token", 1.5, ("長い長い長い", "x")),
    )
    console = Console(file=StringIO(), width=width, soft_wrap=True, highlight=False)
    show_card(console, HeadCard(Head(0, 0), "tiny", salient=tokens))
    text = console.file.getvalue()
    assert "2.50" in text and "1.50" in text and "…" not in text
    shown = Counter("".join(text.split()))  # a cell may go on in the next line
    for token in tokens:
        assert Counter("".join("".join(map(repr, (token.token, *token.mapped))).split())) <= shown
    assert "amplifies" in text and "into" in text and "by" in text


def test_wrong_requests(atlas, tiny, lists, tmp_path):
    folder, _ = atlas
    out = ("--out", tmp_path / "x")
    assert_refused(invoke("head", folder, "L9H9"), "layers 0 to 2")
    assert_refused(invoke("head", folder, "nine"), "L5H3")
    assert_refused(invoke("relations", "no/model", "-r", "capital", *out), "did you mean 'country-capital'")
    assert_refused(invoke("relations", "no/model", "-r", tmp_path / "no.csv", *out), "cannot be read")
    assert_refused(invoke("relations", "no/model", "--source", "mlp", *out), "no source named 'mlp'")
    assert_refused(invoke("relations", "no/model", "-k", 0, *out), "k is 0")
    assert_refused(invoke("relations", "no/model", "-r", lists[0], "--causal", "plural", *out), "plural")
    assert_refused(invoke("relations", tiny, "-r", lists[0], "--out", folder), "--resume")
    assert_refused(invoke("plot", folder, "--kind", "categories", "--direction", "up"), "promote")
    assert_refused(invoke("plot", folder, "--kind", "relations", "--relation", "nex"), "did you mean 'next'")
    assert_refused(invoke("plot", folder, "--kind", "agreement"), "no task to draw")
    assert_refused(invoke("plot", folder, "--kind", "agreement", "-r", "next"), "--relation is for")
    assert_refused(invoke("import", tmp_path / "no.csv", *out), "does not exist")
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["categories", "relations", "dynamic"])
def test_figures(atlas, kind):
    folder, _ = atlas
    result = invoke("plot", folder, "--kind", kind, "--format", "svg")
    assert result.returncode == 0, result.stderr
    assert (folder / f"{kind}.svg").read_bytes().startswith(b"<?xml")


def test_a_table_goes_out_and_comes_in(atlas, tmp_path):
    folder, _ = atlas
    assert invoke("table", folder, "--out", tmp_path / "t.csv").returncode == 0
    measured = (tmp_path / "t.csv").read_text().splitlines()
    result = invoke("import", tmp_path / "t.csv", "--out", tmp_path / "atlas", "--model", "mine")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("mine, 3 layers of 4 heads, in ") and "relations: " in result.stdout
    again = invoke("table", tmp_path / "atlas").stdout.splitlines()
    assert again == measured


def test_list_relations():
    rows = json.loads(invoke("list", "relations", "--json").stdout)
    assert len(rows) == 25 and sum(row["published"] for row in rows) == 20
    assert {row["category"] for row in rows} == {"algorithmic", "knowledge", "linguistic", "translation"}
    assert "country-capital" in invoke("list", "relations").stdout
