"""Every test of the report on atlases without any effect: it rejects at 5 % in 3 to 7 % of draws, and every
interval covers zero in 93 to 97 %.

Design (`support.null_atlases`): three tasks, eleven relations in four categories and causal mediation, all
independent of each other. Heads of one layer are correlated, seeds correlate as in the gallery. Two shapes:
12 layers of 8 heads with 3 seeds; and a ragged model with 6 seeds, in which all maps share their layer
effects, so that tests that permute heads within layers must not mistake common layers for common heads.
A new model is drawn each time; the tests of one atlas count one by one, before adjustment.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from headatlas.atlas import find
from headatlas.atlas.findings import _welch
from support.null_atlases import EVEN, RAGGED, null_atlas, null_scores

pytestmark = pytest.mark.slow

ATLASES = 500
#: topics whose null holds between independent tasks; "tasks" compares one task with itself below
TOPICS = ("layers", "categories", "columns", "several", "overlap", "mediation", "joined")


@pytest.mark.parametrize(
    ("shape", "seeds", "common_layers"), [(EVEN, 3, False), (RAGGED, 6, True)], ids=["even", "ragged"]
)
def test_tests_keep_their_level_and_intervals_cover(shape, seeds, common_layers):
    rejected, covered = defaultdict(list), defaultdict(list)
    for number in range(ATLASES):
        rng = np.random.default_rng([number, seeds])
        layer_effects = rng.standard_normal(len(shape)) if common_layers else None
        atlas = null_atlas(rng, shape, seeds=seeds, effects=("mediate",), layer_effects=layer_effects)
        for finding in find(atlas, permutations=999):
            if finding.topic not in TOPICS:
                continue
            if finding.p is not None:
                rejected[finding.topic].append(finding.p < 0.05)
            if finding.low is not None:
                covered[finding.topic].append(finding.low <= 0 <= finding.high)
    assert set(rejected) == set(TOPICS)
    rates = {topic: float(np.mean(values)) for topic, values in rejected.items()}
    coverage = {topic: float(np.mean(values)) for topic, values in covered.items()}
    assert all(0.03 <= rate <= 0.07 for rate in rates.values()), rates
    assert set(coverage) == {"layers", "mediation", "joined"}
    assert all(0.93 <= rate <= 0.97 for rate in coverage.values()), coverage


@pytest.mark.parametrize("seeds", [3, 10])
def test_one_task_with_disjoint_seeds_needs_as_many_heads_as_itself(seeds):
    """The shares of facilitating heads in two sets of seeds of one task: Welch's test over seeds. A test
    over heads rejects in 9 to 21 % here. The difference of the expected shares is zero."""
    rejected, covered = [], []
    for number in range(2000):
        scores = null_scores(np.random.default_rng([number, seeds, 1]), EVEN, 2 * seeds)["facilitation"]
        shares = (scores.values >= 0.5).mean(axis=(1, 2))
        interval, p = _welch(shares[:seeds], shares[seeds:])
        rejected.append(p is not None and p < 0.05)
        covered.append(interval.low is None or interval.low <= 0 <= interval.high)
    assert 0.03 <= np.mean(rejected) <= 0.07 and 0.93 <= np.mean(covered) <= 0.97
