"""Passes of round shapes: filled up, and the same for all that."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headatlas import load_model
from headatlas.method.engine.likelihood import row_nll
from headatlas.method.engine.pass_runner import passes_per_update
from headatlas.method.engine.rows import RowTable, draw, round_up
from method.test_gating import free, pressed, rows_of
from support.tiny import build_tiny


@given(st.integers(1, 10**6), st.sampled_from([4, 8, 16]))
def test_round_numbers_are_few_and_near(count, steps):
    found = round_up(count, steps)
    assert count <= found <= count * (1 + 1 / steps) + 1 and round_up(found, steps) == found
    assert len({round_up(one, steps) for one in range(1024, 2048)}) <= steps + 1


@pytest.fixture(scope="module")
def model():
    return load_model(build_tiny("llama").double(), check=False)


@given(st.integers(1, 9), st.integers(1, 30), st.sampled_from([1, 2]), st.sampled_from([30, 64, 10_000]))
def test_every_row_is_in_one_pass(pieces, count, width, budget):
    table = RowTable(rows_of(40, 13))
    chosen = np.random.default_rng(count).integers(0, 40, (count, width))
    passes = list(table.passes(chosen, budget, "cpu", pieces=pieces))
    members = np.concatenate([group.members for group in passes])
    assert sorted(members) == list(range(count * width))
    assert len({group.shape[0] for group in passes}) == 1 and len(passes) <= max(count, 1)
    for group in passes:
        rows, length, targets, most = group.shape
        mine = chosen.ravel()[group.members]
        assert group.members[0] % width == 0 and rows % width == 0
        assert rows * length <= max(budget, width * round_up(13))
        assert int(group.weights.sum()) == (table.lengths - table.starts)[mine].sum() <= targets
        assert table.lengths[mine].max() <= length and int(group.offsets.max()) < most
    assert np.all(np.diff([group.shape[1] for group in passes]) <= 0)  # the longest rows first


def test_rows_are_worth_the_same(model):
    table = RowTable(rows_of(11, 13))
    chosen = np.arange(11)[:, None]
    found = {}
    for pieces in (0, 1, 3):
        values = torch.full((11,), torch.nan, dtype=torch.float64)
        for group in table.passes(chosen, 64, "cpu", pieces=pieces):
            with torch.no_grad():
                nll = row_nll(model, group).double()
            values[torch.from_numpy(group.members)] = nll[: len(group.members)]
            assert bool((nll[len(group.members) :] == 0).all())
        found[pieces] = values
    for pieces in (1, 3):
        torch.testing.assert_close(found[pieces], found[0], rtol=0, atol=1e-6)


def test_few_shapes_come_again():
    """Of a hundred updates with other rows each."""
    table, shapes, padded, real = RowTable(rows_of(300, 40)), Counter(), 0, 0
    for update in range(100):
        chosen = np.array(draw(300, 60, update, 0, 0))[:, None]
        for group in table.passes(chosen, 10_000, "cpu", pieces=3):
            shapes[group.shape] += 1
            padded, real = padded + group.shape[0] * group.shape[1], real + table.lengths[chosen].sum() / 3
    assert sum(shapes.values()) == 300 and len(shapes) <= 20
    one = list(table.passes(chosen, 10_000, "cpu", pieces=1))
    assert padded / real < one[0].ids.numel() / table.lengths[chosen].sum()


@pytest.mark.parametrize("make", [free, pressed])
def test_gates_are_the_same(model, make):
    plain, other = make(model, [0, 1]), make(model, [0, 1])
    other.runner.pieces = 2
    plain.run()
    other.run()
    torch.testing.assert_close(other.logits, plain.logits, rtol=0, atol=1e-5)
    assert other.results()[0].losses == pytest.approx(plain.results()[0].losses, abs=1e-5)


@pytest.mark.parametrize(("operations", "pieces"), [(1e9, 1), (1.7e13, 2), (1e15, 4)])
def test_an_update_is_cut_where_its_parts_are_large(operations, pieces):
    assert passes_per_update(operations) == pieces
