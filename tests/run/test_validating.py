"""`map_heads(method=…)` and `validate_atlas` from end to end, on a tiny model."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from headatlas import (
    AtlasError,
    RequestError,
    UnknownNameError,
    load_task,
    map_heads,
    open_atlas,
    validate_atlas,
)
from headatlas.atlas import SHARES, find, import_table
from headatlas.core import EFFECT_METHODS
from headatlas.method import ablate, draw, evaluate, evaluate_sets
from headatlas.run.curves import _order
from headatlas.run.fitting import Silence
from headatlas.run.prepare import read_rows
from support.small_run import SMALL, small_model, write_task

FEW = {"items": 6, "draws": 3}


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return str(write_task(tmp_path_factory.mktemp("tasks") / "words.jsonl", 120))


@pytest.fixture(scope="module")
def folder(model, task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlases") / "atlas"
    map_heads(model, task, out=folder, **SMALL)
    validate_atlas(folder, model=model, tasks=[task], **FEW)
    return folder


def times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")}


def test_effects_are_those_of_the_method(model, task, tmp_path):
    atlas = map_heads(model, task, method="ablate", out=tmp_path / "atlas", items=7, seeds=2)
    train = read_rows(model, load_task(task), None, 0).rows.train
    for seed in (0, 1):
        rows = [train[place] for place in draw(len(train), 7, 0, seed, 11)]
        wanted = ablate(model, rows, "zero", seed=seed)
        found = atlas.effect("words", "ablate", seed)
        np.testing.assert_array_equal(found.values, wanted.values)
        assert found.facts["items"] == 7 and found.facts["whole"] == pytest.approx(wanted.whole, abs=1e-5)
    again = open_atlas(tmp_path / "atlas")
    assert again.methods("words") == ["ablate-zero"] and again.tasks == []
    before = times(tmp_path / "atlas")
    map_heads(model, task, method="ablate-zero", out=tmp_path / "atlas", items=7, seeds=3, resume=True)
    after = times(tmp_path / "atlas")
    assert len(after) == 3 and all(after[path] == stamp for path, stamp in before.items())
    with pytest.raises(AtlasError, match="made with items 7 instead of 8"):
        map_heads(model, task, method="ablate", out=tmp_path / "atlas", items=8, resume=True)


@pytest.mark.parametrize("method", EFFECT_METHODS)
def test_every_method(model, task, method):
    atlas = map_heads(model, task, method=method, items=5)
    assert np.isfinite(atlas.effects("words", method)["effect"]).all() and atlas.path is None


WRONG = [
    ({"method": "shapley"}, "no method named 'shapley'"),
    ({"method": "ablate", "updates": 3}, "'updates' is a setting of gating"),
    ({"method": "ablate", "preset": "paper"}, "'preset' is a setting of gating"),
    ({"method": "ablate", "items": 0}, "items is 0"),
    ({"method": "ablate", "seeds": 0}, "seeds is 0"),
    ({"items": 5}, "'items' is for the other methods"),
]


@pytest.mark.parametrize(("request_", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_a_method_does_not_have(model, task, request_, message):
    with pytest.raises(RequestError, match=message):
        map_heads(model, task, **request_)


def test_the_curves_are_those_of_the_gate_sets(model, task, folder):
    """Each point by `evaluate` under gates that are written down here."""
    atlas = open_atlas(folder)
    found = atlas.validation("words")
    held_out = read_rows(model, load_task(task), None, FEW["items"]).held_out
    heads = list(model.spec)
    assert found.heads == len(heads) and found.counts[0] == 0 and found.counts[-1] == len(heads)
    assert set(found.counts) == {round(share * len(heads)) for share in SHARES}
    names = ["gating", *EFFECT_METHODS, *(f"random {n}" for n in range(1, 6))]
    assert list(found.methods) == names
    mean = atlas.scores("words").mean("seed")
    for method in ("gating", "ablate-zero", "mediate"):
        values = mean["facilitation"] if method == "gating" else atlas.importance("words", method)
        order = sorted(heads, key=lambda head: -float(values[head.layer, head.head]))
        for place, count in enumerate(found.counts):
            gates = np.zeros(model.spec.shape)
            for head in order[:count]:
                gates[head.layer, head.head] = 1
            for side, chosen in (("keep", gates), ("drop", 1 - gates)):
                wanted = evaluate(model, held_out, chosen)
                losses = getattr(found, side)[found.methods.index(method), place]
                np.testing.assert_allclose(losses, wanted.nll, atol=1e-5)
                right = getattr(found, f"{side}_right")[found.methods.index(method), place]
                np.testing.assert_allclose(right, wanted.right, atol=1e-6)


def test_switching_off_begins_with_the_gates_of_retain(model, task, folder):
    atlas = open_atlas(folder)
    found = atlas.validation("words")
    held_out = read_rows(model, load_task(task), None, FEW["items"]).held_out
    assert found.off.shape[:2] == (2, 3) and found.by_chance.shape[0] == 3
    for seed in (0, 1):
        gates = atlas.gates("words").sel(seed=seed, fit="retain").values
        wanted = evaluate(model, held_out, gates).nll
        for order in range(3):
            np.testing.assert_allclose(found.off[seed, order, 0], wanted, atol=1e-5)
            nothing = evaluate(model, held_out, np.zeros(model.spec.shape)).nll
            np.testing.assert_allclose(found.off[seed, order, -1], nothing, atol=1e-5)
        # the first head that goes is the one with the highest score
        scores = atlas.scores("words").sel(seed=seed)["interference"].values
        first = gates.copy()
        for place in np.argsort(-scores.ravel(), kind="stable")[: found.counts[1]]:
            first.ravel()[place] = 0
        np.testing.assert_allclose(found.off[seed, 2, 1], evaluate(model, held_out, first).nll, atol=1e-5)


def test_halves_have_no_item_in_common_and_other_seeds(folder):
    atlas = open_atlas(folder)
    assert atlas.seeds("words", "retest-a") == [0] and atlas.seeds("words", "retest-b") == [1000]
    one, other = (atlas.run("words", f"retest-{half}") for half in "ab")
    assert one.identity != other.identity != atlas.run("words").identity
    assert atlas.tasks == ["words"]  # they are no tasks of their own
    assert not np.array_equal(atlas.gates("words", "retest-a"), atlas.gates("words", "retest-b"))


def test_what_is_there_is_not_made_again(model, task, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "atlas")
    before = times(copy)
    validate_atlas(copy, model=model, tasks=[task], **FEW)
    assert times(copy) == before
    validate_atlas(copy, model=model, tasks=[task], items=7, draws=3)
    changed = [path for path, stamp in times(copy).items() if before[path] != stamp]
    assert [path.stem for path in changed] == ["validation-words"]


def test_a_table_of_all_methods_comes_back(folder, tmp_path):
    atlas = open_atlas(folder)
    table = atlas.to_table()
    assert {"gating", "retest-a", "retest-b", *EFFECT_METHODS} == set(table["method"])
    again = import_table(table, tmp_path / "imported")
    assert again.methods("words") == atlas.methods("words")
    for method in EFFECT_METHODS:
        np.testing.assert_array_equal(again.importance("words", method), atlas.importance("words", method))
    for half in ("retest-a", "retest-b"):
        np.testing.assert_allclose(again.gates("words", half), atlas.gates("words", half), atol=1e-6)
    np.testing.assert_allclose(again.gates("words"), atlas.gates("words"), atol=1e-6)


def test_a_narrower_request_loses_nothing(model, task, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "atlas")
    before = times(copy)
    found = validate_atlas(copy, model=model, tasks=[task], methods=["ablate"], **FEW)
    assert set(EFFECT_METHODS) < set(found.validation("words").methods) and times(copy) == before


def test_effects_that_are_there_are_compared_whatever_their_items(model, task, tmp_path):
    out = tmp_path / "atlas"
    map_heads(model, task, out=out, **SMALL)
    map_heads(model, task, method="ablate", items=7, out=out, resume=True)
    asked = {"model": model, "tasks": [task], "methods": ["ablate"], "retest": 0, **FEW}
    first = validate_atlas(out, **asked).validation("words")
    # the order of a method that has got more seeds since is another one
    map_heads(model, task, method="ablate", items=7, seeds=4, out=out, resume=True)
    second = validate_atlas(out, **asked).validation("words")
    assert first.facts["methods"]["ablate-zero"][1] == [0]
    assert second.facts["methods"]["ablate-zero"][1] == [0, 1, 2, 3]
    # seeds that came after the validation are said
    more = SMALL | {"seeds": SMALL["seeds"] + 1}
    atlas = map_heads(model, task, out=out, resume=True, **more)
    (said,) = [one.text for one in find(atlas) if one.about == "words, gating"]
    assert f"measured with {SMALL['seeds']} seeds of now {SMALL['seeds'] + 1}: validate it again" in said


class Told(Silence):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def test_what_is_not_built_in_is_left_out_and_named(model, task, tmp_path):
    """A task of one's own does not keep the built-in ones from being validated."""
    out = tmp_path / "atlas"
    map_heads(model, [task, "arithmetic"], out=out, **SMALL)
    told = Told()
    asked = {"methods": [], "retest": 0, "draws": 2, "items": 4}
    atlas = validate_atlas(out, model=model, progress=told, **asked)
    assert atlas.validated == ["arithmetic"]
    assert any(note.startswith("left out: words; not built in") for note in told.notes)
    told = Told()
    asked["items"] = 5000
    validate_atlas(out, model=model, tasks=[task], progress=told, **asked)
    assert any("held-out items, not 5000" in note for note in told.notes)


def test_a_validation_knows_the_precision(model, task, tmp_path):
    out = tmp_path / "atlas"
    map_heads(model, task, out=out, **SMALL)
    asked = {"tasks": [task], "methods": [], "retest": 0, **FEW}
    found = validate_atlas(out, model=model, **asked).validation("words")
    assert found.facts["dtype"] == model.spec.dtype


def test_requests(model, task, folder, tmp_path):
    with pytest.raises(RequestError, match="words: not built in; give the file"):
        validate_atlas(folder, model=model)
    with pytest.raises(UnknownNameError, match="syntax"):
        validate_atlas(folder, model=model, tasks=["syntax"])
    with pytest.raises(RequestError, match="items is 1"):
        validate_atlas(folder, model=model, tasks=[task], items=1)
    with pytest.raises(UnknownNameError, match="shapley"):
        validate_atlas(folder, model=model, tasks=[task], methods=["shapley"])
    (tmp_path / "words").mkdir()
    other = write_task(tmp_path / "words" / "words.jsonl", 120, seed=9)
    with pytest.raises(AtlasError, match="other items now than when it was mapped"):
        validate_atlas(folder, model=model, tasks=[str(other)], **FEW)
    import_table(open_atlas(folder).to_table(), tmp_path / "imported")
    with pytest.raises(AtlasError, match="was imported"):
        validate_atlas(tmp_path / "imported", model=model, tasks=[task])


def test_gate_sets_that_are_the_same_are_measured_once(model, task, monkeypatch):
    rows = read_rows(model, load_task(task), None, 5).held_out
    sets = np.stack([np.ones(model.spec.shape), np.zeros(model.spec.shape), np.ones(model.spec.shape)])
    told = []
    nll, _ = evaluate_sets(model, rows, sets, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (10, 10) and np.array_equal(nll[0], nll[2])
    np.testing.assert_allclose(nll[1], evaluate(model, rows, sets[1]).nll, atol=1e-5)


def test_heads_of_equal_score_come_by_lot():
    """Not by place, by which whole layers would be switched off first."""
    values = np.zeros((6, 8))
    values[5, 7], values[2, 3] = 1, np.nan
    order = _order(values)
    assert order[0] == 47 and sorted(order) == [place for place in range(48) if place != 19]
    assert len({place // 8 for place in order[1:9]}) >= 4 and order == _order(values)
    second = np.arange(48.0).reshape(6, 8)
    assert _order(values, second) == [47, *(place for place in range(47) if place != 19)]
