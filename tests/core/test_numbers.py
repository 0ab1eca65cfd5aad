"""Numbers of a request: taken if they are allowed, else one sentence with what is."""

from __future__ import annotations

import numpy as np
import pytest

import headatlas
from headatlas import RequestError
from headatlas.core import require_path, require_share, require_whole


@pytest.mark.parametrize("value", [1, 5, np.int64(5), np.uint8(1)])
def test_whole_numbers(value):
    number = require_whole("seeds", value, 1, 5)
    assert number == value and type(number) is int


@pytest.mark.parametrize("value", [1.5, 2.0, "2", True, None, float("nan"), [1], np.float32(1)])
def test_what_is_not_whole_is_refused(value):
    with pytest.raises(RequestError, match=r"seeds is .*; allowed are whole numbers from 1 to 1,000\."):
        require_whole("seeds", value, 1, 1000)


@pytest.mark.parametrize("value", [0, -3, 1001])
def test_limits(value):
    with pytest.raises(RequestError, match=f"seeds is {value}; allowed are 1 to 1,000"):
        require_whole("seeds", value, 1, 1000)


def test_shares():
    assert require_share("threshold", 1) == 1.0 and require_share("threshold", np.float32(0.5)) == 0.5
    for value in (0, -3, 1.01, float("nan"), float("inf"), "x", None, True):
        with pytest.raises(RequestError, match=r"threshold is .*; allowed are numbers above 0 and up to 1"):
            require_share("threshold", value)


def test_paths(tmp_path):
    assert require_path("out", str(tmp_path)) == require_path("out", tmp_path) == tmp_path
    for value in (5, None, [tmp_path], b"x"):
        with pytest.raises(RequestError, match=r"out is .*; allowed is a path"):
            require_path("out", value)


def test_names_that_are_no_text_are_unknown():
    for wrong in ({"preset": 3}, {"method": 3}, {"objective": 5}, {"out": 5}):
        with pytest.raises(RequestError):
            headatlas.map_heads("smollm2", "aba", **wrong)
    with pytest.raises(RequestError, match="allowed is a path"):
        headatlas.open_atlas(None)
    with pytest.raises(RequestError, match="give an Atlas or its folder"):
        headatlas.validate_atlas(None)
