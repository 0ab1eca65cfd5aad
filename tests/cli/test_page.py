"""`headatlas page`, as it is typed."""

from __future__ import annotations

import shutil

import pytest

from support.cli import assert_refused, invoke
from support.small_run import write_task

SMALL = ("--seeds", 2, "--updates", 3, "--batch", 4, "--dtype", "float32")


@pytest.fixture(scope="module")
def atlas(tiny, tmp_path_factory):
    task = write_task(tmp_path_factory.mktemp("tasks") / "words.jsonl", 120)
    folder = tmp_path_factory.mktemp("atlases") / "atlas"
    assert invoke("map", tiny, "--task", task, *SMALL, "--out", folder).returncode == 0
    return folder


def test_it_writes_into_the_folder_and_says_where(atlas):
    told = invoke("page", atlas)
    assert told.returncode == 0 and told.stdout.strip() == str(atlas / "atlas.html") and not told.stderr
    page = (atlas / "atlas.html").read_text()
    assert page.startswith("<!doctype html>") and "Content-Security-Policy" in page


def test_elsewhere_and_with_another(atlas, tmp_path):
    out = tmp_path / "new" / "two.html"
    other = shutil.copytree(atlas, tmp_path / "copy")
    told = invoke("page", atlas, "--out", out, "--with", other)
    assert told.returncode == 0 and told.stdout.strip() == str(out)
    assert out.read_text().count('"headlines"') == 2


def test_wrong_requests(atlas, tmp_path):
    assert_refused(invoke("page", tmp_path / "none"), "there is no folder")
    assert_refused(invoke("page", atlas, "--out", tmp_path / "page.pdf"), "its name ends in .html")
    assert_refused(invoke("page", atlas, "--with", atlas), "twice: an atlas is compared with another one")
    assert_refused(invoke("page", atlas, "--with", tmp_path), "is not an atlas")


def test_many_heads_are_announced(atlas, monkeypatch):
    monkeypatch.setattr("headatlas.cli.page._MANY", 1)
    told = invoke("page", atlas)
    assert told.returncode == 0 and "working out the findings" in told.stderr
