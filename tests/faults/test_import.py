"""Tables made elsewhere: read exactly, or refused with the row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from headatlas import AtlasError, RequestError, open_atlas
from headatlas.atlas import import_table
from headatlas.figure import KINDS, plot_agreement, plot_categories
from support.atlases import atlas_of


def relation_lines(**changes):
    lines = [
        {
            "model": "m",
            "relation": name,
            "category": "knowledge",
            "layer": layer,
            "head": head,
            "score": score,
        }
        for name, score in (("a", 0.25), ("b", 0.5))
        for layer in range(2)
        for head in range(3)
    ]
    return pd.DataFrame(lines).assign(**changes)


def task_lines(seeds=2):
    scores = np.random.default_rng(0).uniform(-1, 1, size=(seeds, 2, 3))
    lines = [
        {
            "model": "m",
            "task": "sums",
            "seed": seed,
            "layer": layer,
            "head": head,
            "score": scores[seed, layer, head],
        }
        for seed, layer, head in np.ndindex(scores.shape)
    ]
    return pd.DataFrame(lines), scores


def test_relations(tmp_path):
    file = tmp_path / "scores.csv"
    relation_lines().to_csv(file, index=False)
    atlas = import_table(file, tmp_path / "atlas")
    assert atlas.relations == ["a", "b"] and atlas.spec.name == "m" and atlas.spec.shape == (2, 3)
    scores = open_atlas(tmp_path / "atlas").relation_scores()
    assert (scores.sel(relation="b", direction="promote") == 0.5).all()
    assert np.isnan(scores.sel(direction="suppress")).all()  # the table has none
    assert atlas.categories().sel(category="knowledge", direction="promote").all()
    assert plot_categories(atlas) is not None


def test_the_score_of_a_task_helps_or_hurts(tmp_path):
    lines, scores = task_lines()
    atlas = import_table(lines, tmp_path / "atlas")
    np.testing.assert_allclose(atlas.scores("sums")["facilitation"], np.maximum(scores, 0), atol=1e-7)
    np.testing.assert_allclose(atlas.scores("sums")["interference"], np.maximum(-scores, 0), atol=1e-7)
    assert atlas.seeds("sums") == [0, 1]
    assert plot_agreement(atlas) is not None
    for kind in ("score", "distributions", "profile"):
        assert KINDS[kind] is not None
    with pytest.raises(AtlasError, match="imported"):
        atlas.trajectory("sums", "retain")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_table_writes_is_read_again(tmp_path, ending):
    draw = np.random.default_rng(1).uniform(0.01, 0.99, size=(2, 2, 3, 4))
    atlas = atlas_of({"sums": {seed: (draw[seed, 0], draw[seed, 1]) for seed in range(2)}})
    table, file = atlas.to_table(), tmp_path / f"t.{ending}"
    table.to_csv(file, index=False) if ending == "csv" else table.to_parquet(file)
    again = import_table(file, tmp_path / "atlas", model="made up").to_table()
    pd.testing.assert_frame_equal(again, table, check_dtype=False)


def test_relations_written_by_table_are_read_again(tmp_path):
    file = tmp_path / "t.csv"
    first = import_table(relation_lines(direction="suppress"), tmp_path / "one")
    first.to_table().to_csv(file, index=False)
    table = pd.read_csv(file, keep_default_na=False)
    table = table[table["value"] != ""]  # promote was not measured
    second = import_table(table, tmp_path / "two", categories={"a": "linguistic"})
    assert second.relation_scores().category.values.tolist() == ["linguistic", "other"]
    np.testing.assert_array_equal(second.relation_scores().values, first.relation_scores().values)


def test_an_atlas_can_be_added_to(tmp_path):
    import_table(relation_lines(), tmp_path / "atlas")
    with pytest.raises(AtlasError, match="--resume"):
        import_table(relation_lines(), tmp_path / "atlas")
    lines, _ = task_lines()
    atlas = import_table(lines, tmp_path / "atlas", resume=True)
    assert atlas.tasks == ["sums"] and atlas.relations == ["a", "b"]
    with pytest.raises(RequestError, match=r"row 1 names layer 5; m has layers 0 to 1"):
        import_table(lines.assign(layer=lines["layer"] + 5, task="other"), tmp_path / "atlas", resume=True)


def test_seeds_of_a_relation_are_averaged(tmp_path):
    both = pd.concat([relation_lines(seed=0, score=0.1), relation_lines(seed=1, score=0.9)])
    scores = import_table(both, tmp_path / "atlas").relation_scores()
    np.testing.assert_allclose(scores.sel(direction="promote"), 0.5, atol=1e-7)


def test_models_are_not_mixed(tmp_path):
    import_table(relation_lines(), tmp_path / "atlas")
    with pytest.raises(AtlasError, match="is an atlas of m, not of n"):
        import_table(relation_lines(model="n"), tmp_path / "atlas", resume=True)
    with pytest.raises(RequestError, match="has no model 'n'; it holds m"):
        import_table(relation_lines(), tmp_path / "other", model="n")
    both = pd.concat([relation_lines(), relation_lines(model="n", score=0.75)])
    atlas = import_table(both, tmp_path / "other", model="n")
    assert atlas.spec.name == "n" and float(atlas.relation_scores().max()) == 0.75


def test_a_table_that_has_changed_is_said_in_words(tmp_path):
    import_table(relation_lines(), tmp_path / "atlas")
    with pytest.raises(AtlasError, match="made with other items"):
        import_table(relation_lines(score=0.3), tmp_path / "atlas", resume=True)


def test_rows_are_counted_with_blank_lines(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("relation,layer,head,score\na,0,0,0.5\n\n,,,\na,0,1,7\n")
    with pytest.raises(RequestError, match="row 5 has the score 7"):
        import_table(file, tmp_path / "atlas")
    file.write_text("relation,layer,head,score\na,0,0,0.5\na,0,1,0.5,6\n")
    with pytest.raises(RequestError, match=r"row 3 has more fields than the header \(4\)"):
        import_table(file, tmp_path / "atlas")
    file.write_text("relation,layer,head,score\na,0,0,0,91\n")  # a decimal comma
    with pytest.raises(RequestError, match="row 2 has more fields"):
        import_table(file, tmp_path / "atlas")
    file.write_text("relation,layer,head,score\na,0,0,0.5,,\n")  # as spreadsheets write it
    assert import_table(file, tmp_path / "atlas").relations == ["a"]


def changed(row, **values):
    lines = relation_lines()
    for column, value in values.items():
        lines[column] = lines[column].astype(object)
        lines.loc[row, column] = value
    return lines


CASES = {
    "no head": (relation_lines().drop(columns="head"), ["no column 'head'", "model, relation, category"]),
    "no score": (relation_lines().drop(columns="score"), ["no column 'score'"]),
    "two scores": (relation_lines(value=0.5), ["'score'", "'value'", "which one"]),
    "neither": (relation_lines().drop(columns="relation"), ["no column 'relation' or 'task'"]),
    "no rows": (relation_lines().iloc[:0], ["has no rows"]),
    "nan": (changed(3, score="nan"), ["row 5 has the score 'nan', which is no number"]),
    "empty": (changed(3, score=""), ["row 5 has the score ''"]),
    "inf": (changed(0, score="inf"), ["row 2 has the score 'inf'"]),
    "high": (changed(4, score=1.5), ["row 6 has the score 1.5", "between 0 and 1"]),
    "negative": (changed(4, score=-0.1), ["row 6 has the score -0.1"]),
    "half a layer": (changed(1, layer=0.5), ["row 3 has the layer 0.5", "whole number"]),
    "head below 0": (changed(1, head=-1), ["row 3 has the head -1"]),
    "direction": (relation_lines(direction="up"), ["row 2 has the direction 'up'", "promote and suppress"]),
    "twice": (
        pd.concat([relation_lines(), relation_lines().iloc[[2]]]),
        ["row 14 says again what row 4 says"],
    ),
    "both": (relation_lines(task="t"), ["row 2 names a task and a relation"]),
    "models": (changed(2, model="n"), ["holds 2 models (m, n)", "--model"]),
    "categories": (changed(2, category="other"), ["'a' has several categories (knowledge, other)"]),
    "task": (
        relation_lines(score=-2).rename(columns={"relation": "task"}),
        ["between -1 (hurts) and 1 (helps)"],
    ),
    "fit": (relation_lines(fit="keep").rename(columns={"relation": "task"}), ["row 2 has the fit 'keep'"]),
    "gate": (relation_lines(fit="retain", score=-0.5).rename(columns={"relation": "task"}), ["gate -0.5"]),
    "half": (
        relation_lines(fit="retain").rename(columns={"relation": "task"}),
        ["'a' (seed 0) has no value for L0H0 in the fit 'remove'"],
    ),
    "hole": (
        relation_lines().rename(columns={"relation": "task"}).drop(index=1),
        ["'a' (seed 0) has no value for L0H1"],
    ),
    "columns": (relation_lines(Score=0.5), ["two columns named 'score'"]),
    "huge": (changed(1, layer=1e30), ["row 3 has the layer 1e+30", "more than any model"]),
    "method": (relation_lines(method="gating"), ["row 2 has the method 'gating'", "relations, attending"]),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_tables_are_refused_with_the_row(case, tmp_path):
    lines, words = CASES[case]
    file = tmp_path / "t.csv"
    lines.to_csv(file, index=False)
    with pytest.raises(RequestError) as caught:
        import_table(file, tmp_path / "atlas")
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert not (tmp_path / "atlas").exists()


def test_heads_out_of_range(tmp_path):
    with pytest.raises(RequestError, match=r"row 3 names L0H2; layer 0 of m has 2 heads"):
        import_table(relation_lines(), tmp_path / "atlas", layers=2, heads=2)
    with pytest.raises(RequestError, match=r"row 4 names layer 1; m has layers 0 to 0"):
        import_table(relation_lines(), tmp_path / "atlas", layers=1, heads=3)
    assert import_table(relation_lines(), tmp_path / "atlas", layers=4, heads=3).spec.shape == (4, 3)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(RequestError, match="does not exist"):
        import_table(tmp_path / "x.csv", tmp_path / "atlas")
    (tmp_path / "t.xlsx").write_text("a")
    with pytest.raises(RequestError, match=r"\.csv or \.parquet"):
        import_table(tmp_path / "t.xlsx", tmp_path / "atlas")
    (tmp_path / "t.csv").write_bytes(b"layer,head\n\xff\xfe,1\n")
    with pytest.raises(RequestError, match="UTF-8"):
        import_table(tmp_path / "t.csv", tmp_path / "atlas")
    (tmp_path / "t.parquet").write_bytes(b"no parquet")
    with pytest.raises(RequestError, match="cannot be read"):
        import_table(tmp_path / "t.parquet", tmp_path / "atlas")
