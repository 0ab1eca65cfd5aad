"""The bundle in the package is what its sources give; and the sources pass their own tests."""

from __future__ import annotations

import subprocess

import pytest

from page.building import BUNDLE, WEB, npm

pytestmark = pytest.mark.browser


def run(*words, cwd=WEB):
    asked = [*npm("exec"), "--", *words]
    told = subprocess.run(asked, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


def test_the_committed_bundle_is_that_of_the_sources(tmp_path):
    run("vite", "build", "--outDir", str(tmp_path / "bundle"))
    names = sorted(path.name for path in (tmp_path / "bundle").iterdir())
    assert names == sorted(path.name for path in BUNDLE.iterdir()) == ["page.css", "page.js"]
    for name in names:
        assert (tmp_path / "bundle" / name).read_bytes() == (BUNDLE / name).read_bytes(), (
            f"{name}: npm run build"
        )


def test_types():
    run("tsc", "--noEmit")


def test_units():
    assert "passed" in run("vitest", "run")
