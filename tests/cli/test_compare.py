"""`headatlas compare` and `list atlases`, as they are typed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile

import pytest

from support.cli import assert_refused, invoke
from support.small_run import write_task

SMALL = ("--seeds", 2, "--updates", 3, "--batch", 4, "--dtype", "float32")


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlases")
    tasks = [write_task(folder / f"{name}.jsonl", 120, seed) for seed, name in enumerate(("words", "names"))]
    both = ("--task", tasks[0], "--task", tasks[1])
    for place, name in enumerate(("one", "other")):
        options = (*SMALL, "--objective", ("bounded", "paper")[place])
        made = invoke("map", tiny, *both, *options, "--out", folder / name)
        assert made.returncode == 0, made.stderr
    return folder


def test_what_compare_says(folder, tmp_path):
    figure, page = tmp_path / "both.png", tmp_path / "both.html"
    found = invoke(
        "compare", folder / "one", folder / "other", "--task", "words", "--out", figure, "--page", page
    )
    assert found.returncode == 0, found.stderr
    assert "facilitation: rank correlation" in found.stdout and "changed most" in found.stdout
    assert figure.read_bytes()[:4] == b"\x89PNG" and "<html" in page.read_text()[:200]
    found = invoke("compare", folder / "one", folder / "one", "--task", "words", "--task", "names", "--json")
    (data,) = json.loads(found.stdout)
    assert data["tasks"] == ["words", "names"] and data["by_heads"]


def test_doubts_about_both_are_shown(folder):
    """Two seeds, three updates and 24 held-out items are few, in the first and in the second."""
    pair = (folder / "one", folder / "other")
    shown = invoke("compare", *pair, "--task", "words").stdout
    assert shown.count("Warning:") == 1
    for side in ("first", "second"):
        assert f"  the {side} (tiny, words): 2 seeds, fewer than any preset has" in shown
    # of both tasks, in one warning
    both = invoke("compare", *pair).stdout
    assert both.count("Warning:") == 1 and "the second (tiny, names): " in both
    (data,) = json.loads(invoke("compare", *pair, "--task", "words", "--json").stdout)
    first, second = data["doubts"]
    assert "seeds" in {doubt["key"] for doubt in first} and {"key", "numbers", "text"} == set(second[0])


def test_wrong_ones(folder, tmp_path):
    one, other = folder / "one", folder / "other"
    assert_refused(invoke("compare", one, one), "give two of its tasks")
    assert_refused(invoke("compare", one, other, "--out", tmp_path / "x.png"), "a figure is of one task")
    assert_refused(invoke("compare", one, other, "--task", "wrods"), "did you mean 'words'")
    assert_refused(invoke("compare", one, tmp_path), "no atlas")
    assert_refused(invoke("compare", one, other, "--threshold", 3), "threshold is 3")
    assert_refused(invoke("compare", one, other, "-t", "words", "--out", tmp_path / "x.doc"), ".doc")


def test_list_atlases(folder, tmp_path):
    found = invoke("list", "atlases", folder)
    assert found.returncode == 0 and "words, names" in found.stdout
    (folder / "broken").mkdir(exist_ok=True)
    (folder / "broken" / "atlas.json").write_text("{")
    rows = {row["path"]: row for row in json.loads(invoke("list", "atlases", folder, "--json").stdout)}
    shutil.rmtree(folder / "broken")
    assert rows[str(folder / "one")]["tasks"] == ["words", "names"]
    assert rows[str(folder / "broken")]["error"]
    assert "no atlas in" in invoke("list", "atlases", tmp_path).stdout
    assert_refused(invoke("list", "atlases", tmp_path / "nowhere"), "is no folder")


def test_zipped_and_opened_elsewhere_without_torch(folder, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", folder / "one")
    zipfile.ZipFile(packed).extractall(tmp_path / "elsewhere")
    script = (
        "import sys, headatlas\n"
        "atlas = headatlas.open_atlas(sys.argv[1])\n"
        "print(atlas.tasks, atlas.always('words').sizes, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "elsewhere"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['words', 'names']") and done.stdout.endswith("False\n")
