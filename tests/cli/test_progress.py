"""The view of many workers: a bar for each step that is at work, one for all; lines where no terminal is."""

from __future__ import annotations

import re

import pytest

from headatlas import Ray
from headatlas.cli.progress import ShownProgress, saved_in
from headatlas.core import Update, Worker, Workers

WORK = [
    Workers((Worker("math, seeds 0 to 4", 1, Update("loading the model", 0, 0)),), 0, 3),
    Workers(
        (
            Worker("math, seeds 0 to 4", 1, Update("free", 20, 50, "math", 0.5)),
            Worker("syntax, seeds 0 to 4", 2, Update("pressed", 7, 50, "syntax", 0.25)),
        ),
        0,
        3,
    ),
    Workers((Worker("syntax, seeds 0 to 4", 2, Update("pressed", 30, 50, "syntax", 0.125)),), 2, 3),
    Workers((), 3, 3),
]


def shown(capsys, monkeypatch, terminal):
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    frames = []
    with ShownProgress() as progress:
        for event in WORK:
            progress(event)
            if terminal:
                progress._bars.refresh()
            frames.append(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err))
    return frames


def test_on_a_terminal_each_step_has_a_bar(capsys, monkeypatch):
    loading, two, one, none = (frame.rsplit("all steps", 1)[-1] for frame in shown(capsys, monkeypatch, True))
    assert "loading the model" in loading
    assert re.search(r"math, seeds 0 to 4 .*20/50 +free, loss 0.500", two)
    assert re.search(r"syntax, seeds 0 to 4 .*7/50 +pressed, loss 0.250", two) and "0/3" in two
    assert "math" not in one and re.search(r"syntax.*30/50 +pressed, loss 0.125", one) and "2/3" in one
    assert "syntax" not in none and "3/3" in none


def test_elsewhere_a_line_when_a_step_is_done(capsys, monkeypatch):
    said = "".join(shown(capsys, monkeypatch, False)).splitlines()
    assert said == ["0 of 3 steps done", "2 of 3 steps done", "3 of 3 steps done"]


def stopped(capsys, out, save=None):
    """What the command says after Ctrl-C; `save` happens before it."""

    def work():
        with ShownProgress(True, out=out and str(out)):
            if save is not None:
                save()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    return capsys.readouterr().err


def test_nothing_is_promised_before_the_first_save(capsys, tmp_path):
    assert "stopped before anything was saved; " in stopped(capsys, tmp_path / "none")
    fit = tmp_path / "fits" / "gating" / "words" / "0-free.safetensors"
    fit.parent.mkdir(parents=True)
    (tmp_path / "atlas.json").write_text("{}")
    assert "before anything was saved" in stopped(capsys, tmp_path)  # the entry of a run is not its work
    assert "goes on from what was saved last" in stopped(capsys, tmp_path, lambda: fit.write_bytes(b"1"))
    assert "before anything was saved" in stopped(capsys, tmp_path)  # that of an earlier command


def test_work_that_is_saved_elsewhere_is_not_denied(capsys):
    """Nor promised: nobody here knows whether a worker has saved anything yet."""
    said = stopped(capsys, None)
    assert "run the same command with --resume to continue from the last save, if there is one" in said
    assert saved_in("atlas", Ray(exchange="s3://bucket/x")) is None
    assert saved_in("atlas", Ray()) == saved_in("atlas") == "atlas"
