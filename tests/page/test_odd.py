"""Pages of atlases that are unlike most, and readers who do unlikely things."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

from headatlas import AtlasError, RequestError
from headatlas.atlas import Atlas, EffectMap, Run, ScoreMap
from headatlas.page import write_page
from headatlas.page.payload import payload_of
from page.conftest import PHONE
from page.test_browser import cell, grid, search, slide, text
from page.test_payload import some_atlas, with_tokens
from support.atlases import spec_of

FACTS = {"kind": "static", "pairs": 40, "single": 40, "listed": 40, "k": 1}
ODD_NAMES = ("relation:past-tense", 'a|b&c="d" <i>e\'f</i>', "-minus", "constructor", "Minus")


def scores_of(shape, **about):
    """name -> (category, [direction, layer, head])."""
    runs = [Run("relations", name, "id") for name in about]
    maps = [
        ScoreMap("relations", name, "id", np.asarray(values, np.float32), {**FACTS, "category": category})
        for name, (category, values) in about.items()
    ]
    return runs, maps


def fits_of(atlas):
    return [fit for group in atlas._fits.values() for fit in group.values()]


@pytest.fixture
def page(tmp_path):
    return lambda atlas, **other: write_page(atlas, tmp_path / "page.html", **other)


def test_what_was_not_measured(visit, page):
    """A relation without any number, one that lacks a head, and a direction that was never asked for."""
    plain = some_atlas((4, 4), tasks=("sums",))
    shape = plain.spec.shape
    some = np.full((2, *shape), 0.5)
    some[:, 1, 1] = np.nan
    some[1] = np.nan
    runs, maps = scores_of(shape, none=("own", np.full((2, *shape), np.nan)), some=("own", some))
    atlas = Atlas(plain.spec, [*plain.runs.values(), *runs], fits_of(plain), scores=maps)
    opened = visit(page(atlas), "head=L1H1")
    found = opened.page
    search(found, "none")
    cells = grid(found, "One score").locator("[role=gridcell]")
    expect(cells).to_have_text("L1H1: not measured")
    assert "(not measured)" in text(found, "#show option[value='relation|none']")
    found.locator("#direction").select_option("suppress")
    search(found, "some")
    expect(cells).to_have_text("L1H1: not measured")
    slide(found, "threshold", 0.7)
    expect(found.locator(".counts")).to_contain_text("from 0.70 on")
    assert opened.is_silent(), opened.said
    again = visit(page(atlas), "direction=suppress&relation=none&show=relation|none")
    assert again.is_silent(), again.said


def test_one_layer_one_seed_one_task(visit, page):
    opened = visit(page(some_atlas((3,), tasks=("sums",), seeds=1)), "head=L0H1")
    assert "Sums (1 seed)" in text(opened.page, "header")
    assert opened.page.locator("#difference, #categories").count() == 0
    assert "1 seed, fewer than any preset has (3)" in text(opened.page, "#made .doubt")
    assert opened.is_silent()


def test_relations_alone(visit, page):
    whole = with_tokens(some_atlas((3, 2)))
    runs = [run for run in whole.runs.values() if run.method == "relations"]
    scores = list(whole._scores.values())
    opened = visit(page(Atlas(whole.spec, runs, [], scores=scores)), "head=L1H1&category=own")
    assert opened.page.locator("#agreement").count() == 0
    assert "of 5 heads left" in text(opened.page, "#left")
    assert opened.is_silent(), opened.said


def test_effects_that_are_infinite_or_missing(visit, page):
    plain = some_atlas((3, 3), tasks=("sums",))
    values = np.array([[0.5, -0.25, np.inf], [0.0, np.nan, -0.0001]], np.float32)
    facts = {"items": 4, "whole": 1.0}
    effect = EffectMap("ablate-zero", "sums", 0, "id", values, np.zeros_like(values), facts)
    runs = [*plain.runs.values(), Run("ablate-zero", "sums", "id")]
    atlas = Atlas(plain.spec, runs, fits_of(plain), effects=[effect])
    opened = visit(page(atlas), "show=effect|sums|ablate-zero&head=L1H1")
    found = opened.page
    spoken = grid(found, "One score").locator("[role=gridcell]")
    assert spoken.inner_text() == "L1H1: not measured"
    row = found.locator('[data-part="effects"] tbody tr').inner_text()
    assert row.split("\t") == ["sums", "ablate-zero", "not measured", "–"]
    assert "Infinity" not in text(found, '[data-map="One score"] .scale')
    search(found, "L1H2")
    assert spoken.inner_text() == "L1H2: 0.000 nats"  # no minus before a zero
    assert opened.is_silent(), opened.said


def test_names_that_could_be_something_else(visit, page):
    plain = some_atlas((4, 4), tasks=ODD_NAMES)
    runs, maps = scores_of(plain.spec.shape, odd=("constructor", np.full((2, 2, 4), 0.5)))
    atlas = Atlas(plain.spec, [*plain.runs.values(), *runs], fits_of(plain), scores=maps)
    opened = visit(page(atlas))
    found = opened.page
    for task in ODD_NAMES:
        key = f"task|{task}|facilitation|any"
        found.locator("#show").select_option(key)
        expect(found.locator('[data-map="One score"]')).to_be_visible()
        assert "facilitation, any" in text(found, '[data-map="One score"] h3')
    column = found.locator(".heads th", has_text="-minus facilitation")
    column.locator("button").click()
    expect(column).to_have_attribute("aria-sort", "descending")
    found.locator(".heads th", has_text="-minus facilitation").locator("button").click()
    expect(found.locator(".heads th", has_text="-minus facilitation")).to_have_attribute(
        "aria-sort", "ascending"
    )
    search(found, "L0H0")
    spoken = grid(found, "Difference").locator("[role=gridcell]")
    for name in ("-minus", "Minus"):  # the picture follows, though the titles may be alike
        found.locator("#one").select_option(name)
        value = float(atlas.scores(name)["facilitation"].mean("seed").sel(layer=0, head=0))
        expect(spoken).to_contain_text(f"L0H0: {value:.2f} less")
    assert opened.is_silent(), opened.said


def test_long_names_on_a_phone(visit, page):
    long = ("relation:country-capital-in-german", "induction/long-context-copying", "x" * 120)
    found = visit(page(some_atlas((4, 4), tasks=long)), "head=L0H0", PHONE).page
    assert found.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    found.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    last = found.locator("#heads").bounding_box()
    assert last["y"] + last["height"] <= found.locator("aside.card").bounding_box()["y"]  # nothing hides it


def test_half_a_character(visit, page):
    plain = some_atlas((2, 2))
    atlas = Atlas(replace(plain.spec, name="odd \ud83d name"), list(plain.runs.values()), fits_of(plain))
    assert visit(page(atlas)).page.locator("h1").count() == 1


def test_what_is_refused(tmp_path):
    with pytest.raises(AtlasError, match="nothing to show"):
        payload_of([Atlas(spec_of(2), [], [])])
    with pytest.raises(RequestError, match="twice"):
        write_page(tmp_path, tmp_path / "page.html", other=tmp_path / ".")


def test_two_atlases_of_one_model_have_names(tmp_path):
    one, other = some_atlas((2, 2)), some_atlas((2, 2), seeds=2)
    one.path, other.path = tmp_path / "first", tmp_path / "second"
    labels = [atlas["label"] for atlas in payload_of([one, other])["atlases"]]
    assert labels == ["made up (first)", "made up (second)"]
    assert payload_of([one])["atlases"][0]["label"] == "made up"


# Readers


def test_the_way_to_the_maps_keeps_what_is_chosen(visit, page):
    found = visit(page(some_atlas((4, 4))), "threshold=0.8&theme=dark&head=L1H1").page
    found.keyboard.press("Tab")
    assert found.evaluate("document.activeElement.textContent") == "to the maps"
    found.keyboard.press("Enter")
    assert found.evaluate("document.activeElement.getAttribute('role')") == "grid"
    assert "threshold=0.8" in found.evaluate("location.hash")
    assert text(found, "#card-title") == "L1H1"
    found.keyboard.press("Enter")  # and from a map to the card
    assert found.evaluate("document.activeElement.id") == "card-title"
    grid(found, "Sums Always").focus()
    found.keyboard.press("End")
    assert text(found, "#card-title") == "L1H3"
    found.keyboard.press("Home")
    assert text(found, "#card-title") == "L0H0"


def test_focus_stays(visit, page):
    found = visit(page(with_tokens(some_atlas((6, 6)))), "head=L1H1").page
    active = "document.activeElement.dataset.key || document.activeElement.id"
    for selector, wanted in (
        ("[data-key='sort layer']", "sort layer"),
        ("[data-key='head L0H2']", "head L0H2"),
        ("[data-part=neighbours] button", "title"),
    ):
        found.locator(selector).first.focus()
        found.keyboard.press("Enter")
        assert found.evaluate(active) == wanted
    found.mouse.click(*cell(found, "Sums Any", (2, 6), (0, 0)))
    found.locator("#close").focus()
    found.keyboard.press("Enter")
    assert found.evaluate("document.activeElement.getAttribute('role')") == "grid"


def test_the_address_follows_however_fast_the_slider_is_moved(visit, page):
    opened = visit(page(some_atlas((4, 4))))
    found = opened.page
    found.evaluate(
        """() => {
          const input = document.getElementById("threshold");
          for (let step = 0; step <= 500; step++) {
            input.value = String(step / 500);
            input.dispatchEvent(new Event("input"));
          }
        }"""
    )
    expect(found).to_have_url(re.compile("threshold=1$"))
    expect(found.locator(".counts")).to_contain_text("from 1.00 on")
    assert opened.is_silent(), opened.said


def test_an_address_that_is_changed_by_hand(visit, page):
    opened = visit(page(some_atlas((4, 4))), "head=L0H0")
    found = opened.page
    found.evaluate(
        "location.hash = '#head=L9H9&task=none&show=a|b&threshold=x&from=7&to=-3&sort=zzz&axes=heads'"
    )
    expect(found.locator("#card-title")).to_have_text("A head")
    assert found.locator("#axes").input_value() == "heads"
    assert found.locator(".heads tbody tr").count() == 4  # from the last layer on
    assert opened.is_silent(), opened.said


def test_the_controls_do_not_cover_the_card(visit, page):
    for width in (1400, 1100):
        found = visit(
            page(with_tokens(some_atlas((30,) * 30))), "head=L0H0&from=1", {"width": width, "height": 700}
        ).page
        found.evaluate("window.scrollTo(0, 700)")
        found.wait_for_timeout(100)
        hit = found.evaluate(
            """() => {
              const box = document.getElementById("close").getBoundingClientRect();
              return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).id;
            }"""
        )
        assert hit == "close"


def test_the_hint_stays_in_the_window(visit, page):
    found = visit(page(some_atlas((6,) * 6)), "", {"width": 700, "height": 420}).page
    found.locator('[data-map="Sums Any"]').evaluate("one => one.scrollIntoView({ block: 'end' })")
    found.mouse.move(*cell(found, "Sums Any", (6, 6), (0, 5)))
    box = found.locator(".tip").bounding_box()
    assert box["y"] + box["height"] <= 420 and box["x"] + box["width"] <= 700
