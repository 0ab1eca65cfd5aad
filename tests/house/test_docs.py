"""Numbers and claims in the docs that the code can contradict."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from model.test_survey import CANNOT_BE_BUILT, REFUSED
from support.tiny import causal_types

ROOT = Path(__file__).parents[2]
MODELS = (ROOT / "docs" / "models.md").read_text()
README = (ROOT / "README.md").read_text()


def listed(section: str) -> list[str]:
    text = MODELS.split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| ([\w-]+) \|", text, re.MULTILINE)[1:]


def test_the_survey_in_the_docs_is_the_survey_of_the_tests():
    assert listed("Refused") == sorted(REFUSED)
    assert listed("Not built") == sorted(CANNOT_BE_BUILT)
    assert listed("Pass") == [t for t in causal_types() if t not in REFUSED and t not in CANNOT_BE_BUILT]


def test_the_readme_has_the_numbers_of_the_survey():
    known, passed = re.search(r"Of the (\d+) causal-LM types .* knows, (\d+)\s+pass", README).groups()
    assert int(known) == len(causal_types())
    assert int(passed) == len(listed("Pass"))


def test_the_readme_names_the_two_commands_and_ci_calls_one():
    assert "$ make demo" in README and "$ make test" in README
    commands = [
        line
        for line in (ROOT / ".ci" / "run").read_text().splitlines()
        if line and not line.startswith(("#", "set ", "cd "))
    ]
    assert commands == ["make test"]


def test_the_tested_torch_is_pinned():
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()


@pytest.mark.parametrize("name", ["dependencies", "optional-dependencies"])
def test_every_dependency_is_explained(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project[name]] if name == "dependencies" else project[name].values()
    explained = (ROOT / "docs" / "ARCHITECTURE.md").read_text().split("## Dependencies")[1]
    for requirement in (requirement for group in groups for requirement in group):
        package = re.match(r"[\w-]+", requirement)[0]
        assert package == "headatlas" or package in explained, package


def test_links_lead_somewhere_and_nothing_is_left_to_fill_in():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
        assert not re.search(r"\b(DEMO_|TODO|FIXME|XXX)", text), page


def test_make_demo_is_the_demo():
    told = subprocess.run(
        ["make", "-n", "-o", ".venv/ready-demo", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "-m headatlas demo" in told.stdout


def test_the_readme_lists_every_command_and_every_task():
    from headatlas.cli.app import app
    from headatlas.task import builtin_tasks

    for command in app.registered_commands:
        assert f"headatlas {command.name} " in README or f"headatlas {command.name}\n" in README, command.name
    for task in builtin_tasks():
        assert f"`{task.name}`" in README, task.name


def test_no_line_numbers_and_no_machine_paths_in_docs():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text()
        assert not re.search(r"\.py:\d+", text), page
        assert not re.search(r"(^|[\s`'\"(])/(home|root|work|tmp)/", text), page
