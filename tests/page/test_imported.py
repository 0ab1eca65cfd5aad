"""The page of imported scores: under "Imported", holes hatched and named, nothing invented."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from headatlas.atlas import import_table
from headatlas.page import write_page
from headatlas.page.payload import payload_of
from page.test_payload import numbers


@pytest.fixture(scope="module")
def atlas(tmp_path_factory):
    """Three layers of four heads; of layer 1 only L1H3, with two seeds of a relation and a score."""
    places = [(layer, head) for layer in range(3) for head in range(4) if layer != 1 or head == 3]
    draw = np.random.default_rng(0)
    lines = [
        {"relation": "induction", "category": "algorithmic", "seed": seed, "layer": layer, "head": head}
        | {"score": draw.uniform()}
        for seed in (0, 1)
        for layer, head in places
    ]
    lines += [{"task": "my-score", "layer": layer, "head": head, "score": 7.5} for layer, head in places]
    return import_table(pd.DataFrame(lines), tmp_path_factory.mktemp("imported") / "atlas", model="m")


def test_the_payload_has_no_gates_and_no_numbers_for_unknown_heads(atlas):
    (one,) = payload_of([atlas])["atlases"]
    assert one["tasks"] == [] and one["effects"] == [] and one["model"]["parameters"] is None
    (score,) = one["imported"]
    assert score["name"] == "my-score" and score["from"] == "the table" and score["seeds"] == 0
    values = numbers(score["values"]).reshape(3, 4)
    assert np.isnan(values[1, :3]).all() and (values[[0, 2]] == 7.5).all()
    (relation,) = one["relations"]
    assert relation["kind"] == "imported" and relation["seeds"] == 2
    assert one["labels"][4] == "not in the imported table"


def test_imported_scores_stand_under_imported(atlas, visit, keep, tmp_path):
    page = visit(write_page(atlas, tmp_path / "a.html")).page
    words = " ".join(page.locator("#page").inner_text().split())
    assert "by their weights" not in words and "0 parameters" not in words and "G+" not in words
    assert page.locator("#imported h2").inner_text() == "Imported"
    assert "not in the imported table" in page.locator("#imported-legend").inner_text()
    assert "not in the imported table" in page.locator('[data-map="Imported score My-score"]').inner_text()
    assert "number of parameters unknown" in page.locator("#made").text_content()
    page.locator("#search").fill("L1H0")
    page.locator("#search").press("Enter")
    card = page.locator("aside.card").inner_text()
    assert card.count("not in the imported table") >= 3 and "unclassified" not in card
    page.locator("#search").fill("L0H0")
    page.locator("#search").press("Enter")
    card = page.locator("aside.card").inner_text()
    assert "7.500" in card and "induction, imported, mean of 2 seeds" in card
    keep(page, "imported", full_page=True)


def test_the_hatching_can_be_seen(atlas, visit, tmp_path):
    """A hole has pixels of two colors, a head with a score one."""
    page = visit(write_page(atlas, tmp_path / "a.html")).page
    colors = page.evaluate(
        """() => {
          const canvas = document.querySelector('[data-map="Imported score My-score"] canvas');
          const ratio = window.devicePixelRatio, box = canvas.getBoundingClientRect();
          const side = [(box.width - 26) / 4, (box.height - 18) / 3];
          const count = (layer, head) => {
            const [x, y] = [24 + head * side[0] + 2, 2 + (2 - layer) * side[1] + 2];
            const [width, height] = [side[0] - 4, side[1] - 4].map((size) => Math.floor(size * ratio));
            const data = canvas.getContext("2d").getImageData(x * ratio, y * ratio, width, height).data;
            return new Set(new Uint32Array(data.buffer)).size;
          };
          return [count(1, 0), count(0, 0)];
        }"""
    )
    assert colors[0] > 1 and colors[1] == 1


def test_imported_effects_say_so_and_holes_are_named(visit, tmp_path):
    lines = [{"task": "sums", "method": "mediate", "layer": 0, "head": head, "score": 0.5} for head in (0, 2)]
    atlas = import_table(pd.DataFrame(lines), tmp_path / "atlas", model="m")
    page = visit(write_page(atlas, tmp_path / "a.html")).page
    texts = []
    for name in ("L0H0", "L0H1"):
        page.locator("#search").fill(name)
        page.locator("#search").press("Enter")
        texts.append(page.locator('aside.card [data-part="effects"] tbody').inner_text().split("\t"))
    assert texts == [
        ["sums", "mediate, imported", "+0.500", "2"],
        ["sums", "mediate, imported", "not in the imported table", "–"],
    ]
    assert "sums, mediate, imported" in page.locator("#made").text_content()
