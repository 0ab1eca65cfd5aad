"""The gallery in docs is what its script makes of the atlas that lies beside it."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headatlas import Atlas, open_atlas
from headatlas.atlas import unpack_atlas
from headatlas.page.html import page_of
from headatlas.page.payload import payload_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("gallery", ROOT / "scripts" / "gallery.py")
    assert found and found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def atlas(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    return open_atlas(unpack_atlas(script.PACKED, tmp_path_factory.mktemp("gallery") / "atlas"))


def test_the_atlas_is_the_published_schedule_on_three_tasks(script: ModuleType, atlas: Atlas) -> None:
    assert set(atlas.tasks) == {"math", "syntax", "arithmetic"} == set(atlas.validated)
    for task in atlas.tasks:
        settings = atlas.run(task).settings["resolved"]
        assert len(atlas.seeds(task)) == 10
        assert (settings["objective"], settings["batch"]) == ("paper", 64)
        assert settings["free"]["updates"] == settings["pressed"]["updates"] == 500
    assert len(atlas.relations) == 25


def test_the_words_and_the_report_are_those_of_the_atlas(script: ModuleType, atlas: Atlas) -> None:
    assert (script.FOLDER / "README.md").read_text(encoding="utf-8") == script.words(atlas)
    assert (script.FOLDER / "report.md").read_text(encoding="utf-8") == atlas.report().markdown()


@pytest.mark.parametrize("name", ["results", "changes"])
def test_the_pages_about_the_atlas_are_those_of_the_atlas(
    atlas: Atlas, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    bench: Any = importlib.import_module(name)
    text = bench.page(atlas, bench.read_joined()) if name == "results" else bench.page(atlas)
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == text


def test_the_page_is_small_and_that_of_the_atlas(script: ModuleType, atlas: Atlas) -> None:
    page = (script.FOLDER / "atlas.html").read_text(encoding="utf-8")
    payload = payload_of([atlas])
    assert len(page.encode()) < 5_000_000
    before, held, after = re.split('(?<=id="payload">)(.*)(?=</script>\n<script>)', page)
    assert_alike(json.loads(held), json.loads(json.dumps(payload)))
    assert page_of(payload).startswith(before) and page_of(payload).endswith(after)


def assert_alike(one: Any, other: Any) -> None:
    """The same, but for how sums were rounded."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_alike(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_alike(left, right)
    else:
        assert one == (pytest.approx(other, rel=1e-4, abs=1e-6) if isinstance(one, float) else other)
