"""The page in Chromium: what a person sees, does and takes along."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from headatlas.page import write_page
from page.building import WEB
from page.conftest import PHONE, WIDE
from page.test_payload import some_atlas, with_tokens

AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def atlas():
    return with_tokens(some_atlas((6, 6, 0, 6, 4), seeds=4))


@pytest.fixture(scope="module")
def page(atlas, tmp_path_factory):
    return write_page(atlas, tmp_path_factory.mktemp("page") / "atlas.html")


def grid(page, name):
    return page.locator(f'[data-map="{name}"] [role=grid]')


def text(page, selector):
    return " ".join(page.locator(selector).first.inner_text().split())


def cell(page, name, column, row, columns, rows):
    """The middle of a cell, row 0 at the top, in the box of a map."""
    box = page.locator(f'[data-map="{name}"] canvas').first.bounding_box()
    width, height = box["width"] - 26, box["height"] - 18
    return box["x"] + 24 + (column + 0.5) * width / columns, box["y"] + 2 + (row + 0.5) * height / rows


def test_it_opens_without_a_word_and_asks_for_nothing(visit, page, atlas):
    found = visit(page)
    assert text(found.page, "h1") == atlas.spec.name
    assert "22 heads in 5 layers" in text(found.page, "header")
    assert found.page.locator("[data-map]").count() == 4 + 3 + 1 + 1
    assert found.is_silent(), (found.said, found.asked)


def test_hovering_names_the_head_and_its_scores(visit, page, atlas):
    found = visit(page).page
    found.locator("#agreement").scroll_into_view_if_needed()
    found.mouse.move(*cell(found, "Sums Always", 2, 3, 6, 5))  # the row of layer 1
    scores = atlas.always("sums").sel(layer=1, head=2)
    two = [f"{name} {float(scores[name]):.2f}" for name in ("facilitation", "interference")]
    assert text(found, ".tip") == f"L1H2: {', '.join(two)}"
    found.mouse.move(*cell(found, "Sums Always", 2, 2, 6, 5))  # layer 2 has no heads
    assert found.locator(".tip").is_hidden()


def test_a_click_shows_the_card_and_the_address_keeps_it(visit, page, atlas):
    opened = visit(page)
    found = opened.page
    found.mouse.click(*cell(found, "Sums Any", 3, 4, 6, 5))
    assert text(found, "#card-title") == "L0H3" and "head=L0H3" in found.evaluate("location.hash")
    card = atlas.card("L0H3")
    assert text(found, ".card .label") == card.label
    for task in card.tasks:
        part = found.locator(f'[data-task="{task.task}"]')
        assert part.locator(".strip g").count() == 4 and part.locator(".paths .path").count() > 0
        three = " / ".join(f"{value:.2f}" for value in task.facilitation)
        assert three in part.inner_text()
    assert found.locator('[data-part="relations"] tbody tr').count() == 2
    assert found.locator('[data-part="neighbours"] button').count() >= 5
    again = visit(page, found.evaluate("location.hash.slice(1)")).page
    assert text(again, "#card-title") == "L0H3"
    found.keyboard.press("Escape")
    assert text(found, "#card-title") == "A head" and "head=" not in found.evaluate("location.hash")
    assert opened.is_silent()


def test_tokens_are_text(visit, page, atlas):
    opened = visit(page, "head=L0H0")
    shown = opened.page.locator('[data-part="salient"]').inner_text()
    for token in atlas.card("L0H0").salient:
        if token.token.startswith("<"):
            assert token.token[:20] in shown
    for head in ("L0H1", "L1H0", "L3H2"):
        opened.page.locator("#search").fill(head)
        opened.page.locator("#search").press("Enter")
    assert opened.page.locator("#page img, #page script").count() == 0 and opened.is_silent()


def test_arrows_walk_and_every_cell_has_words(visit, page, atlas):
    found = visit(page, "head=L0H0").page
    grid(found, "Sums Always").focus()
    found.keyboard.press("ArrowRight")
    assert text(found, "#card-title") == "L0H1"
    found.keyboard.press("ArrowUp")
    found.keyboard.press("ArrowUp")  # over the layer without heads
    assert text(found, "#card-title") == "L3H1"
    spoken = grid(found, "Sums Always").locator("[role=gridcell]").inner_text()
    assert spoken.startswith("L3H1: facilitation ")
    assert grid(found, "Sums Always").get_attribute("aria-activedescendant")
    other = grid(found, "All categories").locator("[role=gridcell]").inner_text()
    assert other.startswith("L3H1: ")  # all maps are linked


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.81])
def test_the_slider_counts_as_python_does(visit, page, atlas, threshold):
    found = visit(page).page
    found.locator("#threshold").evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }",
        str(threshold),
    )
    expect(found.locator(".counts")).to_contain_text(f"From {threshold:.2f} on")
    said = text(found, ".counts")
    for task in atlas.tasks:
        maps = [made(task)["facilitation"].values for made in (atlas.always, atlas.any)]
        always, some = (int((values >= np.float32(threshold)).sum()) for values in maps)
        assert f"{task.capitalize()}: {always} heads facilitate always, {some} in any seed" in said


def test_filters_leave_what_python_leaves(visit, page, atlas):
    found = visit(page, "role=facilitating&task=sums&when=any&from=1&to=3").page
    wanted = atlas.any("sums")["facilitation"].values >= 0.5
    left = int(wanted[1:4].sum())
    assert f"The filter leaves {left} heads" in text(found, ".counts")
    assert found.locator(".heads tbody tr").count() == left
    found.locator("#reset").click()  # a filter that is on is shown
    assert found.locator(".heads tbody tr").count() == 22


def test_search_finds_heads_and_relations(visit, page):
    found = visit(page).page
    found.locator("#search").fill("3.4")
    found.locator("#search").press("Enter")
    assert text(found, "#card-title") == "L3H4"
    found.locator("#search").fill("copy")
    found.locator("#search").press("Enter")
    assert "relation=copying" in found.evaluate("location.hash")
    assert found.locator("#show").input_value() == "relation|copying"
    found.locator("#search").fill("no such thing")
    found.locator("#search").press("Enter")
    expect(found.locator("#live")).to_have_text("nothing is called no such thing")


def test_the_table_is_sorted_and_taken_along(visit, page, atlas, tmp_path):
    found = visit(page).page
    found.get_by_role("button", name="Sums facilitation").click()
    found.get_by_role("button", name="Sums facilitation").click()
    best = atlas.always("sums")["facilitation"]
    first = np.unravel_index(np.nanargmax(best.values), best.shape)
    assert text(found, ".heads tbody tr th") == f"L{first[0]}H{first[1]}"
    with found.expect_download() as waiting:
        found.locator("#csv").click()
    waiting.value.save_as(tmp_path / "heads.csv")
    lines = (tmp_path / "heads.csv").read_text().splitlines()
    assert len(lines) == 23 and lines[0].startswith("head,layer,Sums facilitation")
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with found.expect_download() as waiting:
            found.get_by_role("button", name=f"Sums Always as {kind}").click()
        waiting.value.save_as(tmp_path / f"map.{kind}")
        assert (tmp_path / f"map.{kind}").read_bytes().startswith(start)
    assert (tmp_path / "map.SVG").read_text().count("<rect") == 22


def test_looks(visit, page):
    opened = visit(page, "axes=layers&zero=top&colours=safe&theme=dark&cut=true")
    found = opened.page
    assert "→ layer ↓ head" in text(found, '[data-map="Sums Always"] .axes')
    dark = found.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", dark)[:3])) < 60
    found.locator("summary", has_text="Look").click()
    found.locator("#theme").select_option("light")
    expect(found.locator("body")).to_have_css("background-color", "rgb(251, 251, 250)")
    assert opened.is_silent()


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_for_axe(visit, page, viewport, theme):
    found = visit(page, f"head=L0H0&theme={theme}", viewport, bypass_csp=True).page
    found.add_script_tag(path=str(AXE))
    problems = found.evaluate("async () => (await axe.run()).violations")
    grave = [one for one in problems if one["impact"] in ("serious", "critical")]
    assert grave == [], [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in grave]


def test_a_phone_shows_all_without_scrolling_sideways(visit, page):
    found = visit(page, "head=L0H0", PHONE).page
    assert found.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_two_models(visit, atlas, tmp_path):
    other = with_tokens(some_atlas((6, 6, 0, 6, 4), tasks=("sums",), seeds=2))
    found = visit(write_page(atlas, tmp_path / "two.html", other=other))
    assert found.page.locator("#models [data-map]").count() == 1
    found.page.locator("#model").select_option("1")
    assert "atlas=1" in found.page.evaluate("location.hash") and found.is_silent()


def test_a_damaged_page_says_so(visit, page, browser, tmp_path):
    text = page.read_text().replace('"schema":1', '"schema":9', 1)
    (tmp_path / "bad.html").write_text(text)
    tab = browser.new_page()
    tab.goto((tmp_path / "bad.html").as_uri())
    assert "not a page of this version" in tab.locator("[role=alert]").inner_text()
    tab.close()
