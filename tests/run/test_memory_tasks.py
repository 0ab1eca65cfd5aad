"""Tasks in memory from end to end: mapped, contrasted, validated, exported, continued, shared."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from headatlas import (
    AtlasError,
    HeadatlasWarning,
    RequestError,
    Task,
    TaskError,
    contrast_heads,
    export_model,
    load_model,
    map_heads,
    open_atlas,
    pack_atlas,
    unpack_atlas,
    validate_atlas,
)
from headatlas.cli.map import show_summary
from headatlas.page.payload import payload_of
from headatlas.request import ContrastRequest, MapRequest
from support.planted import word_tokenizer
from support.small_run import same_numbers, small_model
from support.tiny import build_tiny
from support.watching import Watch

QUICK = {"seeds": 2, "updates": 3}
ITEMS = [(f"w{number} w{number + 20} w{number + 40}", f" w{number + 60}") for number in range(20)]
OTHERS = [(f"w{number + 40} w{number}", f" w{number + 20}") for number in range(20)]
VALIDATION = {"items": 4, "draws": 2, "retest": 0, "methods": ["ablate-zero"]}


@pytest.fixture(scope="module")
def model():
    return small_model()


def test_gating_holds_out_a_tenth_and_says_so(model, tmp_path):
    watch = Watch()
    atlas = map_heads(model, {"words": ITEMS}, out=tmp_path / "atlas", progress=watch, **QUICK)
    facts = atlas.run("words").task_facts
    assert (facts["train_rows"], facts["test_rows"], facts["known_rows"]) == (18, 2, 0)
    assert "words: 18 of 20 items, 2 held out" in watch.notes
    assert atlas.summary("words").held_out == 2
    assert "fitted on 18 of 20 items, 2 held-out items" in atlas.report().markdown()
    four = map_heads(model, {"words": ITEMS}, test=4, **QUICK)
    assert four.run("words").task_facts["test_rows"] == 4


def test_effects_use_every_item_in_any_form(model):
    watch = Watch()
    forms = [ITEMS, pd.DataFrame(ITEMS, columns=["prompt", "target"]), Task.of(ITEMS), {"items": ITEMS}]
    maps = [map_heads(model, form, method="ablate-zero", progress=watch) for form in forms]
    for atlas in maps:
        assert atlas.effect("items", "ablate-zero", 0).facts["items"] == 20
        assert atlas.effect_summary("items", "ablate-zero").item_words == "20 items"
        assert atlas.run("items", "ablate-zero").identity == maps[0].run("items", "ablate-zero").identity
    assert not any("of 20 items" in note for note in watch.notes)


def test_effects_of_more_items_than_the_default_number(model):
    items = [(f"w{number} w{number + 1}", f" w{number + 2}") for number in range(60)]
    atlas = map_heads(model, items, method="attribute-gradient")
    assert atlas.effect("items", "attribute-gradient", 0).facts["items"] == 60
    run = atlas.run("items", "attribute-gradient")
    assert run.settings["given"] == {"seeds": 1} and run.settings["resolved"]["items"] == 60


def test_effects_of_some_of_the_items_say_so(model):
    watch = Watch()
    atlas = map_heads(model, ITEMS, method="ablate-zero", test=4, progress=watch)
    assert "items: measured on 16 of 20 items" in watch.notes
    summary = atlas.effect_summary("items", "ablate-zero")
    assert summary.item_words == "16 of 20 items" and summary.to_json()["of_items"] == 20
    assert "items, ablate-zero (16 of 20 items)" in atlas.report().markdown()
    few = map_heads(model, ITEMS, method="ablate-zero", items=5, progress=watch)
    assert few.effect_summary("items", "ablate-zero").item_words == "5 of 20 items"


def test_nothing_held_out_is_said_everywhere(model, tmp_path):
    folder = tmp_path / "atlas"
    atlas = map_heads(model, {"words": ITEMS}, test=None, out=folder, **QUICK)
    run, summary = atlas.run("words"), atlas.summary("words")
    assert run.task_facts["train_rows"] == 20 and run.task_facts["test_rows"] == 0
    assert summary.held_out == 0 and not summary.nll and not summary.gain
    assert not any(name in atlas.fit("words", 0, "retain").facts for name in ("nll", "held_out_nll"))
    assert {"train_nll", "train_gain"} <= run.baseline.keys() and "nll" not in run.baseline
    doubts = {doubt.key for doubt in atlas.doubts("words")}
    assert "no-held-out" in doubts and "held-out" not in doubts
    assert "chance" in doubts  # a random model, judged on the items themselves
    (page,) = payload_of([atlas])["atlases"][0]["tasks"]
    for text in (atlas.report().markdown(), page["made"]):
        assert "nothing held out" in text
    assert any("nothing is held out" in doubt for doubt in page["doubts"])
    console = Console(record=True, width=120)
    show_summary(console, summary, None)
    assert "nothing: the gates were fitted on every item" in console.export_text()
    assert atlas.to_table() is not None and atlas.findings() is not None and list(atlas.cards())
    assert atlas._repr_html_()
    with pytest.raises(AtlasError, match="words holds nothing out, so there are no items to validate"):
        validate_atlas(folder, model=model, **VALIDATION)
    with pytest.raises(AtlasError, match=r"no items to check the checkpoint on; map it again with test=0\.1"):
        export_model(folder, "words", tmp_path / "checkpoint", model=model)


def test_an_atlas_remembers_the_items(model, tmp_path):
    """Validated, exported and continued without the list."""
    folder = tmp_path / "atlas"
    map_heads(model, {"words": ITEMS}, test=4, out=folder, **QUICK)
    atlas = validate_atlas(folder, model=model, **VALIDATION)
    assert atlas.validation("words").items == 4
    exported = export_model(folder, None, tmp_path / "checkpoint", model=model, force=True)
    assert exported.items == 4
    request = MapRequest.resumed(folder)
    assert request.tasks == (Task.of(ITEMS, name="words", test=4),)
    again = map_heads(model, {"words": ITEMS}, test=4, out=folder, resume=True, **{**QUICK, "seeds": 3})
    assert again.seeds("words") == [0, 1, 2]
    by_list = validate_atlas(folder, model=model, tasks={"words": ITEMS}, **VALIDATION)
    assert by_list.validation("words").items == 4
    with pytest.raises(AtlasError, match="other items"):
        validate_atlas(folder, model=model, tasks={"words": OTHERS}, **VALIDATION)


def test_a_shared_atlas_keeps_the_items(model, tmp_path):
    items = [(f"w{number} w{number + 1}", f" w{number + 2}") for number in range(20)]
    items[0] = ("/usr/share/words", items[0][1])
    table = [{"prompt": p, "target": t, "foil": f"/x/{t}", "group": f"/g/{p}"} for p, t in items]
    map_heads(model, {"words": table}, test=4, out=tmp_path / "atlas", **QUICK)
    pack_atlas(tmp_path / "atlas", tmp_path / "atlas.zip")
    unpack_atlas(tmp_path / "atlas.zip", tmp_path / "other")
    (task,) = open_atlas(tmp_path / "other").run("words").request["tasks"]
    assert task["spec"]["source"]["items"] == table
    assert validate_atlas(tmp_path / "other", model=model, **VALIDATION).validation("words").items == 4


def test_effects_and_gates_of_one_list_may_hold_out_differently(model, tmp_path):
    """By default effects use every item and gates all but a tenth; a validation leaves those effects out."""
    folder = tmp_path / "atlas"
    map_heads(model, {"words": ITEMS}, method="ablate-mean", out=folder)
    atlas = map_heads(model, {"words": ITEMS}, out=folder, resume=True, test=4, **QUICK)
    assert atlas.methods("words")
    options = {name: value for name, value in VALIDATION.items() if name != "methods"}
    with pytest.warns(HeadatlasWarning, match="left out: ablate-mean of words, .* with the same test="):
        validation = validate_atlas(folder, model=model, effect_items=2, **options).validation("words")
    assert "ablate-mean" not in validation.named() and "ablate-zero" in validation.named()


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_small_lists_are_not_refused(model, count):
    """However the hashes of the items fall; a batch has at most all items."""
    for start in range(0, 10, 5):
        items = [(f"w{start} w{number}", f" w{number + 30}") for number in range(count)]
        atlas = map_heads(model, items, seeds=1, updates=2)
        facts = atlas.run("items").task_facts
        assert facts["test_rows"] == 1 and facts["train_rows"] == count - 1
        assert atlas.run("items").settings["resolved"]["batch"] == count - 1
    assert atlas.summary("items").held_out == 1 and atlas.report().markdown()
    with pytest.raises(TaskError, match="give more rows or a smaller batch"):
        map_heads(model, items, seeds=1, updates=2, batch=count)


def test_test_is_for_tasks_in_memory(model):
    with pytest.raises(RequestError, match="test is for tasks in memory; 'paper/math' holds out what"):
        map_heads(model, "paper/math", test=4)
    with pytest.raises(RequestError, match="test is a list of items of one task, but there are several"):
        map_heads(model, {"a": ITEMS, "b": OTHERS}, test=[("w1", " w2")])
    atlas = map_heads(model, ITEMS, test=[("w1 w5", " w2"), ("w1 w7", " w3")], **QUICK)
    assert atlas.run("items").task_facts["train_rows"] == 20
    assert atlas.run("items").task_facts["test_rows"] == 2


def test_a_contrast_of_lists(model, tmp_path):
    folder = tmp_path / "atlas"
    atlas = contrast_heads(model, ITEMS, OTHERS[:8], seeds=[0, 2], updates=2, out=folder)
    (name,) = [task for method, task in atlas.runs if method == "contrast"]
    assert name == "retain without forget" and atlas.seeds(name, "contrast") == [0, 2]
    assert atlas.run(name, "contrast").settings["resolved"]["batch"] == 7
    request = ContrastRequest.resumed(folder)
    assert (request.retain.name, request.forget.name) == ("retain", "forget")
    assert request.options.seeds == (0, 2) and request.retain.spec.test == 0.1
    named = contrast_heads(
        model, {"plurals": ITEMS}, Task.of(OTHERS, name="capitals", test=None), seeds=1, updates=2
    )
    assert [task for _, task in named.runs] == ["plurals without capitals"]
    doubts = {doubt.key for doubt in named.doubts("plurals without capitals", "contrast")}
    assert {"retain-held-out", "forget-no-held-out"} <= doubts
    assert named.report().markdown() and payload_of([named])
    with pytest.raises(RequestError, match="retain is one task, not 2"):
        contrast_heads(model, {"a": ITEMS, "b": OTHERS}, OTHERS)


def test_requests_go_through_json(model):
    """What a worker gets."""
    request = MapRequest.of(model, {"a": ITEMS, "b": OTHERS}, seeds=range(1, 3), test=3)
    again = MapRequest.from_json(json.loads(json.dumps(request.to_json())))
    assert again == request and again.options.seeds == (1, 2) and again.tasks[0].spec.test == 3
    contrast = ContrastRequest.of(model, ITEMS, OTHERS, seeds=np.array([4, 1]))
    assert ContrastRequest.from_json(json.loads(json.dumps(contrast.to_json()))) == contrast
    effects = MapRequest.of(model, ITEMS, "ablate-zero")
    assert effects.tasks[0].spec.test is None
    assert MapRequest.from_json(json.loads(json.dumps(effects.to_json()))) == effects


# Seeds


def test_named_seeds_are_those_of_a_run_that_counts_them(model, tmp_path):
    counted = map_heads(model, ITEMS, out=tmp_path / "counted", **QUICK)
    listed = map_heads(model, ITEMS, out=tmp_path / "listed", **{**QUICK, "seeds": [1, 0]})
    assert same_numbers(tmp_path / "counted", tmp_path / "listed")
    assert counted.run("items").identity == listed.run("items").identity
    assert counted.run("items").settings["given"]["seeds"] == 2
    assert listed.run("items").settings["given"]["seeds"] == [1, 0]
    single = map_heads(model, ITEMS, **{**QUICK, "seeds": [7]})
    assert single.seeds("items") == [7] and single.run("items").settings["resolved"]["seeds"] == [7]


def test_seeds_of_effects_are_named_too(model, tmp_path):
    folder = tmp_path / "atlas"
    options = {"method": "ablate-zero", "items": 4}
    map_heads(model, ITEMS, seeds=[3], out=folder, **options)
    atlas = map_heads(model, ITEMS, seeds=2, out=folder, resume=True, **options)
    assert atlas.effects("items", "ablate-zero").seed.values.tolist() == [0, 1, 3]
    assert atlas.run("items", "ablate-zero").settings["resolved"]["seeds"] == [0, 1, 3]
    atlas = map_heads(model, ITEMS, seeds=[2], out=folder, resume=True, **options)
    assert atlas.run("items", "ablate-zero").settings["resolved"]["seeds"] == 4
    assert MapRequest.resumed(folder, method="ablate-zero").options.seeds == 4


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([], "seeds are 0 numbers"),
        ([1, 1], "seeds hold 1 twice"),
        ([0.5], "each of seeds is 0.5"),
        ([-1], "each of seeds is -1"),
        ("12", "seeds is '12'"),
        (0, "seeds is 0"),
    ],
)
@pytest.mark.parametrize("method", ["gating", "ablate-zero"])
def test_seeds_that_are_none_are_one_sentence(model, seeds, message, method):
    with pytest.raises(RequestError, match=message):
        map_heads(model, ITEMS, method=method, seeds=seeds)


# Models


@pytest.mark.parametrize("layout", ["llama", "gpt2", "qwen3", "gemma2"])
def test_a_transformers_model_with_its_tokenizer(layout):
    hf, tokenizer = build_tiny(layout), word_tokenizer(100)
    effects = map_heads(hf, ITEMS, method="ablate-mean", tokenizer=tokenizer)
    assert effects.effect_summary("items", "ablate-mean").items == 20
    atlas = map_heads(hf, {"words": ITEMS}, tokenizer=tokenizer, seeds=[0, 1], updates=2, test=4)
    assert atlas.summary("words").held_out == 4
    contrast = contrast_heads(hf, ITEMS, OTHERS, tokenizer=tokenizer, seeds=1, updates=2)
    assert contrast.seeds("retain without forget", "contrast") == [0]


def test_a_loaded_model_has_a_name_of_its_own(model):
    noisy = load_model(build_tiny("llama"), tokenizer=model.tokenizer, name="noisy", check=False)
    assert noisy.spec.name == "noisy"
    assert map_heads(noisy, ITEMS, method="ablate-zero").spec.name == "noisy"
    with pytest.raises(RequestError, match="name is 'noisy', but smollm2 keeps its own name"):
        load_model("smollm2", name="noisy")
    with pytest.raises(RequestError, match="name is ''; allowed is a line of text"):
        load_model(build_tiny("llama"), tokenizer=model.tokenizer, name="")
    for given in (model, "smollm2"):
        with pytest.raises(RequestError, match="tokenizer is for a transformers model"):
            map_heads(given, ITEMS, tokenizer=model.tokenizer)


def test_a_contrast_holds_out_what_is_asked_for(model):
    atlas = contrast_heads(model, ITEMS, OTHERS, test=4, seeds=1, updates=2)
    (name,) = atlas.contrasts
    parts = atlas.run(name, "contrast").task_facts["parts"]
    assert [part["test_rows"] for part in parts.values()] == [4, 4]
