"""Colours: exact for `paper`, apart for every kind of eye in `safe`."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import TABLEAU_COLORS, to_rgb

from headatlas.core import CATEGORIES
from headatlas.figure import PALETTES
from headatlas.figure.palette import FIT_COLOURS

#: Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
SEEN_BY = {
    "everyone": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanope": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(colour: str, eye: str) -> np.ndarray:
    """CIE L*a*b* (D65) of a colour as that eye sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(SEEN_BY[eye] @ linear, 0, 1)
    ratio = XYZ @ seen / XYZ.sum(axis=1)
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def closest(colours, eye: str) -> float:
    return min(float(np.linalg.norm(lab(a, eye) - lab(b, eye))) for a, b in combinations(colours, 2))


def corners(name: str) -> list[str]:
    palette = PALETTES[name]
    return [palette.neither, palette.helps, palette.hurts, palette.both]


def test_the_conversion_knows_white_and_red():
    np.testing.assert_allclose(lab("#ffffff", "everyone"), [100, 0, 0], atol=0.02)
    np.testing.assert_allclose(lab("#ff0000", "everyone"), [53.24, 80.09, 67.20], atol=0.05)


@pytest.mark.parametrize("eye", SEEN_BY)
def test_safe_corners_stay_apart(eye):
    assert closest(corners("safe"), eye) > 40


@pytest.mark.parametrize("eye", SEEN_BY)
def test_lines_stay_apart(eye):
    assert closest(PALETTES["safe"].lines.values(), eye) > 15
    assert closest(FIT_COLOURS.values(), eye) > 15


def categories(name: str) -> list[str]:
    palette = PALETTES[name]
    return [palette.unclassified, *palette.categories.values(), *palette.others, *palette.several]


@pytest.mark.parametrize("eye", SEEN_BY)
def test_safe_categories_stay_apart(eye):
    assert closest(categories("safe"), eye) > 20


def test_the_categories_of_the_paper_are_matplotlibs():
    names = ("blue", "orange", "green", "red")
    assert list(PALETTES["paper"].categories.values()) == [TABLEAU_COLORS[f"tab:{name}"] for name in names]
    several = [TABLEAU_COLORS[f"tab:{name}"] for name in ("purple", "brown", "pink")]
    assert list(PALETTES["paper"].several[:3]) == several
    assert list(PALETTES["paper"].categories) == list(PALETTES["safe"].categories) == list(CATEGORIES)


def test_the_check_can_fail():
    """Green and yellow, helping and both, are nearly one colour to a red-green-blind reader of `paper`."""
    for eye in ("protanope", "deuteranope"):
        assert closest(corners("paper"), eye) < closest(corners("safe"), eye) / 2
        assert closest(categories("paper"), eye) < 10


def test_paper_is_red_for_interference_and_green_for_facilitation():
    draw = np.random.default_rng(0)
    helping, hurting = draw.random((2, 5, 4))
    expected = np.stack([hurting, helping, np.zeros_like(helping)], axis=-1)
    np.testing.assert_allclose(PALETTES["paper"].blend(helping, hurting), expected, atol=1e-12)


@pytest.mark.parametrize("name", PALETTES)
def test_corners_of_the_blend(name):
    blend = PALETTES[name].blend(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(blend, [to_rgb(corner) for corner in corners(name)])


def test_heat_of_the_paper_runs_from_black_over_green_and_yellow_to_red():
    heat = PALETTES["paper"].heat
    seen = [tuple(np.round(heat(value)[:3], 2)) for value in (0.0, 1 / 3, 2 / 3, 1.0)]
    assert seen[0] == (0, 0, 0) and seen[3] == (1, 0, 0)
    assert seen[1][1] > 0.6 and seen[1][0] < 0.03 and min(seen[2][:2]) > 0.97


def test_heat_of_safe_is_matplotlibs_cividis_and_the_page_has_33_steps_of_it():
    colours = json.loads(files("headatlas.figure").joinpath("palette.json").read_text(encoding="utf-8"))
    assert PALETTES["safe"].heat == colormaps["cividis"]
    steps = colours["palettes"]["safe"]["heat"]["steps"]
    exact = colormaps["cividis"](np.linspace(0, 1, 33))[:, :3]
    np.testing.assert_allclose([to_rgb(step) for step in steps], exact, atol=0.01)
