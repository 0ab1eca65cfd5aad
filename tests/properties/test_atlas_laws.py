"""Laws of agreement and of the store."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headatlas.atlas import Store, open_atlas
from headatlas.atlas.agreement import shares
from headatlas.atlas.record import Fit, Run
from support.atlases import atlas_of, spec_of

unit = st.floats(0.0078125, 0.9921875, width=32)


@st.composite
def gates(draw, most_seeds=5):
    """seed -> (G+, G-)"""
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    one = arrays(np.float32, shape, elements=unit)
    return {seed: (draw(one), draw(one)) for seed in range(draw(st.integers(1, most_seeds)))}


@given(gates(), st.floats(0.05, 0.95))
def test_always_is_part_of_any(found, threshold):
    atlas = atlas_of({"t": found})
    always, some = atlas.always("t"), atlas.any("t")
    for score in always:
        assert (always[score] <= some[score]).all()
        assert (~(always[score] >= threshold) | (some[score] >= threshold)).all()
    summary, scores = atlas.summary("t", threshold), atlas.scores("t")
    for role in summary.always:
        share = summary.per_seed[role]
        assert summary.always[role] <= share.mean + 1e-12 and share.mean <= summary.any[role] + 1e-12
        if len(found) == 1:
            assert share.low is share.high is None  # one seed says nothing about others
        elif share.low is None:  # seeds with equal shares do not show how much they vary
            each = [shares(scores.isel(seed=seed), threshold)[role] for seed in range(len(found))]
            assert each == [each[0]] * len(each) and share.mean == pytest.approx(each[0])
        else:
            assert share.low - 1e-12 <= share.mean <= share.high + 1e-12


@given(gates(most_seeds=1))
def test_one_seed_makes_them_equal(found):
    atlas = atlas_of({"t": found})
    assert atlas.always("t").equals(atlas.any("t"))


@given(gates(), st.randoms())
def test_the_order_of_the_seeds_is_irrelevant(found, chance):
    order = list(found)
    chance.shuffle(order)
    atlas = atlas_of({"t": found})
    other = atlas_of({"t": {place: found[seed] for place, seed in enumerate(order)}})
    assert atlas.always("t").equals(other.always("t")) and atlas.any("t").equals(other.any("t"))
    first, second = atlas.summary("t"), other.summary("t")
    assert first.always == second.always and first.any == second.any
    for role in first.per_seed:
        assert np.isclose(first.per_seed[role].mean, second.per_seed[role].mean)


@given(gates())
def test_every_head_has_one_word_and_the_shares_are_whole(found):
    atlas = atlas_of({"t": found})
    np.testing.assert_allclose(atlas.distribution("t").sum(axis=1), 1)


@settings(max_examples=40)
@given(
    arrays(np.float32, (3, 2, 3), elements=st.floats(-(2.0**99), 2.0**99, width=32)),
    st.text(min_size=1, max_size=40).filter(str.isprintable),
    st.integers(0, 10**6),
)
def test_store_and_load_is_exact(tmp_path_factory, values, task, seed):
    spec = spec_of(3, 3)
    root = tmp_path_factory.mktemp("atlas")
    run = Run("gating", task, "id", {"a": [1, "ü"]}, {"b": None}, {"nll": 0.1 + 0.2}, {"c": "d"})
    fit = Fit("gating", task, seed, "retain", "id", values[0], values, np.arange(3, dtype=np.int32),
              values[:, 0, 0].copy(), {"nll": 1 / 3})  # fmt: skip
    with Store.writing(root, spec) as store:
        store.add(run)
        store.write(fit)
    atlas = open_atlas(root)
    assert atlas.spec == spec and atlas.run(task) == run
    back = atlas.fit(task, seed, "retain")
    for name in ("logits", "path", "path_updates", "losses"):
        np.testing.assert_array_equal(getattr(back, name), getattr(fit, name))
        assert getattr(back, name).dtype == getattr(fit, name).dtype
    assert back.facts == fit.facts
