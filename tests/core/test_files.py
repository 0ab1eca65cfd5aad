"""Files and folders are there whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from headatlas import StoreError
from headatlas.core import slug, staged_folder, write_whole


def test_names_of_all_kinds_become_files():
    """Names that differ never share a file, whatever is in them."""
    names = [
        "math",
        "Math",
        "paper/math",
        "paper-math",
        "../up",
        ".hidden",
        "a b",
        "ä",
        "x" * 300,
        "x" * 301,
        "con",
    ]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names) and slug("math") == "math"
    for one in slugs:
        assert "/" not in one and not one.startswith(".") and len(one) < 100 and one.isascii()


@pytest.mark.parametrize(
    "content", ["ä", "ä".encode(), lambda draft: draft.write_text("ä", encoding="utf-8")]
)
def test_a_file_is_written_whole(tmp_path, content):
    path = tmp_path / "new" / "file"
    write_whole(path, "before")
    write_whole(path, content)
    assert path.read_text(encoding="utf-8") == "ä" and list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, "before")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=r"file cannot be written: No space left on device\. Free some\."):
        write_whole(path, "after", "Free some.")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_a_folder_appears_at_the_end_with_the_umask_of_the_user(tmp_path):
    target, before = tmp_path / "new" / "folder", os.umask(0o027)
    try:
        with staged_folder(target) as draft:
            (draft / "sub").mkdir()
            (draft / "sub" / "file").write_text("all")
            assert not target.exists()
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (target, target / "sub", target / "sub" / "file")]
    assert modes == [0o750, 0o750, 0o640] and list(target.parent.iterdir()) == [target]


def test_a_folder_that_fails_never_appears(tmp_path):
    with pytest.raises(IsADirectoryError), staged_folder(tmp_path / "folder") as draft:
        draft.write_text("this is a folder")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_not_put_over_another(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    with pytest.raises(StoreError, match="folder cannot be written"), staged_folder(tmp_path / "folder"):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "mine"]
