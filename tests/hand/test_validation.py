"""Sufficiency, distance, necessity and stability from curves that are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headatlas import AtlasError, RequestError
from headatlas.atlas import (
    Validation,
    by_seeds,
    doubts,
    facilitating_jaccard,
    faithfulness,
    find,
    report_markdown,
)
from headatlas.atlas import retest as retested
from headatlas.atlas.records import EffectMap, Run
from support.atlases import atlas_of, spec_of


def validation(**curves):
    """Shares 0, ½, 1 of four heads; two items, the second with twice the losses of the first."""
    names = list(curves)

    def losses(values):
        return np.array([[value, 2 * value] for value in values], dtype=float)

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
    # both items have the same faithfulness, so whichever are drawn, the areas are the same
    assert table["sufficiency_low"].tolist() == pytest.approx(table["sufficiency_high"].tolist())


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
    """Half of the heads off: by facilitation the first item loses 1, the second 2."""
    found = validation(**CURVES)
    change = found.change("facilitation", 0.4)  # 0.5 is the nearest that was measured
    assert change.mean == pytest.approx(-1.5)
    assert (change.low, change.high) == pytest.approx((-2, -1))  # only one of the items, or only the other
    assert found.change("irrelevance", 0.5).mean == 0 and found.change("interference", 0.5).mean == 0.75
    assert found.change("facilitation", 0).mean == 0


def test_no_difference_between_none_and_all():
    assert np.isnan(faithfulness(np.array([1.0, 2.0]), 3.0, 3.0)).all()


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
    assert found.loc[2, "facilitation_with_all"] == 1 and np.isnan(found.loc[2, "facilitation_with_others"])
    wanted = stats.spearmanr([0.9, 0.1, 0.1, 0.1], [0.9, 0.8, 0.1, 0.1]).statistic
    assert found.loc[1, "facilitation_with_others"] == pytest.approx(wanted)
    assert found["choices"].tolist() == [2, 1]


def test_the_same_again():
    scores = atlas().scores("a")
    assert facilitating_jaccard(scores) is None  # two seeds say nothing about others
    again = retested(scores, scores)
    assert again == {"facilitation": 1.0, "interference": 1.0, "jaccard": 1.0}
    other = retested(scores, atlas().scores("b"))
    assert other["jaccard"] == 0 and other["facilitation"] < 0


def test_three_seeds_drawn_again():
    """Two seeds of three name both heads, one only the first: whatever is drawn has the first."""
    seeds = {0: (HIGH[1], LOW[1]), 1: (HIGH[1], LOW[1]), 2: (HIGH[0], LOW[0])}
    found = facilitating_jaccard(atlas_of({"a": seeds}).scores("a"))
    assert 0.5 <= found.low <= found.mean < 1 and found.high == 1


def test_findings():
    found = {(one.topic, one.about): one for one in find(atlas())}
    assert found["density", "a, always, facilitation"].value == 0.25
    assert found["density", "a, any, interference"].value == 0.25
    assert found["tasks", "a − b"].value == 0 and found["tasks", "a − b"].p == 1
    assert found["overlap", "a, b"].value == 0
    assert found["several", "a, both roles"].value == 0
    # in task a what facilitates is in layer 0, in b in layer 1
    assert found["layers", "a, mean facilitation"].value < 0 < found["layers", "b, mean facilitation"].value
    tested = [one for one in found.values() if one.p is not None]
    assert tested and all(one.p <= one.adjusted <= 1 for one in tested)
    assert all(one.adjusted is None for one in found.values() if one.p is None)
    page = report_markdown(atlas())
    assert "a: 25.0 %" in page and page.count("## ") == 1 + len({topic for topic, _ in found})
    assert ("## Before you believe this" in page and "- a: imported" in page) or "- a: objective" in page
    assert report_markdown(atlas()) == page


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


def test_tasks_with_other_numbers_of_seeds_are_compared_with_as_many():
    """With more seeds fewer heads are in all of them; that is no difference between tasks."""
    tasks = drawn_tasks({"a": 3, "b": 10})
    found = {(one.topic, one.about): one for one in find(atlas_of(tasks))}
    gap = found["tasks", "a − b"]
    always = [np.min([low for _, low in list(tasks[task].values())[:3]], axis=0) >= 0.5 for task in "ab"]
    assert gap.value == pytest.approx(always[0].mean() - always[1].mean())
    assert "in the first 3 seeds of each" in gap.text and gap.p > 0.05
    assert found["overlap", "a, b"].value == (always[0] & always[1]).sum()


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


def test_roles_that_fall_out_by_chance_are_no_finding():
    """Every seed deals the roles out anew: as many heads have both as chance gives."""
    draw = np.random.default_rng(2)
    seeds = {}
    for seed in range(4):
        kind = draw.integers(3, size=(12, 8))
        seeds[seed] = (np.where(kind == 1, 0.1, 0.9), np.where(kind == 0, 0.9, 0.1))
    (found,) = [one for one in find(atlas_of({"a": seeds})) if one.topic == "several"]
    assert found.p > 0.05
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
    few = "7 held-out items: too few to tell small differences"  # as many as these atlases say that they had
    parted, alone, *rest = doubts(made, "weak")
    assert parted.startswith("G+ and G− differ by 0.05") and alone.startswith("one seed") and rest == [few]
    assert doubts(made, "good") == [few]
    alike, *rest = doubts(made, "other")
    assert alike.startswith("seeds correlate -0.") and rest == [few]
    page = report_markdown(made)
    assert page.count("**doubtful**") == 6 and page.index("doubtful") < page.index("## How many heads")
    # with one seed nothing is said twice
    about = [one.about for one in find(made) if one.about.startswith("weak")]
    assert "weak, always, facilitation" in about and not any("any, " in one for one in about)


def test_shares_of_none_and_all_are_not_certain():
    seeds = {0: (np.full((4, 4), 0.9), np.full((4, 4), 0.9))}
    found = {one.about: one for one in find(atlas_of({"a": seeds}))}
    none, every = found["a, always, interference"], found["a, always, facilitation"]
    assert none.value == 0 and none.low == pytest.approx(0) and 0.1 < none.high < 0.3
    assert every.value == 1 and every.high == pytest.approx(1) and "(1 seed)" in every.text


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
    assert found.value == pytest.approx(0.85 - others.mean(), abs=1e-5) and found.low > 0
    assert "the 2 heads that mediation names" in found.text and "0.85, the others" in found.text
    # Welch's t by its formula, with the degrees of freedom of Welch and Satterthwaite
    parts = [np.array([0.9, 0.8]), others]
    squares = [part.var(ddof=1) / len(part) for part in parts]
    t = (parts[0].mean() - parts[1].mean()) / np.sqrt(sum(squares))
    freedom = sum(squares) ** 2 / sum(s**2 / (len(part) - 1) for s, part in zip(squares, parts, strict=True))
    assert found.p == pytest.approx(stats.t.sf(t, freedom), rel=1e-3)
    effects[7, 2] = 0
    assert named_by_mediation(effects, low) == []  # one head alone has no spread to test


def test_a_planted_gradient_and_overlap_are_found():
    """24 layers of 8: facilitation grows with depth; both tasks use the same heads."""
    draw = np.random.default_rng(0)
    depth = np.linspace(0, 1, 24)[:, None]
    low = np.clip(depth + draw.normal(0, 0.15, size=(24, 8)), 0.01, 0.99)
    high = np.full((24, 8), 0.95)
    seeds = {seed: (high, np.clip(low + draw.normal(0, 0.02, low.shape), 0.01, 0.99)) for seed in range(3)}
    found = {(one.topic, one.about): one for one in find(atlas_of({"math": seeds, "syntax": seeds}))}
    rises = found["layers", "math, mean facilitation"]
    assert rises.low > 0.7 and rises.adjusted < 0.05 and "rises with depth" in rises.text
    same = found["overlap", "math, syntax"]
    in_every = np.min([below for _, below in seeds.values()], axis=0) >= 0.5
    assert same.adjusted < 0.05 and same.value == in_every.sum()
    assert "Llama-3 1B 38.3 %" in found["density", "math, always, facilitation"].published
    assert found["tasks", "math − syntax"].published.startswith("Llama-3 1B +37.1")


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
    assert "| a, ablate-zero | L0H0 +1.500, L1H0 +1.000 | L0H1 -1.500 |" in report_markdown(made)
    table = made.to_table()
    assert len(table) == 6 and set(table["method"]) == {"ablate-zero"} and set(table["seed"]) == {0, 1}
    with pytest.raises(RequestError, match="no task in this atlas"):
        made.effects("b", "ablate")
    with pytest.raises(RequestError, match="no method named 'shapley'"):
        made.importance("a", "shapley")
    with pytest.raises(AtlasError, match="not validated yet"):
        made.validation("a")


def test_importance_of_gating_is_facilitation_less_interference():
    found = atlas().importance("a").values
    assert found.tolist() == [pytest.approx([0.8, 0.35], abs=1e-6), pytest.approx([-0.4, 0.0], abs=1e-6)]


def asking(low, score):
    """An atlas with a task that asks for the relation "double", which has these scores."""
    from headatlas.atlas import Atlas, ScoreMap

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
    assert f"of {strong.sum()} heads that promote it, {(strong & always).sum()} facilitate" in found.text
    (other,) = [one for one in find(asking(low, draw.uniform(size=low.shape))) if one.topic == "joined"]
    assert abs(other.value) < 0.3 and other.p > 0.01
    # what depth alone explains is no agreement: all heads of a layer alike
    depth = np.repeat(np.linspace(0.1, 0.9, 12)[:, None], 8, axis=1)
    (layered,) = [one for one in find(asking(depth, depth)) if one.topic == "joined"]
    assert layered.value == pytest.approx(1) and layered.p == 1
