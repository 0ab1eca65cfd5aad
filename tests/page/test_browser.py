"""The page in Chromium: what a person sees, does and takes along, for every atlas of `subjects`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from headatlas.atlas import doubts, effect_doubts
from headatlas.core import title_of
from headatlas.page import write_page
from page.building import WEB, npm
from page.conftest import PHONE, WIDE
from page.subjects import SUBJECTS, make_subject
from page.test_payload import some_atlas, with_tokens

npm()  # sees to it that the packages are there
AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request, tmp_path_factory):
    return make_subject(request.param, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def ragged(tmp_path_factory):
    return make_subject("ragged", tmp_path_factory.mktemp("ragged"))


def grid(page, name):
    return page.locator(f'[data-map="{name}"] [role=grid]')


def text(page, selector):
    return " ".join(page.locator(selector).first.inner_text().split())


def cell(page, name, shape, head):
    """The middle of a head's cell on the screen, heads across, layer 0 at the bottom."""
    layer, column = head
    canvas = page.locator(f'[data-map="{name}"] canvas').first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    width, height = (box["width"] - 26) / shape[1], (box["height"] - 18) / shape[0]
    return box["x"] + 24 + (column + 0.5) * width, box["y"] + 2 + (shape[0] - layer - 0.5) * height


def search(page, words):
    page.locator("#search").fill(words)
    page.locator("#search").press("Enter")


def slide(page, name, value):
    page.locator(f"#{name}").evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }", str(value)
    )


def kept(page, folder, words):
    """What a click hands over, as a file."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=words, exact=True).click()
    waiting.value.save_as(folder / "file")
    return (folder / "file").read_bytes()


def maps_of(atlas, task):
    return {"always": atlas.always(task), "any": atlas.any(task)}


# What is seen at once


def test_it_opens_without_a_word_and_asks_for_nothing(visit, subject):
    found, atlas = visit(subject.page), subject.atlas
    assert text(found.page, "h1") == atlas.spec.name
    assert f"{len(atlas.spec):,} heads in {atlas.spec.layers} layers" in text(found.page, "header")
    for task in atlas.tasks:
        assert f"{title_of(task)} ({len(atlas.seeds(task))} seeds)" in text(found.page, "header")
        for over in ("Always", "Any"):
            assert found.page.locator(f'[data-map="{title_of(task)} {over}"]').is_visible()
    assert found.page.locator('[data-map="All categories"]').is_visible()
    assert found.page.locator("#key li").count() == 4 and found.page.locator("#legend li").count() >= 2
    assert found.is_silent(), (found.said, found.asked)


def test_headlines_findings_and_how_it_was_made(visit, subject):
    found = visit(subject.page).page
    if subject.name != "large":  # made without findings
        headlines = found.locator("#words > ul li")
        assert headlines.count() >= 2 and "of heads facilitate in every seed" in headlines.first.inner_text()
        found.locator("summary", has_text=re.compile(r"all \d+ findings")).click()
        assert found.get_by_text("How many heads facilitate or interfere").is_visible()
    made = found.locator("#made")
    if made.get_attribute("open") is None:
        made.locator("summary").click()
    assert f"{title_of(subject.task)}: " in made.inner_text()


def test_doubts_stand_there_unasked(visit, subject):
    found = visit(subject.page).page
    atlas = subject.atlas
    said = [doubt.text for task in atlas.tasks for doubt in doubts(atlas, task)]
    said += [doubt.text for task, method in atlas.effect_maps for doubt in effect_doubts(atlas, task, method)]
    assert [one.inner_text() for one in found.locator("#made[open] .doubt").all()] == [
        f"doubtful: {doubt}" for doubt in said
    ]
    assert said or subject.name != "ragged"


# A head


def test_hovering_names_the_head_and_its_scores(visit, subject):
    found, head = visit(subject.page).page, (1, 2)
    name = f"{title_of(subject.task)} Always"
    found.mouse.move(*cell(found, name, subject.shape, head))
    scores = subject.atlas.always(subject.task).sel(layer=1, head=2)
    two = [f"{score} {float(scores[score]):.2f}" for score in ("facilitation", "interference")]
    assert text(found, ".tip") == f"L1H2: {', '.join(two)}"
    found.mouse.move(2, 2)
    expect(found.locator(".tip")).to_be_hidden()


def test_a_click_shows_the_card_and_the_address_keeps_it(visit, subject):
    opened, atlas = visit(subject.page), subject.atlas
    found = opened.page
    found.mouse.click(*cell(found, f"{title_of(subject.task)} Any", subject.shape, (0, 3)))
    assert text(found, "#card-title") == "L0H3"
    expect(found).to_have_url(re.compile("head=L0H3"))
    card = atlas.card("L0H3")
    assert text(found, ".card .label") == " ".join(card.label.split())
    for task in card.tasks:
        part = found.locator(f'[data-task="{task.task}"]')
        seeds = len(atlas.seeds(task.task))
        assert part.locator(".strip g").count() == seeds and part.locator(".paths .path").count() > 0
        three = " / ".join(f"{value:.2f}" for value in task.facilitation)
        assert three in part.inner_text()
        roles = atlas.roles(task.task).sel(layer=0, head=3).values.tolist()
        spoken = part.locator(".strip").get_attribute("aria-label").split(". ", 1)[1].split("; ")
        assert [one.split(": ")[1].split(",")[0] for one in spoken] == roles
    rows = found.locator('[data-part="relations"] tbody tr').count()
    assert rows == int((atlas.relation_scores().sel(layer=0, head=3).max("direction") > 0).sum())
    assert found.locator('[data-part="neighbours"] button').count() >= 5
    if atlas.effect_maps:
        value = float(atlas.importance(subject.task, "attribute-gradient").sel(layer=0, head=3))
        assert f"{value:+.3f}".replace("-", "−") in text(found, '[data-part="effects"] tbody')
    again = visit(subject.page, found.evaluate("location.hash.slice(1)")).page
    assert text(again, "#card-title") == "L0H3"
    found.keyboard.press("Escape")
    assert text(found, "#card-title") == "A head"
    expect(found).not_to_have_url(re.compile("head="))
    assert opened.is_silent()


def test_neighbours_lead_on(visit, subject):
    found, spec = visit(subject.page, "head=L0H0").page, subject.atlas.spec
    shared = spec.heads[0] // spec.kv_heads[0]
    neighbours = found.locator('[data-part="neighbours"]')
    same = neighbours.locator("p", has_text="same keys and values").locator("button")
    assert [one.inner_text() for one in same.all()] == [f"L0H{head}" for head in range(1, shared)]
    alike = neighbours.locator("p", has_text="most alike").locator("button").first
    name = alike.inner_text()
    alike.click()
    assert text(found, "#card-title") == name


def test_tokens_are_shown(visit, subject):
    found = visit(subject.page, "head=L1H1").page
    salient = subject.atlas.card("L1H1").salient
    rows = found.locator('[data-part="salient"] tbody tr')
    assert rows.count() == len(salient) > 0
    for row, token in zip(rows.all(), salient, strict=True):
        if token.token.strip().isalnum() and len(token.token) < 30:
            assert row.locator("td").first.inner_text().strip().lstrip("␣") == token.token.strip()
        assert row.locator(".mapped .token").count() == len(token.mapped)


def test_arrows_walk_and_every_cell_has_words(visit, subject):
    found = visit(subject.page, "head=L0H0").page
    mine = grid(found, f"{title_of(subject.task)} Always")
    mine.focus()
    found.keyboard.press("ArrowRight")
    assert text(found, "#card-title") == "L0H1"
    found.keyboard.press("ArrowUp")
    assert text(found, "#card-title") == "L1H1"
    for press, name in (("ArrowLeft", "L1H0"), ("ArrowLeft", "L1H0"), ("ArrowDown", "L0H0")):
        found.keyboard.press(press)
        assert text(found, "#card-title") == name  # the edge holds
    spoken = mine.locator("[role=gridcell]").inner_text()
    scores = subject.atlas.always(subject.task).sel(layer=0, head=0)
    assert spoken.startswith(f"L0H0: facilitation {float(scores['facilitation']):.2f}")
    expect(found.locator("#live")).to_have_text(spoken)  # and is said aloud
    assert mine.get_attribute("aria-activedescendant")
    assert found.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_all_maps_are_linked(visit, subject):
    found = visit(subject.page, "head=L1H1").page
    cells = [one.inner_text() for one in found.locator("[role=gridcell]").all()]
    assert len(cells) == found.locator("[data-map]").count()
    assert all(one.startswith("L1H1: ") for one in cells)


# Thresholds, filters, search, table


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.81])
def test_the_slider_counts_as_python_does(visit, subject, threshold):
    found, atlas = visit(subject.page).page, subject.atlas
    slide(found, "threshold", threshold)
    expect(found.locator(".counts")).to_contain_text(f"from {threshold:.2f} on")
    said = text(found, ".counts")
    for task in atlas.tasks:
        counts = [
            int((one["facilitation"].values >= np.float32(threshold)).sum())
            for one in maps_of(atlas, task).values()
        ]
        assert f"{title_of(task)} {counts[0]} / {counts[1]}" in said
    slide(found, "implements", threshold)
    heads = int((atlas.categories(threshold).sel(direction="promote").sum("category") > 0).sum())
    note = found.locator('[data-map="All categories"] .note').first
    expect(note).to_have_text(f"{heads} head{'s' * (heads != 1)}")


def test_filters_leave_what_python_leaves(visit, subject):
    atlas, last = subject.atlas, subject.shape[0] - 2
    found = visit(subject.page, f"role=facilitating&task={subject.task}&when=any&from=1&to={last}").page
    wanted = atlas.any(subject.task)["facilitation"].values >= 0.5
    left = int(wanted[1 : last + 1].sum())
    assert text(found, "#left") == f"{left} of {len(atlas.spec)} heads left"
    assert found.locator(".heads tbody tr").count() == min(left, 100)
    found.locator("#reset").click()  # it can be: a filter that is on is shown
    expect(found.locator(".heads tbody tr")).to_have_count(min(len(atlas.spec), 100))
    assert text(found, "#left") == ""
    found.locator("#role").select_option("facilitating")
    found.locator("#task").select_option(subject.task)
    found.locator("#without").select_option(atlas.tasks[1])
    needed = [atlas.always(task)["facilitation"].values >= 0.5 for task in atlas.tasks[:2]]
    one = int((needed[0] & ~needed[1]).sum())
    expect(found.locator("#left")).to_have_text(f"{one} of {len(atlas.spec)} heads left")
    found.locator("#reset").click()
    category = "algorithmic"
    found.locator("#category").select_option(category)
    mine = int(atlas.categories().sel(direction="promote", category=category).sum())
    expect(found.locator("#left")).to_have_text(f"{mine} of {len(atlas.spec)} heads left")


def test_what_a_filter_leaves_out_is_grey(visit, subject):
    """In both themes, and unlike a head that does nothing, which is black."""
    for theme, grey in (("light", [230, 230, 226]), ("dark", [87, 87, 92])):
        found = visit(subject.page, f"from=1&theme={theme}").page
        name = f"{title_of(subject.task)} Always"
        cell(found, name, subject.shape, (0, 0))
        colour = found.evaluate(
            """([name, columns, rows]) => {
              const canvas = document.querySelector(`[data-map="${name}"] canvas`);
              const wide = (canvas.width - 26) / columns, high = (canvas.height - 18) / rows;
              const at = [24 + 0.12 * wide, 2 + (rows - 1 + 0.12) * high].map(Math.round);
              return [...canvas.getContext("2d").getImageData(...at, 1, 1).data].slice(0, 3);
            }""",
            [name, subject.shape[1], subject.shape[0]],
        )
        assert colour == grey


def test_search_finds_heads_and_relations(visit, subject):
    found = visit(subject.page).page
    search(found, "1.4")
    assert text(found, "#card-title") == "L1H4"
    relation = subject.atlas.relations[0]
    search(found, relation[:6])
    expect(found).to_have_url(re.compile(f"relation={relation}"))
    assert found.locator("#show").input_value() == f"relation|{relation}"
    assert found.locator("#relation").input_value() == relation  # the filter shows it
    search(found, "no such thing")
    expect(found.locator("#said")).to_have_text("nothing is called no such thing")


def test_the_table_is_sorted_and_taken_along(visit, subject, tmp_path):
    found, atlas = visit(subject.page).page, subject.atlas
    title = f"{title_of(subject.task)} facilitation"
    found.locator(".heads").get_by_role("button", name=title).click()  # the most first
    best = atlas.always(subject.task)["facilitation"]
    first = np.unravel_index(np.nanargmax(best.values), best.shape)
    assert text(found, ".heads tbody tr th") == f"L{first[0]}H{first[1]}"
    lines = kept(found, tmp_path, "these heads as CSV").decode().splitlines()
    assert len(lines) == len(atlas.spec) + 1 and lines[0].startswith(f"head,layer,{title} (always)")
    value = float(lines[1].split(",")[2])
    assert value == pytest.approx(float(np.nanmax(best.values)), abs=1e-6)


def test_maps_are_taken_along(visit, subject, tmp_path):
    found = visit(subject.page).page
    name = f"{title_of(subject.task)} Always"
    svg = kept(found, tmp_path, f"{name} as SVG").decode()
    assert svg.startswith("<svg") and svg.count('class="cell"') == len(subject.atlas.spec)
    assert f"{subject.atlas.spec.name}: {title_of(subject.task)} (Always)" in svg and "facilitates" in svg
    filtered = visit(subject.page, "from=1").page
    other = kept(filtered, tmp_path, f"{name} as SVG").decode()
    left = sum(subject.atlas.spec.heads[1:])
    assert f"filtered: {left} of {len(subject.atlas.spec)} heads" in other and other != svg
    png = kept(found, tmp_path, f"{name} as PNG")
    assert png.startswith(b"\x89PNG") and int.from_bytes(png[16:20], "big") >= 3 * 10 * subject.shape[1]


def test_two_tasks_compared(visit, subject):
    one, other = subject.atlas.tasks[:2]
    found = visit(subject.page, f"one={other}&other={one}&head=L1H1").page
    means = [subject.atlas.scores(task)["facilitation"].mean("seed") for task in (other, one)]
    values = [float(mean.sel(layer=1, head=1)) for mean in means]
    spoken = grid(found, "Difference").locator("[role=gridcell]").inner_text()
    assert spoken == f"L1H1: {values[0]:.2f} less {values[1]:.2f}"


# Looks


def test_looks(visit, subject):
    opened = visit(subject.page, "axes=layers&zero=top&colours=safe&theme=dark&cut=true")
    found = opened.page
    assert "→ layer ↓ head" in text(found, f'[data-map="{title_of(subject.task)} Always"] .axes')
    dark = found.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", dark)[:3])) < 60
    assert found.locator("#cut").is_checked()
    found.locator("summary", has_text="Look").click()
    found.locator("#theme").select_option("light")
    expect(found.locator("body")).to_have_css("background-color", "rgb(251, 251, 250)")
    assert opened.is_silent()


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_for_axe(visit, subject, viewport, theme, keep):
    found = visit(subject.page, f"head=L1H1&theme={theme}", viewport, bypass_csp=True).page
    keep(found, f"{subject.name}-{viewport['width']}-{theme}")
    found.add_script_tag(path=str(AXE))
    problems = found.evaluate("async () => (await axe.run()).violations")
    grave = [one for one in problems if one["impact"] in ("serious", "critical")]
    assert grave == [], [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in grave]


def test_a_phone_shows_all_without_scrolling_sideways(visit, subject, keep):
    found = visit(subject.page, "", PHONE).page
    keep(found, f"{subject.name}-phone-whole", full_page=True)
    assert found.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


# What is only so in some atlases


def test_odd_tokens_are_text(visit, ragged):
    opened = visit(ragged.page, "head=L0H0")
    shown = opened.page.locator('[data-part="salient"]').inner_text()
    for token in ragged.atlas.card("L0H0").salient:
        if token.token.startswith("<"):
            assert token.token[:20] in shown
    for head in ("L0H1", "L1H0", "L3H2"):
        search(opened.page, head)
    assert opened.page.locator("#page img, #page script").count() == 0 and opened.is_silent()


def test_places_without_a_head(visit, ragged):
    found = visit(ragged.page, "head=L1H1").page
    found.mouse.move(*cell(found, "Sums Always", ragged.shape, (2, 2)))  # layer 2 has no heads
    assert found.locator(".tip").is_hidden()
    grid(found, "Sums Always").focus()
    found.keyboard.press("ArrowUp")  # over it
    assert text(found, "#card-title") == "L3H1"


def test_two_models(visit, ragged, tmp_path):
    other = with_tokens(some_atlas((6, 6, 0, 6, 4), tasks=("sums",), seeds=2))
    found = visit(write_page(ragged.atlas, tmp_path / "two.html", other=other))
    assert found.page.locator("#models [data-map]").count() == 1
    share = float((ragged.atlas.always("sums")["facilitation"] >= 0.5).sum()) / len(ragged.atlas.spec)
    row = text(found.page, "#comparison tbody tr:nth-child(3)")
    assert row.startswith("Sums: heads that facilitate, always") and f" {100 * share:.1f} %" in row
    search(found.page, "L1H1")
    found.page.locator("#model").select_option("1")
    assert text(found.page, "#card-title") == "L1H1"  # the same head in both
    assert text(found.page, "h1") == "made up (2)"
    expect(found.page).to_have_url(re.compile("atlas=1"))
    assert found.is_silent()


def test_two_models_of_other_shapes(visit, ragged, tmp_path):
    other = some_atlas((4, 4), tasks=("sums",), seeds=2)
    found = visit(write_page(ragged.atlas, tmp_path / "two.html", other=other)).page
    assert found.locator("#models [data-map]").count() == 0
    assert "there is no head to take from another" in text(found, "#models")
    assert found.locator("#comparison tbody tr").count() > 4


def test_a_damaged_page_says_so(ragged, browser, tmp_path):
    damaged = ragged.page.read_text().replace('"schema":1', '"schema":9', 1)
    (tmp_path / "bad.html").write_text(damaged)
    tab = browser.new_page()
    tab.goto((tmp_path / "bad.html").as_uri())
    assert "not a page of this version" in tab.locator("[role=alert]").inner_text()
    tab.close()
