"""What comes with headatlas: licences that all can live with, versions that were tried, nothing known bad."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: what stands in a licence that asks for no more than to be named, or (MPL) to publish what one changes in
#: its own files; and what stands in those that ask for more
PERMISSIVE = re.compile(
    r"\b(apache|mit|bsd|0bsd|bsd-[0-4]-clause|python software|psf|isc|mpl-2\.0|mozilla|unlicense|hpnd|zlib)\b"
)
STRICT = re.compile(r"\b[al]?gpl|gnu (affero|lesser|general)|non-?commercial|proprietary")
#: packages whose metadata name no licence, and where it was read
READ = {
    "nvidia": "comes with CUDA builds of torch; NVIDIA's own terms",
    "zss": "its LICENSE file: BSD style",
}


def runtime(*extras: str) -> dict[str, metadata.Distribution]:
    """All that `pip install headatlas` brings, here."""
    found: dict[str, metadata.Distribution] = {}
    open_ = [Requirement(one) for one in PROJECT["dependencies"]]
    for extra in extras:
        open_ += [Requirement(one) for one in PROJECT["optional-dependencies"][extra]]
    while open_:
        one = open_.pop()
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        if name in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        found[name] = metadata.distribution(name)
        open_ += [Requirement(text) for text in found[name].requires or ()]
    return found


def licence(one: metadata.Distribution) -> str:
    classified = [text for text in one.metadata.get_all("Classifier") or () if text.startswith("License")]
    said = one.metadata.get("License-Expression") or ""
    if not (said or classified):
        # some put the whole text there: what it is called stands at its beginning
        said = (one.metadata.get("License") or "").strip()[:60]
    return " ".join([said, *classified]).lower()


def test_licences_ask_for_no_more_than_a_name():
    extras = [name for name in PROJECT["optional-dependencies"] if name not in ("dev", "torchao")]
    brought = runtime(*extras)
    assert {"torch", "transformers", "xarray", "ray", "datasets"} <= brought.keys() and len(brought) > 30
    strict = {
        name: licence(one)[:80]
        for name, one in brought.items()
        if not is_permissive(licence(one)) and not name.startswith(tuple(READ))
    }
    assert strict == {}


def is_permissive(text: str) -> bool:
    return bool(PERMISSIVE.search(text)) and not STRICT.search(text)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("mit", True),
        ("apache-2.0 with llvm-exception", True),
        ("bsd-3-clause", True),
        ("license :: osi approved :: bsd license", True),
        ("gpl-3.0-or-later", False),
        ("license :: osi approved :: gnu lesser general public license v3 (lgplv3)", False),
        ("use is permitted within limited bounds", False),
        ("mit and agpl-3.0", False),
        ("", False),
    ],
)
def test_the_words_of_licences(text, allowed):
    assert is_permissive(text) is allowed


def test_versions_are_those_that_were_tried():
    """Of what the tests run with; torch comes in builds of one version."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.lower().split("==") for line in lines if "==" in line)
    pinned = {re.sub(r"[-_.]+", "-", name): version for name, version in pinned.items()}
    for name, one in runtime().items():
        if name == "setuptools":  # comes with the environment
            continue
        assert pinned.get(name, "").split("+")[0] == one.version.split("+")[0], name


def test_nothing_with_a_known_hole():
    """Asks a service on the network: where that cannot be reached, `make audit` does it elsewhere."""
    if shutil.which("pip-audit") is None:
        pytest.skip("pip-audit is not installed here; it needs the network: 'make audit'")
    command = ["pip-audit", "--no-deps", "--disable-pip", "-f", "json", "-r", ROOT / "constraints.txt"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if not result.stdout.strip():  # no report: because of the network, and nothing else
        assert re.search("connect|resol|network|timed out", result.stderr, re.I), result.stderr
        pytest.skip(f"pip-audit reached no service: {result.stderr.strip()[-200:]}")
    found = json.loads(result.stdout)["dependencies"]
    if all("skip_reason" in one for one in found):
        pytest.skip("pip-audit reached no service")
    assert [one for one in found if one.get("vulns")] == []
