"""`map_heads` and `contrast_heads` from end to end."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from transformers import AutoModelForCausalLM

from headatlas import (
    AtlasError,
    RequestError,
    TaskError,
    contrast_heads,
    load_model,
    load_task,
    map_heads,
    open_atlas,
)
from headatlas.atlas import seed_blocks_text
from headatlas.core import Update
from headatlas.request import ContrastRequest
from support.planted import planted_model, word_tokenizer
from support.small_run import SMALL, small_model, small_run, write_task
from support.tiny import build_tiny
from support.watching import Watch, is_step


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture
def task(tmp_path):
    return write_task(tmp_path / "words.jsonl")


def second_update(event):
    return is_step(event) and event.done == 2


def test_without_a_folder_nothing_is_written(model, task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    atlas = small_run(model, task, None)
    assert atlas.path is None and atlas.tasks == ["words"] and atlas.seeds("words") == [0, 1]
    assert atlas.gates("words").dims == ("seed", "fit", "layer", "head")
    assert sorted(tmp_path.rglob("*")) == before


def test_the_atlas_says_how_it_was_made(model, task, tmp_path):
    small_run(model, task, tmp_path / "atlas")
    run = open_atlas(tmp_path / "atlas").run("words")
    facts = run.task_facts
    assert facts["content_hash"] == load_task(task).items().content_hash and facts["version"] == 1
    assert facts["records"] == 60 and facts["train_rows"] + facts["test_rows"] == 60
    assert facts["first_tokens"] == [] and facts["too_long"] == 0
    assert run.settings["given"] == {"preset": "quick", "seeds": 2, "updates": 5, "batch": 4}
    resolved = run.settings["resolved"]
    assert resolved["batch"] == 4 and resolved["free"]["updates"] == 5 and resolved["objective"] == "bounded"
    assert set(run.made_with) == {"headatlas", "torch", "transformers", "numpy", "python", "device"}
    assert set(run.baseline) == {
        "nll",
        "accuracy",
        "token_accuracy",
        "chance_nll",
        "gain",
        "gain_error",
        "rows",
        "groups",
        "held_out_nll",
    }
    fit = open_atlas(tmp_path / "atlas").fit("words", 0, "retain")
    assert fit.facts["seconds"] > 0 and fit.facts["tokens"] > 0 and fit.facts["nll"] > 0
    json.loads((tmp_path / "atlas" / "atlas.json").read_text())  # plain JSON


def test_gates_in_the_atlas_give_the_held_out_figures(model, task, tmp_path):
    """The figure that is kept is the one that anyone can measure with the gates that are kept."""
    from headatlas.method.engine.likelihood import evaluate
    from headatlas.method.gating import resolve
    from headatlas.run.prepare import prepare

    small_run(model, task, tmp_path / "atlas")
    atlas = open_atlas(tmp_path / "atlas")
    ready, _ = prepare(model, load_task(task), resolve("quick", batch=4), None)
    for fit in ("retain", "remove"):
        one = atlas.fit("words", 1, fit)
        assert evaluate(model, ready.held_out, one.gates).mean_nll == pytest.approx(
            one.facts["nll"], rel=1e-6
        )


def test_rows_that_are_too_long_are_left_out_and_reported(model, task, tmp_path):
    seen = Watch()
    atlas = small_run(model, task, None, max_tokens=5, progress=seen)
    long = atlas.run("words").task_facts["too_long"]
    assert long > 0 and f"words: left out {long} rows over 5 tokens" in seen.notes


def test_a_task_that_a_model_knows_is_not_called_chance(tmp_path):
    """The planted model repeats answers; asked for other words it is not better than chance."""
    model = planted_model("copy", "nothing", "nothing")
    lines = [{"prompt": f"w{n} w{n} w{k} w8", "target": f" w{n}"} for n in range(8) for k in range(8)]
    for name, records in {
        "known": lines,
        "unknown": [{**line, "target": f" w{(n * 5) % 8}"} for n, line in enumerate(lines)],
    }.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in records))
        seen = Watch()
        map_heads(model, str(path), **{**SMALL, "updates": 1}, progress=seen)
        assert any("not clearly better than chance" in note for note in seen.notes) == (name == "unknown")


@pytest.mark.parametrize(
    ("target", "group", "reason"),
    [(" w9", None, "items have the same target"), (None, "group", "items are of one group")],
)
def test_a_task_without_targets_to_exchange_is_doubted(model, tmp_path, target, group, reason):
    lines = [
        {"prompt": f"w{n} w{n + 1}", "target": target or f" w{n}", "group": "ab"[n % 2]} for n in range(40)
    ]
    path = tmp_path / "words.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = load_task(path)
    seen = Watch()
    atlas = map_heads(
        model, replace(task, spec=replace(task.spec, group=group)), **{**SMALL, "updates": 1}, progress=seen
    )
    text = "whether the model is better than chance cannot be judged: all held-out "
    assert any(text + reason in note for note in seen.notes)
    assert "gain" not in atlas.run("words").baseline
    assert atlas.doubts("words")[0].key == "chance-unknown"


def test_several_tasks_at_once_and_added_later(model, tmp_path):
    paths = [write_task(tmp_path / f"{name}.jsonl", seed=n) for n, name in enumerate(("one", "two", "three"))]
    map_heads(model, [str(paths[0]), str(paths[1])], out=tmp_path / "atlas", **SMALL)
    atlas = map_heads(model, str(paths[2]), out=tmp_path / "atlas", resume=True, **SMALL)
    assert atlas.tasks == ["one", "two", "three"]
    alone = small_run(model, paths[1], None)
    np.testing.assert_array_equal(alone.gates("two").values, atlas.gates("two").values)


def test_wrong_requests(model, task, tmp_path):
    with pytest.raises(RequestError, match="no task is given"):
        map_heads(model, [], **SMALL)
    other = tmp_path / "sub"
    other.mkdir()
    with pytest.raises(RequestError, match="two tasks are named 'words'"):
        map_heads(model, [str(task), str(write_task(other / "words.jsonl", seed=1))], **SMALL)
    with pytest.raises(TaskError, match="fewer than a batch of 400"):
        map_heads(model, str(task), **{**SMALL, "batch": 400})
    without = load_model(build_tiny("llama"), check=False)
    with pytest.raises(RequestError, match="has no tokenizer; pass tokenizer"):
        map_heads(without, str(task), **SMALL)


@pytest.mark.parametrize("name", ["seeds", "updates", "batch", "max_tokens"])
@pytest.mark.parametrize("value", [1.5, "2", float("nan"), True])
def test_numbers_that_are_not_whole_are_one_sentence(model, task, name, value):
    with pytest.raises(RequestError, match=f"{name} is .*; allowed are whole numbers"):
        map_heads(model, str(task), **{**SMALL, name: value})
    if name in ("seeds", "max_tokens"):
        with pytest.raises(RequestError, match=f"{name} is .*; allowed are whole numbers"):
            map_heads(model, str(task), method="ablate", **{name: value})


def test_numbers_of_numpy_are_taken(model, task, tmp_path):
    given = {name: np.int64(value) for name, value in {**SMALL, "max_tokens": 64}.items() if name != "preset"}
    map_heads(model, str(task), out=tmp_path / "atlas", **given)
    map_heads(
        model,
        str(task),
        method="ablate",
        seeds=np.int64(1),
        items=np.int64(4),
        out=tmp_path / "atlas",
        resume=True,
    )
    assert open_atlas(tmp_path / "atlas").seeds("words") == [0, 1]


@pytest.mark.parametrize("value", [5, None, [3]])
def test_what_is_no_task_or_model_is_one_sentence(model, task, value):
    with pytest.raises(TaskError, match="is not a task"):
        map_heads(model, value, **SMALL)
    with pytest.raises(RequestError, match="is not a model"):
        map_heads(value, str(task), **SMALL)


def test_a_model_is_a_path_or_a_transformers_model(task, tmp_path):
    """All ways to give a model give the same numbers."""
    hf = build_tiny("llama")
    hf.save_pretrained(tmp_path / "tiny")
    word_tokenizer(100).save_pretrained(tmp_path / "tiny")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "tiny", dtype="float32")
    wanted = map_heads(load_model(str(tmp_path / "tiny"), dtype="fast"), task, **SMALL).gates("words")
    given = map_heads(tmp_path / "tiny", task, **SMALL).gates("words")
    np.testing.assert_array_equal(given.values, wanted.values)
    assert map_heads(loaded, task, **SMALL).gates("words").shape == wanted.shape
    with pytest.raises(RequestError, match="has no tokenizer; pass tokenizer"):
        map_heads(hf, task, **SMALL)


def test_holes(task):
    """Layers without attention are holes in the atlas too."""
    hybrid = load_model(build_tiny("jamba"), tokenizer=word_tokenizer(100), check=False)
    atlas = small_run(hybrid, task, None, updates=2)
    holes = np.isnan(atlas.any("words")["facilitation"].values).all(axis=1)
    assert holes.tolist() == [heads == 0 for heads in hybrid.spec.heads] and holes.any()
    assert not np.isnan(atlas.to_table()["value"]).any()


def test_contrast_finds_the_head_that_only_the_forgotten_task_needs(tmp_path):
    """One head copies the answer, one writes the next one: each task needs one of them."""
    model = planted_model("copy", "mistake", "nothing")
    for name, shift in (("same", 0), ("next", 1)):
        with (tmp_path / f"{name}.jsonl").open("w") as file:
            for n in range(8):
                for k in range(6):
                    line = {"prompt": " ".join([f"w{n}"] * (k + 1)) + " w8", "target": f" w{(n + shift) % 8}"}
                    file.write(json.dumps(line) + "\n")
    same, other = str(tmp_path / "same.jsonl"), str(tmp_path / "next.jsonl")
    for retain, forget, roles in ((same, other, (1, 0)), (other, same, (0, 1))):
        atlas = contrast_heads(model, retain, forget, preset="paper", updates=150, batch=8, seeds=3)
        (name,) = [task for method, task in atlas.runs if method == "contrast"]
        assert name in ("same without next", "next without same")
        base = atlas.run(name, "contrast").baseline
        for seed in range(3):
            fit = atlas.fit(name, seed, "retain", "contrast")
            assert (fit.gates[0, :2] > 0.5).tolist() == [bool(role) for role in roles]
            assert fit.gates[0, 2] > 0.5  # a gate that need not be low is pushed up
            assert fit.facts["retain_accuracy"] == 1 and fit.facts["forget_accuracy"] == 0
            assert fit.facts["forget_nll"] > base["forget_nll"] + 1


@pytest.mark.slow
def test_smollm2(tmp_path):
    """Real weights, real tasks, bfloat16 where the machine has it."""
    model = load_model("smollm2", dtype="fast", check=False)
    settings = {"updates": 2, "batch": 2, "seeds": 1}
    atlas = map_heads(model, ["syntax", "aba"], out=tmp_path / "atlas", **settings)
    assert atlas.tasks == ["syntax", "aba"]
    base = atlas.run("syntax").baseline
    assert base["nll"] < 1 and base["nll"] < base["chance_nll"] - 1 and base["accuracy"] > 0.2
    assert atlas.run("aba").baseline["nll"] < atlas.run("aba").baseline["chance_nll"] - 1
    assert atlas.gates("syntax").shape == (1, 3, 30, 9)


def test_a_refused_request_leaves_nothing_behind(model, task, tmp_path):
    """One task cannot be added: the other is not entered either, and may be asked for otherwise."""
    other = write_task(tmp_path / "new.jsonl", seed=1)
    small_run(model, task, tmp_path / "atlas")
    with pytest.raises(AtlasError, match=r"has 'words' already, made with batch 4 instead of 5"):
        map_heads(
            model, [str(other), str(task)], out=tmp_path / "atlas", resume=True, **{**SMALL, "batch": 5}
        )
    assert open_atlas(tmp_path / "atlas").tasks == ["words"]
    assert small_run(model, other, tmp_path / "atlas", resume=True).tasks == ["words", "new"]


def test_a_run_of_which_nothing_came_can_be_asked_for_otherwise(model, task, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        small_run(model, task, tmp_path / "atlas", progress=Watch(lambda event: isinstance(event, Update)))
    atlas = small_run(model, task, tmp_path / "atlas", resume=True, batch=3)
    assert atlas.run("words").settings["resolved"]["batch"] == 3

    with pytest.raises(KeyboardInterrupt):
        small_run(model, task, tmp_path / "begun", progress=Watch(second_update))
    with pytest.raises(AtlasError, match="batch 4 instead of 3"):  # work in progress is not thrown away
        small_run(model, task, tmp_path / "begun", resume=True, batch=3)


def test_work_of_a_task_with_a_longer_name_is_not_ones_own(model, task, tmp_path):
    with pytest.raises(KeyboardInterrupt):  # entered, nothing came
        small_run(model, task, tmp_path / "atlas", progress=Watch(lambda event: isinstance(event, Update)))
    longer = write_task(tmp_path / "words-more.jsonl", seed=1)
    with pytest.raises(KeyboardInterrupt):  # begun
        small_run(model, longer, tmp_path / "atlas", resume=True, progress=Watch(second_update))
    assert small_run(model, task, tmp_path / "atlas", resume=True, batch=3).seeds("words") == [0, 1]


def test_what_was_made_earlier_keeps_its_story(model, task, tmp_path, monkeypatch):
    small_run(model, task, tmp_path / "atlas", seeds=2)
    monkeypatch.setattr(sys.modules["headatlas.run.prepare"], "version", lambda name: "99")
    atlas = small_run(model, task, tmp_path / "atlas", resume=True, seeds=1)
    assert atlas.run("words").settings["resolved"]["seeds"] == 2
    assert atlas.run("words").made_with["torch"] != "99"
    atlas = small_run(model, task, tmp_path / "atlas", resume=True, seeds=3)
    assert atlas.run("words").settings["resolved"]["seeds"] == 3
    made = [atlas.fit("words", seed, "retain").facts["made_with"]["torch"] for seed in range(3)]
    assert made[:2] == [atlas.run("words").made_with["torch"]] * 2 and made[2] == "99"


def test_a_sample_is_said_to_be_one(model, tmp_path):
    write_task(tmp_path / "words.jsonl", records=90)
    description = {"name": "few", "source": {"file": "words.jsonl"}, "rows": 50}
    description |= {"prompt": "{prompt}", "target": "{target}"}
    (tmp_path / "few.yaml").write_text(json.dumps(description))
    notes = Watch()
    small_run(model, tmp_path / "few.yaml", None, updates=1, progress=notes)
    assert "few: a fair sample of 50 of its 90 records" in notes.notes


def test_groups_of_unequal_size_are_noted(model, tmp_path):
    """Three groups of 4 records and one of 60: whichever is held out, it is far from the share asked for."""
    write_task(tmp_path / "words.jsonl", records=72)
    records = [json.loads(line) for line in (tmp_path / "words.jsonl").read_text().splitlines()]
    for number, record in enumerate(records):
        record["kind"] = f"small {number // 4}" if number < 12 else "large"
    (tmp_path / "grouped.jsonl").write_text("\n".join(map(json.dumps, records)))
    description = {"name": "grouped", "source": {"file": "grouped.jsonl"}, "group": "kind", "test": 0.3}
    description |= {"prompt": "{prompt}", "target": "{target}"}
    (tmp_path / "grouped.yaml").write_text(json.dumps(description))
    notes = Watch()
    small_run(model, tmp_path / "grouped.yaml", None, updates=1, progress=notes)
    (note,) = [note for note in notes.notes if "they differ in size" in note]
    assert "of 72 rows are held out, not 30%" in note


def test_added_seeds_say_that_they_are_fitted_apart(model, task, tmp_path):
    """Seeds of a block that are fitted in two runs are rounded differently; the atlas and a note say so."""
    notes = Watch()
    map_heads(model, task, out=tmp_path / "atlas", progress=notes, **SMALL)
    assert not any("adding seed" in note for note in notes.notes)
    atlas = map_heads(
        model, task, out=tmp_path / "atlas", resume=True, progress=notes, **{**SMALL, "seeds": 3}
    )
    assert [note for note in notes.notes if "adding seed 2 to a block that has seeds 0, 1 already" in note]
    together = [atlas.fit(task.stem, seed, "remove").facts["seeds_together"] for seed in range(3)]
    assert together == [[0, 1], [0, 1], [2]]


def test_seeds_added_to_an_interrupted_block_say_that_they_are_fitted_apart(model, task, tmp_path):
    """Seeds 0 to 2 are interrupted in the free stage and go on alone; 3 and 4 are added to their block."""

    out = tmp_path / "atlas"
    with pytest.raises(KeyboardInterrupt):
        small_run(model, task, out, seeds=3, progress=Watch(second_update))
    notes = Watch()
    atlas = small_run(model, task, out, seeds=5, resume=True, progress=notes)
    assert [note for note in notes.notes if "adding seeds 3, 4 to a block that has seeds 0, 1, 2" in note]
    together = {
        fit: [tuple(atlas.fit("words", seed, fit).facts["seeds_together"]) for seed in range(5)]
        for fit in ("free", "retain")
    }
    assert together == {"free": [(0, 1, 2)] * 3 + [(3, 4)] * 2, "retain": [(0, 1, 2, 3, 4)] * 5}
    assert seed_blocks_text(atlas, "words") == "seeds fitted in 2 blocks: (0–2), (3, 4) (free fits)"


def test_an_interrupted_block_that_goes_on_as_it_was_says_nothing(model, task, tmp_path):
    for at, title in (("free", "free"), ("pressed", "retain + remove")):
        notes = Watch()
        stop = Watch(lambda event, title=title: second_update(event) and event.what.startswith(title))
        with pytest.raises(KeyboardInterrupt):
            small_run(model, task, tmp_path / at, seeds=3, progress=stop)
        atlas = small_run(model, task, tmp_path / at, seeds=3, resume=True, progress=notes)
        assert not any("adding seed" in note for note in notes.notes)
        assert seed_blocks_text(atlas, "words") == ""


def test_seeds_added_to_a_contrast_say_that_they_are_fitted_apart(model, tmp_path):
    keep, lose = (str(write_task(tmp_path / f"{name}.jsonl", seed=seed)) for seed, name in enumerate("ab"))
    asked = {"updates": 2, "batch": 4, "out": tmp_path / "atlas"}
    notes = Watch()
    contrast_heads(model, keep, lose, seeds=2, progress=notes, **asked)
    assert not any("adding seed" in note for note in notes.notes)
    atlas = contrast_heads(model, keep, lose, seeds=3, resume=True, progress=notes, **asked)
    said = "a without b: adding seed 2 to a block that has seeds 0, 1 already"
    assert [note for note in notes.notes if note.startswith(said)]
    text = "seeds fitted in 2 blocks: (0, 1), (2)"
    assert seed_blocks_text(atlas, "a without b", "contrast") == text


def test_contrasts_measure_no_figures_that_nobody_sees(model, tmp_path):
    """Groups that were fitted on have held-out items too; a contrast shows items of new groups alone."""
    tasks = []
    for number, name in enumerate("ab"):
        path = write_task(tmp_path / f"{name}.jsonl", 80, seed=number)
        records = [json.loads(line) for line in path.read_text().splitlines()]
        lines = [json.dumps({**record, "kind": f"k{n % 8}"}) for n, record in enumerate(records)]
        path.write_text("\n".join(lines))
        tasks.append(f"{path}?group=kind")
    assert load_task(tasks[0]).items().known
    atlas = contrast_heads(model, *tasks, seeds=1, updates=2, batch=4)
    baseline = atlas.run("a without b", "contrast").baseline
    facts = atlas.fit("a without b", 0, "retain", "contrast").facts
    assert baseline["retain_nll"] > 0 and facts["forget_nll"] > 0
    assert not [key for key in {**baseline, **facts} if "known" in key]


def test_contrast_fits_seeds_in_blocks_of_five(tmp_path):
    keep, lose = (str(write_task(tmp_path / f"{name}.jsonl", seed=seed)) for seed, name in enumerate("ab"))
    (steps,) = ContrastRequest.of("smollm2", keep, lose, seeds=7).plan().stages
    assert [step.seeds for step in steps] == [(0, 1, 2, 3, 4), (5, 6)]
    atlas = contrast_heads(small_model(), keep, lose, seeds=7, updates=2, batch=4)
    assert atlas.seeds("a without b", "contrast") == list(range(7))
    for step in steps:
        for seed in step.seeds:
            fit = atlas.fit("a without b", seed, "retain", "contrast")
            assert fit.facts["seeds_together"] == list(step.seeds)
    assert {"retain_gain", "forget_gain"} <= set(atlas.run("a without b", "contrast").baseline)
