"""The curves and maps that validation draws show the numbers of the atlas."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.text import Text

from headatlas import RequestError
from headatlas.atlas import Atlas, EffectMap, Run, by_seeds, validation_name
from headatlas.core import METHOD_ORDER
from headatlas.figure import draw_figure, plot_ablation, plot_effects, plot_stability, plot_sufficiency
from headatlas.figure.method_look import method_label
from support.atlases import atlas_of


def made(tasks=("sums", "words"), methods=METHOD_ORDER[1:], layers=6, heads=4):
    """Two tasks, two seeds, all methods, curves of random numbers."""
    draw = np.random.default_rng(0)
    shape = (layers, heads)
    plain = atlas_of(
        {
            task: {seed: (draw.uniform(size=shape), draw.uniform(size=shape)) for seed in (0, 1)}
            for task in tasks
        }
    )
    names = ["gating", *methods, "random 1", "random 2"]
    counts, items = [0, 6, 12, 24], 5
    notes = {}
    for task in tasks:
        arrays = {
            "keep": draw.uniform(1, 4, size=(len(names), 4, items)),
            "drop": draw.uniform(1, 4, size=(len(names), 4, items)),
            "off": draw.uniform(1, 4, size=(2, 3, 4, items)),
            "by_chance": draw.uniform(1, 4, size=(6, 4, items)),
        }
        without = 5 + 0.1 * np.arange(-2, 3)  # items differ, so the gap of 4 has an interval
        for side, (first, last) in {"keep": (without, 1), "drop": (1, without)}.items():
            arrays[side][:, 0], arrays[side][:, -1] = first, last
            arrays[f"{side}_right"] = np.zeros_like(arrays[side])
        about = {"task": task, "methods": names, "counts": counts, "heads": 24, "facts": {}}
        notes[validation_name(task)] = (arrays, about)
    runs = [*plain.runs.values(), *(Run(method, task, "id") for task in tasks for method in methods)]
    effects = [
        EffectMap(method, task, 0, "id", draw.normal(size=shape).astype(np.float32), np.zeros(shape), {})
        for task in tasks
        for method in methods
    ]
    fits = [fit for group in plain._fits.values() for fit in group.values()]
    return Atlas(plain.spec, runs, fits, effects=effects, notes=notes)


def curves(ax):
    return {line.get_gid(): line for line in ax.get_lines() if line.get_gid()}


def test_sufficiency_shows_every_method_of_every_task():
    atlas = made()
    figure = plot_sufficiency(atlas)
    assert len(figure.axes) == 4
    for place, ax in enumerate(figure.axes):
        found = atlas.validation(("sums", "words")[place // 2])
        shown = curves(ax)
        assert set(shown) == {*METHOD_ORDER, "random"}
        for name, line in shown.items():
            np.testing.assert_allclose(line.get_xdata(), found.shares)
            np.testing.assert_allclose(line.get_ydata(), found.curve(name, ("keep", "drop")[place % 2]))
    looks = {(line.get_color(), str(line._dash_pattern)) for line in shown.values()}
    assert len(looks) == len(shown)  # no two look alike
    one = plot_sufficiency(atlas, "words")
    assert len(one.axes) == 2


def test_sufficiency_is_in_nats_where_all_heads_are_no_better_than_none():
    atlas = made()
    arrays, _ = atlas.notes[validation_name("words")]
    arrays["keep"][:, [0, -1]] = arrays["keep"][:, [-1, 0]]
    found = atlas.validation("words")
    figure = plot_sufficiency(atlas)
    for side, ax in zip(("keep", "drop"), figure.axes[2:], strict=True):
        for name, line in curves(ax).items():
            np.testing.assert_allclose(line.get_ydata(), found.gain(name, side))
        low, high = ax.get_ylim()
        assert low < found.gap.mean < high and found.gap.mean == pytest.approx(-4)
    said = " ".join(text.get_text() for text in figure.findobj(Text)).replace("\n", " ")
    assert "nats" in said and "not clearly better than no heads" in said


def test_ablation_shows_the_three_orders_and_the_band():
    atlas = made()
    figure = plot_ablation(atlas)
    for ax, task in zip(figure.axes, ("sums", "words"), strict=True):
        found = atlas.validation(task).ablation()
        shown = curves(ax)
        assert set(shown) == {"facilitation", "irrelevance", "interference"}
        for name, line in shown.items():
            np.testing.assert_allclose(line.get_ydata(), found["change"].sel(order=name))
        (band,) = ax.collections
        edge = band.get_paths()[0].vertices[:, 1]
        assert edge.min() == pytest.approx(float(found["low"].min()))
        assert edge.max() == pytest.approx(float(found["high"].max()))


def test_effects_show_a_map_for_every_method():
    atlas = made()
    figure = plot_effects(atlas, "sums")
    methods = atlas.methods("sums")
    assert methods == list(METHOD_ORDER)
    for ax, method in zip(figure.axes, methods, strict=True):
        (image,) = ax.get_images()
        np.testing.assert_allclose(image.get_array(), atlas.importance("sums", method).values)
        low, high = image.get_clim()
        assert low == -high  # white is zero
    assert len(plot_effects(atlas).axes) == 2 * len(methods)


def test_stability_shows_the_table_by_seeds():
    draw = np.random.default_rng(1)
    seeds = {seed: (draw.uniform(size=(6, 4)), draw.uniform(size=(6, 4))) for seed in range(4)}
    atlas = atlas_of({"sums": seeds, "words": {0: seeds[0]}})
    figure = plot_stability(atlas)
    assert len(figure.axes) == 2  # a task with one seed has nothing to show
    table = by_seeds(atlas.scores("sums"))
    left, right = map(curves, figure.axes)
    assert set(left) == {
        f"{when}_{role}" for when in ("always", "any") for role in ("facilitating", "interfering")
    }
    assert set(right) == {"facilitation_with_others", "interference_with_others"}
    for name, line in left.items():
        np.testing.assert_allclose(line.get_ydata(), table[name])
    for name, line in right.items():
        assert line.get_xdata().tolist() == [1, 2]  # with three seeds there are not three others
        np.testing.assert_allclose(line.get_ydata(), table[name][:2])
    other = plot_stability(atlas, threshold=0.9)
    assert curves(other.axes[0])["any_facilitating"].get_ydata()[0] < left["any_facilitating"].get_ydata()[0]
    for threshold in (-3, 0, 1.5, np.nan):
        with pytest.raises(RequestError, match=r"threshold is .*; allowed are numbers above 0 and up to 1"):
            plot_stability(atlas, threshold=threshold)
    with pytest.raises(RequestError, match="two seeds"):
        plot_stability(atlas, "words")
    same = {seed: (np.full((6, 4), 0.9), np.full((6, 4), 0.1)) for seed in range(4)}
    flat = plot_stability(atlas_of({"sums": same}))  # nothing to correlate
    assert len(flat.axes) == 2 and len(curves(flat.axes[1])["facilitation_with_others"].get_xdata()) == 0


def test_what_is_not_there_is_said():
    bare = atlas_of({"a": {0: (np.full((2, 2), 0.9), np.full((2, 2), 0.1))}})
    for plot in (plot_sufficiency, plot_ablation):
        with pytest.raises(RequestError, match="validate_atlas does it"):
            plot(bare)
        with pytest.raises(RequestError, match="not validated yet"):
            plot(bare, "a")
    with pytest.raises(RequestError, match="no task in this atlas named 'b'"):
        plot_effects(bare, "b")
    assert len(plot_effects(bare).axes) == 1


def caption_of(figure):
    (caption,) = (text.get_text() for text in figure.texts if text.get_gid() == "caption")
    return " ".join(caption.split())


def test_captions_give_items_and_seeds_of_each_task():
    atlas = made()
    arrays, about = atlas.notes[validation_name("words")]
    fewer = {name: part[..., :3] for name, part in arrays.items()}
    fewer["off"] = fewer["off"][:1]
    atlas.notes[validation_name("words")] = (fewer, about)
    ablation, sufficiency = caption_of(plot_ablation(atlas)), caption_of(plot_sufficiency(atlas))
    assert "2 seeds (Sums), 1 seed (Words)" in ablation
    for caption in (ablation, sufficiency):
        assert "5 held-out items (Sums), 3 held-out items (Words)" in caption
    assert "2 seeds; 5 held-out items." in caption_of(plot_ablation(atlas, "sums"))


@pytest.mark.parametrize(
    "kind",
    ["agreement", "score", "distributions", "profile", "stability", "ablation", "sufficiency", "effects"],
)
def test_captions_name_what_is_doubtful(kind):
    assert "Doubtful: Sums (2 seeds" in caption_of(draw_figure(made(), kind))


def test_methods_of_plugins_are_drawn():
    methods = ("ablate-zero", "entropy", "ablate-mine")
    atlas = made(methods=methods)
    figure = plot_sufficiency(atlas)
    lines = curves(figure.axes[0])
    assert set(lines) == {"gating", *methods, "random"}
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in lines.values()}
    assert len(looks) == len(lines) and lines["ablate-zero"].get_color() == "#0072b2"
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert set(legend) == {"gating", *methods, "random"}


def test_a_method_has_the_label_that_its_run_gives(monkeypatch):
    atlas = made(methods=("ablate-zero",))
    about = {"label": "Zero ablation"}
    runs = {
        key: SimpleNamespace(task_facts=run.task_facts, about=about if run.method == "ablate-zero" else {})
        for key, run in atlas.runs.items()
    }
    monkeypatch.setattr(atlas, "runs", runs)
    assert method_label(atlas, "ablate-zero") == "Zero ablation"
    assert method_label(atlas, "gating") == "gating"
