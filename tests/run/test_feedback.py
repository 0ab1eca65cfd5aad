"""What the Python functions show and say: bars, warnings, arguments in messages; and running a cell twice."""

from __future__ import annotations

import io
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from tqdm import tqdm

import headatlas
from headatlas import (
    AtlasError,
    HeadatlasWarning,
    RequestError,
    compare,
    contrast_heads,
    export_model,
    load_model,
    map_heads,
    open_atlas,
    relate_heads,
    relation_scores,
    validate_atlas,
)
from headatlas.cli.app import app
from headatlas.cli.wording import command_text
from headatlas.core import Loaded, Note, Update, progress_bar, progress_of, warn_user
from support.cli import invoke
from support.small_run import SMALL, same_numbers, small_model, small_run, write_task
from support.tiny import build_tiny
from support.watching import Watch

SOURCE = Path(headatlas.__file__).parent


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture
def task(tmp_path):
    return write_task(tmp_path / "words.jsonl")


@pytest.fixture
def terminal(monkeypatch):
    """Makes standard error a terminal; called in the test, because pytest replaces the stream before it."""

    def open_terminal():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return open_terminal


def caught(action):
    """The result, and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = action()
    assert all(warning.category is HeadatlasWarning for warning in found)
    return result, [str(warning.message) for warning in found]


# Bars


def test_a_bar_shows_loss_and_rate_and_disappears(model, task, terminal, monkeypatch):
    stream = terminal()
    monkeypatch.setattr(progress_bar, "_EVERY", 0)
    small_run(model, task, None)
    shown = stream.getvalue()
    assert re.search(r"words: .*loss \d+\.\d{3}, [\d,]+ tokens/s", shown)
    assert "5/5" in shown and shown.rpartition("\r")[0].endswith(" ")  # the line is blank at the end


def test_no_bar_where_nobody_sees_it(model, task, capsys):
    small_run(model, task, None)
    assert capsys.readouterr().err == ""


def test_progress_false_shows_nothing(model, task, terminal):
    stream = terminal()
    small_run(model, task, None, progress=False)
    assert stream.getvalue() == ""


def test_a_function_gets_the_events(model, task, terminal):
    stream = terminal()
    watch = Watch()
    small_run(model, task, None, progress=watch)
    assert isinstance(watch.events[0], Loaded) and any(isinstance(event, Update) for event in watch.events)
    assert stream.getvalue() == ""


def test_a_bar_is_gone_after_an_error(terminal):
    stream = terminal()

    def fail():
        with progress_of(True) as report:
            report(Update("work", 1, 3))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stream.getvalue().rpartition("\r")[0].endswith(" ")


def test_a_bar_in_a_notebook(monkeypatch):
    """There standard error is no terminal."""

    class IPython:
        @staticmethod
        def get_ipython():
            return type("Shell", (), {"config": {"IPKernelApp": {}}})()

    def shown():
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_of(True) as report:
            report(Update("work", 1, 3))
        return stream.getvalue()

    assert shown() == ""
    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setattr("tqdm.auto.tqdm", tqdm)  # the one of text, which needs no widgets
    assert re.search(r"work: .*1/3", shown())


def test_notes_are_warnings_with_a_bar_and_without():
    for progress, expected in ((True, ["look"]), (False, [])):
        with progress_of(progress) as report:
            assert caught(lambda report=report: report(Note("look")))[1] == expected


@pytest.mark.parametrize("wrong", [None, 1, "yes"])
def test_progress_is_a_truth_value_or_a_function(wrong):
    with pytest.raises(RequestError, match="allowed: True, False or a function"), progress_of(wrong):
        pass


# Caveats


def test_caveats_are_one_warning_at_the_call(model, task):
    with pytest.warns(HeadatlasWarning, match="words: 5 [+] 5 updates, fewer than any preset") as found:
        small_run(model, task, None)
    (warning,) = [one for one in found if "fewer than any preset" in str(one.message)]
    assert "words: 2 seeds, fewer than any preset has (3)" in str(warning.message)
    assert "seeds=3 with resume=True adds some" in str(warning.message)
    with pytest.warns(HeadatlasWarning) as found:
        map_heads(model, str(task), **SMALL)
    assert {Path(warning.filename).name for warning in found} == {"test_feedback.py"}


def test_caveats_of_effects_contrasts_and_validations(model, task, tmp_path):
    other = write_task(tmp_path / "others.jsonl", seed=3)
    _, said = caught(lambda: map_heads(model, str(task), method="ablate-zero", items=4))
    assert any("raise items=… or seeds=…" in text for text in said)
    small = {"seeds": 1, "updates": 3, "batch": 4}
    _, said = caught(lambda: contrast_heads(model, task, other, **small))
    assert any(text.startswith("words without others: ") for text in said)
    small_run(model, task, tmp_path / "atlas")
    few = {"methods": [], "items": 4, "draws": 2, "retest": 0}
    _, said = caught(lambda: validate_atlas(tmp_path / "atlas", model=model, **few))
    assert any("raise draws=… to 39" in text for text in said)


def test_caveats_stand_in_the_html(model, task):
    atlas = small_run(model, task, None)
    page = atlas._repr_html_()
    assert "caveats</summary>" in page and "words: 5 + 5 updates, fewer than any preset" in page


def test_a_warning_points_to_the_caller():
    with pytest.warns(HeadatlasWarning) as found:
        warn_user("look")
    assert found[0].filename == __file__


def test_each_caveat_is_one_warning(model, task, tmp_path):
    """The model is random, so it is not better than chance; items that are held out are no caveat."""
    items = [(f"word {number} is", f" w{number}") for number in range(20)]
    _, said = caught(lambda: map_heads(model, items, **SMALL))
    assert "".join(said).count("chance") == 1
    assert not any("held out" in text for text in said)
    other = write_task(tmp_path / "others.jsonl", seed=3)
    _, said = caught(lambda: contrast_heads(model, task, other, seeds=1, updates=3, batch=4))
    lines = "\n".join(said).splitlines()
    assert len(lines) == len(set(lines)) and any("chance" in line for line in lines)
    few = {"few": [("dog", "puppy"), ("cat", "kitten")]}
    _, said = caught(lambda: relate_heads(model, few, source="embedding", salient=False))
    (text,) = said
    assert text.count("few: ") == 1 and "every score is NaN" in text


def test_facts_stand_above_the_bar(terminal):
    stream = terminal()
    with progress_of(True) as report:
        assert caught(lambda: report(Note("18 of 20 items", "fact")))[1] == []
        assert caught(lambda: report(Note("at chance", "early")))[1] == []
    assert "18 of 20 items\n" in stream.getvalue() and "chance" not in stream.getvalue()


def test_warnings_have_one_path():
    """`warn_user` finds the caller's line; a fixed stacklevel does not."""
    for path in SOURCE.rglob("*.py"):
        if path.name not in ("progress_bar.py", "registry.py"):
            assert not re.search(r"\bwarn\(", path.read_text(encoding="utf-8")), path.name


# Arguments and flags


def test_messages_speak_of_arguments():
    """No text outside the commands names a flag or a command, other than commands to copy."""
    copied = ("pip install", 'return f"plot', "`map --seeds N`")
    command = re.compile(rf"['`]headatlas ({'|'.join(command_names())})\b")
    assert command.search("'headatlas map' makes one")
    for path in SOURCE.rglob("*.py"):
        if "cli" in path.relative_to(SOURCE).parts:
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"(?<![\w-])--[a-z]", line):
                assert any(words in line for words in copied), f"{path.name}: {line.strip()}"
            assert not command.search(line), f"{path.name}: {line.strip()}"


def command_names():
    groups = [group.name for group in app.registered_groups]
    return [str(name) for name in (*(command.name for command in app.registered_commands), *groups)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("choose another out=….", "choose another --out."),
        (
            "holds an atlas already; resume=True continues it.",
            "holds an atlas already; --resume continues it.",
        ),
        ("seeds=3 with resume=True adds some", "--seeds 3 with --resume adds some"),
        ("try dtype='float32' and", "try --dtype float32 and"),
        ("average='template' takes the mean", "--average template takes the mean"),
        ("validate gating alone (methods=[]).", "validate gating alone (--method gating)."),
        ("give max_tokens=….", "give --max-tokens."),
        ("map_heads or relate_heads makes one.", "'headatlas map' or 'headatlas relations' makes one."),
        ("import_table reads one.", "'headatlas import' reads one."),
        ("my.csv?task=sums&out=x and use_cache=True stay", "my.csv?task=sums&out=x and use_cache=True stay"),
    ],
)
def test_a_command_shows_its_flags(text, expected):
    assert command_text(text) == expected


def test_one_error_in_both_forms(model, task, tmp_path):
    small_run(model, task, tmp_path / "atlas")
    with pytest.raises(AtlasError, match="holds an atlas already; resume=True continues it"):
        small_run(model, task, tmp_path / "atlas", resume=False)
    build_tiny("llama").save_pretrained(tmp_path / "model")
    result = invoke("map", tmp_path / "model", "--task", task, "--out", tmp_path / "atlas")
    assert "holds an atlas already; --resume continues it" in result.stderr


# Twice


def test_a_call_can_run_twice(model, task, tmp_path):
    first = small_run(model, task, tmp_path / "atlas")
    watch = Watch()
    second = small_run(model, task, tmp_path / "atlas", progress=watch)
    assert not any(isinstance(event, Update) and event.loss is not None for event in watch.events)
    np.testing.assert_array_equal(first.gates("words").values, second.gates("words").values)
    small_run(model, task, tmp_path / "whole", seeds=3)
    assert open_atlas(tmp_path / "atlas").seeds("words") == [0, 1]
    more = small_run(model, task, tmp_path / "atlas", seeds=3)
    assert more.seeds("words") == [0, 1, 2]
    assert not same_numbers(tmp_path / "atlas", tmp_path / "whole")  # the seeds of a block round each other


def test_other_options_are_still_refused(model, task, tmp_path):
    small_run(model, task, tmp_path / "atlas")
    with pytest.raises(AtlasError, match="made with batch 4 instead of 5"):
        small_run(model, task, tmp_path / "atlas", batch=5)
    with pytest.raises(RequestError, match="allowed: True, False, 'auto'"):
        small_run(model, task, tmp_path / "atlas", resume="maybe")


# dtype and device


@pytest.fixture
def folder(model, tmp_path):
    model.hf.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_name_is_loaded_as_asked(folder, task):
    for dtype in ("float32", "bfloat16"):
        atlas = map_heads(folder, str(task), method="ablate-zero", items=4, dtype=dtype, device="auto")
        assert atlas.spec.dtype == dtype
    scores = relation_scores(folder, "plural", dtype="bfloat16", device="cpu")
    assert scores.attrs["model"] == "model"


def test_a_loaded_model_keeps_its_dtype(model, task):
    with pytest.raises(RequestError, match="dtype cannot be changed: a model that is loaded"):
        map_heads(model, str(task), dtype="float32")
    with pytest.raises(RequestError, match="device cannot be changed"):
        relation_scores(model, "plural", device="cpu")


def test_a_loaded_model_takes_what_changes_nothing(model, task):
    map_heads(model, str(task), method="ablate-zero", items=4, device="auto", trust_remote_code=True)
    with pytest.warns(HeadatlasWarning):
        relation_scores(model, {"a": [("b", "c")]}, device="auto", trust_remote_code=True)


def test_a_name_brings_its_own_tokenizer(folder, task, tmp_path):
    atlas = tmp_path / "atlas"
    map_heads(folder, str(task), out=atlas, **SMALL)
    for call in (
        lambda: map_heads(folder, str(task), tokenizer="bogus"),
        lambda: contrast_heads(folder, str(task), [("a", "b")], tokenizer="bogus"),
        lambda: relate_heads(folder, "plural", tokenizer="bogus"),
        lambda: relation_scores(folder, "plural", tokenizer="bogus"),
        lambda: validate_atlas(atlas, model=folder, tokenizer="bogus"),
        lambda: validate_atlas(atlas, tokenizer="bogus"),
        lambda: export_model(atlas, "words", tmp_path / "checkpoint", model=folder, tokenizer="bogus"),
    ):
        with pytest.raises(RequestError, match="tokenizer is for a transformers model"):
            call()


def test_a_transformers_model_is_validated_and_exported_with_its_tokenizer(folder, task, tmp_path):
    loaded = load_model(folder)
    hf, tokenizer = loaded.hf, loaded.tokenizer
    hf.config._name_or_path = ""
    atlas = map_heads(hf, str(task), tokenizer=tokenizer, **SMALL)
    few = {"methods": [], "items": 4, "draws": 2, "retest": 0}
    assert validate_atlas(atlas, model=hf, tokenizer=tokenizer, **few).validated == ["words"]
    out, watch = tmp_path / "checkpoint", Watch()
    options = {"gates": "retain", "items": 4, "force": True}
    export_model(atlas, "words", out, model=hf, tokenizer=tokenizer, progress=watch, **options)
    assert out.is_dir() and any(isinstance(event, Update) for event in watch.events)
    with pytest.raises(RequestError, match="dtype cannot be changed"):
        export_model(atlas, "words", tmp_path / "other", model=hf, tokenizer=tokenizer, dtype="float32")


def test_an_export_loads_the_model_as_asked(folder, task, tmp_path):
    atlas = map_heads(folder, str(task), dtype="bfloat16", **SMALL)
    options = {"gates": "retain", "items": 4, "force": True}
    out = tmp_path / "checkpoint"
    export_model(atlas, "words", out, dtype="bfloat16", device="cpu", progress=False, **options)
    assert '"bfloat16"' in (out / "config.json").read_text()


def test_two_dtypes_in_an_atlas_are_noted(folder, task, tmp_path):
    other = write_task(tmp_path / "others.jsonl", seed=3)
    run = lambda task, dtype: map_heads(  # noqa: E731
        folder, str(task), method="ablate-zero", items=4, dtype=dtype, out=tmp_path / "atlas"
    )
    assert not any("rounding" in text for text in caught(lambda: run(task, "float32"))[1])
    _, said = caught(lambda: run(other, "bfloat16"))
    assert any(
        "others: the model is in bfloat16, but this atlas has words in float32" in text for text in said
    )


def test_a_comparison_of_two_dtypes_or_settings_warns(folder, task, tmp_path):
    first, second = (map_heads(folder, str(task), dtype=dtype, **SMALL) for dtype in ("float32", "bfloat16"))
    alike = map_heads(folder, str(task), dtype="float32", **SMALL)
    assert caught(lambda: compare(first, alike))[1] == []
    comparison, (text,) = caught(lambda: compare(first, second))
    assert comparison.differences == ("dtype float32 and bfloat16",)
    assert text.startswith("the two were not fitted alike: dtype float32 and bfloat16; heads may differ")
    longer = map_heads(folder, str(task), dtype="float32", **{**SMALL, "updates": 6, "objective": "bounded"})
    comparison, (text,) = caught(lambda: compare(first, longer))
    assert "updates 5+5 and 6+6" in comparison.differences and "updates 5+5 and 6+6" in text
