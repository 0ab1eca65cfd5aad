"""The references of commands and names are those of the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import headatlas

ROOT = Path(__file__).parents[2]


@pytest.mark.process
def test_the_references_are_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr


def test_every_public_name_says_what_it_is():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in headatlas.__all__:
        if not name.startswith("_"):
            assert f"## {name}\n" in text or f"- `{name}`" in text, name
            assert getattr(headatlas, name).__doc__, name


def test_the_fields_of_results_are_documented(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import reference

    text = reference.api()
    for name, field in (
        ("Comparison", "| `verdict` | `str` |"),
        ("Head", "| `layer` | `int` |"),
        ("HeadCard", "| `head` | `Head` |"),
        ("TaskOfHead", "| `task` | `str` |"),
        ("Run", "| `baseline` | `Mapping[str, Any]` |"),
        ("figure.plot_agreement", "palette: PaletteLike"),
    ):
        section = re.search(rf"^(#+) {re.escape(name)}\n(.*?)^#{{2,3}} ", text, re.MULTILINE | re.DOTALL)
        assert section is not None and field in section[2], name
