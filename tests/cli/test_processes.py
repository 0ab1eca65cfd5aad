"""Each command once as a user starts it, and what only a process of its own can show."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headatlas.cli.app import app
from support.cli import headatlas
from support.small_run import write_task

pytestmark = pytest.mark.process

SMALL = ("--seeds", 1, "--updates", 2, "--batch", 4, "--dtype", "float32")
#: command -> its arguments; words in braces are what `known` has
COMMANDS = {
    "check": ["{tiny}"],
    "compare": ["{atlas}", "{copy}", "--task", "words"],
    "contrast": ["{tiny}", "--retain", "{task}", "--forget", "{other}", *SMALL, "--out", "{new}"],
    "demo": ["--help"],  # it takes minutes: `make demo`
    "export": ["{atlas}", "--task", "{task}", "--gates", "retain", "--model", "{tiny}", "--out", "{new}"],
    "head": ["{atlas}", "L0H0"],
    "import": ["{table}", "--out", "{new}"],
    "list": ["tasks"],
    "map": ["{tiny}", "--task", "{task}", *SMALL, "--out", "{new}"],
    "page": ["{atlas}", "--out", "{new}.html"],
    "plot": ["{atlas}", "--out", "{new}.png"],
    "relations": ["{tiny}", "--relation", "{pairs}", "--out", "{new}"],
    "report": ["{atlas}"],
    "share": ["pack", "{atlas}", "--out", "{new}.zip"],
    "table": ["{atlas}"],
    "validate": [
        "{copy}",
        "--task",
        "{task}",
        "--model",
        "{tiny}",
        "--items",
        4,
        "--draws",
        2,
        "--retest",
        0,
    ],
}


@pytest.fixture
def known(tiny, task, atlas, tmp_path):
    pairs, table = tmp_path / "next.csv", tmp_path / "table.csv"
    pairs.write_text("source,target\n" + "".join(f"w{n},w{n + 1}\n" for n in range(40)))
    table.write_text("task,layer,head,score\nmine,0,0,0.5\nmine,0,1,0.25\n")
    return {
        "tiny": tiny,
        "task": task,
        "other": write_task(tmp_path / "others.jsonl", seed=4),
        "atlas": atlas,
        "copy": shutil.copytree(atlas, tmp_path / "copy"),
        "pairs": pairs,
        "table": table,
        "new": tmp_path / "new",
    }


def test_every_command_is_started_below():
    groups = [group.name for group in app.registered_groups]
    assert sorted(COMMANDS) == sorted([command.name for command in app.registered_commands] + groups)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_as_it_is_started(command, known):
    result = headatlas(command, *(str(word).format(**known) for word in COMMANDS[command]))
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() and "Traceback" not in result.stderr and "error" not in result.stderr
    made = [word.format(**known) for word in map(str, COMMANDS[command]) if "{new}" in word]
    assert all(Path(path).exists() for path in made)


def started(*arguments):
    # A shell starts background jobs with SIGINT ignored, and children inherit that.
    handled = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = handled + "from headatlas.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_control_c_ends_with_what_to_do_next(tiny, task, tmp_path):
    long = ("--seeds", 1, "--updates", 100_000, "--batch", 4, "--dtype", "float32")
    with started("map", tiny, "--task", task, *long, "--out", tmp_path / "atlas") as process:
        while process.poll() is None and not (tmp_path / "atlas" / "atlas.json").exists():
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=120)[1]
    assert process.returncode not in (0, 1, 2), err
    assert err.strip().startswith("stopped") or "\nstopped" in err
    assert "--resume" in err and "Traceback" not in err


def test_a_reader_that_goes_away_is_no_defect(atlas):
    """As in `headatlas table DIR | head -1`."""
    with started("table", atlas) as process:
        assert process.stdout.readline().startswith("method,task,seed")
        process.stdout.close()
        err = process.stderr.read()
        process.wait(120)
    assert "Traceback" not in err and "defect" not in err
