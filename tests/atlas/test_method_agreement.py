"""Methods that rank heads differently say so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from headatlas import MethodAgreement
from headatlas.atlas import Atlas, EffectMap, Run
from headatlas.atlas.method_agreement import compare_methods
from headatlas.core import metric_words
from headatlas.page.payload import payload_of
from support.atlases import atlas_of, spec_of


def atlas_with(maps: dict[str, np.ndarray], task: str = "sums", about: dict | None = None) -> Atlas:
    """Effects of several methods on one task."""
    runs = [Run(method, task, "id", about=about or {}) for method in maps]
    effects = [
        EffectMap(method, task, 0, "id", values.astype(np.float32), np.zeros(values.shape, np.float32), {})
        for method, values in maps.items()
    ]
    layers, heads = next(iter(maps.values())).shape
    return Atlas(spec_of(*[heads] * layers), runs, [], effects=effects)


def falling(count: int = 60) -> np.ndarray:
    return np.linspace(3, 0.05, count).reshape(6, 10)


def reasons(atlas: Atlas, method: str) -> list[dict]:
    doubts = atlas.doubts("sums", method)
    return [dict(doubt.numbers) for doubt in doubts if doubt.key == "methods-differ"]


def test_numbers_by_hand():
    """The first head of one method is the last of the other; ten heads are moved, the others stay."""
    first = falling()
    second = first.copy()
    second[0, 0] = -1.0
    (agreement,) = compare_methods(atlas_with({"ablate-mean": first, "attribute-gradient": second}), "sums")
    expected = stats.spearmanr(first.ravel(), second.ravel()).statistic
    assert agreement.correlation == pytest.approx(expected)
    assert (agreement.first, agreement.second) == ("ablate-mean", "attribute-gradient")
    assert (agreement.shared, agreement.top, agreement.heads) == (9, 10, 60)
    assert (str(agreement.first_head), agreement.first_rank) == ("L0H0", 60)
    assert (str(agreement.second_head), agreement.second_rank) == ("L0H1", 2)
    assert agreement.disagree  # by the rank of the first head alone


def test_methods_that_agree_raise_no_doubt():
    noise = np.random.default_rng(0).normal(0, 0.05, (6, 10))
    atlas = atlas_with({"ablate-mean": falling(), "ablate-zero": falling() + noise})
    assert not reasons(atlas, "ablate-mean") and not reasons(atlas, "ablate-zero")


def test_each_method_names_the_one_that_it_agrees_least_with():
    maps = {"ablate-zero": falling(), "ablate-mean": falling() + 0.001, "attribute-gradient": -falling()}
    atlas = atlas_with(maps)
    (reason,) = reasons(atlas, "attribute-gradient")
    assert reason["other"] == "ablate-zero" and reason["differing"] == 2
    assert (reason["head"], reason["rank"], reason["heads"]) == ("L0H0", 60, 60)
    assert not reasons(atlas, "ablate-mean")  # it agrees with one of the two others
    atlas = atlas_with({name: maps[name] for name in ("ablate-mean", "attribute-gradient")})
    (text,) = [doubt.text for doubt in atlas.doubts("sums", "ablate-mean") if doubt.key == "methods-differ"]
    assert text.startswith(
        "ranks heads differently from attribute-gradient: against attribute-gradient the rank correlation is "
        "-1.00, 0 of the top 10 heads are the same, and L5H9, first there, ranks 60 of 60 here"
    )


def test_gates_are_compared_with_effects():
    high = np.linspace(0.99, 0.3, 60).reshape(6, 10)
    gated = atlas_of({"sums": {0: (high, high - 0.2)}})
    effects = EffectMap(
        "ablate-zero", "sums", 0, "id", -falling().astype(np.float32), np.zeros((6, 10), np.float32), {}
    )
    runs = [*gated.runs.values(), Run("ablate-zero", "sums", "id")]
    fits = [gated.fit("sums", 0, name) for name in ("free", "retain", "remove")]
    atlas = Atlas(gated.spec, runs, fits, effects=[effects])
    (reason,) = reasons(atlas, "ablate-zero")
    assert reason["other"] == "gating"


def with_metric(atlas: Atlas, **metrics: str) -> Atlas:
    """The atlas with the metrics of its methods: ablate_zero="kl"."""
    for name, metric in metrics.items():
        key = name.replace("_", "-"), "sums"
        about = {"unit": metric_words(metric).unit}
        settings = {"resolved": {"metric": metric}}
        atlas.runs[key] = replace(atlas.runs[key], about=about, settings=settings)
    return atlas


def test_methods_are_compared_within_a_metric():
    maps = {"ablate-zero": falling(), "ablate-mean": -falling(), "mediate": falling()}
    atlas = with_metric(atlas_with(maps), ablate_zero="logit_diff", ablate_mean="logit_diff")
    (agreement,) = atlas.method_agreement("sums")
    assert isinstance(agreement, MethodAgreement) and agreement.disagree
    assert {agreement.first, agreement.second} == {"ablate-mean", "ablate-zero"}
    assert reasons(atlas, "ablate-mean") and not reasons(atlas, "mediate")
    assert not with_metric(atlas, ablate_zero="kl").method_agreement("sums")


@pytest.mark.parametrize("metrics", [("nll", "kl"), ("kl", "nll"), ("kl", "kl")])
def test_gates_are_compared_with_effects_of_their_metric(metrics):
    high = np.linspace(0.99, 0.3, 60).reshape(6, 10)
    gated = atlas_of({"sums": {0: (high, high - 0.2)}})
    effects = atlas_with({"ablate-zero": -falling()})
    runs = {**gated.runs, **effects.runs}
    atlas = Atlas(gated.spec, runs.values(), gated.records(), effects=effects.records())
    atlas = with_metric(atlas, gating=metrics[0], ablate_zero=metrics[1])
    assert bool(atlas.method_agreement("sums")) == (metrics[0] == metrics[1])


@pytest.mark.parametrize("case", ["few heads", "another unit", "constant"])
def test_what_cannot_be_compared_raises_no_doubt(case):
    values = falling()
    first, second = values, -values
    if case == "few heads":
        first, second = first[:1], second[:1]
    if case == "constant":
        second = np.ones_like(values)
    about = {"unit": "percent"} if case == "another unit" else None
    atlas = atlas_with({"ablate-mean": first, "attribute-gradient": second}, about=about)
    assert not reasons(atlas, "ablate-mean")


def test_the_disagreement_is_in_report_summary_and_page():
    atlas = atlas_with({"ablate-mean": falling(), "attribute-gradient": -falling()})
    sentence = "ranks heads differently from ablate-mean"
    assert sentence in atlas.report().markdown()
    assert any(sentence in doubt.text for doubt in atlas.effect_summary("sums", "attribute-gradient").doubts)
    assert sentence in str(payload_of([atlas]))
