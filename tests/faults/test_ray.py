"""Many machines: the same numbers as here, whoever is killed. A cluster of two nodes, real processes."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys

import pytest

from headatlas import RequestError
from headatlas.run import require_ray
from support.cli import assert_refused, invoke

WORKERS, DRIVERS = 3, 1


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("ray")
    result = subprocess.run(
        [sys.executable, "-m", "support.ray_runs", str(root), str(WORKERS), str(DRIVERS), "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TOKENIZERS_PARALLELISM": "false"},
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.cluster
def test_killed_workers_cost_nothing_but_time(found):
    killed = found["workers"]
    assert killed["same"] and all(killed["same"])
    assert killed["lost"] >= 1 and killed["inside"] >= 1  # some were at a fit, and units went on elsewhere


@pytest.mark.cluster
def test_killed_drivers_go_on(found):
    killed = found["drivers"]
    assert killed["killed"] == DRIVERS and killed["same"] and all(killed["same"])
    assert killed["inside"] >= 1  # something had been handed over
    assert killed["left"] == []


@pytest.mark.cluster
def test_a_node_that_goes_away_costs_nothing_but_time(found):
    assert found["node"] == {"cut": True, "lost": 1, "same": True}


@pytest.mark.cluster
def test_all_that_can_be_handed_out_is_the_same(found):
    """Gates, effects, two halves, curves, relations by weights and in texts, salient tokens, heads off;
    handed over at a URL, of which nothing is left."""
    others = found["others"]
    assert (others["differ"], others["runs"], others["exchange"]) == ([], 26, False)


@pytest.mark.cluster
def test_a_worker_keeps_its_model_and_its_gpu(found):
    """Two GPUs, two processes, whatever the number of steps: none is started for a step alone."""
    assert found["others"]["processes"] <= 2 and found["others"]["steps"] >= 8


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no weights", "ModelSourceError: the folder"),
        ("other settings", "made with free updates 5 instead of 7"),
        ("too many GPUs", "a worker takes 2 GPUs, and no machine of the cluster has more than 1"),
        ("a loaded model", "workers load the model themselves"),
        ("an odd exchange", "cannot be used to hand results over"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(found, case, words):
    said = found["refused"][case]
    assert words in said and "headatlas-" not in said  # no folder that nobody knows


def test_without_ray(monkeypatch):
    plain = builtins.__import__

    def missing(name, *rest):
        if name == "ray":
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(RequestError, match=r"pip install 'headatlas\[ray\]'"):
        require_ray()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--executor", "rya"], "did you mean 'ray'?"),
        (["--address", "auto"], "--address is for --executor ray."),
        pytest.param(
            ["--executor", "ray", "--address", "127.0.0.1:1"],
            "no Ray cluster at 127.0.0.1:1",
            marks=pytest.mark.cluster,
        ),
    ],
)
def test_wrong_options(options, words, tmp_path):
    (tmp_path / "task.jsonl").write_text('{"prompt": "a", "target": " b"}\n' * 3)
    said = invoke("map", "smollm2", "--task", tmp_path / "task.jsonl", "--out", tmp_path / "a", *options)
    assert_refused(said, words)
    assert not (tmp_path / "a").exists()
