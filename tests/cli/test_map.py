"""`headatlas map`, `contrast`, `plot`, `table`, `list tasks`, as they are typed."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys

import pandas as pd
import pytest

from headatlas import open_atlas
from headatlas.export import FORMATS
from headatlas.figure import FIGURES
from headatlas.method.method import METHODS
from support.cli import assert_refused, invoke
from support.small_run import write_task

SMALL = ("--seeds", 2, "--updates", 3, "--batch", 4, "--dtype", "float32")


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("tasks") / "words.jsonl")


@pytest.fixture(scope="module")
def atlas(tiny, task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlases") / "atlas"
    result = invoke("map", tiny, "--task", task, *SMALL, "--out", folder)
    assert result.returncode == 0, result.stderr
    return folder, result


def test_what_map_says(atlas):
    folder, result = atlas
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        "tiny: 12 heads, float32 on cpu; preset quick: objective bounded, 3 + 3 updates"
    )
    text = result.stdout
    assert re.search(r"Always +\d+\.\d / +\d+\.\d %  of heads facilitating / interfering in every seed", text)
    assert re.search(r"Any +\d+\.\d / +\d+\.\d %", text)
    helping = open_atlas(folder).summary("words").per_seed["facilitating"]
    assert f"per seed {100 * helping.mean:.1f} % facilitating{helping.brackets('.1f', 100)}" in text
    assert re.search(r"\d+\.\d % anomalies, \d+\.\d % unclear", text)
    warning = text[text.index("Warning: these results are doubtful") :]  # once, after all tasks
    assert re.search(r"words: \d+ distinct held-out items?: too few for small differences", warning)
    assert "words: 3 + 3 updates, fewer than any preset has (25 + 50)" in warning
    assert "words: 2 seeds, fewer than any preset has (3)" in warning
    assert "words: the model is not clearly better than chance here" in warning
    assert re.search(r"seeds +correlate -?\d\.\d\d in", text)
    assert re.search(r"held out NLL \d\.\d\d ungated, \d\.\d\d with G\+, \d\.\d\d with G−\n", text)
    assert re.search(r"accuracy (\d\.\d\d,? ){3}on whole targets\n", text)
    assert re.search(r"accuracy (\d\.\d\d,? ){3}on their tokens\n", text)
    assert "draws the map" in text
    assert "words: free, 2 fits: 3 updates, loss" in result.stderr
    # the weights are random
    assert "words: the model is not clearly better than chance here: baseline NLL" in result.stderr
    assert "\x1b[" not in result.stdout


def test_json(atlas, tiny, task):
    folder, _ = atlas
    result = invoke("map", tiny, "--task", task, *SMALL, "--out", folder, "--resume", "--json")
    assert result.returncode == 0, result.stderr
    (found,) = json.loads(result.stdout)["tasks"]
    assert found["task"] == "words" and found["seeds"] == 2 and found["threshold"] == 0.5
    assert set(found["nll"]) == {"baseline", "retain", "remove"}
    assert 0 <= found["always"]["facilitating"] <= found["any"]["facilitating"] <= 1


def on_a_terminal(columns, *arguments):
    """What is shown on a real pseudo-terminal, without its control codes."""
    parent, child = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "headatlas", *map(str, arguments)],
        stdout=child,
        stderr=child,
        env=os.environ | {"COLUMNS": str(columns), "TERM": "xterm-256color", "OMP_NUM_THREADS": "2"},
    ) as process:
        os.close(child)
        shown = b""
        while select.select([parent], [], [], 120)[0]:
            try:
                piece = os.read(parent, 65536)
            except OSError:
                break
            shown += piece
        assert process.wait(60) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


@pytest.mark.process
def test_a_live_bar_on_a_terminal(tiny, task, tmp_path):
    """The bar shows updates, loss, rate and time left."""
    text = on_a_terminal(
        120, "map", tiny, "--task", task, *SMALL, "--updates", 30, "--out", tmp_path / "atlas"
    )
    assert re.search(r"words: retain \+ remove, 4 fits .*30/30 +loss \d\.\d+ +[\d,]+ tokens/s", text)
    assert "left" in text


@pytest.mark.process
def test_a_bar_on_a_narrow_terminal_keeps_what_matters(tiny, task, tmp_path):
    other = write_task(tmp_path / "others.jsonl", seed=4)
    tasks = ("--task", task, "--task", other)
    text = on_a_terminal(80, "map", tiny, *tasks, *SMALL, "--updates", 30, "--out", tmp_path / "atlas")
    assert "tokens/s" not in text
    bars = [
        line.strip() for line in re.split(r"[\r\n]+", text) if "2/2 others: retain + remove, 4 fits" in line
    ]
    assert bars and max(map(len, bars)) <= 80
    assert re.search(r"30/30 loss \d\.\d+ left 0:00:00", bars[-1])


def test_plot(atlas, tmp_path):
    folder, _ = atlas
    result = invoke("plot", folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(folder / "agreement.png")
    assert (folder / "agreement.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["agreement", "score", "trajectories", "distributions", "profile"])
def test_every_kind_of_plot(atlas, tmp_path, kind):
    folder, _ = atlas
    for form, start in (("pdf", b"%PDF"), ("svg", b"<?xml")):
        path = tmp_path / f"x.{form}"
        colours = () if kind == "trajectories" else ("--colours", "safe")
        result = invoke("plot", folder, "--kind", kind, "--out", path, *colours, "--label", "(b)")
        assert result.returncode == 0, result.stderr
        assert path.read_bytes().startswith(start)


def test_wrong_plots(atlas, tmp_path):
    folder, _ = atlas
    assert_refused(invoke("plot", folder, "--kind", "agrement"), "did you mean 'agreement'")
    assert_refused(invoke("plot", folder, "--kind", "score", "--score", "beauty"), "facilitation")
    assert_refused(invoke("plot", folder, "--format", "bmp"), "png")
    for kind in ("agreement", "stability"):
        for value in ("-3", "nan", "0", "1.5", "inf"):
            wrong = invoke("plot", folder, "--kind", kind, "--threshold", value, "--out", tmp_path / "x.png")
            assert_refused(wrong, "threshold is", "allowed are numbers above 0 and up to 1")
    for kind in ("score", "effects", "trajectories", "imported"):
        for value in ("0", "0.5", "nan"):
            wrong = invoke("plot", folder, "--kind", kind, "--threshold", value, "--out", tmp_path / "x.png")
            assert_refused(wrong, "--threshold is for --kind agreement, stability, categories")
    assert not (tmp_path / "x.png").exists()
    assert_refused(invoke("plot", folder, "--task", "sums"), "words")
    assert_refused(invoke("plot", folder, "--colours", "loud"), "safe")
    assert_refused(invoke("plot", tmp_path), "is not an atlas")
    assert_refused(invoke("plot", folder, "--score", "interference"), "--score is for --kind score")
    refused = invoke("plot", folder, "--kind", "effects", "--colours", "safe")
    assert_refused(refused, "effects has no use for it")
    assert_refused(invoke("plot", folder, "--format", "pdf", "--out", tmp_path / "x.png"), "does not fit")


def test_table(atlas, tmp_path):
    folder, _ = atlas
    printed = invoke("table", folder).stdout.splitlines()
    assert printed[0] == "method,task,seed,fit,relation,direction,layer,head,value"
    assert len(printed) == 1 + 2 * 3 * 12
    assert invoke("table", folder, "--out", tmp_path / "t.parquet").returncode == 0
    frame = pd.read_parquet(tmp_path / "t.parquet")
    assert len(frame) == 72 and frame["value"].between(0, 1).all()
    assert_refused(invoke("table", folder, "--out", tmp_path / "t.xlsx"), ".csv or .parquet")


def test_contrast(tiny, task, tmp_path):
    other = write_task(tmp_path / "others.jsonl", seed=4)
    arguments = ("contrast", tiny, "--retain", task, "--forget", other, *SMALL, "--out", tmp_path / "atlas")
    result = invoke(*arguments)
    assert result.returncode == 0, result.stderr
    assert "ungated" in result.stdout and "seed 1" in result.stdout and "heads shut" in result.stdout
    found = json.loads(invoke(*arguments, "--resume", "--json").stdout)
    assert found["contrast"] == "words without others" and set(found["gated"]) == {"0", "1"}
    assert set(found["ungated"]) == {
        f"{side}_{name}"
        for side in ("retain", "forget")
        for name in ("nll", "accuracy", "token_accuracy", "rows")
    }
    assert_refused(invoke("plot", tmp_path / "atlas"), "no task to draw", "--kind contrast")
    drawn = invoke("plot", tmp_path / "atlas", "--kind", "contrast")
    assert drawn.returncode == 0 and (tmp_path / "atlas" / "contrast.png").exists()
    same = invoke("contrast", "no/model", "--retain", task, "--forget", task, "--out", tmp_path / "x")
    assert_refused(same, "retain and forget are both 'words'")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"question": "a", "answer": "b"}\n' * 30, ["no column 'prompt'", "question, answer"]),
        ('{"prompt": "w1", "target": ""}\n' * 30, ["empty target"]),
        (
            "".join(f'{{"prompt": "w{n}", "target": " w1"}}\n' for n in range(3)),
            ["fewer than a batch of 12"],
        ),
    ],
)
def test_bad_tasks(tiny, tmp_path, content, words):
    (tmp_path / "bad.jsonl").write_text(content)
    assert_refused(invoke("map", tiny, "--task", tmp_path / "bad.jsonl", "--out", tmp_path / "x"), *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"question": "a"}\n', ["no column 'prompt'"]),
        (
            '{"prompt": "a", "target": " b"}\n{"prompt": "a", "target": " "}\n',
            ["record 2 has an empty target"],
        ),
        ("not json\n", ["line 1 is not JSON"]),
    ],
)
def test_what_needs_no_model_is_said_before_one_is_looked_for(tmp_path, content, words):
    (tmp_path / "bad.jsonl").write_text(content)
    task = tmp_path / "bad.jsonl"
    assert_refused(invoke("map", "no/model", "--task", task, "--out", tmp_path / "x"), *words)


def test_a_place_that_cannot_be_an_atlas_is_refused_before_a_model_is_looked_for(tmp_path, task):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    for out in (file, file / "atlas"):
        assert_refused(invoke("map", "no/model", "--task", task, "--out", out), "is a file", "--out")
    assert file.read_text() == "mine"


def test_a_changed_task_is_named_in_words(atlas, tiny, tmp_path):
    folder, _ = atlas
    changed = write_task(tmp_path / "words.jsonl", seed=8)
    result = invoke("map", tiny, "--task", changed, *SMALL, "--out", folder, "--resume")
    assert_refused(result, "other items", "has changed since") and "instead of" not in result.stderr


def test_no_row_fits_and_too_few_rows(tiny, task, tmp_path):
    map_ = ("map", tiny, "--task", task, "--out", tmp_path / "x", "--dtype", "float32")
    assert_refused(invoke(*map_, "--max-tokens", 2), "no row fits in 2 tokens", "--max-tokens")
    assert_refused(invoke(*map_, "--batch", 500), "fewer than a batch of 500", "--batch")
    assert not (tmp_path / "x").exists()  # a wrong request leaves nothing behind


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "fast"], ["no preset named 'fast'", "paper, quick"]),
        (["--objective", "free"], ["no objective named 'free'"]),
        (["--seeds", "0"], ["seeds is 0; allowed are 1 to 1,000"]),
        (["--updates", "0"], ["updates is 0; allowed are 1 to"]),
        (["--batch", "-3"], ["batch is -3; allowed are 1 to"]),
        (["--task", "sintax"], ["did you mean 'syntax'"]),
        (["--task", "syntax"], ["two tasks are named 'syntax'"]),
        (["--max-tokens", "1"], ["max_tokens is 1"]),
        (["--method", "magic"], ["no method named 'magic'", "gating"]),
        (["--items", "5"], ["'items' is not an option of gating; it has preset, seeds,"]),
        (["--option", "speed=3"], ["'speed' is not an option of gating"]),
        (["--option", "k=3", "--option", "k=4"], ["--option k is given more than once"]),
        (["--option", "speed"], ["--option 'speed' is not NAME=VALUE"]),
    ],
)
def test_wrong_requests_are_known_before_a_model_is_loaded(tmp_path, arguments, words):
    result = invoke("map", "no/such-model", "--task", "syntax", *arguments, "--out", tmp_path / "x")
    assert_refused(result, *words)
    assert not (tmp_path / "x").exists()


def test_list_what_is_registered():
    for what, names in (("methods", METHODS), ("figures", FIGURES), ("formats", FORMATS)):
        shown, rows = invoke("list", what), json.loads(invoke("list", what, "--json").stdout)
        assert [row["name"] for row in rows] == list(names)
        for row in rows:
            assert row["name"] in shown.stdout and row["about"] and row["options"]


@pytest.mark.slow
def test_list_tasks():
    result = invoke("list", "tasks")
    assert result.returncode == 0
    for name in ("math", "syntax", "aba", "paper/commonsense", "blimp/<paradigm>"):
        assert name in result.stdout
    rows = json.loads(invoke("list", "tasks", "--json").stdout)
    assert len(rows) == 9 and all(row["licence"] for row in rows)


def test_a_table_is_printed_or_written(tmp_path):
    """Both at once would leave one of them undone."""
    result = invoke("table", tmp_path, "--json", "--out", tmp_path / "t.csv")
    assert_refused(result, "give one of them")


@pytest.mark.parametrize("width", [20, 40, 55, 79, 120])
def test_a_card_names_tasks_and_roles_at_every_width(atlas, width):
    folder, _ = atlas
    card = invoke("head", folder, "L0H0", COLUMNS=str(width)).stdout
    assert "words" in card and "roles" in card and "G+" in card
    assert re.search(r"\d (facilitating|interfering|irrelevant|anomaly|unclear)", card.replace("\n", " "))
    assert len(re.findall(r"\d\.\d\d / \d\.\d\d / \d\.\d\d", card)) == 2


def test_a_metric_is_an_option(tiny, tmp_path):
    """`--option metric=…` reaches the method, and effects are shown in its unit."""
    task = tmp_path / "foils.jsonl"
    lines = [f'{{"prompt": "w{n} w{n + 1}", "target": " w1", "foil": " w2"}}\n' for n in range(3, 40)]
    task.write_text("".join(lines))
    out = ("--method", "ablate-zero", "--option", "metric=logit_diff", "--out", tmp_path / "atlas")
    shown = invoke("map", tiny, "--task", task, "--items", "4", *out).stdout
    assert "mean logit difference" in shown and "effects in logits" in shown
