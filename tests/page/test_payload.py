"""The payload says what the atlas says, and nothing in it can end the element that it stands in."""

from __future__ import annotations

import base64
import json
import re

import jsonschema
import numpy as np
import pytest

from headatlas import AtlasError, RequestError
from headatlas.atlas import Atlas, Run, ScoreMap, doubts
from headatlas.page import write_page
from headatlas.page.html import page_of
from headatlas.page.payload import payload_of, schema
from support.atlases import atlas_of, contrast_atlas, spec_of

ODD = [
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "]]>", "\u202eabc", "שלום",
    "\u0007", "🎉", "x" * 200, "\u2028", "&lt;",
]  # fmt: skip


def numbers(text, dtype="<f4"):
    return np.frombuffer(base64.b64decode(text), dtype)


def some_atlas(heads=(4, 0, 3), tasks=("sums", "words"), seeds=3):
    draw = np.random.default_rng(0)
    spec = spec_of(*heads)
    made = {
        task: {seed: (draw.uniform(size=spec.shape), draw.uniform(size=spec.shape)) for seed in range(seeds)}
        for task in tasks
    }
    return atlas_of(made, spec)


def with_tokens(plain):
    """With relations of two categories, and salient tokens that are hard to show."""
    draw = np.random.default_rng(1)
    shape = plain.spec.shape
    there = np.arange(shape[1]) < np.array(plain.spec.heads)[:, None]
    runs = [*plain.runs.values(), *(Run("relations", name, "id") for name in ("copying", "<b>mine</b>"))]
    facts = {"kind": "static", "pairs": 40, "single": 40, "listed": 40, "k": 1}
    scores = [
        ScoreMap(
            "relations",
            name,
            "id",
            np.where(there, draw.uniform(size=(2, *shape)), np.nan).astype(np.float32),
            {**facts, "category": category},
        )
        for name, category in (("copying", "algorithmic"), ("<b>mine</b>", "own"))
    ]
    tokens = draw.integers(len(ODD), size=(*shape, 4)).astype(np.int32)
    mapped = draw.integers(len(ODD), size=(*shape, 4, 2)).astype(np.int32)
    arrays = {"tokens": tokens, "mapped": mapped, "strength": np.ones((*shape, 4), np.float32)}
    texts = {str(place): text for place, text in enumerate(ODD)}
    fits = [fit for group in plain._fits.values() for fit in group.values()]
    return Atlas(plain.spec, runs, fits, scores=scores, notes={"salient": (arrays, {"texts": texts})})


def test_the_gates_are_those_of_the_atlas():
    atlas = some_atlas()
    (one,) = payload_of([atlas])["atlases"]
    for task in one["tasks"]:
        gates = atlas.gates(task["name"])
        for fit in ("retain", "remove"):
            found = numbers(task[fit]).reshape(gates.sel(fit=fit).shape)
            np.testing.assert_array_equal(found, gates.sel(fit=fit).values)
        assert task["seeds"] == atlas.seeds(task["name"])
        for path in task["paths"]:
            whole = atlas.trajectory(task["name"], path["fit"])
            found = numbers(path["values"], np.uint8).reshape(
                path["seeds"], len(path["updates"]), *atlas.spec.shape
            )
            wanted = whole.isel(seed=slice(path["seeds"])).sel(update=path["updates"]).values
            np.testing.assert_allclose(found / 255, np.nan_to_num(wanted), atol=0.5 / 255 + 1e-6)


def test_relations_labels_and_tokens():
    atlas = with_tokens(some_atlas())
    (one,) = payload_of([atlas])["atlases"]
    scores = atlas.relation_scores()
    for relation in one["relations"]:
        found = numbers(relation["scores"]).reshape(2, *atlas.spec.shape)
        np.testing.assert_array_equal(found, scores.sel(relation=relation["name"]).values)
    width = atlas.spec.shape[1]
    salient = one["salient"]
    sources = numbers(salient["sources"], "<u4").reshape(*atlas.spec.shape, salient["perHead"])
    for head in atlas.spec:
        card = atlas.card(head)
        assert one["labels"][head.layer * width + head.head] == card.label
        shown = [salient["texts"][place] for place in sources[head.layer, head.head]]
        assert shown == [token.token for token in card.salient]
    assert one["labels"][width] == ""  # layer 1 has no heads


def test_contrasts_and_doubts_are_those_of_the_atlas():
    plain = some_atlas(heads=(2, 2))
    (run,) = (contrast := contrast_atlas()).runs.values()
    fits = [fit for atlas in (plain, contrast) for group in atlas._fits.values() for fit in group.values()]
    atlas = Atlas(plain.spec, [*plain.runs.values(), run], fits)
    for made in (atlas, contrast):  # a contrast alone makes a page too
        (one,) = payload_of([made])["atlases"]
        (shown,) = one["contrasts"]
        gates = made.gates(run.task, "contrast").sel(fit="retain").values
        np.testing.assert_array_equal(numbers(shown["gates"]).reshape(gates.shape), gates)
        assert (shown["retain"], shown["forget"], shown["seeds"]) == ("Sums", "Words", [0, 1])
        figures = {figure["key"]: (figure["before"], figure["after"]) for figure in shown["figures"]}
        assert figures["retain_nll"] == (1.0, 1.5) and figures["forget_nll"] == (2.0, 4.0)
        assert any("2 seeds, fewer than any preset" in text for text in shown["doubts"])
    for task in payload_of([atlas])["atlases"][0]["tasks"]:
        assert task["doubts"] == [doubt.text for doubt in doubts(atlas, task["name"])] != []


def test_long_paths_are_thinned_out(monkeypatch):
    monkeypatch.setattr("headatlas.page.payload._ROOM_FOR_PATHS", 100)
    (one,) = payload_of([some_atlas(seeds=10)])["atlases"]
    assert {path["seeds"] for path in one["tasks"][0]["paths"]} == {2}


def test_the_schema_refuses_what_it_does_not_know():
    made = payload_of([some_atlas()])
    jsonschema.validate(made, schema())
    for damage in (
        lambda one: one.update(schema=2),
        lambda one: one["atlases"].clear(),
        lambda one: one["atlases"][0].pop("tasks"),
        lambda one: one["atlases"][0]["tasks"][0].update(retain="!"),
        lambda one: one["atlases"][0].update(more=1),
    ):
        other = json.loads(json.dumps(made))
        damage(other)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(other, schema())


def test_no_text_becomes_markup():
    text = page_of(payload_of([with_tokens(some_atlas())]))
    inside = re.search(r'id="payload">(.*?)</script>', text, re.S)[1]
    assert not set("<>&\u2028\u2029") & set(inside)
    texts = json.loads(inside)["atlases"][0]["salient"]["texts"]
    assert set(texts) <= set(ODD) and "</script><script>alert(1)</script>" in texts
    assert text.count("<script") == 2 and "http://" not in text.replace("http://www.w3.org/", "").replace(
        "http://json-schema.org/", ""
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_write_page(tmp_path):
    atlas = some_atlas()
    found = write_page(atlas, tmp_path / "deep" / "page.html", other=some_atlas(tasks=("sums",)))
    assert found.read_text().startswith("<!doctype html>")
    with pytest.raises(RequestError, match=r"ends in \.html"):
        write_page(atlas, tmp_path / "page.txt")
    with pytest.raises(AtlasError, match="nothing to show"):
        write_page(Atlas(atlas.spec, [], []), tmp_path / "empty.html")
