"""`headatlas map --method`, `validate` and `report`, as they are typed."""

from __future__ import annotations

import json

import pytest

from support.cli import assert_refused, invoke

FEW = ("--items", 5, "--draws", 2, "--retest", 1, "--method", "ablate", "--method", "attribute-integrated")


@pytest.fixture(scope="module")
def validated(tiny, task, atlas):
    return invoke("validate", atlas, "--task", task, "--model", tiny, *FEW)


def test_what_validate_says(validated):
    assert validated.returncode == 0, validated.stderr
    lines = validated.stdout.splitlines()
    assert any(line.startswith("words, 5 held-out items") for line in lines)
    for method in ("gating", "ablate-zero", "attribute-integrated", "random"):
        (line,) = [line for line in lines if line.split()[:1] == [method]]  # in nats alone
        assert line.count("[") == 3  # each figure with its interval
    assert any(
        "not normalized: the whole model is not clearly better than no heads" in line for line in lines
    )
    assert "95 % intervals over items and seeds (gating)" in validated.stdout
    assert not any("ablate-mean" in line for line in lines)
    assert "--kind sufficiency" in validated.stdout
    (off,) = [line for line in lines if line.startswith("  from G+")]
    assert off.split()[2:] == ["facilitation", "irrelevance", "interference", "random", "orders"]
    assert any(line.startswith("  50 % off") and line.count("[") == 1 for line in lines)
    at = lines.index(next(line for line in lines if line.startswith("  seeds")))
    assert [line.split()[0] for line in lines[at + 1 : at + 3]] == ["1", "2"]
    assert any(line.startswith("  fitted anew on two halves of the items: ") for line in lines)


def test_validate_as_json(tiny, task, atlas, validated):
    again = invoke("validate", atlas, "--task", task, "--model", tiny, *FEW, "--json")
    data = json.loads(again.stdout)["tasks"]["words"]
    assert {line["method"] for line in data["methods"]} == {
        "gating",
        "ablate-zero",
        "attribute-integrated",
        "random",
    }
    assert len(data["keep_nats"]["gating"]) == len(data["shares"]) == len(data["ablation"]["facilitation"])
    assert data["keep_nats"]["gating"][0] == 0
    assert data["keep_nats"]["gating"][-1] == pytest.approx(data["gap"]["nats"])
    # the model was never trained: its heads do not help
    assert data["gap"]["low"] < 0 and data["normalized"] is False and data["keep"] is None
    assert {line["sufficiency"] for line in data["methods"]} == {None}
    assert "not clearly better" in data["why_not_normalized"] and "NaN" not in again.stdout


def test_report(atlas, validated, tmp_path):
    page = invoke("report", atlas)
    assert page.returncode == 0 and "## " in page.stdout and "words:" in page.stdout
    assert "nats over no heads" in page.stdout and "two halves of the items" in page.stdout
    for name in ("report.md", "report.json"):
        assert invoke("report", atlas, "--out", tmp_path / name).stdout.strip() == str(tmp_path / name)
    assert (tmp_path / "report.md").read_text() == page.stdout
    found = json.loads((tmp_path / "report.json").read_text())["findings"]
    data = json.loads(invoke("report", atlas, "--json").stdout)
    assert found == data["findings"] and len(found) > 10
    assert "3 + 3 updates, batch 4, 2 seeds" in data["made"]["words"]
    assert any("validated on 5 held-out items" in doubt["text"] for doubt in data["doubts"]["words"])
    assert "Before you believe this" in page.stdout and "**doubtful**" in page.stdout
    deep = tmp_path / "new" / "folder" / "report.md"
    assert invoke("report", atlas, "--out", deep).returncode == 0 and deep.read_text() == page.stdout


@pytest.mark.parametrize("kind", ["sufficiency", "ablation", "effects", "stability"])
def test_plots(atlas, validated, kind):
    result = invoke("plot", atlas, "--kind", kind)
    assert result.returncode == 0 and (atlas / f"{kind}.png").stat().st_size > 5000


def test_effects(tiny, task, tmp_path):
    asked = ("map", tiny, "-t", task, "--method", "ablate", "--items", 5, "--dtype", "float32")
    result = invoke(*asked, "--out", tmp_path / "a")
    assert result.returncode == 0, result.stderr
    assert "ablate-zero: loss without the head" in result.stdout and "helps" in result.stdout
    # the model was never trained
    assert "doubtful: the model is not clearly better than chance here: baseline NLL" in result.stdout
    few = "effects measured on 5 distinct items: too few"
    assert f"doubtful: {few}" in result.stdout and few in invoke("report", tmp_path / "a").stdout
    said = invoke(*asked, "--out", tmp_path / "a", "--resume", "--json")
    (found,) = json.loads(said.stdout)["tasks"]
    effects = [one["effect"] for one in found["heads"]]
    assert effects == sorted(effects, reverse=True) and found["items"] == 5


def test_effects_of_one_item_have_no_error(tiny, task, tmp_path):
    asked = ("map", tiny, "-t", task, "--method", "attribute-integrated", "--items", 1, "--dtype", "float32")
    result = invoke(*asked, "--out", tmp_path / "a")
    assert result.returncode == 0, result.stderr
    assert "±" not in result.stdout and "all heads shut: " in result.stdout
    assert "the effects sum to" in result.stdout and "completeness error" in result.stdout
    said = invoke(*asked, "--out", tmp_path / "a", "--resume", "--json")
    (found,) = json.loads(said.stdout)["tasks"]
    assert "NaN" not in said.stdout and {one["error"] for one in found["heads"]} == {None}
    assert found["sum"] == pytest.approx(sum(one["effect"] for one in found["heads"]), abs=1e-4)
    gap = abs(found["sum"] - found["whole"]) / abs(found["whole"])
    assert found["completeness_error"] == pytest.approx(gap, abs=1e-4) and found["points"] >= 17


def test_mediation_says_what_it_patched(tiny, task, tmp_path):
    asked = ("map", tiny, "-t", task, "--method", "mediate", "--items", 5, "--dtype", "float32")
    result = invoke(*asked, "--out", tmp_path / "a")
    assert result.returncode == 0, result.stderr
    said = "the prompts of other items, heads patched only where the target is predicted"
    assert said in result.stdout
    report = invoke("report", tmp_path / "a")
    assert said in report.stdout


def test_standard_errors_do_not_shrink_with_seeds_of_the_same_items(tiny, task, tmp_path):
    """All seeds measure every item: three of them know no more than one."""
    asked = ("map", tiny, "-t", task, "--method", "ablate", "--items", 1000, "--dtype", "float32", "--json")
    runs = [
        json.loads(invoke(*asked, "--seeds", seeds, "--out", tmp_path / str(seeds)).stdout)["tasks"][0]
        for seeds in (1, 3)
    ]
    errors = [{one["head"]: one["error"] for one in run["heads"]} for run in runs]
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)
    assert runs[0]["distinct_items"] == runs[1]["distinct_items"] == runs[0]["items"]


def test_wrong_requests(atlas, task, tmp_path):
    assert_refused(invoke("validate", tmp_path / "none"), "there is no folder")
    assert_refused(
        invoke("validate", atlas, "-t", "wrds"), "no gated task in this atlas named", "did you mean"
    )
    assert_refused(invoke("validate", atlas, "-t", task, "--method", "shapley"), "no method named 'shapley'")
    assert_refused(invoke("validate", atlas, "-t", task, "--items", 0), "items is 0")
    assert_refused(invoke("report", atlas, "--out", "report.txt"), "ends in .md or .json")
    assert_refused(invoke("report", atlas, "--json", "--out", "report.md"), "two formats")
    assert_refused(invoke("map", "smollm2", "-t", task, "--method", "abla"), "no method named 'abla'")
    wrong = invoke("map", "smollm2", "-t", task, "--method", "ablate", "--updates", 3)
    assert_refused(wrong, "'updates' is not an option of ablate-zero; it has seeds, items")
