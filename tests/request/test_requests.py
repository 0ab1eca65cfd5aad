"""Requests are values: they survive JSON and pickle, and building one needs no torch."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest

from headatlas import AtlasError, RequestError, TaskError, UnknownNameError
from headatlas.atlas import open_atlas, unpack_atlas
from headatlas.core import ModelRef
from headatlas.export import ExportRequest
from headatlas.request import ContrastRequest, MapRequest, RelationsRequest, ValidateRequest
from headatlas.request.origin import recorded_model, recorded_task, task_from_json

GALLERY = Path(__file__).parents[2] / "docs" / "gallery" / "atlas.zip"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with an atlas of SmolLM2, two task files and a list of pairs."""
    from support.small_run import write_task  # brings torch

    root = tmp_path_factory.mktemp("requests")
    unpack_atlas(GALLERY, root / "atlas")
    for seed, name in enumerate(("words", "others")):
        write_task(root / f"{name}.jsonl", seed=seed)
    (root / "next.csv").write_text("source,target\n" + "".join(f"w{n},w{n + 1}\n" for n in range(40)))
    return root


def map_gates(root):
    tasks = [root / "words.jsonl", "syntax", "relation:past-tense"]
    load = {"revision": "abc", "device": "cpu"}
    return MapRequest.of("someone/model", tasks, seeds=np.int64(2), updates=5, max_tokens=64, load=load)


def map_effects(root):
    return MapRequest.of("smollm2", root / "words.jsonl", "ablate", items=7, checkpoint_seconds=0.5)


def contrast(root):
    return ContrastRequest.of("smollm2", root / "words.jsonl", root / "others.jsonl", preset="paper")


def relations(root):
    given = [root / "next.csv", "antonym", "country-capital"]
    return RelationsRequest.of(
        "smollm2", given, k=3, dynamic=True, causal=["country-capital"], norms="folded"
    )


def validate(root):
    request = ValidateRequest.of(root / "atlas", tasks=["syntax"], methods=["mediate"], items=5)
    return replace(request, left_out=("words",))


def export(root):
    return ExportRequest.of(root / "atlas", "math", root / "new", gates="retain", hard=np.float64(0.5))


REQUESTS = [map_gates, map_effects, contrast, relations, validate, export]
each_request = pytest.mark.parametrize("build", REQUESTS, ids=[build.__name__ for build in REQUESTS])


@each_request
def test_json_and_pickle_give_an_equal_request(root, build):
    request = build(root)
    data = json.loads(json.dumps(request.to_json()))
    again = type(request).from_json(data)
    assert again == request and again.to_json() == data == request.to_json()
    assert pickle.loads(pickle.dumps(request)) == request
    with pytest.raises(FrozenInstanceError):
        request.model = ModelRef("other")


def tasks_of(request):
    """Whatever a kind of request calls them."""
    named = [getattr(request, name) for name in ("definition", "retain", "forget") if hasattr(request, name)]
    return [*getattr(request, "tasks", ()), *named]


@each_request
def test_a_request_does_not_depend_on_the_working_directory(root, build, tmp_path, monkeypatch):
    """A worker reads the same files, wherever it is started."""
    monkeypatch.chdir(root)
    request = build(Path())
    monkeypatch.chdir(tmp_path)
    for task in tasks_of(request):
        task.require_readable()


@each_request
def test_permission_to_run_code_is_not_stored(root, build):
    request = build(root)
    trusting = replace(request, model=replace(request.model, trust_remote_code=True))
    if isinstance(trusting, MapRequest):
        trusting = replace(trusting, tasks=tuple(replace(task, trust_code=True) for task in trusting.tasks))
    assert "trust" not in json.dumps(trusting.to_json())
    data = trusting.to_json()
    data["model"]["trust_remote_code"] = True
    for task in data.get("tasks", ()):
        task["trust_code"] = True
    assert type(request).from_json(data) == request


BUILD = """
import sys
from pathlib import Path
from request import test_requests
root = Path(sys.argv[1])
for build in test_requests.REQUESTS:
    build(root)
    print(build.__name__, "torch" in sys.modules)
"""


def test_a_request_is_built_without_torch(root):
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(root)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert built.returncode == 0, built.stderr
    assert built.stdout.splitlines() == [f"{build.__name__} False" for build in REQUESTS]


def test_what_is_wrong_is_known_when_a_request_is_built(root, tmp_path):
    task = root / "words.jsonl"
    with pytest.raises(UnknownNameError, match="did you mean 'syntax'"):
        MapRequest.of("smollm2", "sintax")
    with pytest.raises(TaskError, match="does not exist"):
        MapRequest.of("smollm2", tmp_path / "none.jsonl")
    with pytest.raises(UnknownNameError, match="no method named 'gatting'"):
        MapRequest.of("smollm2", task, "gatting")
    with pytest.raises(RequestError, match="'itmes' is not an option of ablate-zero; it has seeds, items"):
        MapRequest.of("smollm2", task, "ablate", itmes=3)
    with pytest.raises(UnknownNameError, match="option of a model that is given by name"):
        MapRequest.of("smollm2", task, load={"dtyp": "float32"})
    with pytest.raises(RequestError, match="seeds is 0"):
        ContrastRequest.of("smollm2", task, root / "others.jsonl", seeds=0)
    with pytest.raises(UnknownNameError, match="no gates named 'allways'"):
        ExportRequest.of(root / "atlas", "math", tmp_path / "x", gates="allways")
    with pytest.raises(RequestError, match="'colour' is not an option of checkpoint"):
        ExportRequest.of(root / "atlas", "math", tmp_path / "x", colour="red")
    with pytest.raises(UnknownNameError, match="export format"):
        ExportRequest.of(root / "atlas", "math", tmp_path / "x", format="checkpiont")
    with pytest.raises(RequestError, match="several tasks; choose one with task=…"):
        ExportRequest.of(root / "atlas", None, tmp_path / "x", gates="retain")
    with pytest.raises(AtlasError, match="there is no folder"):
        ValidateRequest.of(tmp_path / "none")


def test_plans(root):
    """Blocks of five seeds; a step says which files it makes, and is done when they are there."""
    request = MapRequest.of("smollm2", [root / "words.jsonl", "syntax"], seeds=7)
    (stage,) = request.plan().stages
    assert [step.name for step in stage] == [
        f"{task}, seeds {seeds}" for task in ("words", "syntax") for seeds in ("0 to 4", "5 to 6")
    ]
    assert [len(step.makes) for step in stage] == [15, 6, 15, 6]
    assert request.only(["syntax"]).plan().stages[0] == stage[2:]
    (stage,) = MapRequest.of("smollm2", "syntax", "mediate", seeds=3).plan().stages
    assert [step.seeds for step in stage] == [(0,), (1,), (2,)]
    first, scores, last = relations(root).plan().stages
    assert [step.part for step in (*first, *scores, *last)] == ["source", "scores", "salient", "causal"]
    assert scores[1].makes and not scores[0].makes  # which relations can be scored in texts is not known yet


def test_an_atlas_of_an_earlier_version_remembers_built_in_tasks_and_its_name(root):
    atlas = open_atlas(root / "atlas")
    assert not atlas.run("syntax").request
    assert recorded_task(atlas.run("syntax")).name == "syntax"
    assert recorded_model(atlas) == ModelRef("smollm2", revision=atlas.spec.revision)


def test_the_name_of_a_task_in_an_atlas_opens_no_file(root, monkeypatch):
    """Only the request says where a task is; a path or a data set in place of its name is nothing."""
    monkeypatch.chdir(root)
    run = replace(open_atlas(root / "atlas").run("syntax"), request={})
    for name in ("words.jsonl", str(root / "words.jsonl"), "hub:evil/data", f"relation:{root / 'next.csv'}"):
        assert recorded_task(replace(run, task=name)) is None
        with pytest.raises(TaskError, match="no task is named"):
            task_from_json({"name": name})
    for name in ("syntax", "blimp/anaphor_gender_agreement", "relation:past-tense"):
        assert recorded_task(replace(run, task=name)).name == name == task_from_json({"name": name}).name
