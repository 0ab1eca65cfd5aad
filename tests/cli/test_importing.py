"""`headatlas import`: what it says about the table, and the advice it ends with."""

from __future__ import annotations

import shlex

import pandas as pd
import pytest

from support.cli import invoke


def rows(*names, column="task", **more):
    lines = [
        {column: name, "layer": layer, "head": head, "score": 0.25, **more}
        for name in names
        for layer, head in ((0, 0), (0, 1), (2, 1))
    ]
    return pd.DataFrame(lines)


@pytest.fixture
def imported(tmp_path):
    """A function: imports rows into an atlas folder and returns what the command printed."""

    def run(frame, *options):
        frame.to_csv(tmp_path / "t.csv", index=False)
        result = invoke("import", tmp_path / "t.csv", "--out", tmp_path / "my atlas", *options)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def test_ignored_columns_holes_and_seeds_are_named(imported):
    both = pd.concat([rows("mine", seed=0, note="x", source="y"), rows("mine", seed=1, note="z")])
    said = imported(both)
    assert "columns that were ignored: note, source" in said
    assert "scores: mine (2 seeds)" in said
    assert "3 layers of 2 heads" in said
    assert "3 of 6 heads are not in the imported table" in said


def test_a_column_is_averaged_when_asked(imported, tmp_path):
    both = pd.concat([rows("mine", template="a"), rows("mine", template="b")])
    both.to_csv(tmp_path / "t.csv", index=False)
    refused = invoke("import", tmp_path / "t.csv", "--out", tmp_path / "my atlas")
    assert refused.returncode == 2 and "--average template" in refused.stderr
    said = imported(both, "--average", "template")
    assert "each score is the mean over template (2 rows)" in said and "ignored" not in said


ADVICE = {
    "score": (rows("mine"), "--kind imported"),
    "effect": (rows("mine", method="mediate"), "--kind effects"),
    "relation": (rows("copying", column="relation"), "--kind categories"),
    "suppress": (rows("copying", column="relation", direction="suppress"), "--direction suppress"),
}


@pytest.mark.parametrize("case", ADVICE)
def test_the_advice_can_be_followed(case, imported, tmp_path):
    frame, words = ADVICE[case]
    said = imported(frame)
    command = said.rstrip().splitlines()[-1].removeprefix("to see it: ")
    assert words in command
    assert invoke(*shlex.split(command)[1:]).returncode == 0


def test_the_category_other_is_named(imported):
    assert "unless a column 'category' says another: mine" in imported(rows("mine", column="relation"))


def test_a_card_says_where_a_score_comes_from(imported, tmp_path):
    imported(pd.concat([rows("mine"), rows("copying", column="relation")]))
    card = invoke("head", tmp_path / "my atlas", "L0H1").stdout
    assert "imported score" in card and "mine" in card and "† imported" in card and "G+" not in card
    hole = invoke("head", tmp_path / "my atlas", "L1H0").stdout
    assert "not in the imported table: mine, copying" in hole and "nothing stands out" not in hole


def test_a_score_cannot_be_validated_or_exported(imported, tmp_path):
    imported(rows("mine"))
    result = invoke("export", tmp_path / "my atlas", "--task", "mine", "--out", tmp_path / "out")
    assert result.returncode != 0 and "'mine' is an imported score: there are no gates" in result.stderr
    result = invoke("plot", tmp_path / "my atlas")
    assert result.returncode == 2 and "--kind imported" in result.stderr


def test_heads_with_fewer_seeds_are_counted(imported):
    said = imported(pd.concat([rows("mine", seed=0), rows("mine", seed=1).iloc[:1]]))
    assert "note: mine: 2 heads have fewer than all 2 seeds" in said


def test_gates_without_a_seed_have_no_number_of_seeds(imported):
    places = [(layer, head) for layer in range(2) for head in range(2)]
    lines = [
        {"task": "mine", "fit": fit, "layer": layer, "head": head, "score": 0.5}
        for fit in ("retain", "remove")
        for layer, head in places
    ]
    assert "gates: mine\n" in imported(pd.DataFrame(lines))


def test_a_card_says_which_effects_were_imported(imported, tmp_path):
    imported(rows("mine", method="mediate"))
    card = invoke("head", tmp_path / "my atlas", "L0H1").stdout
    assert "mediate†" in card and "† imported, not measured here" in card


@pytest.mark.parametrize("width", [20, 40])
@pytest.mark.parametrize("kind", ["models", "tasks", "relations", "atlases"])
def test_lists_are_not_cut(kind, width, imported, tmp_path, monkeypatch):
    """Words may go on in the next line; no character is lost."""
    imported(pd.concat([rows("a-rather-long-name-of-a-task"), rows("mine", method="mediate")]))
    monkeypatch.chdir(tmp_path)

    def shown(columns):
        where = ["."] if kind == "atlases" else []
        out = invoke("list", kind, *where, COLUMNS=str(columns)).stdout
        return sorted(out.replace("\n", "").replace(" ", ""))

    assert shown(width) == shown(1000)
