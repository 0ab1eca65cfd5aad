"""The wheel: complete, and enough to use headatlas in an environment that has its dependencies alone."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from headatlas import __version__

pytestmark = [pytest.mark.slow, pytest.mark.process]

ROOT = Path(__file__).parents[2]


def run(*command: object, folder: Path) -> str:
    """What a command prints, started where nothing leads to these sources."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [*map(str, command)], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, folder=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; a .pth file shows it the dependencies installed here.

    The .pth files of that folder, among them the one of an editable headatlas, are not read.
    """
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", "env", folder=folder)
    python = folder / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, folder=folder)
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(python, "-c", asked, folder=folder).strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "headatlas").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == expected
    assert {"headatlas/py.typed", "headatlas/page/schema.json", "headatlas/page/bundle/page.js"} <= packed
    for folder in ("builtin", "relations"):
        assert any(name.startswith(f"headatlas/task/{folder}/") for name in packed), folder


def test_the_installed_command_works(environment: Path, tmp_path: Path) -> None:
    where = run(environment / "python", "-c", "import headatlas; print(headatlas.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(environment.parent)
    command = environment / "headatlas"
    assert run(command, "--version", folder=tmp_path) == f"headatlas {__version__}\n"
    assert "smollm2" in run(command, "list", "models", folder=tmp_path)
    run(
        command, "share", "unpack", ROOT / "docs" / "gallery" / "atlas.zip", "--out", "atlas", folder=tmp_path
    )
    assert run(command, "head", "atlas", "L23H4", folder=tmp_path).startswith("L23H4 of smollm2")
    assert run(command, "page", "atlas", "--out", "atlas.html", folder=tmp_path).strip() == "atlas.html"
    page = (tmp_path / "atlas.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "</html>" in page[-100:]
