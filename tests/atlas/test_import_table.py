"""Tables made elsewhere: read exactly, or refused with the row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from headatlas import AtlasError, RequestError, open_atlas
from headatlas.atlas import (
    Atlas,
    EffectMap,
    Run,
    ScoreMap,
    Store,
    find,
    import_table,
    reading_words,
)
from headatlas.atlas.import_summary import summarize_import
from headatlas.atlas.table import write_table
from headatlas.core import UnknownNameError
from headatlas.figure import (
    plot_agreement,
    plot_categories,
    plot_effects,
    plot_imported,
    plot_relations,
    save_figure,
)
from headatlas.page import write_page
from headatlas.page.notebook import atlas_html, card_html
from headatlas.page.payload import payload_of
from support.atlases import atlas_of, spec_of


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


def test_the_score_of_a_task_keeps_its_name_and_its_values(tmp_path):
    lines, scores = task_lines()
    lines["score"] = scores.ravel() * 40  # in whatever unit
    atlas = import_table(lines, tmp_path / "atlas")
    assert atlas.imported == ["sums"] and atlas.tasks == [] and atlas.effect_maps == []
    np.testing.assert_array_equal(atlas.imported_scores("sums").values, scores * 40)
    table = atlas.to_table()
    assert set(table["method"]) == {"imported"} and set(table["fit"]) == {""}
    np.testing.assert_array_equal(table["value"], lines["score"])
    with pytest.raises(UnknownNameError, match="nothing"):
        atlas.imported_scores("nothing")


def test_nothing_is_invented_for_a_score(tmp_path):
    lines, scores = task_lines()
    atlas = import_table(lines, tmp_path / "atlas")
    card = atlas.card("L0H1")
    assert card.tasks == () and card.effects == ()
    (given,) = card.imported
    assert given.name == "sums" and given.seeds == 2
    assert given.score == pytest.approx(scores[:, 0, 1].mean())
    text = atlas.report().markdown() + card_html(card) + atlas_html(atlas)
    assert "G+" not in text and "facilit" not in text and "gates" not in text
    assert "## What was imported?" in text and "sums" in text


def test_gates_are_gates_only_if_the_table_says_so(tmp_path):
    with pytest.raises(RequestError, match="gates have the fit free, retain or remove"):
        import_table(task_lines()[0].assign(method="gating"), tmp_path / "atlas")
    lines = task_lines()[0].assign(score=0.25)
    both = pd.concat([lines.assign(fit="retain"), lines.assign(fit="remove", score=0.125)])
    atlas = import_table(both, tmp_path / "atlas")
    assert atlas.tasks == ["sums"] and atlas.imported == []
    assert (atlas.scores("sums")["facilitation"] == 0.125).all()
    assert plot_agreement(atlas) is not None
    with pytest.raises(AtlasError, match="imported"):
        atlas.trajectory("sums", "retain")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_table_writes_is_read_again(tmp_path, ending):
    draw = np.random.default_rng(1).uniform(0.01, 0.99, size=(2, 2, 3, 4))
    atlas = atlas_of({"sums": {seed: (draw[seed, 0], draw[seed, 1]) for seed in range(2)}})
    table, file = atlas.to_table(), tmp_path / f"t.{ending}"
    table.to_csv(file, index=False) if ending == "csv" else table.to_parquet(file)
    again = import_table(file, tmp_path / "atlas", model="made up").to_table()
    pd.testing.assert_frame_equal(again, table, check_exact=True)


def every_kind_of_line():
    """Gates, an effect with a hole, scores with and without seeds, relations with and without a method."""
    draw = np.random.default_rng(2)
    gates = {seed: (draw.uniform(size=(2, 3)), draw.uniform(size=(2, 3))) for seed in range(2)}
    gates[0][0][0, 0], gates[1][1][1, 2] = 0.0, 1.0
    spec = spec_of(3, 2)
    atlas = atlas_of({"sums": gates}, spec)
    values = np.full(spec.shape, np.nan)
    values[0] = np.float32([0.1, -0.2, 1e-7])
    effect = EffectMap("ablate-zero", "sums", 3, "id", values.astype(np.float32), values)
    shares = np.full((2, *spec.shape), np.nan)
    shares[0, :, 1] = 0.1, 0.3
    static = ScoreMap("relations", "plural", "id", shares.astype(np.float32), {"category": "linguistic"})
    run = Run("relations", "plural", "id")
    measured = Atlas(
        spec, [*atlas.runs.values(), run, Run("ablate-zero", "sums", "id")],
        [fit for fits in atlas._fits.values() for fit in fits.values()], scores=[static], effects=[effect],
    )  # fmt: skip
    given = [
        {"task": "mine", "layer": 1, "head": 1, "value": 0.1234567890123},
        {"task": "theirs", "seed": 7, "layer": 0, "head": 2, "value": -1e12},
        {"task": "theirs", "seed": 8, "layer": 0, "head": 0, "value": 1 / 3},
        {"relation": "a", "seed": 4, "direction": "suppress", "layer": 0, "head": 0, "value": 1 / 7},
        {"relation": "a", "seed": 5, "direction": "promote", "layer": 0, "head": 0, "value": 0.5},
        {"relation": "b", "direction": "promote", "layer": 1, "head": 0, "value": 0.7},
    ]
    return pd.concat([measured.to_table(), pd.DataFrame(given)])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_kind_of_value_goes_round_exactly(tmp_path, ending):
    first = import_table(every_kind_of_line(), tmp_path / "first", model="m").to_table()
    write_table(first, tmp_path / f"t.{ending}")
    second = import_table(tmp_path / f"t.{ending}", tmp_path / "second", model="m").to_table()
    pd.testing.assert_frame_equal(second, first, check_exact=True)
    write_table(second, tmp_path / f"again.{ending}")
    assert (tmp_path / f"again.{ending}").read_bytes() == (tmp_path / f"t.{ending}").read_bytes()
    assert first[first["task"] == "mine"]["seed"].isna().all()
    assert set(first["method"]) == {"gating", "ablate-zero", "imported", "relations"}
    assert len(first) == len(every_kind_of_line())  # heads without a value have no line


def test_relations_written_by_table_are_read_again(tmp_path):
    file = tmp_path / "t.csv"
    first = import_table(relation_lines(direction="suppress"), tmp_path / "one")
    first.to_table().to_csv(file, index=False)
    table = pd.read_csv(file, keep_default_na=False)
    table = table[table["value"] != ""]  # promote was not measured
    second = import_table(table, tmp_path / "two", categories={"a": "linguistic"})
    pd.testing.assert_frame_equal(second.to_table(), first.to_table(), check_exact=True)
    assert second.relation_scores().category.values.tolist() == ["linguistic", "other"]
    np.testing.assert_array_equal(second.relation_scores().values, first.relation_scores().values)


def test_an_atlas_can_be_added_to(tmp_path):
    import_table(relation_lines(), tmp_path / "atlas")
    with pytest.raises(AtlasError, match="resume=True"):
        import_table(relation_lines(), tmp_path / "atlas")
    lines, _ = task_lines()
    atlas = import_table(lines, tmp_path / "atlas", resume=True)
    assert atlas.imported == ["sums"] and atlas.relations == ["a", "b"]
    with pytest.raises(RequestError, match=r"row 1 names layer 5; m has layers 0 to 1"):
        import_table(lines.assign(layer=lines["layer"] + 5, task="other"), tmp_path / "atlas", resume=True)


def test_seeds_of_a_relation_are_kept(tmp_path):
    both = pd.concat([relation_lines(seed=0, score=0.1), relation_lines(seed=1, score=0.9)])
    import_table(both, tmp_path / "atlas")
    atlas = open_atlas(tmp_path / "atlas")
    table = atlas.to_table()
    assert table["seed"].tolist() == [0] * 6 + [1] * 6 + [0] * 6 + [1] * 6
    assert table["value"].tolist() == [0.1] * 6 + [0.9] * 6 + [0.1] * 6 + [0.9] * 6
    scores = atlas.relation_scores()  # a map shows the mean, and says so
    np.testing.assert_allclose(scores.sel(direction="promote"), 0.5, atol=1e-7)
    assert scores["seeds"].values.tolist() == [2, 2]
    caption = " ".join(text.get_text() for text in plot_categories(atlas).texts).replace("\n", " ")
    assert "mean over 2 seeds" in caption.replace("\N{NO-BREAK SPACE}", " ")


def test_a_head_that_the_table_does_not_name_stays_unknown(tmp_path):
    lines = pd.concat([relation_lines(), task_lines()[0]])
    lines = lines[(lines["layer"] != 1) | (lines["head"] == 2)]  # of layer 1 only its last head
    atlas = import_table(lines, tmp_path / "atlas", layers=3)
    assert atlas.spec.heads == (3, 3, 3)
    assert np.isnan(atlas.imported_scores("sums").values[:, 1, 0]).all()
    table = atlas.to_table()
    assert table["value"].notna().all()
    assert not ((table["layer"] == 1) & (table["head"] == 0)).any() and 2 not in set(table["layer"])
    card = atlas.card("L1H0")
    assert card.label == "not in the imported table" and card.missing == ("sums", "a", "b")
    assert "not in the imported table: sums, a, b" in card_html(card)
    known = atlas.card("L1H2")
    assert known.missing == () and "imported" in known.label
    assert "| 5 of 9 |" in atlas.report().markdown()


def test_an_imported_relation_is_not_one_of_the_weights(tmp_path):
    atlas = import_table(relation_lines(), tmp_path / "atlas")
    assert set(atlas.to_table()["method"]) == {"imported"}
    stated = import_table(relation_lines(method="relations"), tmp_path / "stated")
    assert set(stated.to_table()["method"]) == {"relations"}
    with pytest.raises(RequestError, match="give one of the two another name"):
        import_table(pd.concat([relation_lines(), relation_lines(method="relations")]), tmp_path / "both")


def test_heads_that_a_table_leaves_out_decide_no_finding(tmp_path):
    """A table of the last layer alone does not show that the heads of its category lie there."""
    last = relation_lines()
    atlas = import_table(last[last["layer"] == 1], tmp_path / "last")
    assert [one.topic for one in find(atlas)] == []
    whole = import_table(relation_lines(), tmp_path / "whole")
    found = [one for one in find(whole) if one.topic == "categories"]
    assert found and all(one.text.endswith("(imported scores)") and one.published is None for one in found)


def test_the_number_of_parameters_is_unknown(tmp_path):
    import_table(relation_lines(), tmp_path / "atlas")
    assert open_atlas(tmp_path / "atlas").spec.parameters is None


def test_repeated_heads_offer_an_average(tmp_path):
    each = [relation_lines(template=name, score=score) for name, score in (("x", 0.2), ("y", 0.4))]
    lines = pd.concat([*each, relation_lines(template="z", score=0.9).iloc[:1]])
    with pytest.raises(RequestError, match=r"row 13 repeats row 1 .*differ in template: average='template'"):
        import_table(lines, tmp_path / "atlas")
    with pytest.raises(RequestError, match=r"no column 'frame' to average over; there are template"):
        import_table(lines, tmp_path / "atlas", average=["frame"])
    with pytest.raises(RequestError, match=r"no column 'seed' to average over"):
        import_table(lines.assign(seed=0), tmp_path / "atlas", average=["seed"])
    with pytest.raises(RequestError, match="repeats"):
        import_table(pd.concat([lines, each[0]]), tmp_path / "atlas", average=["template"])
    assert not (tmp_path / "atlas").exists()
    atlas = import_table(lines.assign(note="n"), tmp_path / "atlas", average=["Template"])
    scores = atlas.relation_scores().sel(direction="promote")
    np.testing.assert_allclose(scores.values[0, 0, 0], 0.5, atol=1e-7)
    np.testing.assert_allclose(scores.values.ravel()[1:], 0.3, atol=1e-7)
    assert reading_words(atlas.run("a", "relations").task_facts) == [
        "each score is the mean over template (2 to 3 rows)",
        "columns that were ignored: note",
    ]


def test_nothing_is_averaged_unasked(tmp_path):
    """Directions of a task and fits of a relation were averaged without a word."""
    lines, _ = task_lines()
    with pytest.raises(RequestError, match="has the direction 'promote'; a task has none"):
        import_table(lines.assign(direction="promote"), tmp_path / "atlas")
    with pytest.raises(RequestError, match="has the fit 'retain'; a relation has none"):
        import_table(relation_lines(fit="retain"), tmp_path / "atlas")
    mixed = pd.concat([relation_lines(seed=1), relation_lines().iloc[:1]])
    with pytest.raises(RequestError, match="row 13 has no seed, but other rows of 'a' have one"):
        import_table(mixed, tmp_path / "atlas")


@pytest.mark.parametrize("column", ["model", "relation", "category"])
def test_names_are_printable(tmp_path, column):
    with pytest.raises(RequestError, match=rf"row 1 has the {column} .*printable"):
        import_table(relation_lines(**{column: "a\x1b[31m"}), tmp_path / "atlas")
    assert not (tmp_path / "atlas").exists()


def test_the_shape_is_checked_before_anything_is_written(tmp_path):
    for shape in ({"layers": 400, "heads": 400}, {"layers": 10**9, "heads": 1}, {"layers": 0}, {"heads": -1}):
        with pytest.raises(RequestError):
            import_table(relation_lines(), tmp_path / "atlas", **shape)
    wide = changed(0, head=1500).astype({"head": int})
    wide.loc[1, "layer"] = 1500
    with pytest.raises(RequestError, match="1501 layers of 1501 heads are 2,253,001 heads"):
        import_table(wide, tmp_path / "atlas")
    assert not (tmp_path / "atlas").exists()
    assert len(import_table(relation_lines(), tmp_path / "atlas", layers=300, heads=300).spec) == 90_000
    assert len(open_atlas(tmp_path / "atlas").spec) == 90_000


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
    "too large": (changed(0, score=1e39), ["row 2 has the score '1e+39'", "-1e+38 to 1e+38"]),
    "inf": (changed(0, score="inf"), ["row 2 has the score 'inf'"]),
    "high": (changed(4, score=1.5), ["row 6 has the score 1.5", "between 0 and 1"]),
    "negative": (changed(4, score=-0.1), ["row 6 has the score -0.1"]),
    "half a layer": (changed(1, layer=0.5), ["row 3 has the layer 0.5", "whole number"]),
    "head below 0": (changed(1, head=-1), ["row 3 has the head -1"]),
    "direction": (relation_lines(direction="up"), ["row 2 has the direction 'up'", "promote and suppress"]),
    "twice": (
        pd.concat([relation_lines(), relation_lines().iloc[[2]]]),
        ["row 14 repeats row 4 (a, L0H2)"],
    ),
    "both": (relation_lines(task="t"), ["row 2 names a task and a relation"]),
    "models": (changed(2, model="n"), ["holds 2 models (m, n)", "model=…"]),
    "categories": (changed(2, category="other"), ["'a' has several categories (knowledge, other)"]),
    "fit": (relation_lines(fit="keep").rename(columns={"relation": "task"}), ["row 2", "the fit 'keep'"]),
    "gate": (relation_lines(fit="retain", score=-0.5).rename(columns={"relation": "task"}), ["gate -0.5"]),
    "half": (
        relation_lines(fit="retain").rename(columns={"relation": "task"}),
        ["'a' has no gate for L0H0 in the fit 'remove'"],
    ),
    "hole": (
        relation_lines(fit="retain", seed=4).rename(columns={"relation": "task"}).drop(index=1),
        ["'a' (seed 4) has no gate for L0H1"],
    ),
    "columns": (relation_lines(Score=0.5), ["two columns named 'score'"]),
    "huge": (changed(1, layer=1e30), ["row 3 has the layer 1e+30", "more than any model"]),
    "method": (
        relation_lines(method="gating"),
        ["row 2 has the method 'gating'", "relations, imported, attending"],
    ),
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


def caption_of(figure):
    return " ".join(
        " ".join(text.get_text() for text in figure.texts).replace("\N{NO-BREAK SPACE}", " ").split()
    )


def test_relations_imported_by_an_older_version_are_read(tmp_path):
    """It kept the mean over seeds and their number, and 0 parameters."""
    root, values = tmp_path / "atlas", np.full((2, 2, 3), 0.25, np.float32)
    spec = replace(spec_of(3, 3), architecture="imported", parameters=0)
    with Store.writing(root, spec) as store:
        for name, seeds in (("a", 2), ("b", 1)):
            store.add(Run("relations", name, name, {"imported_from": "t.csv"}))
            facts = {"seeds": seeds, "category": "knowledge", "kind": "imported"}
            store.write(ScoreMap("relations", name, name, values, facts))
    atlas = open_atlas(root)
    assert atlas.spec.parameters is None
    scores = atlas.relation_scores()
    assert scores["seeds"].values.tolist() == [2, 1] and scores["seeds_kept"].values.tolist() == [False, True]
    assert atlas.to_table()["seed"].isna().all()
    text = atlas.report().markdown()
    assert "| relation a | t.csv | mean over 2 seeds, which were not kept |" in text
    assert "| relation b | t.csv | 1 |" in text
    caption = caption_of(plot_categories(atlas))
    assert "a (mean over 2 seeds), b" in caption
    assert "An older version imported a: the single seeds were not kept." in caption
    (page,) = payload_of([atlas])["atlases"]
    assert [one["seedsKept"] for one in page["relations"]] == [False, True]
    again = import_table(relation_lines(model="made up").iloc[:6].assign(relation="c"), root, resume=True)
    assert again.relations == ["a", "b", "c"]


@pytest.mark.parametrize("threshold", [-3, 0, float("nan"), 7, "high"])
def test_thresholds_are_above_0_and_up_to_1(tmp_path, threshold):
    gates = np.full((2, 2), 0.9)
    gated = atlas_of({"sums": {0: (gates, gates)}})
    related = import_table(relation_lines(), tmp_path / "atlas")
    for call in (
        lambda: gated.roles("sums", threshold),
        lambda: gated.distribution("sums", threshold),
        lambda: gated.summary("sums", threshold),
        lambda: related.categories(threshold),
    ):
        with pytest.raises(RequestError, match=r"threshold is .*; allowed are numbers above 0 and up to 1\."):
            call()


@pytest.mark.parametrize(
    "changes",
    [
        {"table": 3}, {"table": None}, {"out": 3}, {"model": 3}, {"layers": 1.5}, {"layers": "2"},
        {"layers": True}, {"heads": 2.0},
    ],
)  # fmt: skip
def test_arguments_of_a_wrong_type_are_refused(tmp_path, changes):
    given = {"table": relation_lines(), "out": tmp_path / "atlas"} | changes
    with pytest.raises(RequestError, match=f"{next(iter(changes))} is .*allowed"):
        import_table(**given)
    assert not (tmp_path / "atlas").exists()


def test_a_column_to_average_may_be_given_as_text(tmp_path):
    both = pd.concat([relation_lines(template="a"), relation_lines(template="b")])
    atlas = import_table(both, tmp_path / "atlas", average="template")
    assert reading_words(atlas.run("a", "relations").task_facts) == [
        "each score is the mean over template (2 rows)"
    ]


def test_an_atlas_may_be_given_as_its_folder(tmp_path):
    lines = pd.concat([task_lines()[0], task_lines()[0].assign(method="mediate")])
    folder = tmp_path / "atlas"
    import_table(lines, folder)
    assert plot_imported(folder) is not None and plot_effects(str(folder)) is not None
    write_page(folder, tmp_path / "a.html")
    gates = pd.concat([lines.assign(method="", fit=fit, score=0.5) for fit in ("retain", "remove")])
    import_table(gates[~gates.duplicated(["seed", "fit", "layer", "head"])], tmp_path / "gates")
    assert plot_agreement(str(tmp_path / "gates")) is not None
    for call in (plot_imported, plot_effects, plot_agreement):
        with pytest.raises(AtlasError, match="there is no folder"):
            call("nothing")
        with pytest.raises(RequestError, match="is 3; allowed is a path"):
            call(3)
    with pytest.raises(RequestError, match="is 3; allowed is a path"):
        write_page(folder, tmp_path / "a.html", other=3)
    with pytest.raises(RequestError, match="out is 3; allowed is a path"):
        write_page(folder, 3)


def test_imported_effects_say_so(tmp_path):
    lines = task_lines(1)[0].drop(columns="seed").assign(method="mediate").iloc[1:]
    atlas = import_table(lines, tmp_path / "atlas")
    (effect,) = atlas.card("L0H1").effects
    assert effect.imported and "mediate, imported" in card_html(atlas.card("L0H1"))
    assert "mediate of sums (imported)" in atlas_html(atlas)
    assert "Imported, not measured here: sums, mediate." in caption_of(plot_effects(atlas))
    assert "| mediate of sums | the table | not given | 1 of 6 |" in atlas.report().markdown()
    (page,) = payload_of([atlas])["atlases"]
    assert [one["imported"] for one in page["effects"]] == [True]


def test_heads_without_all_seeds_are_counted(tmp_path):
    """Seed 1 names three of six heads, in the first layer."""
    lines, _ = task_lines()
    lines = lines[(lines["seed"] == 0) | (lines["layer"] == 0)]
    effects = lines.assign(method="mediate")
    both = pd.concat([relation_lines(seed=0), relation_lines(seed=1).iloc[:5]])
    atlas = import_table(pd.concat([lines, effects, both]), tmp_path / "atlas")
    text = atlas.report().markdown()
    assert text.count("| 2; 3 heads have fewer than all 2 seeds |") == 2
    assert "| relation a | the table | 2; 1 head has fewer than all 2 seeds |" in text
    assert atlas.relation_scores()["uneven"].values.tolist() == [1, 0]
    assert "sums: 3 heads have fewer than all 2 seeds." in caption_of(plot_imported(atlas))
    assert "a: 1 head has fewer than all 2 seeds." in caption_of(plot_relations(atlas))
    assert "sums, mediate: 3 heads have fewer than all 2 seeds." in caption_of(plot_effects(atlas))
    (page,) = payload_of([atlas])["atlases"]
    assert [one["uneven"] for one in page["relations"]] == ["1 head has fewer than all 2 seeds", ""]
    assert {one["uneven"] for one in (*page["imported"], *page["effects"])} == {
        "3 heads have fewer than all 2 seeds"
    }
    even = import_table(task_lines()[0], tmp_path / "even")
    assert "fewer than all" not in even.report().markdown() + caption_of(plot_imported(even))


def test_a_card_counts_the_seeds_that_name_its_head(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("task,seed,layer,head,score\nind,0,0,0,1\nind,0,0,1,2\nind,1,0,0,3\n")
    atlas = import_table(table, tmp_path / "atlas")
    cards = [atlas.card(name).imported[0] for name in ("L0H0", "L0H1")]
    assert [(one.score, one.seeds) for one in cards] == [(2, 2), (2, 1)]
    table.write_text("task,layer,head,score\nind,0,0,1\n")
    assert import_table(table, tmp_path / "none").card("L0H0").imported[0].seeds == 0


@pytest.mark.parametrize(("shape", "words"), [({"layers": 7}, "layers is 7"), ({"heads": 9}, "heads is 9")])
def test_an_atlas_keeps_its_shape(tmp_path, shape, words):
    import_table(relation_lines(), tmp_path / "atlas")
    with pytest.raises(AtlasError, match=f"{words}, but .* is an atlas of 2 layers of 3 heads"):
        import_table(task_lines()[0], tmp_path / "atlas", resume=True, **shape)
    same = import_table(task_lines()[0], tmp_path / "atlas", resume=True, layers=2, heads=3)
    assert same.imported == ["sums"]


def test_columns_without_a_name_are_ignored_columns(tmp_path):
    file = tmp_path / "t.csv"
    relation_lines().to_csv(file)  # with its index
    facts = import_table(file, tmp_path / "index").run("a", "relations").task_facts
    assert reading_words(facts) == ["columns that were ignored: (no name)"]
    file.write_text("relation,layer,head,score,,\na,0,0,0.5,,\n")
    facts = import_table(file, tmp_path / "empty").run("a", "relations").task_facts
    assert reading_words(facts) == []


def test_no_name_is_suggested_where_there_is_none():
    gates = np.full((2, 2), 0.9)
    atlas = atlas_of({"sums": {0: (gates, gates)}})
    for call in (
        lambda: atlas.imported_scores("mine"),
        lambda: atlas.left_out_pairs("mine"),
        lambda: atlas.effects("mine", "mediate"),
        lambda: atlas.gates("mine", "contrast"),
        lambda: plot_imported(atlas, ["mine"]),
        lambda: plot_effects(Atlas(spec_of(2), [], []), ["mine"]),
    ):
        with pytest.raises(UnknownNameError, match=r"named 'mine'; there are none\.$"):
            call()


def test_a_label_with_a_control_character_is_escaped(tmp_path):
    gates = np.full((2, 2), 0.9)
    figure = plot_agreement(atlas_of({"sums": {0: (gates, gates)}}), label="(\x1b)")
    save_figure(figure, tmp_path / "a.png")  # matplotlib warns about characters that its font lacks
    (label,) = [text.get_text() for text in figure.texts if text.get_gid() == "label"]
    assert label == r"(\x1b)"


@pytest.mark.parametrize("part", ["baseline", "remove"])
def test_losses_of_items_need_their_mean(tmp_path, part):
    gates = np.full((2, 2), 0.9)
    whole = atlas_of({"sums": {0: (gates, gates)}})
    items = {"held_out_nll": [1.0, 2.0]}
    baseline = {**items, "groups": [0, 1], "rows": 2} | ({} if part == "baseline" else {"nll": 1.5})
    with Store.writing(tmp_path / "atlas", whole.spec) as store:
        store.add(Run("gating", "sums", "id", baseline=baseline))
        for fit in ("free", "retain", "remove"):
            facts = {} if fit == "free" else items | ({} if fit == part else {"nll": 1.5})
            store.write(replace(whole.fit("sums", 0, fit), facts=facts))
    with pytest.raises(AtlasError, match=r"is damaged: .*'nll' is a dependency of 'held_out_nll'"):
        open_atlas(tmp_path / "atlas")


def test_effects_of_a_method_that_is_not_installed_come_back(tmp_path):
    """In a unit that the table does not say."""
    lines = task_lines(1)[0].assign(method="output-norm")
    first = import_table(lines, tmp_path / "atlas")
    (task,) = {name for name, method in first.effect_maps if method == "output-norm"}
    assert first.run(task, "output-norm").unit == "unknown"
    again = import_table(first.to_table(), tmp_path / "again")
    pd.testing.assert_frame_equal(again.to_table(), first.to_table())
    assert import_table(lines.assign(method="mediate"), tmp_path / "x").run(task, "mediate").unit == "nats"


@pytest.mark.parametrize("method", ["relations", "random", "../effects", "Output norm"])
def test_a_task_has_no_scores_of_such_a_method(tmp_path, method):
    with pytest.raises(RequestError, match=r"row 1 has the method '.*' for a task; "):
        import_table(task_lines(1)[0].assign(method=method), tmp_path / "atlas")


def gate_lines(method, fits=("retain", "remove")):
    lines = task_lines(1)[0].drop(columns="seed")
    return pd.concat([lines.assign(method=method, fit=fit, score=0.25) for fit in fits])


@pytest.mark.parametrize("fits", [("free", "retain", "remove"), ("free",)])
def test_gates_of_a_plugin_come_back(tmp_path, fits):
    first = import_table(gate_lines("short", fits), tmp_path / "atlas")
    assert first.tasks == (["sums"] if "retain" in fits else []) and first.effect_maps == []
    again = import_table(first.to_table(), tmp_path / "again")
    pd.testing.assert_frame_equal(again.to_table(), first.to_table())


def test_a_method_has_gates_or_effects(tmp_path):
    with pytest.raises(RequestError, match="the fit 'retain'; the method 'ablate-zero' has none"):
        import_table(gate_lines("ablate-zero"), tmp_path / "atlas")
    mixed = pd.concat([gate_lines("short"), task_lines(1)[0].assign(method="short", seed=np.nan)])
    with pytest.raises(RequestError, match="row 13 has no fit, but other rows of 'sums' by 'short' have one"):
        import_table(mixed.drop(columns="seed"), tmp_path / "atlas")


def test_a_mistyped_method_is_named(tmp_path):
    lines = task_lines(1)[0]
    for method, is_named in (("gatng", True), ("mediate", False)):
        atlas = import_table(lines.assign(method=method), tmp_path / method)
        notes = summarize_import(atlas, "the table", tmp_path / method, has_shape=True).notes
        assert (
            any("no installed method has this name" in note and method in note for note in notes) == is_named
        )
