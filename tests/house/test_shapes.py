"""Shapes that are annotated are checked while tests run."""

from __future__ import annotations

import pytest
import torch

from headatlas.model.linear import columns_of
from support.shapes import ShapeError


def test_a_wrong_shape_is_an_error_and_remembered():
    pytest.importorskip("beartype")
    jaxtyping = pytest.importorskip("jaxtyping")
    index = torch.tensor([1, 0])
    assert columns_of(torch.nn.Linear(3, 4), index).shape == (3, 2)
    with pytest.raises(jaxtyping.TypeCheckError):
        columns_of(torch.nn.Linear(3, 4), index[None])
    assert ShapeError.errors
    ShapeError.errors.clear()
