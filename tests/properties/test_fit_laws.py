"""Laws of the fitting engine."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headatlas.method import GatingSettings
from headatlas.method.engine.gate_fit import GateFit, random_starts
from headatlas.method.engine.objective import Pressure
from headatlas.method.engine.rows import RowTable
from headatlas.method.gating import Stage
from support.planted import planted_model, planted_rows


@pytest.fixture(scope="module")
def model():
    return planted_model("copy", "mistake", "nothing")


class Careless(Pressure):
    """No loss."""

    def loss(self, nll):
        return 0 * nll[:, 0]


@settings(max_examples=25, deadline=None)
@given(
    objective=st.sampled_from(["paper", "bounded"]),
    rate=st.floats(0.01, 1.0),
    updates=st.integers(1, 12),
    start=st.lists(st.floats(-3.9, 3.9), min_size=3, max_size=3),
    pressure=st.floats(1e-3, 1.0),
)
def test_with_no_task_loss_retain_raises_and_remove_lowers(model, objective, rate, updates, start, pressure):
    stage = Stage(updates, rate, rate)
    chosen = GatingSettings(objective, stage, stage, 2, 1, pressure=pressure)
    starts = torch.tensor([[start], [start]])
    sets = [(0, "retain"), (0, "remove")]
    fit = GateFit(
        model, Careless(model, RowTable(planted_rows()), chosen, "pressed", sets), starts, budget=99
    )
    before = fit.logits.clone()

    def watch(step):
        nonlocal before
        up, down = fit.logits[0] - before[0], fit.logits[1] - before[1]
        inside = before.abs() < 4
        assert (up[inside[0]] > 0).all() and (down[inside[1]] < 0).all()
        assert (up >= 0).all() and (down <= 0).all()
        before = fit.logits.clone()

    fit.run(watch)


@settings(max_examples=15, deadline=None)
@given(seeds=st.lists(st.integers(0, 50), min_size=1, max_size=5, unique=True), updates=st.integers(1, 4))
def test_bounded_gates_stay_in_their_bounds(model, seeds, updates):
    stage = Stage(updates, 3.0, 1.0)
    chosen = GatingSettings("bounded", stage, stage, 3, len(seeds))
    starts = random_starts(model, chosen, seeds)
    assert (starts.abs() <= 4).all()
    sets = [(seed, "free") for seed in seeds]
    fit = GateFit(model, Pressure(model, RowTable(planted_rows()), chosen, "free", sets), starts, budget=99)
    fit.run(lambda step: None)
    assert (fit.logits.abs() <= 4).all()


@given(st.integers(1, 600), st.floats(0.001, 2), st.floats(0.001, 2))
def test_the_rate_goes_straight_from_first_to_last(updates, first, last):
    stage = Stage(updates, first, last)
    rates = [stage.rate_at(update) for update in range(updates)]
    assert rates[0] == first and (updates == 1 or abs(rates[-1] - last) < 1e-12)
    assert all(min(first, last) - 1e-12 <= rate <= max(first, last) + 1e-12 for rate in rates)
