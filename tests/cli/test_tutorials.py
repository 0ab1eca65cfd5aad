"""The tutorials, one after the other, on the real model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
#: tutorial -> options, and what it is to say
TUTORIALS = {
    "1_map_your_own_task.py": (
        ["--fast"],
        ["held-out NLL, baseline", "facilitate in every seed", "most needed"],
    ),
    "2_read_a_head.py": (["--fast"], ["country-capital  best head L23H4", "is number"]),
    "3_switch_off_and_export.py": ([], ["heads interfere in every seed", "exported: ' cities'"]),
}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("tutorials") / "tutorial"


def test_all_are_there():
    assert sorted(path.name for path in FOLDER.glob("*.py")) == sorted(TUTORIALS)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial(name, out):
    options, words = TUTORIALS[name]
    command = [sys.executable, str(FOLDER / name), "--out", str(out), *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=os.environ)
    assert result.returncode == 0, result.stderr
    for word in words:
        assert word in result.stdout
    assert "Traceback" not in result.stderr
