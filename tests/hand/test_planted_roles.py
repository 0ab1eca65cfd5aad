"""A model with planted heads: each gets exactly its role, in every seed."""

from __future__ import annotations

import numpy as np
import pytest

from headatlas.atlas.roles import role_scores, roles_of
from headatlas.method import GatingSettings
from headatlas.method.engine.likelihood import evaluate
from headatlas.method.gating import Stage
from support.fitting import fitted_gates
from support.planted import planted_model, planted_rows

SEEDS = range(6)
LONG = Stage(500, 0.1, 0.01), Stage(500, 0.5, 0.1)


def roles(model, settings):
    gates = fitted_gates(model, planted_rows(), settings)
    return roles_of(role_scores(gates)).values[:, 0]


def test_the_plant_is_what_it_says():
    model = planted_model("copy", "mistake", "nothing")
    rows = planted_rows()
    only = {name: np.eye(3)[place][None] for place, name in enumerate(("copy", "mistake", "nothing"))}
    assert evaluate(model, rows, only["copy"]).accuracy == 1
    assert evaluate(model, rows, only["mistake"]).accuracy == 0
    assert evaluate(model, rows, only["mistake"]).mean_nll > evaluate(model, rows, only["nothing"]).mean_nll
    np.testing.assert_allclose(evaluate(model, rows, only["nothing"]).nll, np.log(10), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["paper", "bounded"])
def test_roles_in_every_seed(objective):
    model = planted_model("copy", "mistake", "nothing")
    found = roles(model, GatingSettings(objective, *LONG, batch=8, seeds=len(SEEDS)))
    assert found.tolist() == [["facilitating", "interfering", "irrelevant"]] * len(SEEDS)


@pytest.mark.slow
def test_a_head_that_hardly_matters_is_irrelevant_only_if_logits_are_bounded():
    """The trap of the published objective: the free fit drives the gate to where no pressure reaches it."""
    model = planted_model("copy", "mistake", "whisper")
    fast = Stage(300, 1.0, 1.0), Stage(300, 1.0, 1.0)  # the rate of the authors' code
    bounded = roles(model, GatingSettings("bounded", *fast, batch=8, seeds=len(SEEDS)))
    assert bounded.tolist() == [["facilitating", "interfering", "irrelevant"]] * len(SEEDS)
    published = roles(model, GatingSettings("paper", *fast, batch=8, seeds=len(SEEDS)))
    assert (published[:, 2] == "interfering").any()
