"""Two atlases side by side: worked by hand, and laws."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from rich.console import Console
from scipy import stats

from headatlas import AtlasError, HeadatlasWarning, RequestError, UnknownNameError, compare
from headatlas.atlas import BINS, compare_atlases, shared_tasks
from headatlas.atlas.comparison import depth_profile
from headatlas.cli.compare import _show as show_comparison
from headatlas.figure import plot_comparison
from headatlas.page.payload import payload_of
from support.atlases import atlas_of, spec_of


def random_atlas(seed, seeds=2, shape=(4, 5), spec=None, tasks=("sums",)):
    draw = np.random.default_rng(seed)
    return atlas_of(
        {
            task: {place: tuple(draw.uniform(0.02, 0.98, (2, *shape))) for place in range(seeds)}
            for task in tasks
        },
        spec,
    )


def test_by_hand():
    """Four heads; one is lost, one begins to hurt, the others stay."""
    high, low = np.array([[0.9, 0.9, 0.9, 0.2]]), np.array([[0.8, 0.7, 0.1, 0.1]])
    there_high, there_low = np.array([[0.9, 0.9, 0.1, 0.3]]), np.array([[0.8, 0.1, 0.05, 0.2]])
    one = atlas_of({"sums": {0: (high, low), 1: (high, low)}})
    other = atlas_of({"sums": {0: (there_high, there_low), 1: (there_high, there_low)}})
    found = compare_atlases(one, other, "sums")
    assert found.by_heads and found.same == 0.5
    assert found.roles == {
        ("facilitating", "facilitating"): 1,
        ("facilitating", "irrelevant"): 1,
        ("interfering", "interfering"): 1,
        ("irrelevant", "interfering"): 1,
    }
    assert found.within == (1.0, 1.0) and found.between == 0.5  # more than seeds differ
    heads = [head for head, *_ in found.changed]
    assert heads[:2] == ["L0H2", "L0H1"]
    assert found.changed[0][1:] == pytest.approx((0.0, -0.85), abs=1e-6)
    wanted = stats.spearmanr(low[0], there_low[0]).statistic
    assert found.correlation["facilitation"].mean == pytest.approx(wanted)
    json.dumps(found.to_json(), allow_nan=False)


@given(st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_an_atlas_is_like_itself_and_order_is_irrelevant(seed):
    one, other = random_atlas(seed), random_atlas(seed + 1000)
    same = compare_atlases(one, random_atlas(seed), "sums")
    assert same.same == 1 and same.correlation["facilitation"].mean == pytest.approx(1)
    assert all(here == pytest.approx(there) for _, here, there in same.changed)
    there, back = compare_atlases(one, other, "sums"), compare_atlases(other, one, "sums")
    assert there.same == back.same and there.between == pytest.approx(back.between)
    assert there.correlation["facilitation"].mean == pytest.approx(back.correlation["facilitation"].mean)
    assert {(b, a): n for (a, b), n in there.roles.items()} == back.roles


def test_models_of_different_shapes_by_depth():
    """Heads that help rise with depth in both, whatever the number of layers and heads."""

    def rising(layers, heads):
        low = np.linspace(0.05, 0.95, layers)[:, None] * np.ones(heads)
        return atlas_of({"sums": {0: (np.full_like(low, 0.95), low)}})

    found = compare_atlases(rising(4, 3), rising(13, 6), "sums")
    assert not found.by_heads and found.roles is None and not found.changed
    assert found.correlation["facilitation"].mean > 0.95
    # four layers are four observations: 4! orders give no p below 2/24
    assert found.p["facilitation"] is None and found.test.startswith("no p: 4 layers cannot")
    assert found.correlation["facilitation"].low is None
    deep = compare_atlases(rising(6, 3), rising(13, 6), "sums")
    assert deep.p["facilitation"] == pytest.approx(1 / 720) and "whole layers permuted" in deep.test
    assert len(found.profiles["facilitation"][0]) == BINS
    figure = plot_comparison(rising(4, 3), rising(13, 6), found)
    assert len(figure.axes) == 2
    assert found.correlation["interference"] is None  # the same in all layers
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("layers", [1, 3, 10, 32])
def test_profiles_keep_the_mean(layers):
    values = np.random.default_rng(layers).uniform(size=(layers, 4))
    assert depth_profile(values).mean() == pytest.approx(values.mean())
    values[0] = np.nan  # a layer without attention
    assert layers == 1 or np.nanmax(depth_profile(values)) <= np.nanmax(values)


def test_holes_and_figures():
    spec = spec_of(5, 3, 0, 5)
    one, other = random_atlas(1, spec=spec), random_atlas(2, spec=spec, seeds=1)
    found = compare_atlases(one, other, "sums")
    assert sum(found.roles.values()) == 13 and found.within[1] is None
    figure = plot_comparison(one, other, found)
    assert len(figure.axes) == 3


def test_few_heads_and_a_hole():
    """No place without a head is said to have changed."""
    one, other = (random_atlas(seed, spec=spec_of(3, 2), shape=(2, 3)) for seed in (1, 2))
    found = compare_atlases(one, other, "sums")
    assert len(found.changed) == 5
    json.dumps(found.to_json(), allow_nan=False)


def test_which_tasks():
    one, other = random_atlas(1, tasks=("sums", "plurals")), random_atlas(2, tasks=("plurals", "verbs"))
    assert shared_tasks(one, other) == [("plurals", "plurals")]
    assert shared_tasks(one, other, ["sums", "verbs"]) == [("sums", "verbs")]
    assert shared_tasks(one, one, ["sums", "plurals"]) == [("sums", "plurals")]
    for pair, tasks, error in (
        ((one, one), [], RequestError),
        ((one, one), ["sums"], RequestError),
        ((one, other), ["sums"], UnknownNameError),
        ((one, other), ["a", "b", "c"], RequestError),
        ((one, random_atlas(3, tasks=("verbs",))), [], AtlasError),
    ):
        with pytest.raises(error):
            shared_tasks(*pair, tasks)


def test_intervals_draw_whole_layers():
    """Heads of a layer are copies of each other: 6 layers are 6 observations."""
    draw = np.random.default_rng(0)
    layers = draw.uniform(0.05, 0.95, (2, 6, 1))

    def intervals(width):
        low = np.repeat(layers, width, axis=2)
        one, other = (atlas_of({"sums": {0: (np.full_like(part, 0.95), part)}}) for part in low)
        return compare_atlases(one, other, "sums").correlation["facilitation"]

    narrow, wide = intervals(2), intervals(20)
    assert wide.high - wide.low == pytest.approx(narrow.high - narrow.low, abs=0.05)


def roles_atlas(seeds, changed=0, spread=0.0, seed=0):
    """12 heads of two roles; `changed` of them are turned round, and a share `spread` anew in every seed."""
    draw = np.random.default_rng(seed)
    base = np.tile([0.9, 0.1], 6).reshape(3, 4)
    base.ravel()[:changed] = 1 - base.ravel()[:changed]
    made = {}
    for number in seeds:
        turned = draw.random((3, 4)) < spread
        made[number] = (np.full((3, 4), 0.95), np.where(turned, 1 - base, base))
    return atlas_of({"sums": made})


def test_verdict():
    """Four seeds of each without any spread, other roles in four heads: two splits of 70 are as far out, and
    ties count half: p = 1/70."""
    found = compare_atlases(roles_atlas(range(4)), roles_atlas(range(4, 8), changed=4), "sums")
    assert found.verdict_p == pytest.approx(1 / 70) and found.verdict.startswith("the two differ more")
    same = compare_atlases(
        roles_atlas(range(4), spread=0.2, seed=1), roles_atlas(range(4, 8), spread=0.2, seed=2), "sums"
    )
    assert same.verdict_p > 0.05 and "do not clearly differ" in same.verdict
    few = compare_atlases(roles_atlas(range(2)), roles_atlas((2, 3), changed=4), "sums")
    assert few.verdict_p is None and "more than two seeds do, on average; too few seeds" in few.verdict
    one = compare_atlases(roles_atlas(range(2)), roles_atlas((2,), changed=4), "sums")
    assert one.verdict.startswith("the second has one seed: ")
    alone = compare_atlases(roles_atlas((0,)), roles_atlas((0,), changed=4), "sums")
    assert alone.verdict.startswith("the first and the second have one seed: ")


@pytest.mark.parametrize(
    ("first", "second", "advice"),
    [
        (4, 4, "seeds 0 to 5 in both are enough"),  # 2^4 exchanges: 2/16
        (5, 5, "seeds 0 to 5 in both are enough"),  # 2/32
        (3, 10, "seeds 0 to 4 in the first are enough"),  # 1/8
        (4, 5, "seeds 0 to 5 in both are enough"),
        (1, 10, "seeds 0 to 4 in the first are enough"),
        (10, 2, "seeds 0 to 4 in the second are enough"),
        (1, 1, "seeds 0 to 5 in both are enough"),
    ],
)
def test_a_verdict_names_the_seeds_that_a_test_needs(first, second, advice):
    """`map --seeds N` makes seeds 0 to N - 1, so that two atlases have the same numbers. Both texts name
    seeds that give a p, and one seed less does not."""

    def compared(first, second):
        return compare_atlases(roles_atlas(range(first)), roles_atlas(range(second), changed=4), "sums")

    found = compared(first, second)
    assert found.verdict_p is None and advice in found.verdict
    needed = int(advice.split()[3]) + 1
    assert compared(max(first, needed), max(second, needed)).verdict_p < 0.05
    assert compared(max(first, needed - 1), max(second, needed - 1)).verdict_p is None


def test_one_seed_of_a_model_of_another_shape_is_said():
    one, other = random_atlas(1, seeds=1), random_atlas(2, seeds=2, shape=(5, 5))
    assert "the first has one seed: how much a profile varies" in compare_atlases(one, other, "sums").verdict
    both = compare_atlases(random_atlas(1), other, "sums")
    assert both.verdict.endswith("so seeds do not say how much the two may differ")


def test_seeds_with_the_same_number_are_not_compared_with_each_other():
    """Seeds 0 and 1 are in both atlases and equal there; seeds of one atlas have nothing in common."""
    one = {0: (np.full((1, 4), 0.95), np.array([[0.9, 0.9, 0.1, 0.1]]))}
    one[1] = (np.full((1, 4), 0.95), np.array([[0.1, 0.1, 0.9, 0.9]]))
    found = compare_atlases(atlas_of({"sums": one}), atlas_of({"sums": one}), "sums")
    assert found.within == (0, 0) and found.between == 0
    # with the numbers of both, pairs of seeds are exchanged: 2^6 ways; two are as far out and count half
    both = compare_atlases(roles_atlas(range(6)), roles_atlas(range(6), changed=4), "sums")
    assert both.verdict_p == pytest.approx(1 / 64)
    many = compare_atlases(roles_atlas(range(20)), roles_atlas(range(20, 40), changed=4), "sums")
    assert many.verdict_p < 0.01


def with_run(atlas, **changes):
    """The atlas, with its run changed."""
    atlas.runs["gating", "sums"] = replace(atlas.runs["gating", "sums"], **changes)
    return atlas


def test_what_two_atlases_share_is_said():
    """Seed 1 is in both. `random_starts` depends on the seed and the shape: other items change nothing."""
    one, other = roles_atlas(range(2)), roles_atlas((1, 2))
    starts = "both have seed 1: fits with the same seed begin at the same gates"
    assert compare_atlases(one, other, "sums").shared == (starts,)
    for content, atlas in (("abc", one), ("def", other)):
        with_run(atlas, task_facts={"content_hash": content})
    assert compare_atlases(one, other, "sums").shared == (starts,)
    with_run(other, task_facts={"content_hash": "abc"})
    assert compare_atlases(one, other, "sums").shared == (
        "both were fitted on the same items",
        f"{starts} and draw the same items",
    )
    assert compare_atlases(one, roles_atlas((2, 3)), "sums").shared == ()
    for atlas in (one, other):
        with_run(atlas, settings={"decides": {}})
    assert compare_atlases(one, other, "sums").shared == (
        "both hold the same fits of 1 seed: agreement says nothing",
    )


def test_items_that_two_atlases_may_share_are_said():
    """A subset has another hash than its set, so a difference of hashes does not exclude shared items."""
    one, other = (roles_atlas((seed,)) for seed in (1, 2))
    unknown = "whether the two share items is not known"

    def notes(first, second):
        with_run(one, task_facts=first)
        with_run(other, task_facts=second)
        found = compare_atlases(one, other, "sums")
        assert found.shared == () or first == second
        return found.perhaps_shared

    whole = {"content_hash": "abc", "spec": {"source": {"file": "sums.csv"}}}
    part = {**whole, "content_hash": "def"}
    assert notes(whole, part) == (f"the two files named 'sums.csv' hold different items; {unknown}",)
    assert notes({"content_hash": "abc"}, {"content_hash": "def"}) == (
        f"the two tasks named 'sums' hold different items; {unknown}",
    )
    assert notes(whole, whole) == notes({}, part) == ()
    assert notes(whole, {"content_hash": "def", "spec": {"source": "x"}}) != ()
    with_run(other, task_facts=part)
    (line,) = payload_of([one, other])["comparisons"]
    assert any(unknown in note for note in line["shared"])
    console = Console(file=StringIO(), width=200)
    found = compare_atlases(one, other, "sums")
    show_comparison(console, found)
    assert "perhaps not independent: the two files named 'sums.csv' hold" in console.file.getvalue()
    texts = " ".join(text.get_text() for text in plot_comparison(one, other, found).findobj(Text))
    assert "Perhaps not independent: " in texts.replace("\n", " ")


def test_seeds_of_two_tasks_of_one_atlas_begin_at_the_same_gates():
    atlas = random_atlas(1, tasks=("sums", "plurals"))
    (note,) = compare_atlases(atlas, atlas, "sums", "plurals").shared
    assert note == "both have seeds 0, 1: fits with the same seed begin at the same gates"


def test_other_ranges_shapes_and_imports_begin_at_other_gates():
    one = with_run(roles_atlas(range(2)), identity="one", settings={"resolved": {"start": [0.0, 1.0]}})
    other = with_run(roles_atlas(range(2)), settings={"resolved": {"start": [0.5, 1.0]}})
    (note,) = compare_atlases(one, other, "sums").shared
    assert note.endswith("begin at gates from the same random draw")
    imported = with_run(roles_atlas(range(2)), task_facts={"imported_from": "t.csv"})
    assert compare_atlases(one, imported, "sums").shared == ()
    assert compare_atlases(one, random_atlas(2, shape=(5, 5)), "sums").shared == ()


def fitted(seed, *, dtype="float32", updates=8, objective="bounded", metric=None, items=16, of="a", **given):
    stages = {stage: {"updates": updates} for stage in ("free", "pressed")}
    settings = {
        "given": given,
        "resolved": {"objective": objective, **stages, **({"metric": metric} if metric else {})},
        "decides": {"dtype": dtype},
    }
    atlas = random_atlas(seed)
    facts = {"train_rows": items, "content_hash": of}
    run = replace(atlas.runs["gating", "sums"], settings=settings, task_facts=facts)
    atlas.runs["gating", "sums"] = run
    return atlas


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"dtype": "bfloat16"}, "dtype float32 and bfloat16"),
        ({"updates": 16}, "updates 8+8 and 16+16"),
        ({"objective": "plain"}, "objective bounded and plain"),
        ({"preset": "paper"}, "preset quick and paper"),
        ({"metric": "kl"}, "metric nll and kl"),
        ({"items": 20}, "items 16 and 20"),
        ({"of": "b"}, "items 16 and 16 others"),
    ],
)
def test_fits_that_were_made_differently_are_compared_with_a_warning(changed, words):
    with pytest.warns(HeadatlasWarning, match="not fitted alike: " + re.escape(words)):
        comparison = compare(fitted(1), fitted(2, **changed))
    assert comparison.differences == (words,) and f"not fitted alike: {words}" in comparison.lines()
    assert words in comparison.to_json()["differences"]


def test_fits_that_were_made_alike_are_compared_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compare(fitted(1), fitted(2, preset="quick")).differences == ()
        assert compare(random_atlas(1), fitted(2)).differences == ()  # nothing is known of the first


def test_folders_and_tasks_are_compared(tmp_path):
    one, other = random_atlas(1, tasks=("sums", "words")), random_atlas(2, tasks=("sums", "words"))
    one.save(tmp_path / "one")
    expected = compare_atlases(one, other, "sums")
    assert compare(tmp_path / "one", other, "sums") == expected
    assert compare(one, other, task=("sums", "words")) == compare_atlases(one, other, "sums", "words")
    within = compare(str(tmp_path / "one"), tmp_path / "one", ("sums", "words"))
    assert within.tasks == ("sums", "words") and within.between is not None
    with pytest.raises(RequestError, match="both atlases have sums, words; choose one with task="):
        compare(one, other)


def test_a_comparison_shows_itself():
    one, other = random_atlas(1), random_atlas(2)
    comparison = compare(one, other)
    shown = repr(comparison)
    assert shown.startswith("<Comparison\n  made up, sums and made up, sums\n")
    assert f"{comparison.correlation['facilitation'].mean:+.2f}" in shown
    assert f"  the same role: {100 * comparison.same:.0f} % of the heads" in shown
    assert shown.endswith(f"  verdict: {comparison.verdict}>") and max(map(len, shown.split("\n"))) < 300
    page = ElementTree.fromstring(f"<div>{comparison._repr_html_()}</div>")
    cells = [cell.text for cell in page.findall(".//td") if cell.text.isdecimal()]
    assert sum(map(int, cells)) == sum(comparison.roles.values())
    assert comparison.verdict in "".join(page.itertext())
    other.spec = replace(other.spec, name="<b>")
    assert "&lt;b&gt;" in compare(one, other)._repr_html_()
    deep = random_atlas(3, shape=(6, 3))
    assert "of profiles over depth" in repr(compare(one, deep)) and compare(one, deep)._repr_html_()
