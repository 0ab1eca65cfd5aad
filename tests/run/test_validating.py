"""`map_heads(method=…)` and `validate_atlas` from end to end, on a tiny model."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import headatlas.model
from headatlas import (
    METHODS,
    AtlasError,
    RequestError,
    UnknownNameError,
    load_model,
    load_task,
    map_heads,
    open_atlas,
    validate_atlas,
)
from headatlas.atlas import SHARES, Store, effect_doubts, find, import_table
from headatlas.atlas.effect_summary import qualifications
from headatlas.cli import main
from headatlas.core import Note
from headatlas.method.engine.ablate import ablate
from headatlas.method.engine.likelihood import evaluate, evaluate_sets
from headatlas.method.engine.rows import draw
from headatlas.request import ValidateRequest, validate_request
from headatlas.run import map_job
from headatlas.run.prepare import measure_baseline, read_rows
from headatlas.run.validate_job import split_halves
from headatlas.run.validation_curves import _effect_samples, _left_out, places_in_order
from headatlas.task import Row
from support.planted import planted_model, word_tokenizer
from support.small_run import SMALL, small_model, write_task
from support.tiny import build_tiny
from support.watching import Watch

#: built-in methods that give a number per head
MEASURED = [name for name in METHODS.built_in if METHODS[name].measure is not None]
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


def test_effects_bring_a_baseline(model, task, tmp_path):
    """Of their own where the task was not gated; it is not measured again."""
    out = tmp_path / "atlas"
    run = map_heads(model, task, method="ablate", items=4, out=out).run("words", "ablate-zero")
    ready = replace(read_rows(model, load_task(task), None, 64), known=())
    assert run.baseline == measure_baseline(model, ready)
    assert run.baseline["rows"] == len(ready.held_out) and {"gain", "gain_error"} <= run.baseline.keys()
    again = map_heads(model, task, method="ablate", items=4, seeds=2, out=out, resume=True)
    assert again.run("words", "ablate-zero").baseline == run.baseline


def test_effects_without_a_baseline_get_one_when_they_are_resumed(model, task, tmp_path):
    out = tmp_path / "atlas"
    map_heads(model, task, method="ablate", items=4, out=out)
    data = json.loads((out / "atlas.json").read_text())
    baseline, data["runs"][0]["baseline"] = data["runs"][0]["baseline"], {}
    (out / "atlas.json").write_text(json.dumps(data))
    assert [one.key for one in effect_doubts(open_atlas(out), "words", "ablate-zero")] == ["effect-items"]
    before = times(out)
    atlas = map_heads(model, task, method="ablate", items=4, out=out, resume=True)
    assert atlas.run("words", "ablate-zero").baseline == baseline and times(out) == before


def test_effects_of_a_gated_task_have_the_baseline_of_its_gates(folder, model, task, tmp_path, monkeypatch):
    atlas = open_atlas(folder)
    for method in MEASURED:
        assert atlas.run("words", method).baseline == atlas.run("words").baseline
    monkeypatch.setattr(map_job, "measure_baseline", None)
    copy = shutil.copytree(folder, tmp_path / "atlas")
    shutil.rmtree(copy / "effects")
    data = json.loads((copy / "atlas.json").read_text())
    data["runs"] = [run for run in data["runs"] if run["method"] not in MEASURED]
    (copy / "atlas.json").write_text(json.dumps(data))
    again = map_heads(model, task, method="ablate", items=4, out=copy, resume=True)
    assert again.run("words", "ablate-zero").baseline == atlas.run("words").baseline


def test_effects_of_a_task_at_chance_are_doubtful(tmp_path):
    """The planted model repeats answers; asked for other words it is not better than chance."""
    model = planted_model("copy", "nothing", "nothing")
    lines = [{"prompt": f"w{n} w{n} w{k} w8", "target": f" w{n}"} for n in range(8) for k in range(8)]
    other = [{**line, "target": f" w{(n * 5) % 8}"} for n, line in enumerate(lines)]
    for name, records in {"known": lines, "unknown": other}.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in records))
        atlas = map_heads(model, str(path), method="ablate")
        keys = [one.key for one in effect_doubts(atlas, name, "ablate-zero")]
        assert keys == ["chance"] * (name == "unknown")


def test_copies_are_drawn_once(model, tmp_path):
    """Ten prompts, twelve copies each: no more than ten items, in whatever draw."""
    path = write_task(tmp_path / "words.jsonl", 10)
    path.write_text(path.read_text() * 12)
    train = read_rows(model, load_task(path), None, 0).rows.train
    distinct = list(dict.fromkeys(row.ids for row in train))
    assert len(train) == 12 * len(distinct) and 1 < len(distinct) < 10
    atlas = map_heads(model, path, method="ablate", seeds=2)
    assert atlas.pooled_effects("words", "ablate-zero").attrs["items"] == len(distinct)
    run = atlas.run("words", "ablate-zero")
    assert (run.task_facts["train_rows"], run.task_facts["train_items"]) == (len(train), len(distinct))
    for seed in range(2):
        effect = atlas.effect("words", "ablate-zero", seed)
        assert sorted(train[place].ids for place in effect.per_item.items) == sorted(distinct)
        rows = [train[place] for place in effect.per_item.items]
        np.testing.assert_array_equal(effect.values, ablate(model, rows, "zero", seed=seed).values)
    (doubt,) = (one for one in effect_doubts(atlas, "words", "ablate-zero") if one.key == "effect-items")
    assert doubt.text.startswith(f"effects measured on {len(distinct)} distinct items: too few")


def test_effects_that_counted_copies_as_items_are_not_continued(model, tmp_path):
    """Their items are others; the draws of a task without copies stay what they were."""
    path = write_task(tmp_path / "words.jsonl", 40)
    assert (
        "copies"
        not in map_heads(model, path, method="ablate").run("words", "ablate-zero").settings["decides"]
    )
    path.write_text(path.read_text() * 2)
    out = tmp_path / "atlas"
    atlas = map_heads(model, path, method="ablate", out=out)
    decides = atlas.run("words", "ablate-zero").settings["decides"]
    data = json.loads((out / "atlas.json").read_text())
    old = {key: value for key, value in decides.items() if key != "copies"}
    data["runs"][0] |= {"identity": "old", "settings": {"decides": old}}
    (out / "atlas.json").write_text(json.dumps(data))
    Store.open(out).write(replace(atlas.effect("words", "ablate-zero", 0), identity="old"))
    with pytest.raises(AtlasError, match="copies None instead of drawn once"):
        map_heads(model, path, method="ablate", seeds=2, out=out, resume=True)


def test_a_draw_does_not_change_where_mediation_patches(model, tmp_path):
    """A few pairs of another length among 40: all draws of the task are patched in the same places, and the
    atlas says where."""
    lines = [
        {"prompt": f"w{n} w{n + 1} w{n + 2}", "target": f" w{n + 3}", "other": f"w{n + 9} w{n + 5} w{n + 6}"}
        for n in range(40)
    ]
    for name, last in (("same", "w60 w61 w62"), ("odd", "w60 w61 w62 w63")):
        for line in lines[-4:]:
            line["other"] = last
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\nsource: {{file: {name}.jsonl}}\nprompt: '{{prompt}}'\ntarget: '{{target}}'\n"
            "corrupted: '{other}'\n"
        )
    chosen = {}
    for name in ("same", "odd"):
        atlas = map_heads(model, tmp_path / f"{name}.yaml", method="mediate", items=6, seeds=4)
        facts = [atlas.effect(name, "mediate", seed).facts for seed in range(4)]
        chosen[name] = {(one["prompts"], one["positions"]) for one in facts}
        decides = atlas.run(name, "mediate").settings["decides"]
        assert {(decides["prompts"], decides["positions"])} == chosen[name]
    assert chosen == {"same": {("own", "all")}, "odd": {("own", "target")}}


@given(st.lists(st.integers(0, 12), min_size=2, max_size=60))
def test_halves_share_no_group(labels):
    """Every row is in one half, and every group; the halves differ by one group at most."""
    rows = [Row((number, label, 1), 2, group=str(label)) for number, label in enumerate(labels)]
    halves = split_halves(rows)
    assert sorted(row.ids for half in halves for row in half) == sorted(row.ids for row in rows)
    groups = [{row.group for row in half} for half in halves]
    assert groups[0].isdisjoint(groups[1])
    largest = max(labels.count(label) for label in labels)
    assert abs(len(halves[0]) - len(halves[1])) <= largest


@pytest.mark.parametrize("method", MEASURED)
def test_every_method(model, task, method):
    atlas = map_heads(model, task, method=method, items=5)
    assert np.isfinite(atlas.effects("words", method)["effect"]).all() and atlas.path is None


WRONG = [
    ({"method": "shapley"}, "no method named 'shapley'"),
    ({"method": "ablate", "updates": 3}, "'updates' is not an option of ablate-zero; it has seeds"),
    (
        {"method": "ablate", "preset": "paper"},
        "'preset' is not an option of ablate-zero; it has seeds",
    ),
    ({"method": "ablate", "items": 0}, "items is 0"),
    ({"method": "ablate", "seeds": 0}, "seeds is 0"),
    ({"items": 5}, "'items' is not an option of gating; it has preset, seeds, "),
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
    assert found.named() == ["gating", *MEASURED, "random"]
    assert [name for name in found.methods if name.startswith("gating")] == ["gating", "gating 1", "gating 2"]
    assert sum(name.startswith("random ") for name in found.methods) == 20
    assert found.varies("gating") == "items and seeds" and found.varies("random") == "items and random orders"
    scores = atlas.scores("words")["facilitation"]
    by_gating = {"gating": scores.mean("seed")}
    by_gating |= {f"gating {place + 1}": scores[kept[0]] for place, kept in enumerate(_left_out(scores.seed))}
    for method in (*by_gating, "ablate-zero", "mediate"):
        values = by_gating[method] if method in by_gating else atlas.importance("words", method)
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


def test_copies_of_a_held_out_item_count_once(model, tmp_path):
    """Six copies of a row are one observation."""
    path = write_task(tmp_path / "words.jsonl", 20)
    path.write_text(path.read_text() * 6)
    map_heads(model, str(path), out=tmp_path / "atlas", **SMALL)
    asked = {"tasks": [str(path)], "methods": [], "retest": 0, "items": 12, "draws": 2}
    found = validate_atlas(tmp_path / "atlas", model=model, **asked).validation("words")
    prompts = [row.prompt for row in read_rows(model, load_task(str(path)), None, 12).held_out]
    assert found.items == found.independent == len(prompts) == len(set(prompts)) < 12


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
    assert {"gating", "retest-a", "retest-b", *MEASURED} == set(table["method"])
    again = import_table(table, tmp_path / "imported")
    assert again.methods("words") == atlas.methods("words")
    for method in MEASURED:
        np.testing.assert_array_equal(again.importance("words", method), atlas.importance("words", method))
    for half in ("retest-a", "retest-b"):
        np.testing.assert_allclose(again.gates("words", half), atlas.gates("words", half), atol=1e-6)
    np.testing.assert_allclose(again.gates("words"), atlas.gates("words"), atol=1e-6)


def test_a_narrower_request_loses_nothing(model, task, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "atlas")
    before = times(copy)
    found = validate_atlas(copy, model=model, tasks=[task], methods=["ablate"], **FEW)
    assert set(MEASURED) < set(found.validation("words").methods) and times(copy) == before


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


def test_a_task_whose_file_is_gone_is_left_out_and_named(tmp_path):
    """It does not keep the others from being validated."""
    out, tokenizer = tmp_path / "atlas", word_tokenizer(100)
    task = str(write_task(tmp_path / "words.jsonl", 120))
    tokenizer.add_tokens([f" {number}" for number in range(145)])
    model = load_model(build_tiny("llama", vocab_size=300), tokenizer=tokenizer, check=False)
    map_heads(model, [task, "arithmetic"], out=out, **SMALL)
    Path(task).rename(tmp_path / "moved.jsonl")
    told = Watch()
    asked = {"methods": [], "retest": 0, "draws": 2, "items": 4}
    atlas = validate_atlas(out, model=model, progress=told, **asked)
    assert atlas.validated == ["arithmetic"]
    assert "left out: words; give their files with tasks=…" in told.notes
    (tmp_path / "moved.jsonl").rename(task)
    told = Watch()
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
    forgotten = shutil.copytree(folder, tmp_path / "forgotten")  # as an earlier version wrote it
    data = json.loads((forgotten / "atlas.json").read_text())
    for run in data["runs"]:
        run.pop("request", None)
    (forgotten / "atlas.json").write_text(json.dumps(data))
    with pytest.raises(RequestError, match="words: its file is not known or has moved; give the file"):
        validate_atlas(forgotten, model=model)
    with pytest.raises(UnknownNameError, match="syntax"):
        validate_atlas(folder, model=model, tasks=["syntax"])
    with pytest.raises(RequestError, match="items is 1"):
        validate_atlas(folder, model=model, tasks=[task], items=1)
    for name in ("items", "draws", "retest", "effect_items"):
        for value in (2.5, "3"):
            with pytest.raises(RequestError, match="allowed are whole numbers"):
                validate_atlas(folder, model=model, tasks=[task], **{name: value})
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
    order = places_in_order(values)
    assert order[0] == 47 and sorted(order) == [place for place in range(48) if place != 19]
    assert len({place // 8 for place in order[1:9]}) >= 4 and order == places_in_order(values)
    second = np.arange(48.0).reshape(6, 8)
    assert places_in_order(values, second) == [47, *(place for place in range(47) if place != 19)]


def test_parts_that_are_left_out_cover_every_sample_once():
    assert _left_out(np.array([4])) == [] and _left_out(np.array([4, 4])) == []
    two = _left_out(np.array([0, 1]))
    assert sorted(kept.tolist() for kept in two) == [[0], [1]]
    labels = np.array([0, 0, 1, 2, 3, 4, 5, 6, 6])
    parts = [np.setdiff1d(np.arange(9), kept) for kept in _left_out(labels)]
    assert len(parts) == 5 and sorted(np.concatenate(parts).tolist()) == list(range(9))
    assert all(set(labels[part]).isdisjoint(set(np.delete(labels, part))) for part in parts)


def test_effects_on_single_items_are_pooled_over_seeds():
    """Item 3 was measured by both seeds and counts once; without single items, seeds are the samples."""

    def measured(items, values):
        return SimpleNamespace(
            items=np.array(items), groups=np.array(items) // 2, values=np.array(values)[:, None, None]
        )

    by_seed = [measured([1, 3], [1.0, 2.0]), measured([3, 2], [4.0, 5.0])]
    effects = xr.Dataset({"effect": (("seed", "layer", "head"), np.ones((2, 1, 1)))}, {"seed": [0, 1]})
    atlas = SimpleNamespace(
        effects=lambda name, method: effects,
        effect=lambda name, method, seed: SimpleNamespace(per_item=by_seed[seed]),
    )
    values, groups, what = _effect_samples(atlas, "words", "ablate-zero")
    assert values.ravel().tolist() == [1, 5, 3] and groups.tolist() == [0, 1, 1] and what == "effect items"
    atlas.effect = lambda name, method, seed: SimpleNamespace(per_item=None)
    assert _effect_samples(atlas, "words", "ablate-zero")[2] == "seeds"


def test_effects_of_another_dtype_are_refused_here_and_in_a_plan(model, task, tmp_path):
    out = tmp_path / "atlas"
    map_heads(model, task, out=out, **SMALL)
    half = load_model(build_tiny("llama").bfloat16(), tokenizer=word_tokenizer(100), check=False)
    map_heads(half, task, method="ablate", items=4, out=out, resume=True)
    said = (
        "measured in bfloat16, its gates in float32, so they cannot be compared; measure gates and effects "
        r"in one dtype \(dtype='float32'\) in a new atlas, or validate other methods \(methods=…\)\.$"
    )
    asked = {"tasks": [task], "retest": 0, "draws": 2, "items": 4}
    with pytest.raises(AtlasError, match=said):
        validate_atlas(out, model=model, methods=["ablate"], **asked)
    with pytest.raises(AtlasError, match=said):
        ValidateRequest.of(out, tasks=[task], methods=["ablate"], retest=0).plan(open_atlas(out))
    with pytest.raises(AtlasError, match=said):
        validate_atlas(out, model="tiny", methods=["ablate"], executor=Planner(), **asked)


def test_effects_measured_with_other_constants_are_another_version(model, task, tmp_path):
    out = tmp_path / "atlas"
    map_heads(model, task, out=out, **SMALL)
    map_heads(model, task, method="attribute-integrated", items=2, out=out, resume=True)
    path = out / "atlas.json"
    path.write_text(path.read_text().replace('"most_points": 2048', '"most_points": 512'))
    settings = {"retest": 0, "draws": 2, "items": 4, "tasks": [task]}
    said = (
        "by another version of headatlas, whose numbers differ, so they cannot be compared; measure gates "
        r"and effects with this version in a new atlas, or validate other methods \(methods=…\)\.$"
    )
    with pytest.raises(AtlasError, match=said):
        validate_atlas(out, model=model, methods=["attribute-integrated"], **settings)
    assert (
        "attribute-integrated"
        not in validate_atlas(out, model=model, methods=["ablate"], **settings).validation("words").named()
    )


def test_imported_effects_are_refused_for_what_they_are(model, task, tmp_path):
    out = tmp_path / "atlas"
    atlas = map_heads(model, task, out=out, **SMALL)
    lines = pd.DataFrame(
        [
            {"task": "words", "method": "ablate-zero", "layer": head.layer, "head": head.head, "score": 0.5}
            for head in atlas.spec
        ]
    )
    import_table(lines, out, model=atlas.spec.name, resume=True)
    said = r"effects of ablate-zero were imported from a table, .* measure gates and effects of the task in"
    with pytest.raises(AtlasError, match=said):
        ValidateRequest.of(out, tasks=[task], methods=["ablate"], retest=0).plan(open_atlas(out))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weights": "other"}, "with other weights .*; measure gates and effects with the same weights in"),
        ({"tasks": {}}, "with other items or tokens .*; measure gates and effects with the same task in"),
    ],
)
def test_the_repair_of_a_mismatch_fits_it(model, task, tmp_path, changed, said):
    out = tmp_path / "atlas"
    map_heads(model, task, out=out, **SMALL)
    atlas = map_heads(model, task, method="ablate", items=4, out=out, resume=True)
    atlas.run("words", "ablate-zero").settings["decides"].update(changed)
    with pytest.raises(AtlasError, match=said):
        ValidateRequest.of(atlas, tasks=[task], methods=["ablate"], retest=0).plan(atlas)


def test_a_path_measured_in_half_precision_is_announced(task, monkeypatch):
    def no_room(tensor):
        raise torch.OutOfMemoryError("no room for a copy")

    half = load_model(build_tiny("llama").bfloat16(), tokenizer=word_tokenizer(100), check=False)
    monkeypatch.setattr("headatlas.method.engine.attribute.single_precision", no_room)
    events = []
    atlas = map_heads(half, task, method="attribute-integrated", items=2, progress=events.append)
    assert any("measured in bfloat16" in event.text for event in events if isinstance(event, Note))
    assert "path measured in bfloat16" in qualifications(atlas)[0]


@pytest.fixture(scope="module")
def gates_in_float32(model, task, tmp_path_factory):
    out = tmp_path_factory.mktemp("atlases") / "atlas"
    map_heads(model, task, out=out, **SMALL)
    return out


@pytest.fixture(scope="module")
def half_model():
    return load_model(build_tiny("llama").bfloat16(), tokenizer=word_tokenizer(100), check=False)


CANNOT_BE_COMPARED = (
    r"words: its gates were fitted in float32 and the model is loaded in bfloat16, so effects measured now "
    r"\(ablate-zero\) could not be compared with them; load the model in float32 \(dtype='float32'\), or"
)


def test_a_model_in_another_dtype_measures_no_effects(gates_in_float32, half_model, model, task, tmp_path):
    """They could not be compared with the gates, here and in the next call."""
    out = shutil.copytree(gates_in_float32, tmp_path / "atlas")
    asked = {"tasks": [task], "retest": 0, "draws": 2, "items": 4}
    before = times(out)
    for _ in range(2):
        with pytest.raises(RequestError, match=CANNOT_BE_COMPARED):
            validate_atlas(out, model=half_model, methods=["ablate"], **asked)
    assert times(out) == before and ("ablate-zero", "words") not in open_atlas(out).runs
    gating = validate_atlas(out, model=half_model, methods=[], **asked).validation("words")
    assert gating.named() == ["gating", "random"] and gating.facts["dtype"] == "bfloat16"
    found = validate_atlas(out, model=model, methods=["ablate"], **asked).validation("words")
    assert found.named() == ["gating", "ablate-zero", "random"] and found.facts["dtype"] == "float32"


@pytest.mark.parametrize("dtype", ["bfloat16", torch.bfloat16])
def test_work_in_another_dtype_is_not_handed_out(gates_in_float32, task, dtype):
    asked = {"model": "tiny", "tasks": [task], "retest": 0}
    planner = Planner({"dtype": dtype})
    with pytest.raises(RequestError, match=CANNOT_BE_COMPARED):
        validate_atlas(gates_in_float32, methods=["ablate"], executor=planner, **asked)
    assert planner.request is None
    validate_atlas(gates_in_float32, methods=[], executor=planner, **asked)
    assert planner.request.methods == ()


@pytest.mark.parametrize("load", [{"dtype": "float32"}, {"dtype": "fast"}, {"dtype": "int8"}, {}])
def test_work_in_the_dtype_of_the_gates_is_handed_out(gates_in_float32, task, load):
    planner = Planner(load)
    asked = {"model": "tiny", "tasks": [task], "methods": ["ablate"], "retest": 0}
    validate_atlas(gates_in_float32, executor=planner, **asked)
    assert planner.request.model.dtype == load.get("dtype", "float32")


def test_tasks_in_two_dtypes(gates_in_float32, half_model, model, task, tmp_path):
    """The advice of the error can be followed."""
    out, other = (
        shutil.copytree(gates_in_float32, tmp_path / "atlas"),
        write_task(tmp_path / "other.jsonl", 120),
    )
    map_heads(half_model, str(other), out=out, resume=True, **SMALL)
    asked = {"tasks": [task, str(other)], "retest": 0, "draws": 2, "items": 4}
    with pytest.raises(RequestError, match=r"words in float32, other in bfloat16.*tasks=….*methods=\[\]"):
        validate_atlas(out, methods=["ablate"], **asked)
    for loaded in (model, half_model):
        with pytest.raises(RequestError, match="could not be compared"):
            validate_atlas(out, model=loaded, methods=["ablate"], **asked)
    atlas = validate_atlas(out, model=model, methods=[], **asked)
    assert atlas.validated == ["words", "other"] and atlas.effect_maps == []


class Planner:
    """An executor that carries out nothing and keeps what it was asked."""

    request = None

    def __init__(self, load=None):
        self.load = load or {}

    def carry_out(self, request, out, progress):
        self.request = request
        request.plan(open_atlas(out))


def test_the_recorded_revision_and_dtype_are_loaded(model, task, folder, tmp_path, monkeypatch):
    """The same for the library, the command line and workers."""
    out = tmp_path / "atlas"
    shutil.copytree(folder, out)
    data = json.loads((out / "atlas.json").read_text())
    data["model"] |= {"revision": "abc123", "name": "someone/model"}
    (out / "atlas.json").write_text(json.dumps(data))
    wanted, asked = {"revision": "abc123", "dtype": "float32"}, []

    def load(name, dtype="auto", revision=None, **options):
        asked.append((name, {"revision": revision, "dtype": dtype}))
        raise RequestError("enough")

    monkeypatch.setattr(headatlas.model, "load_model", load)
    with pytest.raises(RequestError, match="enough"):
        validate_atlas(out, tasks=[task])
    planner = Planner()
    validate_atlas(out, tasks=[task], executor=planner, methods=[], retest=0)
    handed_out = planner.request.model
    asked.append((handed_out.source, {"revision": handed_out.revision, "dtype": handed_out.dtype}))
    monkeypatch.setattr(sys, "argv", ["headatlas", "validate", str(out), "--task", str(task)])
    with pytest.raises(SystemExit):
        main()
    assert asked == [("someone/model", wanted)] * 3
    with pytest.raises(RequestError, match="enough"):
        validate_atlas(out, tasks=[task], model="other/model")
    assert asked[-1] == ("other/model", {"revision": None, "dtype": "float32"})


def test_a_path_measured_in_float64_is_no_doubt(task):
    double = load_model(build_tiny("llama").double(), tokenizer=word_tokenizer(100), check=False)
    watch = Watch()
    atlas = map_heads(double, task, method="attribute-integrated", items=2, progress=watch)
    assert not any("float64" in note for note in watch.notes)
    assert "path measured" not in " ".join(qualifications(atlas))


def test_methods_that_a_new_version_no_longer_compares_are_named(model, task, tmp_path):
    out = tmp_path / "atlas"
    map_heads(model, task, out=out, **SMALL)
    asked = {"model": model, "tasks": [task], "retest": 0, "draws": 2, "items": 4}
    validate_atlas(out, methods=["ablate", "attribute"], **asked)
    path = out / "atlas.json"
    data = json.loads(path.read_text())
    for run in data["runs"]:
        if run["method"] == "attribute-gradient":
            run["settings"]["decides"]["algorithm"] = 1
    path.write_text(json.dumps(data))
    watch = Watch()
    atlas = validate_atlas(out, methods=["ablate"], progress=watch, **asked)
    assert "attribute-gradient" not in atlas.validation("words").named()
    assert (
        "words: attribute-gradient is no longer compared: its effects were measured by another version of "
        "headatlas, whose numbers differ"
    ) in watch.notes


def test_a_task_that_is_given_is_read_once(folder, task, monkeypatch):
    calls = []
    load = validate_request._given_task
    monkeypatch.setattr(validate_request, "_given_task", lambda *given: calls.append(given) or load(*given))
    validate_request.gated_tasks(open_atlas(folder), [task])
    assert len(calls) == 1
