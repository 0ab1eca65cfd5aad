"""`headatlas check` and `headatlas list models`, as they are typed."""

from __future__ import annotations

import json
import sys

import pytest

from support.cli import assert_refused, headatlas, invoke
from support.tiny import build_tiny


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "hybrid"
    build_tiny("jamba").save_pretrained(path)
    return path


def test_the_table(hybrid):
    result = invoke("check", hybrid)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("hybrid  JambaForCausalLM, 4 heads in 3 layers, 2 layers without")
    (head,) = [line for line in lines if line.split()[:1] == ["layer"]]
    assert head.split() == [
        "layer",
        "heads",
        "kv",
        "dim",
        "gate",
        "point",
        "values",
        "gate",
        "pattern",
        "rebuild",
    ]
    rows = {line.split()[0]: line.split() for line in lines if line.strip()[:1].isdigit()}
    assert rows["0"][1:] == ["-", "-", "-", "no", "softmax", "attention"]
    assert rows["1"][1:5] == ["4", "2", "8", "self_attn.o_proj"]
    assert "self-check passed" in lines[-1]
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b[" not in result.stdout  # no colours into a pipe


@pytest.mark.parametrize("width", [20, 40, 50, 60])
def test_the_table_is_not_cut(hybrid, width):
    def table(columns):
        lines = invoke("check", hybrid, COLUMNS=str(columns)).stdout.splitlines()
        (first,) = [number for number, line in enumerate(lines) if line.split()[:2] == ["layer", "heads"]]
        return [line.split() for line in lines[first : first + 4]]

    assert table(width) == table(1000)


def test_colours_on_a_terminal(hybrid):
    result = invoke("check", hybrid, FORCE_COLOR="1", TERM="xterm-256color")
    assert "\x1b[32m" in result.stdout  # a green deviation


def test_names_are_shown_as_they_are(tmp_path):
    """Square brackets are mark-up for the table's library, not for us."""
    build_tiny("llama").save_pretrained(tmp_path / "tiny[red]")
    assert invoke("check", tmp_path / "tiny[red]").stdout.startswith("tiny[red]  LlamaForCausalLM")
    assert_refused(invoke("check", tmp_path / "no[red]such"), "no[red]such")


def test_json_without_numbers_that_json_lacks(tmp_path):
    inkling = tmp_path / "inkling"
    build_tiny("inkling_text").save_pretrained(inkling)
    tiny = build_tiny("llama")
    tiny.lm_head.weight.data[:] = float("nan")
    tiny.save_pretrained(tmp_path / "nan")
    result = invoke("check", tmp_path / "nan", "--json")
    assert result.returncode == 2

    def never(name):
        raise AssertionError(f"{name} is not JSON")

    assert result.stdout == "" and "not finite" in result.stderr
    result = invoke("check", inkling, "--json")
    assert json.loads(result.stdout, parse_constant=never)["check"]["passed"] is False


def test_json(hybrid):
    result = invoke("check", hybrid, "--json")
    found = json.loads(result.stdout)
    assert found["model"]["heads"] == [0, 4, 0] and found["check"]["passed"] is True
    assert found["check"]["layers"][0] is None
    assert found["check"]["layers"][1]["gate_point"] == "model.layers.1.self_attn.o_proj"
    assert found["check"]["layers"][1]["rebuild"] < 1e-5


@pytest.mark.slow
def test_smollm2():
    result = invoke("check", "smollm2", "--dtype", "bfloat16")
    assert result.returncode == 0, result.stderr
    assert "270 heads in 30 layers" in result.stdout and "bfloat16" in result.stdout
    assert sum("self_attn.o_proj" in line for line in result.stdout.splitlines()) == 30


def test_a_model_that_fails_the_proof_is_shown_and_refused(tmp_path):
    build_tiny("inkling_text").save_pretrained(tmp_path / "inkling")
    result = invoke("check", tmp_path / "inkling")
    assert result.returncode == 2
    assert "self-check failed" in result.stdout
    assert result.stderr.startswith("error: inkling fails the self-check: layer 0: ")
    found = json.loads(invoke("check", tmp_path / "inkling", "--json").stdout)
    assert found["model"] is None and found["check"]["passed"] is False and found["check"]["failures"]


def test_a_wrong_name_answers_with_the_closest():
    assert_refused(invoke("check", "smolm2"), "Did you mean 'smollm2'?")


def test_no_network():
    assert_refused(invoke("check", "org/model"), "hub cannot be reached")


def test_a_folder_without_config(tmp_path):
    assert_refused(invoke("check", tmp_path), "has no config.json")


@pytest.mark.parametrize(("kind", "words"), [("t5", "sequence-to-sequence"), ("bert", "encoder-only")])
def test_other_kinds(tmp_path, kind, words):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    assert_refused(invoke("check", tmp_path), words, "maps decoders only")


def test_truncated_weights(tmp_path):
    build_tiny("llama").save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert_refused(invoke("check", tmp_path), "truncated or corrupt")


def test_truncated_gguf(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    assert_refused(invoke("check", tmp_path / "x.gguf"), "cannot be read as a GGUF model")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["smollm2", "--dtype", "int3"], "no dtype 'int3'; allowed: auto, fast, float32"),
        (["smollm2", "--device", "cuda:77"], "'cuda:77' is not available"),
        (["smollm2", "--device", "cpu", "--device-map", "auto"], "not both"),
    ],
)
def test_wrong_options(arguments, words):
    assert_refused(invoke("check", *arguments), words)


@pytest.mark.parametrize(
    "arguments", [["chek", "x"], ["check"], ["check", "a", "b"], ["check", "a", "--nope"], ["list", "x"]]
)
def test_wrong_words_exit_with_2(arguments):
    result = invoke(*arguments)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert "headatlas" in result.stderr and "-h" in result.stderr


def test_debug_shows_the_traceback_wherever_it_stands(tmp_path):
    for arguments in (["--debug", "check", tmp_path], ["check", tmp_path, "--debug"]):
        result = invoke(*arguments)
        assert "Traceback" in result.stderr and "ModelSourceError" in result.stderr
        assert result.returncode == 2  # the same as without


def test_a_defect_is_called_one(monkeypatch, capsys):
    from headatlas.cli import app

    def broken(*arguments, **options):
        raise KeyError("lost")

    monkeypatch.setattr(app, "app", broken)
    monkeypatch.setattr(sys, "argv", ["headatlas", "check", "x"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 1
    assert "KeyError: 'lost' (this is a defect" in capsys.readouterr().err


@pytest.mark.process
def test_list_models(tmp_path):
    result = headatlas("list", "models", HF_HOME=str(tmp_path))
    assert result.returncode == 0 and result.stdout.splitlines()[1].startswith("smollm2")
    rows = json.loads(headatlas("list", "models", "--json", HF_HOME=str(tmp_path)).stdout)
    assert [row["name"] for row in rows] == ["smollm2"]
    assert rows[0]["where"] in ("cache", "wheel")


def test_help_and_version():
    from headatlas import __version__

    assert invoke("--version").stdout == f"headatlas {__version__}\n"
    for arguments in (["--help"], ["-h"], []):
        shown = invoke(*arguments)
        assert "check" in shown.stdout + shown.stderr and "list" in shown.stdout + shown.stderr
    lines = invoke("--help").stdout.splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 80
    assert "MODEL" in invoke("check", "--help").stdout.upper()
