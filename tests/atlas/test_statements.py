"""What an atlas says about its results: doubts, effects in numbers, stability, selections of heads."""

from __future__ import annotations

import numpy as np
import pytest

from headatlas import Atlas, RequestError, UnknownNameError, compare_atlases
from headatlas.atlas import EffectMap, Run
from headatlas.atlas.agreement import shares, summarise
from headatlas.atlas.finding import TOPICS, Finding, find
from headatlas.atlas.selection import choose_gates, heads_by_role, heads_off
from headatlas.atlas.stability import by_seeds, half_overlap, retest
from support.atlases import atlas_of, contrast_atlas, spec_of

#: G+ and G- of two seeds: L0H0 facilitates, L0H1 and L1H0 interfere, L1H1 does so in the first seed only
SEEDS = {
    0: (np.array([[0.9, 0.1], [0.3, 0.2]]), np.array([[0.9, 0.1], [0.1, 0.1]])),
    1: (np.array([[0.9, 0.2], [0.4, 0.9]]), np.array([[0.8, 0.1], [0.1, 0.1]])),
}


def names(heads):
    return [str(head) for head in heads]


def test_heads_are_selected_by_role_or_name():
    atlas = atlas_of({"t": SEEDS}, spec_of(2, 2))
    assert names(heads_by_role(atlas, "t", "interfering")) == ["L0H1", "L1H0"]
    assert names(heads_by_role(atlas, "t", "facilitating")) == ["L0H0"]
    assert heads_off(atlas, ["L0H1", (1, 0)]).tolist() == [[1, 0], [0, 1]]
    assert choose_gates(atlas, "t").tolist() == [[1, 0], [0, 1]]
    with pytest.raises(UnknownNameError, match="helpful"):
        heads_by_role(atlas, "t", "helpful")
    with pytest.raises(RequestError, match="threshold"):
        heads_by_role(atlas, "t", "interfering", threshold=2)


@pytest.mark.parametrize("threshold", [float("nan"), -3, 0, 2, "x", None])
def test_every_threshold_is_checked(threshold):
    atlas, other = atlas_of({"t": SEEDS}, spec_of(2, 2)), atlas_of({"t": SEEDS}, spec_of(2, 1))
    scores = atlas.scores("t")
    for call in (
        lambda: atlas.roles("t", threshold),
        lambda: atlas.distribution("t", threshold),
        lambda: atlas.summary("t", threshold),
        lambda: atlas.stability("t", threshold),
        lambda: atlas.findings(threshold),
        lambda: find(Atlas(spec_of(2, 2), [], []), threshold),
        lambda: by_seeds(scores, threshold),
        lambda: half_overlap(scores, threshold),
        lambda: retest(scores, scores, threshold),
        lambda: shares(scores.isel(seed=0), threshold),
        lambda: summarise("t", scores, threshold=threshold),
        lambda: compare_atlases(atlas, other, "t", threshold=threshold),
    ):
        with pytest.raises(RequestError, match=r"threshold is .*; allowed are numbers above 0 and up to 1"):
            call()
    if threshold is not None:
        with pytest.raises(RequestError, match=r"hard is .*; allowed are numbers above 0 and up to 1"):
            choose_gates(atlas, "t", "retain", hard=threshold)


def test_a_hole_has_no_gate():
    ragged = atlas_of({"t": SEEDS}, spec_of(2, 1))
    np.testing.assert_array_equal(heads_off(ragged, ["L1H0"]), [[1, 1], [0, np.nan]])


def test_doubts_are_those_of_each_result():
    atlas = contrast_atlas()
    assert atlas.doubts() == {"sums without words": atlas.doubts("sums without words", "contrast")} != {}
    assert [doubt.key for doubt in atlas.doubts("sums without words", "contrast")] == ["seeds"]
    gated = atlas_of({"t": SEEDS})
    assert gated.doubts() == {"t": gated.doubts("t")}


def test_effects_in_numbers():
    values = np.array([[0.5, np.nan], [-0.25, 0.75]], np.float32)
    errors = np.array([[0.1, np.nan], [np.nan, 0.2]], np.float32)
    facts = {"items": 8, "nll": 2.0, "whole": 3.0, "prompts": "own", "positions": "all"}
    effect = EffectMap("ablate-zero", "t", 0, "id", values, errors, facts)
    atlas = Atlas(spec_of(2, 2), [Run("ablate-zero", "t", "id")], [], effects=[effect])
    summary = atlas.effect_summary("t", "ablate")
    helping, hurting = summary.strongest(1)
    assert (names(each.head for each in helping), names(each.head for each in hurting)) == (
        ["L1H1"],
        ["L1H0"],
    )
    assert [each.error for each in summary.heads] == [pytest.approx(0.2), pytest.approx(0.1), None]
    data = summary.to_json()
    assert (data["method"], data["items"], data["nll"], data["sum"]) == ("ablate-zero", 8, 2.0, 1.0)
    assert data["heads"][0]["head"] == "L1H1" and data["points"] is None
    bare = EffectMap("ablate-zero", "t", 0, "id", values, errors, {})
    imported = Atlas(spec_of(2, 2), [Run("ablate-zero", "t", "id")], [], effects=[bare])
    assert imported.effect_summary("t", "ablate-zero").nll is None


def test_stability_of_an_atlas():
    found = atlas_of({"t": SEEDS}).stability("t")
    assert found.by_seeds["seeds"].tolist() == [1, 2] and found.retest is None
    assert (found.halves.seeds, found.halves.jaccard) == (1, 1.0)
    data = found.to_json()
    assert data["seeds"][1]["facilitation_with_others"] is None and data["halves"]["jaccard"] == 1.0


def test_a_finding_is_data_and_says_the_numbers_it_holds():
    finding = Finding.of("overlap", "tasks", "a, b", 3, 0.5, first="a", second="b", seeds=[2, 3],
                         by_chance=1.0, jaccard=0.25)  # fmt: skip
    assert finding.text == (
        "a and b share 3 of the heads that facilitate in every seed, in the first 2 seeds of each; "
        "1.0 by chance with as many in each layer (Jaccard 0.25)"
    )
    assert list(finding.to_json())[:4] == ["topic", "about", "text", "value"] and "overlap" in TOPICS


def test_the_report_has_every_finding():
    atlas = atlas_of({"t": SEEDS})
    report = atlas.report()
    assert list(report.findings) == atlas.findings()
    assert [finding["text"] for finding in report.to_json()["findings"]] == [f.text for f in atlas.findings()]
    assert all(finding.text in report.markdown() for finding in report.findings)
