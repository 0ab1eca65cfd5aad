"""What an atlas says about its results: doubts, effects in numbers, stability, selections of heads."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from headatlas import Atlas, AtlasError, RequestError, UnknownNameError, compare_atlases
from headatlas.atlas import EffectMap, Run, Store, open_atlas, validation_name
from headatlas.atlas.agreement import shares, summarise
from headatlas.atlas.finding import TOPICS, Finding, find
from headatlas.atlas.markdown import escape_markdown
from headatlas.atlas.selection import choose_gates, heads_by_role, heads_off
from headatlas.atlas.stability import HALVES, by_seeds, half_overlap, retest
from headatlas.cli.relations import _show_causal
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


def with_plugin_gates(atlas, task, method="short"):
    """The atlas with gates of a plugin's method beside those of gating, in three seeds."""
    gates = {seed: tuple(1 - part for part in SEEDS[0]) for seed in range(3)}
    plugin = atlas_of({task: gates}, atlas.spec)
    fits = [fit for fits in atlas._fits.values() for fit in fits.values()]
    fits += [replace(fit, method=method) for fits in plugin._fits.values() for fit in fits.values()]
    runs = [*atlas.runs.values(), Run(method, task, "id")]
    return Atlas(atlas.spec, runs, fits, notes=atlas.notes)


def halves_of(atlas, task):
    """The atlas with fits on two halves of the items."""
    fits = [fit for fits in atlas._fits.values() for fit in fits.values()]
    fits += [replace(fit, method=half) for half in HALVES for fit in fits[:6]]
    runs = [*atlas.runs.values(), *(Run(half, task, "id") for half in HALVES)]
    return Atlas(atlas.spec, runs, fits, notes=atlas.notes)


def test_gates_of_a_plugin_have_no_stability_and_validation_of_gating():
    atlas = with_plugin_gates(halves_of(atlas_of({"t": SEEDS}, spec_of(2, 2)), "t"), "t")
    atlas.notes[validation_name("t")] = ({}, {"task": "t"})
    gating, short = atlas.fitted_by("gating"), atlas.fitted_by("short")
    assert gating.stability("t").retest is not None and gating.validated == ["t"]
    assert short.stability("t").retest is None and short.validated == []
    assert not [doubt for doubt in short.doubts("t") if doubt.key.startswith("validation")]
    assert atlas.validated == ["t"]


def test_methods_that_fitted_gates_come_first():
    atlas = with_plugin_gates(atlas_of({"t": SEEDS}, spec_of(2, 2)), "t")
    values = np.zeros((2, 2))
    atlas._effects["ablate-zero", "t"] = {0: EffectMap("ablate-zero", "t", 0, "id", values, values)}
    assert atlas.methods("t") == ["gating", "short", "ablate-zero"]


def test_an_unknown_task_is_answered_with_each_name_once():
    atlas = atlas_of({"syntax": SEEDS, "math": SEEDS}, spec_of(2, 2))
    with pytest.raises(UnknownNameError, match=r"there are: math, syntax\.$"):
        atlas.run("xyz")


def test_doubts_about_gating_are_not_those_of_a_plugin():
    whole = with_plugin_gates(atlas_of({"t": SEEDS}, spec_of(2, 2)), "t")
    fits = [fit for fits in whole._fits.values() for fit in fits.values() if fit.method == "short"]
    atlas = Atlas(whole.spec, [whole.runs["short", "t"]], fits)
    assert atlas.doubts("t", "short") == atlas.doubts("t")
    with pytest.raises(UnknownNameError, match="gating"):
        atlas.doubts("t", "gating")


def test_foreign_text_is_no_markup_in_the_report():
    label = "[click](http://evil) <img src=x> &lt; \\| _a_ `b`"
    whole = with_plugin_gates(atlas_of({"my_t": SEEDS}, spec_of(2, 2)), "my_t")
    fits = [fit for fits in whole._fits.values() for fit in fits.values() if fit.method == "short"]
    run = Run("short", "my_t", "id", about={"label": label, "summary": "**b** | c"})
    page = Atlas(replace(whole.spec, name="<b>*x*"), [run], fits).report().markdown()
    assert page.startswith(r"# &lt;b>\*x\*")
    (line,) = (line for line in page.splitlines() if "click" in line)
    assert r"[click\](http://evil) &lt;img src=x> &amp;lt; \\\| \_a\_ \`b\`" in line
    assert r"\*\*b\*\* \| c" in line and "- my_t: " in line


@pytest.mark.parametrize(
    "text",
    ["0.12 [0.10, 0.14] of heads", "my_task_2", "gating, p = 0.01: more (45 %)", "L0H1 +0.900, L0H2 -0.5"],
)
def test_plain_text_stays_as_it_is_in_markdown(text):
    assert escape_markdown(text) == text


@pytest.mark.parametrize("baseline", [{"nll": 1, "groups": 3}, {"nll": [1.0], "gain": [0.1], "groups": [0]}])
def test_a_baseline_has_the_form_that_doubts_need(tmp_path, baseline):
    atlas = atlas_of({"t": SEEDS}, spec_of(2, 2))
    with Store.writing(tmp_path / "atlas", atlas.spec) as store:
        store.add(Run("gating", "t", "id"))
    file = tmp_path / "atlas" / "atlas.json"
    data = json.loads(file.read_text())
    data["runs"][0]["baseline"] = baseline
    file.write_text(json.dumps(data))
    with pytest.raises(AtlasError, match="damaged: runs 0 baseline"):
        open_atlas(tmp_path / "atlas")


@pytest.mark.parametrize(
    "changes", [{"random": [[0.5, 0.4], [0.5]]}, {"top": [0.5]}, {"controls": {"b": []}}]
)
def test_accuracies_of_a_causal_check_are_as_many_as_its_steps(tmp_path, changes):
    check = {"relation": "a", "heads": ["L0H0"], "steps": [0, 1], "top": [0.5, 0.4], "questions": 4}
    check |= {"random": [[0.5, 0.4]], "controls": {}, **changes}
    with Store.writing(tmp_path / "atlas", spec_of(2, 2)) as store:
        store.write_note("causal", {}, {"checks": [check]})
    with pytest.raises(AtlasError, match="the check of 'a' has not 2 accuracies per row"):
        open_atlas(tmp_path / "atlas")


def test_heads_of_a_causal_check_are_shown_as_text(capsys):
    check = {"relation": "a", "heads": ["[/x]"], "steps": [0], "top": [0.5], "questions": 4}
    check |= {"random": [[0.5]], "controls": {}}
    _show_causal(Console(), check, [0.5])
    assert "the best first: [/x]" in capsys.readouterr().out
