"""Files: of the right kind, whole, the same every time."""

from __future__ import annotations

import subprocess
import sys

import pytest
from matplotlib.figure import Figure

from headatlas.core import RequestError, StoreError
from headatlas.figure import FORMATS, plot_agreement, save_figure

OPENING = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF", "svg": b"<?xml"}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_is_what_its_ending_says_and_the_same_every_time(any_atlas, tmp_path, kind):
    atlas = any_atlas(6, 4, holes=(1,))
    figure = plot_agreement(atlas)
    paths = [tmp_path / "new" / f"{name}.{kind}" for name in ("one", "two", "three")]
    assert save_figure(figure, paths[0]) == paths[0]
    save_figure(figure, str(paths[1]))
    save_figure(plot_agreement(atlas), paths[2])
    first, second, third = (path.read_bytes() for path in paths)
    assert first.startswith(OPENING[kind]) and first == second == third
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(path.name for path in paths)


def test_text_stays_text_in_vector_files(any_atlas, tmp_path):
    figure = plot_agreement(any_atlas(6, 4))
    svg = save_figure(figure, tmp_path / "map.svg").read_text()
    assert "<svg" in svg and ">Math (Always)</text>" in svg and "<dc:date>" not in svg
    pdf = save_figure(figure, tmp_path / "map.pdf").read_bytes()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf and b"CreationDate" not in pdf


def test_a_saved_column_is_as_wide_as_a_column(any_atlas, tmp_path):
    data = save_figure(plot_agreement(any_atlas(30, 9, 2)), tmp_path / "map.png", dpi=200).read_bytes()
    width = int.from_bytes(data[16:20], "big") / 200
    assert 3.2 < width <= 3.35


@pytest.mark.parametrize("name", ["map.bmp", "map", "map.PSD"])
def test_other_endings_are_refused_in_a_sentence(tmp_path, name):
    with pytest.raises(RequestError, match=r"figures are written as pdf, png, svg; .* such as 'map\.pdf'"):
        save_figure(Figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_capital_endings_are_understood(tmp_path):
    assert save_figure(Figure(), tmp_path / "map.PNG", dpi=20).read_bytes().startswith(OPENING["png"])


def test_what_was_there_stays_when_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "map.png"
    path.write_text("old")

    def full(self, draft, **_):
        draft.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(StoreError, match="No space left on device"):
        save_figure(Figure(), path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_neither_pyplot_nor_torch_is_ever_loaded(tmp_path):
    code = (
        "import sys; from matplotlib.figure import Figure; from headatlas.figure import save_figure\n"
        f"for kind in ('png', 'pdf', 'svg'): save_figure(Figure(), {str(tmp_path)!r} + '/a.' + kind)\n"
        "print(sorted({'matplotlib.pyplot', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['matplotlib']"
