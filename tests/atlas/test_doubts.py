"""Reasons to doubt a map, worked by hand; and the report's heads that help or hurt most."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from headatlas.atlas import (
    Atlas,
    EffectMap,
    Run,
    contrasts_of,
    doubts,
    effect_doubts,
    made_how,
    open_atlas,
    summarize_contrast,
    unpack_atlas,
    validation_doubts,
)
from headatlas.atlas.effect_summary import COMPLETE
from headatlas.atlas.finding.doubts import LEAST_SEEDS, LEAST_UPDATES, Doubt, chance_doubt
from headatlas.figure import plot_agreement, plot_sufficiency
from headatlas.method.gating import PRESETS
from headatlas.page.payload import payload_of
from support.atlases import atlas_of, contrast_atlas, spec_of

GALLERY = Path(__file__).parents[2] / "docs" / "gallery" / "atlas.zip"
AT_CHANCE = {"nll": 5.0, "chance_nll": 5.1, "accuracy": 0.0, "gain": 0.1, "gain_error": 0.1, "rows": 100}


def effects_of(values, facts=None):
    spec = spec_of(*[np.shape(values)[1]] * np.shape(values)[0])
    values = np.array(values, np.float32)
    effect = EffectMap("attribute-integrated", "sums", 0, "id", values, np.zeros_like(values), facts or {})
    return Atlas(spec, [Run("attribute-integrated", "sums", "id")], [], effects=[effect])


def test_doubts_about_a_method_do_not_stand_beside_gates(tmp_path):
    """The gradients of two of the gallery's tasks have not converged."""
    unpack_atlas(GALLERY, tmp_path / "atlas")
    atlas = open_atlas(tmp_path / "atlas")
    for task in atlas.tasks:
        error = atlas.completeness_error(task)
        keys = [doubt.key for doubt in validation_doubts(atlas, task)]
        assert ("completeness" in keys) == (error > COMPLETE)
        assert [key for key in keys if key != "completeness"] == [one.key for one in doubts(atlas, task)]
        assert "integrated" not in figure_text(plot_agreement(atlas, [task]))
        assert ("integrated gradients" in figure_text(plot_sufficiency(atlas, [task]))) == (error > COMPLETE)


def figure_text(figure):
    return " ".join(text.get_text() for text in figure.findobj(Text)).replace("\n", " ")


def test_heads_without_an_effect_do_not_change_who_helps_most():
    nan = np.nan
    page = (
        effects_of([[0.1, nan, 0.5, 0.2], [nan, 0.9, -0.3, nan], [0.3, nan, -0.7, 0.4]]).report().markdown()
    )
    (line,) = (line for line in page.splitlines() if line.startswith("| sums, attribute-integrated"))
    _, _, helping, hurting, _ = line.split("|")
    assert helping.strip() == "L1H1 +0.900, L0H2 +0.500, L2H3 +0.400, L2H0 +0.300, L0H3 +0.200"
    assert hurting.strip() == "L2H2 -0.700, L1H2 -0.300"
    assert "4 heads not measured" in line


@pytest.mark.parametrize(("total", "expected"), [(0.96, []), (1.3, ["completeness"]), (None, [])])
@pytest.mark.parametrize(
    ("dtype", "repair"),
    [("float32", "measure more items"), ("bfloat16", "measure them again, into a new atlas")],
)
def test_integrated_gradients_that_do_not_add_up(total, expected, dtype, repair):
    facts = {} if total is None else {"sum": total, "whole": 1.0, "dtype": dtype}
    atlas = effects_of([[0.1, 0.2]], facts)
    doubts = effect_doubts(atlas, "sums", "attribute-integrated")
    assert [doubt.key for doubt in doubts] == expected
    assert all(doubt.text.endswith(repair) for doubt in doubts)
    assert ("by 30 %" in atlas.report().markdown()) is bool(expected)
    (on_card,) = atlas.card("L0H0").effects
    assert ("integrated gradients 30 % off" in on_card.doubt) is bool(expected)


def test_errors_of_seeds_do_not_cancel():
    """One seed misses its sum by +40 %, the other by -40 %; a third agrees by accident."""
    values = np.array([[0.1, 0.2]], np.float32)
    facts = [{"sum": 1.4, "whole": 1.0}, {"sum": 0.6, "whole": 1.0}]
    facts.append({"sum": 1.0, "whole": 1.0, "expected_error": 0.5})

    def error_of(chosen):
        maps = [
            EffectMap("attribute-integrated", "sums", seed, "id", values, values, each)
            for seed, each in enumerate(chosen)
        ]
        atlas = Atlas(spec_of(2), [Run("attribute-integrated", "sums", "id")], [], effects=maps)
        return atlas.completeness_error("sums")

    assert error_of(facts[:2]) == pytest.approx(0.4) and error_of(facts) == pytest.approx(0.5)


def with_run(atlas, **changes):
    (run,) = atlas.runs.values()
    fits = [fit for some in atlas._fits.values() for fit in some.values()]
    return Atlas(atlas.spec, [replace(run, **changes)], fits)


def settled(updates=(25, 50), seeds=3, baseline=None, separation=0.5):
    """Seeds that agree, with gates that no longer move."""
    high = np.array([[0.9, 0.9], [0.9, 0.1]])
    low = high.copy()
    low[0] = 0.9 - 2 * separation
    plain = atlas_of({"sums": {seed: (high, low.clip(0, 1)) for seed in range(seeds)}})
    resolved = {"objective": "bounded", "batch": 4}
    resolved |= {stage: {"updates": count} for stage, count in zip(("free", "pressed"), updates, strict=True)}
    baseline = {"rows": 100} if baseline is None else baseline
    return with_run(plain, settings={"resolved": resolved}, baseline=baseline)


def keys(atlas):
    return [doubt.key for doubt in doubts(atlas, "sums")]


def test_a_sound_map_has_no_doubt():
    atlas = settled()
    assert keys(atlas) == [] and "healthy range" in made_how(atlas, "sums")


def test_fewer_updates_or_seeds_than_any_preset():
    assert {
        stage: min(getattr(one, stage).updates for one in PRESETS.values()) for stage in LEAST_UPDATES
    } == (LEAST_UPDATES)
    assert min(one.seeds for one in PRESETS.values()) == LEAST_SEEDS
    atlas = settled(updates=(15, 15))
    assert keys(atlas) == ["updates"]
    assert "says little: there were too few updates" in made_how(atlas, "sums")
    assert "healthy" not in made_how(atlas, "sums")
    assert keys(settled(seeds=2)) == ["seeds"]


def test_few_items_are_doubtful():
    assert keys(settled(baseline={"rows": 19})) == ["held-out"]
    baseline = {"rows": 30, "groups": [0, 1, 2] * 10}
    grouped = with_run(settled(baseline=baseline), task_facts={"train_rows": 30})
    assert keys(grouped) == ["trained-items", "held-out-groups"]
    assert "held-out items of 3 groups" in doubts(grouped, "sums")[-1].text


def test_copies_of_training_items_count_once():
    """120 rows are ten items; an older atlas only says how many rows there were."""
    copies = with_run(settled(), task_facts={"train_rows": 120, "train_items": 10})
    (doubt,) = doubts(copies, "sums")
    assert doubt.key == "trained-items" and doubt.text.startswith("fitted on 10 items: gates can fit these")
    assert keys(with_run(settled(), task_facts={"train_rows": 120})) == []


def items_measured(*seeds, baseline=None, gated=None):
    """Effects of one head on the items of each seed, (item, group) by (item, group)."""
    maps = [
        EffectMap(
            "ablate-zero", "sums", seed, "id", np.ones((1, 1), np.float32), np.ones((1, 1), np.float32), {},
            np.ones((len(pairs), 1, 1)), *(np.array(part) for part in zip(*pairs, strict=True)),
        )
        for seed, pairs in enumerate(seeds)
    ]  # fmt: skip
    runs = [Run("gating", "sums", "id", baseline=gated)] if gated else []
    runs.append(Run("ablate-zero", "sums", "id", baseline=baseline or {}))
    return Atlas(spec_of(1), runs, [], effects=maps)


def test_effects_of_few_items_or_groups_are_doubtful():
    def said(*seeds):
        return [one.text for one in effect_doubts(items_measured(*seeds), "sums", "ablate-zero")]

    def each(*items):
        return [(item, item) for item in items]

    assert said(each(*range(20))) == [] and said(each(*range(12)), each(*range(10, 20))) == []
    few = "effects measured on 12 distinct items: too few to tell small effects from noise; raise items=…"
    assert [text.startswith(few) for text in said(each(*range(12)), each(*range(12)))] == [True]
    assert said(each(4))[0].startswith("effects measured on 1 distinct item: ")
    pairs = [(item, item % 9) for item in range(60)]
    (text,) = said(pairs)
    assert text.startswith("effects measured on 60 distinct items of 9 groups: ")
    assert text.endswith("or add items of other groups to the task")
    assert said([(item, 0) for item in range(60)])[0].startswith(
        "effects measured on 60 distinct items of 1 group:"
    )
    assert said([(item, item % 10) for item in range(60)]) == []
    atlas = items_measured(each(*range(12)))
    (doubt,) = effect_doubts(atlas, "sums", "ablate-zero")
    assert doubt.brief == "effects of 12 distinct items" and doubt.text in atlas.report().markdown()
    assert effect_doubts(effects_of([[0.1, 0.2]]), "sums", "attribute-integrated") == []  # items not recorded


def test_effects_are_doubtful_if_the_model_is_at_chance():
    """By the baseline of their own run, else by that of the gates."""
    items, clear = [(item, item) for item in range(30)], {**AT_CHANCE, "gain": 1.0}

    def found(**baselines):
        return [one.key for one in effect_doubts(items_measured(items, **baselines), "sums", "ablate-zero")]

    assert found() == found(baseline=clear) == found(gated=clear) == []
    assert found(baseline=AT_CHANCE) == found(gated=AT_CHANCE) == ["chance"]
    assert found(baseline=clear, gated=AT_CHANCE) == []
    assert found(baseline=AT_CHANCE, gated=clear) == ["chance"]


@pytest.mark.parametrize(
    ("key", "number", "text", "brief"),
    [
        ("updates", "free", "1 update, fewer than any preset has (25):", "1 update"),
        ("seeds", "seeds", "1 seed, fewer than any preset has", "1 seed"),
        ("imported-seeds", "seeds", "1 seed imported:", "1 seed"),
        ("trained-items", "items", "fitted on 1 item:", "fitted on 1 item"),
        ("held-out", "items", "1 distinct held-out item:", "1 held-out item"),
        ("held-out-groups", "groups", "held-out items of 1 group:", "1 group held out"),
        ("retain-held-out", "items", "task to keep: 1 held-out item,", "1 held-out item to keep"),
        ("forget-held-out", "items", "task to forget: 1 held-out item,", "1 held-out item to forget"),
        ("validation-draws", "draws", "validated with 1 random order:", "validated with 1 random order"),
    ],
)
def test_one_is_not_a_plural(key, number, text, brief):
    doubt = Doubt(key, {number: 1})
    assert doubt.text.startswith(text) and doubt.brief == brief


def test_gates_that_still_move():
    atlas = settled()
    moving = []
    for some in atlas._fits.values():
        for fit in some.values():
            path = np.stack([fit.gates] * 11)
            if fit.fit == "remove":
                path[:9, 0, 0] = 0.9  # one of four gates falls in the last fifth
            moving.append(replace(fit, path=path, path_updates=np.arange(11, dtype=np.int32) * 5))
    atlas = Atlas(atlas.spec, atlas.runs.values(), moving)
    assert keys(atlas) == []  # 1 of 8
    both = [replace(fit, path=np.where(np.arange(11)[:, None, None] < 9, 0.5, fit.path)) for fit in moving]
    atlas = Atlas(atlas.spec, atlas.runs.values(), both)
    assert keys(atlas) == ["moving"] and "100 % of gates" in doubts(atlas, "sums")[0].text


@pytest.mark.parametrize(
    ("groups", "targets", "reason"),
    [
        ([0, 0, 0], 3, "all held-out items are of one group; add groups to the task"),
        ([0, 1, 2], 1, "all held-out items have the same target; add items with other targets"),
        ([0, 1, 2], 2, "no other target is short enough to swap in"),
    ],
)
def test_chance_that_cannot_be_judged_is_a_doubt(groups, targets, reason):
    baseline = {"nll": 5.0, "accuracy": 0.0, "rows": 100, "groups": groups, "targets": targets}
    doubt = chance_doubt(baseline)
    assert doubt.key == "chance-unknown" and doubt.brief == "chance cannot be judged"
    assert doubt.text.startswith(f"whether the model is better than chance cannot be judged: {reason}")
    side = chance_doubt({f"forget_{name}": value for name, value in baseline.items()}, "forget")
    assert side.text == f"task to forget: {doubt.text}"
    atlas = settled(baseline=baseline)
    assert keys(atlas)[0] == "chance-unknown"
    (page,) = payload_of([atlas])["atlases"]
    assert doubt.text in page["tasks"][0]["doubts"] and doubt.text in atlas.report().markdown()


def test_chance_is_judged_from_the_stored_baseline():
    assert chance_doubt(AT_CHANCE).key == "chance"
    assert chance_doubt({**AT_CHANCE, "gain": 0.3}) is None
    error = AT_CHANCE["gain_error"]  # with 3 groups two degrees of freedom are left: 4.3 errors, not 2
    few = {**AT_CHANCE, "groups": [0, 1, 1, 2], "gain": 4 * error}
    assert chance_doubt(few).key == "chance" and chance_doubt({**few, "gain": 4.5 * error}) is None
    assert chance_doubt({"nll": 5.0, "accuracy": 0.0}) is None  # an atlas that does not say
    assert chance_doubt({}, "retain") is None
    page = settled(baseline=AT_CHANCE).report().markdown()
    assert "the model is not clearly better than chance here: baseline NLL 5.00" in page


def test_contrasts_are_in_the_report_and_on_cards():
    atlas = contrast_atlas()
    assert contrasts_of(atlas) == ["sums without words"]
    summary = summarize_contrast(atlas, "sums without words")
    assert summary.shut == {"always": 1, "any": 2, "mean": 1.5}
    assert summary.after["retain_nll"] == 1.5 and summary.before["forget_nll"] == 2.0
    page = atlas.report().markdown()
    assert "| keep sums, forget words | 2 | 1.00 → 1.50 (+0.50) | 0.50 → 0.50 | 2.00 → 4.00 (+2.00)" in page
    assert "2 seeds, fewer than any preset" in page and "nothing to report" not in page
    (contrast,) = atlas.card("L1H0").contrasts
    assert (contrast.open_in, contrast.seeds) == (1, 2) and contrast.gate == pytest.approx(0.55)


def test_imported_gates_get_no_advice_about_fitting():
    facts = {"imported_from": "gates.csv"}
    gates = np.array([[0.9, 0.1], [0.2, 0.8]])
    seeds = {0: (gates, gates - 0.05), 1: (gates[::-1], gates[::-1] - 0.05)}
    atlas = with_run(atlas_of({"sums": seeds}), task_facts=facts, baseline={})
    assert keys(atlas) == ["imported-seeds", "imported-separation-low", "imported-seeds-differ"]
    for text in (*(doubt.text for doubt in doubts(atlas, "sums")), made_how(atlas, "sums")):
        assert not any(option in text for option in ("updates=", "seeds=", "resume="))
    assert all(doubt.brief for doubt in doubts(atlas, "sums"))
    far = with_run(settled(separation=1), task_facts=facts, settings={})
    assert "no range is known for imported gates" in made_how(far, "sums")


def with_blocks(atlas, *blocks):
    together = {seed: list(block) for block in blocks for seed in block}
    fits = [
        replace(fit, facts={**fit.facts, "seeds_together": together[fit.seed]})
        for group in atlas._fits.values()
        for fit in group.values()
    ]
    return Atlas(atlas.spec, atlas.runs.values(), fits)


def test_seeds_fitted_in_several_blocks_are_named():
    several = with_blocks(settled(seeds=5), range(3), [3, 4])
    assert "5 seeds" in made_how(several, "sums")
    assert "; seeds fitted in 2 blocks: (0–2), (3, 4); " in made_how(several, "sums")
    assert "seeds fitted in 2 blocks: (0–2), (3, 4)" in several.report().markdown()
    assert "blocks" not in made_how(with_blocks(settled(), range(3)), "sums")
    assert "blocks" not in made_how(settled(), "sums")  # an atlas that does not record it
    # the free stage was interrupted with three seeds, and two were added to the rest
    free = {(fit.seed, fit.fit): fit for fit in several._fits["gating", "sums"].values() if fit.fit == "free"}
    pressed = with_blocks(settled(seeds=5), range(5))
    mixed = [free.get((fit.seed, fit.fit), fit) for fit in pressed._fits["gating", "sums"].values()]
    apart = Atlas(several.spec, several.runs.values(), mixed)
    assert "; seeds fitted in 2 blocks: (0–2), (3, 4) (free fits); " in made_how(apart, "sums")
    contrast = with_blocks(contrast_atlas(), [0], [1])
    assert "| 2 (seeds fitted in 2 blocks: (0), (1)) |" in contrast.report().markdown()
