"""An atlas remembers its model and its tasks: commands go on with it, and refuse what has changed."""

from __future__ import annotations

import json
import shutil
import zipfile
from contextlib import contextmanager

import pandas as pd
import pytest

from headatlas import import_table, open_atlas
from headatlas.atlas import Store
from headatlas.request import MapRequest, ValidateRequest
from headatlas.request.origin import recorded_model
from support.cli import assert_refused, invoke
from support.planted import word_tokenizer
from support.small_run import write_task
from support.tiny import build_tiny

FEW = ("--items", 4, "--draws", 2, "--retest", 0, "--method", "ablate")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a model, a task file and an atlas of both."""
    root = tmp_path_factory.mktemp("made")
    build_tiny("llama").save_pretrained(root / "model")
    word_tokenizer(100).save_pretrained(root / "model")
    write_task(root / "words.jsonl", 120)
    small = ("--seeds", 2, "--updates", 3, "--batch", 4, "--max-tokens", 7, "--dtype", "float32")
    result = invoke("map", root / "model", "-t", root / "words.jsonl", *small, "-o", root / "atlas")
    assert result.returncode == 0, result.stderr
    return root


@pytest.fixture
def atlas(made, tmp_path):
    return shutil.copytree(made / "atlas", tmp_path / "atlas")


@pytest.fixture
def commands(atlas, tmp_path):
    """What goes on with the atlas, without model and task."""
    return {
        "validate": ("validate", atlas, *FEW),
        "export": ("export", atlas, "--gates", "retain", "--items", 4, "--force", "--out", tmp_path / "new"),
        "map": ("map", "--resume", "-o", atlas, "--seeds", 3),
    }


each_command = pytest.mark.parametrize("command", ["validate", "export", "map"])


@contextmanager
def changed(path, change):
    """The file is changed for a while; without a change it is gone."""
    before = path.read_bytes()
    path.unlink()
    try:
        if change is not None:
            path.write_bytes(change)
        yield
    finally:
        path.write_bytes(before)


def test_commands_go_on_without_model_and_task(commands, atlas, tmp_path):
    for name, command in commands.items():
        result = invoke(*command)
        assert result.returncode == 0, (name, result.stderr)
    found = open_atlas(atlas)
    assert found.seeds("words") == [0, 1, 2] and found.validated == ["words"]
    settings = found.run("words").settings
    assert settings["given"] == {"preset": "quick", "seeds": 3, "updates": 3, "batch": 4, "max_tokens": 7}
    assert found.run("words").task_facts["max_tokens"] == 7
    assert (tmp_path / "new" / "config.json").exists()


def test_effects_go_on_with_their_items_and_their_limit(made, tmp_path):
    out = tmp_path / "effects"
    asked = ("--method", "ablate", "--items", 5, "--max-tokens", 7, "--dtype", "float32")
    assert invoke("map", made / "model", "-t", made / "words.jsonl", *asked, "-o", out).returncode == 0
    result = invoke("map", "--resume", "-o", out, "--method", "ablate", "--seeds", 2)
    assert result.returncode == 0, result.stderr
    found = open_atlas(out)
    assert found.effects("words", "ablate-zero").seed.values.tolist() == [0, 1]
    assert found.effect("words", "ablate-zero", 1).facts["items"] == 5


def test_effects_that_validate_made_go_on(atlas):
    """Validation measures them with the limit of the gates."""
    assert invoke("validate", atlas, *FEW).returncode == 0
    result = invoke("map", "--resume", "-o", atlas, "--method", "ablate", "--seeds", 2)
    assert result.returncode == 0, result.stderr
    assert open_atlas(atlas).effects("words", "ablate-zero").seed.values.tolist() == [0, 1]


def test_validation_stores_its_request(atlas):
    few = ("--items", 4, "--draws", 2, "--retest", 1, "--method", "ablate")
    assert invoke("validate", atlas, *few).returncode == 0
    found = open_atlas(atlas)
    requests = [run.request for (method, _), run in found.runs.items() if method != "gating"]
    requests.append(found.notes["validation-words"][1]["request"])
    assert len(requests) == 4 and all(request == requests[0] for request in requests)
    assert ValidateRequest.from_json(requests[0]).draws == 2


def test_a_checkpoint_states_its_request_without_local_paths(commands, atlas, tmp_path):
    assert invoke(*commands["export"]).returncode == 0
    facts = json.loads((tmp_path / "new" / "headatlas.json").read_text())
    assert facts["request"]["kind"] == "export" and facts["request"]["options"]["gates"] == "retain"
    assert facts["request"]["folder"] == "atlas" and facts["request"]["model"]["source"] == "model"
    texts = [path.read_text() for path in (tmp_path / "new").iterdir() if path.suffix in (".json", ".md")]
    assert len(texts) > 3 and not any(str(tmp_path.parent) in text for text in texts)


def test_a_packed_atlas_has_no_local_path(made, tmp_path):
    """Its task is a YAML file that names its data by an absolute path."""
    task = {
        "name": "mine",
        "source": {"file": str(made / "words.jsonl")},
        "prompt": "{prompt}",
        "target": "{target}",
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(task))
    out, small = tmp_path / "atlas", ("--seeds", 1, "--updates", 2, "--batch", 4, "--dtype", "float32")
    assert invoke("map", made / "model", "-t", tmp_path / "mine.yaml", *small, "-o", out).returncode == 0
    assert invoke("validate", out, *FEW).returncode == 0
    assert invoke("share", "pack", out, "--out", tmp_path / "atlas.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "atlas.zip") as packed:
        text = b"".join(packed.read(name) for name in packed.namelist())
    assert b"words.jsonl" in text and str(tmp_path.parent).encode() not in text
    assert invoke("share", "unpack", tmp_path / "atlas.zip", "--out", tmp_path / "new").returncode == 0
    before, after = (Store.open(folder).runs for folder in (out, tmp_path / "new"))
    assert [run.identity for run in before.values()] == [run.identity for run in after.values()]
    assert_refused(invoke("validate", tmp_path / "new", *FEW), "mine: its file is not known or has moved")
    assert open_atlas(tmp_path / "new").validated == ["mine"]


@pytest.fixture(scope="module")
def contrasted(made, tmp_path_factory):
    """An atlas of a contrast of two task files."""
    root = tmp_path_factory.mktemp("contrasted")
    write_task(root / "others.jsonl", 120, seed=4)
    tasks = ("--retain", made / "words.jsonl", "--forget", root / "others.jsonl")
    small = ("--seeds", 1, "--updates", 3, "--batch", 4, "--max-tokens", 7, "--dtype", "float32")
    assert invoke("contrast", made / "model", *tasks, *small, "-o", root / "atlas").returncode == 0
    return root


@pytest.mark.parametrize("given", [(), ("--retain", "words"), ("--forget", "others")])
def test_a_contrast_goes_on_without_model_and_tasks(contrasted, tmp_path, given):
    out = shutil.copytree(contrasted / "atlas", tmp_path / "atlas")
    result = invoke("contrast", "--resume", *given, "--seeds", 2, "-o", out)
    assert result.returncode == 0, result.stderr
    found = open_atlas(out)
    assert found.seeds("words without others", "contrast") == [0, 1]
    assert found.run("words without others", "contrast").settings["given"]["updates"] == 3


def test_a_contrast_that_cannot_go_on(contrasted, atlas):
    out = contrasted / "atlas"
    assert_refused(invoke("contrast", "--resume", "-o", atlas), "has no contrast")
    said = invoke("contrast", "--resume", "--retain", "others", "-o", out)
    assert_refused(said, "has no such contrast", "'words without others'")
    with changed(contrasted / "others.jsonl", None):
        said = invoke("contrast", "--resume", "-o", out)
        assert_refused(said, "others: its file is not known or has moved", "--retain or --forget")
    other = write_task(contrasted.parent / "again.jsonl", 120, seed=1).read_bytes()
    with changed(contrasted / "others.jsonl", other):
        assert_refused(invoke("contrast", "--resume", "-o", out), "words without others", "made with")


def test_arguments_of_a_request_are_not_read_from_an_atlas(atlas, commands):
    """`given` holds options of the method; nothing else in it counts."""
    data = json.loads((atlas / "atlas.json").read_text())
    data["runs"][0]["settings"]["given"] |= {"trust_code": True, "load": {"trust_remote_code": True}}
    (atlas / "atlas.json").write_text(json.dumps(data))
    request = MapRequest.resumed(atlas)
    assert not request.model.trust_remote_code and not request.tasks[0].trust_code
    result = invoke(*commands["map"])
    assert result.returncode == 0, result.stderr


def test_relations_go_on_with_their_limit_and_dtype(made, tmp_path):
    out, pairs = tmp_path / "relations", tmp_path / "next.csv"
    pairs.write_text("source,target\n" + "".join(f"w{n},w{n + 1}\n" for n in range(40)))
    plain = ("--source", "embedding", "--no-salient", "-o", out)
    asked = ("-r", pairs, "-k", 3, "--dtype", "bfloat16", *plain)
    assert invoke("relations", made / "model", *asked).returncode == 0
    pairs.unlink()  # its pairs are in the atlas
    result = invoke("relations", "--resume", *plain)
    assert result.returncode == 0, result.stderr
    found = open_atlas(out)
    assert len(found.relations) > 5 and found.relation_scores().sel(relation="next").k.item() == 3
    assert {run.settings["decides"]["dtype"] for run in found.runs.values()} == {"bfloat16"}


@each_command
def test_a_task_that_has_changed_is_refused(made, commands, command, tmp_path):
    other = write_task(tmp_path / "other.jsonl", 120, seed=1).read_bytes()
    with changed(made / "words.jsonl", other):
        assert_refused(invoke(*commands[command]), "words", "other items")
    assert not (tmp_path / "new").exists()


@each_command
def test_a_model_that_has_changed_is_refused(made, commands, command, tmp_path):
    build_tiny("llama", seed=1).save_pretrained(tmp_path / "other")
    weights = (tmp_path / "other" / "model.safetensors").read_bytes()
    with changed(made / "model" / "model.safetensors", weights):
        assert_refused(invoke(*commands[command]), "weights")
    assert not (tmp_path / "new").exists()


@each_command
def test_a_task_that_has_moved_is_asked_for(made, commands, command):
    with changed(made / "words.jsonl", None):
        assert_refused(invoke(*commands[command]), "words: its file is not known or has moved", "--task")
        assert_refused(invoke(*commands[command], "--task", "words"), "has moved", "--task")


@each_command
def test_a_model_that_has_moved_is_asked_for(made, commands, command, tmp_path):
    (made / "model").rename(tmp_path / "moved")
    try:
        how = "the argument MODEL" if command == "map" else "--model"
        said = invoke(*commands[command])
        assert_refused(said, "The atlas calls its model 'model'", f"{how} says where it is")
        option = () if command == "map" else ("--model",)
        name, *rest = commands[command]
        result = invoke(name, *option, tmp_path / "moved", *rest)
        assert result.returncode == 0, result.stderr
    finally:
        (tmp_path / "moved").rename(made / "model")


@each_command
def test_permission_to_run_code_is_never_read_from_an_atlas(commands, command, atlas, tmp_path):
    """Somebody sends an atlas whose task is code beside it."""
    ran = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(ran)!r}, 'w').close()\ndef rows(): return []\n")
    data = json.loads((atlas / "atlas.json").read_text())
    (run,) = data["runs"]
    run["request"]["model"]["trust_remote_code"] = True
    (task,) = run["request"]["tasks"]
    task["trust_code"] = True
    task["spec"] |= {"source": {"generator": "evil:rows"}}
    task["folder"] = str(tmp_path)
    (atlas / "atlas.json").write_text(json.dumps(data))
    assert not recorded_model(open_atlas(atlas)).trust_remote_code
    assert_refused(invoke(*commands[command]), "runs the code of 'evil:rows'", "--trust-task-code")
    assert not ran.exists()


MALFORMED = {
    "model": 5,
    "model source": {"model": {"source": [1]}},
    "tasks": {"tasks": 5},
    "a task": {"tasks": [5]},
    "a spec": {"tasks": [{"name": "words", "spec": 5, "folder": "/"}]},
    "a folder": {"tasks": [{"name": "words", "spec": {}, "folder": None}]},
    "relations": {"relations": 5},
    "a relation": {"relations": [{"name": "next", "pairs": [1]}]},
    "k": {"k": [1]},
    "max_tokens": {"max_tokens": "7"},
    "request": 5,
}


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.parametrize("command", ["validate", "export", "map", "contrast", "relations", "share"])
def test_a_malformed_request_is_one_sentence(atlas, commands, kind, command, tmp_path):
    """Somebody sends an atlas whose request has values of the wrong types."""
    commands["contrast"] = ("contrast", "--resume", "-o", atlas)
    commands["relations"] = ("relations", "--resume", "-o", atlas)
    commands["share"] = ("share", "pack", atlas, "--out", tmp_path / "atlas.zip")
    data = json.loads((atlas / "atlas.json").read_text())
    changed = MALFORMED[kind]
    data["runs"][0]["request"] = {**data["runs"][0]["request"], **changed} if isinstance(changed, dict) else 5
    if kind == "model":
        data["runs"][0]["request"] = {"model": 5}
    (atlas / "atlas.json").write_text(json.dumps(data))
    assert_refused(invoke(*commands[command]), "atlas.json is damaged: runs 0 request")


def test_an_imported_contrast_does_not_block_the_others(contrasted, tmp_path):
    out = shutil.copytree(contrasted / "atlas", tmp_path / "atlas")
    spec = open_atlas(out).spec
    lines = pd.DataFrame([{"layer": head.layer, "head": head.head} for head in spec])
    lines = lines.assign(task="p without q", method="contrast", fit="retain", score=0.5)
    import_table(lines, out, model=spec.name, resume=True)
    for given in ((), ("--retain", "words", "--forget", "others")):
        result = invoke("contrast", "--resume", *given, "-o", out)
        assert result.returncode == 0, result.stderr
    import_table(lines, tmp_path / "imported", model=spec.name)
    refused = invoke("contrast", "--resume", "-o", tmp_path / "imported")
    assert_refused(refused, "has no contrast (an imported one cannot be continued)")
