"""Effects of several seeds pooled by item, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from headatlas.atlas import Atlas, EffectMap, ItemEffects, Run, clustered_error
from support.atlases import spec_of


def effect_map(seed, effects, items, groups=None, method="ablate-zero", **facts):
    """A map of one head from the effects on single items."""
    values = np.asarray(effects, dtype=np.float32)[:, None, None]
    groups = items if groups is None else groups
    per_item = ItemEffects(values, np.array(items), np.array(groups))
    errors = clustered_error(values, groups)
    return EffectMap(method, "sums", seed, "id", values.mean(axis=0), errors, facts, *per_item)


def atlas_of(*maps, decides=None):
    run = Run(maps[0].method, "sums", "id", settings={"decides": decides or {}})
    return Atlas(spec_of(1), [run], [], effects=maps)


def pooled(*maps):
    found = atlas_of(*maps).pooled_effects("sums", maps[0].method)
    return found["effect"].item(), found["error"].item(), found.attrs["items"]


def test_seeds_that_measured_the_same_items_know_no_more_than_one():
    effects, items = [1.0, 2.0, 3.0, 6.0], [4, 7, 8, 9]
    one = effect_map(0, effects, items)
    error = np.std(effects, ddof=1) / 2
    assert pooled(one) == pytest.approx((3.0, error, 4))
    again = effect_map(1, effects[::-1], items[::-1])
    assert pooled(one, again) == pytest.approx((3.0, error, 4))


def test_items_that_some_seeds_share_count_once():
    maps = effect_map(0, [1.0, 2.0], [0, 1]), effect_map(1, [4.0, 6.0], [1, 2])
    each = [1.0, 3.0, 6.0]  # the second item is measured twice: 2 and 4
    assert pooled(*maps) == pytest.approx((np.mean(each), np.std(each, ddof=1) / np.sqrt(3), 3))
    assert atlas_of(*maps).importance("sums", "ablate-zero").item() == pytest.approx(np.mean(each))


def test_items_of_one_group_are_one_unit():
    effects = np.array([1.0, 1.0, 5.0, 5.0])
    alone, together = (clustered_error(effects, groups) for groups in ([0, 1, 2, 3], [0, 0, 1, 1]))
    assert together == pytest.approx(np.std([1, 5], ddof=1) / np.sqrt(2))  # as with one item of each group
    assert alone == pytest.approx(np.std(effects, ddof=1) / 2) and alone < together
    assert np.isnan(clustered_error(effects, [3, 3, 3, 3]))


def test_seeds_whose_items_are_unknown_do_not_shrink_the_error():
    values = np.ones((1, 1), dtype=np.float32)
    maps = [EffectMap("ablate-zero", "sums", seed, "id", values * seed, values, {}) for seed in (1, 2, 3)]
    assert pooled(*maps) == (2.0, 1.0, None)


@pytest.mark.parametrize(("total", "word"), [(9.8, "converged"), (-8.0, "not converged")])
def test_the_report_says_whether_integrated_gradients_converged(total, word):
    one = effect_map(0, [total, total], [0, 1], method="attribute-integrated", sum=total, whole=10.0)
    atlas = atlas_of(one)
    error = abs(total - 10) / 10
    assert atlas.completeness_error("sums") == pytest.approx(error)
    report = atlas.report().markdown()
    assert f"completeness error {100 * error:.1f} %" in report
    assert ("**not converged**" in report) == (word == "not converged")
    assert atlas_of(effect_map(0, [1.0, 2.0], [0, 1])).completeness_error("sums", "ablate-zero") is None
