"""Sufficiency, distance, necessity and stability from curves that are worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from headatlas import AtlasError, RequestError
from headatlas.atlas import Atlas, Validation, by_seeds, doubts, find, validation_name
from headatlas.atlas.finding.published import (
    PUBLISHED_DATA,
    PUBLISHED_RELATIONS,
    PUBLISHED_SEEDS,
    are_published_relations,
    compares_with_paper,
    has_papers_data,
)
from headatlas.atlas.record import EffectMap, Run, ScoreMap
from headatlas.atlas.report import Report
from headatlas.atlas.stability import half_overlap
from headatlas.atlas.stability import retest as retested
from headatlas.task import builtin_relations, load_relation, load_task
from support.atlases import atlas_of, spec_of


def validation(**curves):
    """Shares 0, ½, 1 of four heads; six items, every second one with twice the losses of the first."""
    names = list(curves)

    def losses(values):
        return np.array([[value, 2 * value] * 3 for value in values], dtype=float)

    keep = np.stack([losses(keep) for keep, _ in curves.values()])
    drop = np.stack([losses(drop) for _, drop in curves.values()])
    off = np.stack([[losses(v) for v in ((1, 2, 3), (1, 1, 3), (1, 0.5, 3))]] * 2)
    by_chance = np.stack([losses((1, 1.5, 3)), losses((1, 2.5, 3))])
    return Validation(
        "t",
        tuple(names),
        (0, 2, 4),
        4,
        keep,
        drop,
        np.zeros_like(keep),
        np.ones_like(drop),
        off,
        by_chance,
        {},
    )


#: no heads lose 5, all heads 1
CURVES = {
    "gating": ((5, 1, 1), (1, 5, 5)),
    "half": ((5, 3, 1), (1, 3, 5)),
    "better": ((5, 0, 1), (1, 5, 5)),
    "random 1": ((5, 5, 1), (1, 1, 5)),
    "random 2": ((5, 3, 1), (1, 3, 5)),
}


def test_areas():
    """Faithfulness of gating at shares 0, ½, 1 is 0, 1, 1: area ¾. Of "better" 0, 1¼, 1: area 7/8."""
    found = validation(**CURVES)
    assert found.curve("gating").tolist() == [0, 1, 1] and found.curve("gating", "drop").tolist() == [1, 0, 0]
    assert found.sufficiency("gating").mean == pytest.approx(0.75)
    assert found.distance("gating").mean == pytest.approx(0.25)
    assert found.necessity("gating").mean == pytest.approx(0.75)
    assert found.sufficiency("half").mean == found.necessity("half").mean == pytest.approx(0.5)
    assert found.sufficiency("better").mean == pytest.approx(7 / 8)
    assert found.distance("better").mean == pytest.approx((1 + 0.25) / 4 + 0.25 / 4)
    assert found.curve("random").tolist() == [0, 0.25, 1]  # the mean of 0 and ½
    assert found.named() == ["gating", "half", "better", "random"]
    assert found.difference("gating", "half").mean == pytest.approx(0.25)
    table = found.table()
    assert table["method"].tolist() == ["better", "gating", "half", "random"]
    # both items have the same faithfulness, so they do not show how much it varies
    one = table[table["method"] != "random"]
    assert one[["sufficiency_low", "sufficiency_high"]].isna().all(axis=None)
    # the gap is 4 nats in the first item and 8 in the second: areas in nats are 6 times the normalized ones
    assert table["sufficiency_nats"].tolist() == pytest.approx((6 * table["sufficiency"]).tolist())
    assert table["necessity_nats"].tolist() == pytest.approx((6 * table["necessity"]).tolist())
    assert table["distance_nats"].tolist() == pytest.approx((6 * table["distance"]).tolist())


def test_random_orders_vary():
    """Areas of ¼ and ½: the variance of their mean is 1/64, and t with one degree of freedom is 12.7."""
    found = validation(**CURVES).sufficiency("random")
    half = stats.t.ppf(0.975, 1) / 8
    assert (found.low, found.high) == pytest.approx((0.375 - half, 0.375 + half))


def test_rankings_without_a_part_of_the_data_widen_the_interval():
    """Without the first part gating is as good as with all (¾), without the second only ½: the jackknife
    variance of two parts is (1/8)² + (1/8)², halved, 1/64. Items do not vary here."""
    curves = {**CURVES, "gating 1": CURVES["gating"], "gating 2": CURVES["half"]}
    found = validation(**curves)
    assert found.named() == list(validation(**CURVES).named())
    half = stats.t.ppf(0.975, 1) / 8
    own = found.sufficiency("gating")
    assert (own.mean, own.low, own.high) == pytest.approx((0.75, 0.75 - half, 0.75 + half))
    assert found.varies("gating") == "items and rankings" and found.varies("half") == "items only"
    # the difference counts the rankings of both, each 1/64 with 1 degree
    gap = found.difference("gating", "random")
    degrees = 1 / (2 * 0.5**1.5)
    assert gap.high - gap.mean == pytest.approx(stats.t.ppf(0.975, degrees) * np.sqrt(2 / 64))
    assert "items only (half, better)" in found.interval_words()


def inverted():
    """All heads are worse than none (5 against 1); the first half of gating takes the loss to 0.5."""
    return validation(
        **{
            "gating": ((1, 0.5, 5), (5, 5, 1)),
            "random 1": ((1, 3, 5), (5, 3, 1)),
            "random 2": ((1, 3, 5), (5, 3, 1)),
        }
    )


def test_a_model_that_is_worse_than_no_heads_is_not_normalized():
    """Normalized, random heads (½) would lead gating (3/16) because both signs turn round."""
    found = inverted()
    assert not found.is_normalized and found.gap.mean == pytest.approx(-6)
    assert np.isnan(found.curve("gating")).all() and np.isnan(found.sufficiency("gating").mean)
    # losses are 1.5 times those of the first item: gains 0, ¾, −6 over no heads
    assert found.gain("gating").tolist() == pytest.approx([0, 0.75, -6])
    assert found.sufficiency("gating", nats=True).mean == pytest.approx((0.75 / 2 + (0.75 - 6) / 2) / 2)
    assert found.difference("gating", "random", nats=True).mean > 0
    lines = found.records()
    assert [line["method"] for line in lines] == ["gating", "random"]
    assert lines[0]["sufficiency"] is None and lines[0]["necessity_low"] is None
    assert "not clearly better than no heads (-6.00" in found.why_not_normalized()


def test_a_gap_that_may_be_zero_is_not_normalized():
    """Every second item gains 4 nats from all heads, the others lose 2: not clearly positive."""
    found = validation(**CURVES)
    found.keep[:, :, 1::2] = np.array([1, 2, 3])[:, None]
    assert found.gap.mean == 1 and not found.is_normalized


def with_validation(check):
    """An atlas with one task that was validated so."""
    made = atlas_of({"t": {seed: (HIGH[seed], LOW[seed]) for seed in (0, 1)}})
    names = ("keep", "drop", "keep_right", "drop_right", "off", "by_chance")
    arrays = {name: getattr(check, name) for name in names}
    about = {
        "task": "t",
        "methods": list(check.methods),
        "counts": list(check.counts),
        "heads": check.heads,
        "facts": check.facts,
    }
    made.notes[validation_name("t")] = (arrays, about)
    return made


def test_findings_in_nats_say_why():
    found = {one.about: one for one in find(with_validation(inverted())) if one.topic == "sufficiency"}
    own, gap = found["t, gating"], found["t, gating − random"]
    assert own.value == pytest.approx(inverted().sufficiency("gating", nats=True).mean)
    assert "nats over no heads" in own.text and "not normalized: the whole model" in own.text
    assert gap.value > 0 and "nats" in gap.text
    assert any("not normalized" in doubt.text for doubt in doubts(with_validation(inverted()), "t"))
    usual = {one.about: one for one in find(with_validation(validation(**CURVES)))}
    assert "sufficient to 0.75" in usual["t, gating"].text and "+4.50" in usual["t, gating"].text


def test_ablation_in_a_model_of_fewer_than_ten_heads_names_a_head():
    """5 % of 6 heads is no head: the finding takes one, and says so instead of "the first 0 %"."""
    losses = np.ones((1, 3, 6))
    off = np.broadcast_to(np.array([1.0, 1.5, 2.0])[:, None], (2, 3, 3, 6))
    check = Validation(
        "t", ("gating",), (0, 1, 6), 6, losses, losses, losses, losses, off, off[:, 0], {}
    )  # fmt: skip
    high = np.full((2, 3), 0.9)
    made = atlas_of({"t": {0: (high, high), 1: (high, high)}})
    made.notes = with_validation(check).notes
    found = [one for one in find(made) if one.topic == "ablation"]
    assert [one.text.split(", ")[1] for one in found] == [
        f"without the first 1 of 6 heads by {order}"
        for order in ("facilitation", "irrelevance", "interference")
    ]
    assert all(one.value == pytest.approx(-0.5) and " 0 %" not in one.text for one in found)


def test_items_of_a_group_are_drawn_together():
    """Six pairs of copies are six observations, not twelve; one group has no interval."""
    plain = validation(**CURVES)
    names = ("keep", "drop", "keep_right", "drop_right", "off", "by_chance")
    twice = {name: np.repeat(getattr(plain, name), 2, axis=-1) for name in names}
    about = {"task": "t", "methods": list(CURVES), "counts": [0, 2, 4], "heads": 4}
    copies = Validation.from_note(twice, {**about, "facts": {"groups": [item // 2 for item in range(12)]}})
    assert copies.items == 12 and copies.independent == 6
    assert copies.item_words() == "12 held-out items in 6 groups"
    assert plain.item_words() == "6 held-out items"
    for order in ("facilitation", "interference"):
        one, other = copies.change(order, 0.5), plain.change(order, 0.5)
        assert (one.low, one.high) == pytest.approx((other.low, other.high))
    one, other = (each.sufficiency("gating", nats=True) for each in (copies, plain))
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    same = Validation.from_note(twice, {**about, "facts": {"groups": [0] * 12}})
    assert same.gap.low is None and not same.is_normalized
    found = doubts(with_validation(copies), "t")
    assert any("validated on 12 held-out items in 6 groups" in doubt.text for doubt in found)
    with pytest.raises(AtlasError, match="3 groups for 12 items"):
        Validation.from_note(twice, {**about, "facts": {"groups": [0, 1, 2]}})


def test_the_change_counts_seeds():
    """One seed loses 1.5 nats on average, the other 0.5: the items' interval is widened by the seeds'."""
    found = validation(**CURVES)
    narrow = found.change("facilitation", 0.5)
    found.off[0, 0, 1] += 1
    found.off[1, 0, 1] -= 1
    wide = found.change("facilitation", 0.5)
    assert wide.mean == pytest.approx(narrow.mean)
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


def test_ablation_from_retain():
    """The change of the log-probability, mean over the items: losses are 1.5 times those of the first
    item."""
    found = validation(**CURVES).ablation()
    assert found["change"].sel(order="facilitation").values.tolist() == pytest.approx([0, -1.5, -3])
    assert found["change"].sel(order="irrelevance").values.tolist() == pytest.approx([0, 0, -3])
    assert found["change"].sel(order="interference").values.tolist() == pytest.approx([0, 0.75, -3])
    assert found["middle"].values.tolist() == pytest.approx([0, -1.5, -3])
    assert (found["low"] <= found["middle"]).all() and (found["middle"] <= found["high"]).all()


def test_the_change_at_one_share():
    """Half of the heads off: by facilitation every second item loses 1, the others 2."""
    found = validation(**CURVES)
    change = found.change("facilitation", 0.4)  # 0.5 is the nearest that was measured
    assert change.mean == pytest.approx(-1.5)
    exact = stats.ttest_1samp([-1, -2] * 3, 0).confidence_interval()
    assert (change.low, change.high) == pytest.approx((exact.low, exact.high))
    assert found.change("irrelevance", 0.5).mean == 0 and found.change("interference", 0.5).mean == 0.75
    assert found.change("facilitation", 0).mean == 0


def test_one_group_cannot_tell_whether_the_gap_is_positive():
    """Items of one group gain 4 and 8 nats from all heads: the gap is clearly positive in these items, but
    another group may differ. It was called "not clearly better"."""
    found = replace(validation(**CURVES), facts={"groups": [0] * validation(**CURVES).items})
    assert found.gap.low is None and not found.is_normalized and found.gap.mean == pytest.approx(6)
    assert "+6.00 nats better than no heads on the held-out items, but one group cannot tell" in (
        found.why_not_normalized()
    )
    assert found.interval_words() == "" and {line["varies"] for line in found.records()} == {""}
    same = replace(found, keep=np.ones_like(found.keep), facts={})
    assert "+0.00 nats" in same.why_not_normalized() and "do not vary" in same.why_not_normalized()


def gates(*rows):
    return np.array(rows, dtype=float)


#: task a: head 0 always helps, head 1 in the second seed, head 2 hurts in the first, head 3 is idle
HIGH = (gates([0.9, 0.9], [0.1, 0.9]), gates([0.9, 0.9], [0.9, 0.9]))
LOW = (gates([0.9, 0.1], [0.1, 0.1]), gates([0.9, 0.8], [0.1, 0.1]))


def atlas():
    seeds = {seed: (HIGH[seed], LOW[seed]) for seed in (0, 1)}
    turned = {seed: (HIGH[seed][::-1], LOW[seed][::-1]) for seed in (0, 1)}
    return atlas_of({"a": seeds, "b": turned})


def test_by_seeds():
    found = by_seeds(atlas().scores("a")).set_index("seeds")
    assert found.loc[2, "always_facilitating"] == 0.25 and found.loc[2, "any_facilitating"] == 0.5
    assert found.loc[2, "any_interfering"] == 0.25 and found.loc[2, "always_interfering"] == 0
    # one seed: a quarter and a half facilitate
    assert found.loc[1, "always_facilitating"] == found.loc[1, "any_facilitating"] == pytest.approx(0.375)
    assert np.isnan(found.loc[2, "facilitation_with_others"])
    # a mean over seeds agrees with one that contains it, so there is no such column
    assert {name for name in found.columns if "_with_" in name} == {
        "facilitation_with_others", "interference_with_others"
    }  # fmt: skip
    wanted = stats.spearmanr([0.9, 0.1, 0.1, 0.1], [0.9, 0.8, 0.1, 0.1]).statistic
    assert found.loc[1, "facilitation_with_others"] == pytest.approx(wanted)
    assert found["choices"].tolist() == [2, 1]


def test_the_same_again():
    scores = atlas().scores("a")
    again = retested(scores, scores)
    assert again == {"facilitation": 1.0, "interference": 1.0, "jaccard": 1.0, "chance": 0.25}
    other = retested(scores, atlas().scores("b"))
    assert other["jaccard"] == 0 and other["facilitation"] < 0


def test_disjoint_halves_of_the_seeds_by_hand():
    """Four heads. Seeds 0 and 1 name head 0, seeds 2 and 3 heads 0 and 1. Halves of two: 01|23 gives sets
    {0} and {0, 1} (mean 0.45 of head 1 is below the threshold in mixed halves): Jaccard 1/2, else 1."""
    first, second = (np.array([[0.9, 0.05], [0.05, 0.05]]), np.array([[0.9, 0.85], [0.05, 0.05]]))
    scores = xr.Dataset(
        {"facilitation": (("seed", "layer", "head"), np.stack([first, first, second, second]))}
    )
    found = half_overlap(scores)
    assert found.seeds == 2 and found.jaccard == pytest.approx((0.5 + 1 + 1) / 3)
    # chance: {0} and {0, 1} share one head in half of the cases (1/2 or 0); {0} and {0}: in a quarter
    assert found.chance == pytest.approx((0.5 * 0.5 + 0.25 + 0.25) / 3)
    assert half_overlap(scores.isel(seed=[0])) is None


def test_seeds_that_share_nothing_overlap_by_chance():
    """Resampled seeds overlap with themselves: the old index gave 0.47 to 0.77 here."""
    rng = np.random.default_rng(0)
    scores = xr.Dataset({"facilitation": (("seed", "layer", "head"), rng.random((10, 20, 10)) ** 0.5)})
    found = half_overlap(scores, 0.7)
    assert found.jaccard == pytest.approx(found.chance, abs=0.05)


def test_findings():
    found = {(one.topic, one.about): one for one in find(atlas())}
    assert found["density", "a, always, facilitation"].value == 0.25
    assert found["density", "a, any, interference"].value == 0.25
    assert found["tasks", "a − b"].value == 0 and found["tasks", "a − b"].p == 1
    assert found["density", "a, always, facilitation"].low is None  # a count of these seeds
    assert found["overlap", "a, b"].value == 0
    assert found["several", "a, both roles"].value == 0
    # in task a what facilitates is in layer 0, in b in layer 1
    assert found["layers", "a, mean facilitation"].value < 0 < found["layers", "b, mean facilitation"].value
    tested = [one for one in found.values() if one.p is not None]
    assert tested and all(one.p <= one.adjusted <= 1 for one in tested)
    assert all(one.adjusted is None for one in found.values() if one.p is None)
    page = atlas().report().markdown()
    assert "a: 25.0 %" in page and page.count("## ") == 1 + len({topic for topic, _ in found})
    assert ("## Before you believe this" in page and "- a: imported" in page) or "- a: objective" in page
    assert atlas().report().markdown() == page


def test_how_many_seeds_are_enough():
    """Maps of single seeds have ranks 1 2 3 4, 1 3 2 4, 1 2 4 3: correlations 0.8, 0.8, 0.4."""
    lows = ([0.1, 0.2, 0.3, 0.4], [0.1, 0.3, 0.2, 0.4], [0.1, 0.2, 0.4, 0.3])
    seeds = {seed: (np.full((2, 2), 0.9), np.reshape(low, (2, 2))) for seed, low in enumerate(lows)}
    found = {(one.topic, one.about): one for one in find(atlas_of({"a": seeds}))}
    short = found["stability", "a, number of seeds"]
    assert (
        short.value == pytest.approx((0.8 + 0.8 + 0.4) / 3)
        and "1 seed each" in short.text
        and "not reached" in short.text
    )
    same = {seed: (np.full((2, 2), 0.9), np.reshape(lows[0], (2, 2))) for seed in range(4)}
    found = {(one.topic, one.about): one for one in find(atlas_of({"a": same}))}
    assert found["stability", "a, number of seeds"].value == 1
    assert "reached with 1" in found["stability", "a, number of seeds"].text


def drawn_tasks(seeds, layers=12, heads=8):
    """Tasks of one kind: of every head a chance to be kept, in every seed anew."""
    draw = np.random.default_rng(0)
    chance = draw.uniform(0.3, 1, size=(layers, heads))
    high = np.full((layers, heads), 0.95)
    return {
        task: {
            seed: (high, np.where(draw.uniform(size=chance.shape) < chance, 0.9, 0.1))
            for seed in range(count)
        }
        for task, count in seeds.items()
    }


def test_tasks_with_different_numbers_of_seeds():
    """Seeds are the units of the test, and Always takes equally many seeds of both."""
    tasks = drawn_tasks({"a": 3, "b": 10})
    found = {(one.topic, one.about): one for one in find(atlas_of(tasks))}
    gap = found["tasks", "a − b"]
    shares = [[(low >= 0.5).mean() for _, low in tasks[task].values()] for task in "ab"]
    assert gap.value == pytest.approx(np.mean(shares[0]) - np.mean(shares[1]))
    assert gap.p == pytest.approx(stats.ttest_ind(*shares, equal_var=False).pvalue) and gap.low < 0 < gap.high
    always = [np.min([low for _, low in list(tasks[task].values())[:3]], axis=0) >= 0.5 for task in "ab"]
    assert found["overlap", "a, b"].value == (always[0] & always[1]).sum()
    assert "in the first 3 seeds of each" in found["overlap", "a, b"].text


def test_a_clear_trend_stays_clear_among_many_tests():
    """Seven tasks, all as steep as can be: adjusting does not make them doubtful."""
    depth = np.repeat(np.linspace(0.05, 0.95, 12)[:, None], 8, axis=1)
    draw = np.random.default_rng(1)
    tasks = {
        f"t{n}": {0: (np.full((12, 8), 0.9), np.clip(depth + draw.normal(0, 0.02, depth.shape), 0.01, 0.99))}
        for n in range(7)
    }
    trends = [one for one in find(atlas_of(tasks)) if one.topic == "layers" and "mean" in one.about]
    assert len(trends) == 7 and all(one.value > 0.9 and one.adjusted < 0.05 for one in trends)
    assert all("rises with depth" in one.text for one in trends)


def test_heads_with_both_roles():
    """Head 0 facilitates in seed 0 and interferes in seed 1; all others are idle."""
    idle = (np.full((2, 2), 0.9), np.full((2, 2), 0.1))
    seeds = {0: (idle[0], gates([0.9, 0.1], [0.1, 0.1])), 1: (gates([0.1, 0.9], [0.9, 0.9]), idle[1])}
    (found,) = [one for one in find(atlas_of({"a": seeds})) if one.topic == "several"]
    assert found.value == 1 and found.p is None
    # a head that is both in one seed, and nothing else, has not changed its role
    odd = {seed: (np.full((2, 2), 0.9), np.full((2, 2), 0.1)) for seed in (0, 1)}
    odd[0] = (gates([0.1, 0.9], [0.9, 0.9]), gates([0.9, 0.1], [0.1, 0.1]))
    (found,) = [one for one in find(atlas_of({"a": odd})) if one.topic == "several"]
    assert found.value == 0


def test_what_speaks_against_a_map():
    """One seed whose gates have hardly parted; and two that are the same and far apart."""
    weak = {0: (np.full((2, 2), 0.5), gates([0.45, 0.45], [0.45, 0.44]))}
    good = {seed: (np.full((2, 2), 0.9), gates([0.9, 0.1], [0.1, 0.2])) for seed in (0, 1)}
    other = {0: good[0], 1: (np.full((2, 2), 0.9), gates([0.1, 0.9], [0.2, 0.1]))}
    made = atlas_of({"weak": weak, "good": good, "other": other})
    few = "7 distinct held-out items: too few"  # as many as these atlases say that they had
    alone, separation, *rest = (doubt.text for doubt in doubts(made, "weak"))
    assert separation.startswith("mean |G+ − G−| is 0.05") and "raise updates=…" in separation
    assert alone.startswith("1 seed, fewer than any preset") and "resume=True adds some" in alone
    assert len(rest) == 1 and rest[0].startswith(few)
    assert [doubt.key for doubt in doubts(made, "good")] == ["seeds", "held-out"]
    _, alike, *rest = (doubt.text for doubt in doubts(made, "other"))
    assert alike.startswith("seeds correlate -0.") and len(rest) == 1 and rest[0].startswith(few)
    page = made.report().markdown()
    assert page.count("**doubtful**") == 8 and page.index("doubtful") < page.index("## How many heads")
    # with one seed nothing is said twice
    about = [one.about for one in find(made) if one.about.startswith("weak")]
    assert "weak, per seed, facilitation" in about and not any("always, " in one for one in about)


def test_the_share_per_seed_has_an_interval_over_seeds():
    lows = ([0.9, 0.9, 0.9, 0.1], [0.9, 0.9, 0.1, 0.1], [0.9, 0.1, 0.1, 0.1])
    seeds = {seed: (np.full((2, 2), 0.9), np.reshape(low, (2, 2))) for seed, low in enumerate(lows)}
    found = {one.about: one for one in find(atlas_of({"a": seeds}))}["a, per seed, facilitation"]
    exact = stats.ttest_1samp([0.75, 0.5, 0.25], 0).confidence_interval()
    assert found.value == 0.5 and found.high == pytest.approx(min(exact.high, 1))
    alone = {one.about: one for one in find(atlas_of({"a": {0: seeds[0]}}))}["a, per seed, facilitation"]
    assert alone.low is None and "1 seed" in alone.text and "1 seeds" not in alone.text


def named_by_mediation(effects, low):
    from headatlas.atlas import Atlas

    plain = atlas_of({"a": dict.fromkeys((0, 1), (np.full(low.shape, 0.9), low))})
    fits = [fit for group in plain._fits.values() for fit in group.values()]
    maps = [EffectMap("mediate", "a", 0, "id", effects.astype(np.float32), effects * 0, {})]
    made = Atlas(plain.spec, [*plain.runs.values(), Run("mediate", "a", "id")], fits, effects=maps)
    return [one for one in find(made) if one.topic == "mediation"]


def test_heads_that_mediation_names():
    """Of 96 heads two have an effect of 1, the others none: the mean is 0.021, three deviations are 0.43."""
    low = np.random.default_rng(0).uniform(0.1, 0.6, size=(12, 8))
    effects = np.zeros((12, 8))
    effects[3, 1] = effects[7, 2] = 1
    low[3, 1], low[7, 2] = 0.9, 0.8
    others = low[effects == 0]
    (found,) = named_by_mediation(effects, low)
    wanted = np.mean([0.9 - low[3].mean(), 0.8 - low[7].mean()])
    assert found.value == pytest.approx(wanted, abs=1e-5) and found.low > 0
    assert "the 2 heads that mediation names" in found.text and "0.85, the others" in found.text
    assert f"{others.mean():.2f} (in the seed" in found.text
    # each is the highest of the 8 heads of its layer: one of 64 arrangements, and ties count half
    assert found.p == pytest.approx(0.5 / 64, abs=0.003)
    effects[7, 2] = 0
    assert named_by_mediation(effects, low) == []  # one head alone has no spread to test


def test_heads_without_an_effect_are_left_out_of_the_mediation_test():
    """An imported table may lack heads: the finding is that of the others, and says how many are missing."""
    low = np.random.default_rng(0).uniform(0.1, 0.6, size=(12, 8))
    effects = np.zeros((12, 8))
    effects[3, 1] = effects[7, 2] = 1
    low[3, 1], low[7, 2] = 0.9, 0.8
    effects[3, 0] = effects[5, 5] = np.nan
    (finding,) = named_by_mediation(effects, low)
    expected = np.mean([0.9 - low[3, 1:].mean(), 0.8 - low[7].mean()])
    assert finding.value == pytest.approx(expected, abs=1e-5)
    assert "2 heads without an effect left out" in finding.text
    assert "where heads were patched was not recorded" in finding.text
    assert named_by_mediation(np.full((12, 8), np.nan), low) == []


def test_a_planted_gradient_and_overlap_are_found():
    """24 layers of 8: facilitation grows with depth; both tasks use the same heads."""
    draw = np.random.default_rng(0)
    depth = np.linspace(0, 1, 24)[:, None]
    low = np.clip(depth + draw.normal(0, 0.15, size=(24, 8)), 0.01, 0.99)
    high = np.full((24, 8), 0.95)
    seeds = {seed: (high, np.clip(low + draw.normal(0, 0.02, low.shape), 0.01, 0.99)) for seed in range(3)}
    found = {(one.topic, one.about): one for one in find(atlas_of({"math": seeds, "syntax": seeds}))}
    assert "another data set" in found["density", "math, always, facilitation"].published
    assert found["tasks", "math − syntax"].published is None
    rises = found["layers", "math, mean facilitation"]
    assert rises.low > 0.7 and rises.adjusted < 0.05 and "rises with depth" in rises.text
    same = found["overlap", "math, syntax"]
    in_every = np.min([below for _, below in seeds.values()], axis=0) >= 0.5
    assert same.adjusted < 0.05 and same.value == in_every.sum()


def with_facts(atlas, facts):
    """The same atlas, with these facts about each of its tasks."""
    runs = [replace(run, task_facts=facts) for run in atlas.runs.values()]
    return Atlas(atlas.spec, runs, [fit for some in atlas._fits.values() for fit in some.values()])


def paper_facts(task="paper/math", **changes):
    """What an atlas stores about a task of the paper; `changes` of its source."""
    spec = PUBLISHED_DATA[task]
    return {"spec": {**spec, "source": {**spec["source"], **changes}, "about": "the words are free"}}


def with_facts_of_each(atlas, facts):
    """The same atlas; `facts`: task -> facts about it."""
    runs = [replace(run, task_facts=facts[run.task]) for run in atlas.runs.values()]
    return Atlas(atlas.spec, runs, [fit for some in atlas._fits.values() for fit in some.values()])


def ten_seeds():
    draw = np.random.default_rng(0)
    low = draw.uniform(0.05, 0.95, size=(10, 12, 8))
    return {seed: (np.full((12, 8), 0.95), low[seed]) for seed in range(10)}


def test_published_figures_stand_beside_the_papers_data_alone():
    """Ten seeds of `paper/math` and `paper/syntax`; with fewer seeds Always and Any mean something else."""
    seeds = ten_seeds()
    facts = {task: paper_facts(task) for task in ("paper/math", "paper/syntax")}
    papers = with_facts_of_each(atlas_of(dict.fromkeys(facts, seeds)), facts)
    found = {one.about: one for one in find(papers)}
    assert "Llama-3 1B 38.3 %" in found["paper/math, always, facilitation"].published
    assert "Llama-3 1B +37.1" in found["paper/math − paper/syntax"].published
    assert "read off the figures" in found["paper/math, facilitation in any seed"].published
    few = {seed: seeds[seed] for seed in range(3)}
    others = atlas_of({"paper/math": few, "math": seeds, "mine": seeds})
    found = {one.about: one for one in find(with_facts(others, paper_facts()))}
    assert found["paper/math, always, facilitation"].published == "none: the paper has 10 seeds"
    assert found["math, any, facilitation"].published == "none: paper/math is another data set of this name"
    assert found["mine, any, facilitation"].published is None
    assert all((one.published or "none").startswith("none") for one in found.values())


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"spec": None},
        {**paper_facts(), "imported_from": "t.csv"},
        {"spec": {"source": {"file": "math.jsonl"}, "shortest": 55050}},
        paper_facts(hub="someone/other"),
        paper_facts(split="train_2M"),
        paper_facts(configs=["other"]),
        {"spec": {**paper_facts()["spec"], "shortest": None}},
    ],
)
def test_another_data_set_that_is_named_like_the_papers_task_is_not_its_data(facts):
    atlas = with_facts(atlas_of({"paper/math": ten_seeds()}), facts)
    assert not has_papers_data(atlas, "paper/math") and not compares_with_paper(atlas, "paper/math")
    findings = {one.about: one for one in find(atlas)}
    assert all((one.published or "none").startswith("none") for one in findings.values())
    published = findings["paper/math, always, facilitation"].published
    assert published == "none: this is another data set than the paper's math"


@pytest.mark.parametrize("task", sorted(PUBLISHED_DATA))
def test_the_papers_data_are_those_of_the_built_in_task(task):
    """What `map` stores about the built-in task compares with the paper, with the paper's number of seeds."""
    facts = {"spec": load_task(task).spec.to_json()}
    seeds = ten_seeds()
    made = with_facts(atlas_of({task: seeds}), facts)
    assert len(seeds) == PUBLISHED_SEEDS and compares_with_paper(made, task)
    fewer = with_facts(atlas_of({task: {seed: seeds[seed] for seed in range(9)}}), facts)
    assert has_papers_data(fewer, task) and not compares_with_paper(fewer, task)


def with_relations(relations, layers=32):
    """An atlas of relations, (name, category, licence), each of which the first head of a layer promotes."""
    runs, scores = [], []
    for place, (name, category, licence) in enumerate(relations):
        values = np.zeros((2, layers, 2))
        values[0, place % layers, 0] = 0.5
        runs.append(Run("relations", name, "id", {"category": category, "licence": licence}))
        scores.append(ScoreMap("relations", name, "id", values, {"category": category, "kind": "static"}))
    return Atlas(spec_of(*[2] * layers), runs, [], scores=scores)


KNOWLEDGE = [(name, "knowledge", "CC0-1.0") for name in ("country-capital", "country-language")]
COPYING = ("copying", "algorithmic", "CC0-1.0")


def test_published_categories_stand_beside_the_published_relations_alone():
    own = ("my-facts", "knowledge", None)
    file = ("country-language", "knowledge", None)  # named like a built-in list; a file states no licence
    found = {(one.topic, one.about): one for one in find(with_relations([*KNOWLEDGE, COPYING]))}
    assert found["categories", "knowledge"].published == "from layer 18 of 32 on"
    assert found["several", "categories"].published == "few heads have 2 or 3"
    for foreign in ([*KNOWLEDGE, own], [KNOWLEDGE[0], file], [own]):
        found = {(one.topic, one.about): one for one in find(with_relations([*foreign, COPYING]))}
        assert (
            found["categories", "knowledge"].published is None
            and found["several", "categories"].published is None
        )
        assert found["categories", "algorithmic"].published == "from layer 18 of 32 on"


def test_published_layers_of_32_are_of_other_models():
    found = {(one.topic, one.about): one for one in find(with_relations([*KNOWLEDGE, COPYING], layers=8))}
    assert found["categories", "knowledge"].published == "of other models: from layer 18 of 32 on"
    assert found["categories", "knowledge"].text.startswith(
        "90 % of the 2 heads of category knowledge lie in layer 0 of 8"
    )


def test_the_published_relations_are_the_built_in_ones():
    built_in = [load_relation(name) for name in builtin_relations()]
    assert {one.name for one in built_in if one.published} == PUBLISHED_RELATIONS
    published = [one for one in built_in if one.published]
    made = with_relations([(one.name, one.category, one.licence) for one in published])
    assert are_published_relations(made, made.relations)


def test_a_category_named_other_is_not_the_other_heads():
    found = {
        (one.topic, one.about): one
        for one in find(with_relations([(f"r{n}", "other", None) for n in range(14)]))
    }
    assert found["categories", "other"].text.startswith(
        "90 % of the 14 heads of category other lie in layer 1 of 32"
    )
    assert found["categories", "other"].published is None


def test_one_of_each_is_not_plural():
    """One head, one seed, one test."""
    one = atlas_of({"a": {0: (np.full((1, 1), 0.9), np.full((1, 1), 0.1))}})
    page = one.report().markdown()
    assert "1 head in 1 layer; a (1 seed); 0 relations." in page
    assert "p: 0" not in page and "Holm" not in page
    (test,) = [finding for finding in find(atlas()) if finding.about == "a − b"]
    assert "p: 1 permutation or Welch test with these units" in Report(atlas(), (test,)).markdown()


def test_held_out_losses_are_findings():
    """Four items in two groups gain 1 and 3 nats with G+ in every seed; known groups gain 1."""
    seeds = {seed: (np.full((1, 2), 0.9), np.full((1, 2), 0.4)) for seed in range(2)}
    atlas = atlas_of({"t": seeds})
    (run,) = atlas.runs.values()
    baseline = {"nll": 4.0, "held_out_nll": [4.0] * 4, "groups": [0, 0, 1, 1], "rows": 4, "known_nll": 3.0}
    gated = {"retain": {"nll": 2.0, "held_out_nll": [3.0, 3.0, 1.0, 1.0], "known_nll": 2.0}}
    fits = [
        replace(fit, facts=gated.get(fit.fit, {})) for some in atlas._fits.values() for fit in some.values()
    ]
    atlas = Atlas(atlas.spec, [replace(run, baseline=baseline)], fits)
    (finding,) = (one for one in find(atlas) if one.topic == "held-out")
    assert finding.value == 2 and finding.low < 1 and finding.high > 3
    assert "NLL 4.00 without gates, 2.00 with G+: +2.00" in finding.text
    assert "4 items in 2 groups that no gate was fitted on" in finding.text
    assert finding.text.endswith("on new items of known groups 3.00 and 2.00")


def test_effects_in_an_atlas():
    values = np.array([[1.0, -2.0], [0.5, np.nan]])
    spec = spec_of(2, 1)
    runs = [Run("ablate-zero", "a", "id")]
    maps = [EffectMap("ablate-zero", "a", seed, "id", values + seed, values * 0, {}) for seed in (0, 1)]
    from headatlas.atlas import Atlas

    made = Atlas(spec, runs, [], effects=maps)
    assert made.methods("a") == ["ablate-zero"]
    assert made.importance("a", "ablate").values[0].tolist() == [1.5, -1.5]
    assert made.effects("a", "ablate")["effect"].shape == (2, 2, 2)
    card = made.card("L0H1")
    assert [(one.task, one.method, one.rank) for one in card.effects] == [("a", "ablate-zero", 3)]
    assert card.effects[0].effect == -1.5
    assert "| a, ablate-zero | L0H0 +1.500, L1H0 +1.000 | L0H1 -1.500 |" in made.report().markdown()
    table = made.to_table()
    assert len(table) == 6 and set(table["method"]) == {"ablate-zero"} and set(table["seed"]) == {0, 1}
    with pytest.raises(RequestError, match="no task in this atlas"):
        made.effects("b", "ablate")
    with pytest.raises(RequestError, match="no method with effects in this atlas named 'shapley'"):
        made.importance("a", "shapley")
    with pytest.raises(AtlasError, match="not validated yet"):
        made.validation("a")


def test_importance_of_gating_is_facilitation_less_interference():
    found = atlas().importance("a").values
    assert found.tolist() == [pytest.approx([0.8, 0.35], abs=1e-6), pytest.approx([-0.4, 0.0], abs=1e-6)]


def asking(low, score):
    """An atlas with a task that asks for the relation "double", which has these scores."""
    high = np.full(low.shape, 0.95)
    plain = atlas_of({"relation:double": dict.fromkeys((0, 1), (high, low))})
    runs = [
        Run("gating", "relation:double", "id", task_facts={"spec": {"source": {"relation": "double"}}}),
        Run("relations", "double", "id"),
    ]
    facts = {"category": "knowledge", "kind": "static", "pairs": 40}
    scores = ScoreMap("relations", "double", "id", np.stack([score, 0 * score]), facts)
    fits = [fit for group in plain._fits.values() for fit in group.values()]
    return Atlas(plain.spec, runs, fits, scores=[scores])


def test_the_causal_view_and_that_of_the_weights():
    """Within every layer the same heads facilitate and have the scores; or other ones do."""
    draw = np.random.default_rng(0)
    low = draw.uniform(0.05, 0.95, size=(12, 8))
    same = asking(low, low * 0.5)
    assert same.relation_of("relation:double") == "double"
    (found,) = [one for one in find(same) if one.topic == "joined"]
    assert found.value == pytest.approx(1) and found.p < 0.01
    strong, always = low * 0.5 >= 0.15, low >= 0.5
    assert f"of {strong.sum()} promoting heads, {(strong & always).sum()} facilitate" in found.text
    (other,) = [one for one in find(asking(low, draw.uniform(size=low.shape))) if one.topic == "joined"]
    assert abs(other.value) < 0.3 and other.p > 0.01
    holed = low * 0.5
    holed[0, 0] = np.nan
    (incomplete,) = [one for one in find(asking(low, holed)) if one.topic == "joined"]
    assert incomplete.value == pytest.approx(1) and "1 head without a score left out" in incomplete.text
    # what depth alone explains is no agreement: heads of a layer differ by noise alone
    depth = np.repeat(np.linspace(0.1, 0.9, 12)[:, None], 8, axis=1)
    noisy = [np.clip(depth + draw.normal(0, 0.02, depth.shape), 0, 1) for _ in range(2)]
    (layered,) = [one for one in find(asking(*noisy)) if one.topic == "joined"]
    assert abs(layered.value) < 0.3 and layered.p > 0.05
    assert not [one for one in find(asking(depth, depth)) if one.topic == "joined"]
