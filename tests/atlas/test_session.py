"""An atlas in a session: what it holds, its defaults, its tables; saved, opened again, merged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headatlas import AtlasError, RequestError, UnknownNameError, open_atlas
from headatlas.atlas import Atlas, EffectMap, Run, ScoreMap
from headatlas.core import Head
from support.atlases import atlas_of, contrast_atlas, spec_of

HIGH = np.array([[0.9, 0.1, 0.8], [0.9, 0.2, np.nan]])
LOW = np.array([[0.8, 0.0, 0.1], [0.2, 0.7, np.nan]])


def gated(seeds=(0, 1), task="sums"):
    return atlas_of({task: {seed: (HIGH - seed / 100, LOW) for seed in seeds}}, spec_of(3, 2))


def measured(*methods, seeds=(0,), task="sums"):
    """Effects 0.0, 0.1, … head by head, more in later seeds."""
    runs = [Run(method, task, "id") for method in methods]
    values = np.array([[0.0, 0.1, 0.2], [0.3, 0.4, np.nan]])
    effects = [
        EffectMap(method, task, seed, "id", values + seed, np.full((2, 3), 0.01), {"items": 4})
        for method in methods
        for seed in seeds
    ]
    return Atlas(spec_of(3, 2), runs, [], effects=effects)


def related(*relations):
    runs = [Run("relations", name, "id") for name in relations]
    facts = {"category": "knowledge", "kind": "static"}
    scores = [ScoreMap("relations", name, "id", np.full((2, 2, 3), 0.5), facts) for name in relations]
    return Atlas(spec_of(3, 2), runs, [], scores=scores, notes={"other": ({"values": HIGH}, {"k": 1})})


def assert_equal(one, other):
    assert one.spec == other.spec and one.runs == other.runs
    records = [list(atlas.records()) for atlas in (one, other)]
    assert [type(record) for record in records[0]] == [type(record) for record in records[1]]
    for first, second in zip(*records, strict=True):
        for name in first.__slots__:
            np.testing.assert_equal(getattr(first, name), getattr(second, name))
    assert one.notes.keys() == other.notes.keys()
    for name, (arrays, about) in one.notes.items():
        np.testing.assert_equal(arrays, other.notes[name][0])
        assert about.items() <= other.notes[name][1].items()


@pytest.mark.parametrize(
    "atlas",
    [gated(), measured("ablate-mean"), contrast_atlas(), gated().merge(measured("ablate-mean", "mediate"))],
    ids=["gates", "effects", "contrast", "merged"],
)
def test_a_saved_atlas_opens_equal(atlas, tmp_path):
    path = atlas.save(tmp_path / "new" / "atlas")
    assert path == tmp_path / "new" / "atlas" and atlas.path is None
    opened = open_atlas(path)
    assert_equal(atlas, opened)
    assert opened.path == path and repr(opened) == repr(atlas)
    assert_equal(opened, open_atlas(opened.save(tmp_path / "again")))


def test_relations_and_notes_are_saved(tmp_path):
    assert_equal(related("plural"), open_atlas(related("plural").save(tmp_path / "atlas")))


def test_saving_over_something_is_refused(tmp_path):
    gated().save(tmp_path / "atlas")
    before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*"))
    with pytest.raises(AtlasError, match="holds another atlas; choose a new folder"):
        gated(seeds=(0, 1, 2)).save(tmp_path / "atlas")
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match="already exists; choose a new folder"):
        gated().save(tmp_path / "file")
    (tmp_path / "file").unlink()
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*")) == before


def test_a_save_that_fails_leaves_nothing(tmp_path):
    atlas = gated()
    atlas.notes["bad"] = ({"values": HIGH}, {"facts": object()})
    with pytest.raises(TypeError):
        atlas.save(tmp_path / "atlas")
    assert list(tmp_path.iterdir()) == []


# merging


def test_seeds_of_one_task_are_joined():
    one, other = gated((0, 1)), gated((1, 4))
    other._fits["gating", "sums"][1, "retain"] = replace(one.fit("sums", 1, "retain"), logits=LOW)
    merged = one.merge(other)
    assert merged.seeds("sums") == [0, 1, 4] and merged.path is None
    np.testing.assert_equal(merged.gates().sel(seed=1).values, one.gates().sel(seed=1).values)  # the first's
    np.testing.assert_equal(merged.gates().sel(seed=4).values, other.gates().sel(seed=4).values)
    assert one.seeds("sums") == [0, 1] and other.seeds("sums") == [1, 4]


def test_results_of_different_kinds_are_side_by_side(tmp_path):
    merged = gated().merge(measured("ablate-mean")).merge(related("plural", "antonym"))
    assert merged.contents.tasks == ("sums",) and merged.contents.effects == (("sums", "ablate-mean"),)
    assert set(merged.contents.relations) == {"antonym", "plural"} and "other" in merged.notes
    folder = related("plural").save(tmp_path / "atlas")
    assert gated().merge(str(folder)).relations == ["plural"]


def test_another_request_of_one_task_is_refused_with_what_differs():
    one, other = gated(), gated()
    for atlas, updates in ((one, 8), (other, 16)):
        run = atlas.runs["gating", "sums"]
        decides = {"settings": {"updates": updates}, "dtype": "float32"}
        atlas.runs["gating", "sums"] = replace(run, identity=str(updates), settings={"decides": decides})
    with pytest.raises(AtlasError, match=r"'sums' \(gating\).*settings updates 8 instead of 16; give one of"):
        one.merge(other)
    unfinished = Atlas(other.spec, other.runs.values(), [])
    assert one.merge(unfinished).run("sums").identity == "8"
    assert unfinished.merge(one).run("sums").identity == "8"


def test_the_larger_request_and_a_baseline_are_kept():
    one, other = gated((0,)), gated((0, 1))
    for atlas, seeds, baseline in ((one, 1, {"nll": 2.0}), (other, 2, {})):
        run = atlas.runs["gating", "sums"]
        settings = {"resolved": {"seeds": seeds}}
        atlas.runs["gating", "sums"] = replace(run, settings=settings, baseline=baseline)
    for merged in (one.merge(other), other.merge(one)):
        run = merged.run("sums")
        assert run.settings["resolved"]["seeds"] == 2 and run.baseline == {"nll": 2.0}


def test_other_weights_are_refused():
    other = gated(task="words")
    other.spec = replace(other.spec, content_hash="other", name="noisy")
    with pytest.raises(AtlasError, match=r"weights of made up and of noisy differ; headatlas.compare"):
        gated().merge(other)
    other.spec = replace(other.spec, content_hash=None)
    with pytest.raises(AtlasError, match="weights of noisy are not known"):
        gated().merge(other)
    exact = [gated(), gated(task="words")]
    for atlas, task, weights in zip(exact, ("sums", "words"), ("a", "b"), strict=True):
        settings = {"decides": {"dtype": "float32", "weights": weights}}
        atlas.runs["gating", task] = replace(atlas.runs["gating", task], settings=settings)
    with pytest.raises(AtlasError, match=r"'sums' was mapped .* with other weights"):
        exact[0].merge(exact[1])


def test_causal_checks_are_joined_by_relation():
    one, other = related("plural"), related("antonym")
    for atlas, names in ((one, ["plural"]), (other, ["plural", "antonym"])):
        checks = [{"relation": name, "random": [[len(names)]]} for name in names]
        atlas.notes["causal"] = ({}, {"checks": checks})
    checks = {check["relation"]: check["random"] for check in one.merge(other).causal_checks()}
    assert checks == {"plural": [[1]], "antonym": [[2]]}


# what there is


def test_contents_and_repr_name_all_that_is_there():
    assert repr(gated()) == "<Atlas of made up: sums>"
    assert repr(measured("ablate-mean")) == "<Atlas of made up: ablate-mean of sums>"
    assert repr(contrast_atlas()) == "<Atlas of made up: contrast sums without words>"
    assert repr(related("plural")) == "<Atlas of made up: 1 relation (plural)>"
    nothing = Atlas(spec_of(3, 2), [Run("gating", "sums", "id")], [])
    assert repr(nothing) == "<Atlas of made up: unfinished: sums>" and not nothing.contents
    assert repr(Atlas(spec_of(1), [], [])) == "<Atlas of made up: nothing is finished yet>"
    for atlas, text in (
        (measured("ablate-mean"), "ablate-mean of sums"),
        (contrast_atlas(), "contrasts: sums without words"),
    ):
        assert text in atlas._repr_html_() and "nothing is finished" not in atlas._repr_html_()
    assert contrast_atlas().contrasts == ["sums without words"] and contrast_atlas().tasks == []


def test_gates_of_the_only_task_or_contrast():
    atlas = gated()
    assert atlas.gates().equals(atlas.gates("sums")) and atlas.gates().attrs["task"] == "sums"
    contrast = contrast_atlas()
    assert contrast.gates().equals(contrast.gates("sums without words", "contrast"))
    assert contrast.gates("sums without words").sizes["fit"] == 1
    both = atlas_of({name: {0: (HIGH, LOW)} for name in ("sums", "words")}, spec_of(3, 2))
    with pytest.raises(RequestError, match="this atlas has 2: sums, words; name one task"):
        both.gates()
    with pytest.raises(RequestError, match=r"no task or contrast with gates; headatlas.map_heads fits some"):
        measured("ablate-mean").gates()


def test_effects_of_the_only_task_and_method():
    atlas = measured("ablate-mean", seeds=(0, 3))
    assert atlas.effects().equals(atlas.effects("sums", "ablate-mean"))
    assert atlas.effects("sums").equals(atlas.effects(method="ablate-mean"))
    table = atlas.effects("sums").to_dataframe().sort_values("effect", ascending=False)
    assert table["name"].iloc[0] == "L1H1" and table.index[0] == (3, 1, 1)
    with pytest.raises(RequestError, match="measured by ablate-mean, mediate; choose one with method="):
        measured("ablate-mean", "mediate").effects("sums")
    with pytest.raises(UnknownNameError, match="no task with effects in this atlas named 'sum'"):
        atlas.effects("sum")
    with pytest.raises(RequestError, match=r"no task with effects; headatlas.map_heads"):
        gated().effects()


def test_scores_of_all_tasks():
    sums, words = gated((0, 1)), gated((1, 2), task="words")
    scores = sums.merge(words).scores()
    assert scores["facilitation"].dims == ("task", "seed", "layer", "head")
    assert scores.task.values.tolist() == ["sums", "words"] and scores.seed.values.tolist() == [0, 1, 2]
    for task, atlas, missing in (("sums", sums, 2), ("words", words, 0)):
        of_task = scores.sel(task=task, drop=True)
        assert of_task.sel(seed=missing)["interference"].isnull().all()
        for seed in atlas.seeds(task):
            for name, values in atlas.scores(task).sel(seed=seed).data_vars.items():
                np.testing.assert_array_equal(of_task[name].sel(seed=seed), values)
    assert scores.name.dims == ("layer", "head")
    assert scores.name.values.tolist() == [["L0H0", "L0H1", "L0H2"], ["L1H0", "L1H1", ""]]
    table = scores.sel(layer=slice(1, 1)).mean("seed").to_dataframe()
    assert table.loc[("sums", 1, 1), "name"] == "L1H1"
    assert table.loc[("sums", 1, 1), "facilitation"] == pytest.approx(0.7)
    with pytest.raises(RequestError, match=r"no gated task; headatlas.map_heads"):
        measured("ablate-mean").scores()


def test_a_table_of_heads():
    atlas = gated().merge(measured("ablate-mean", seeds=(0, 2)))
    table = atlas.to_dataframe()
    assert table.columns.tolist() == [
        "task", "layer", "head", "name", "facilitation", "interference", "irrelevance", "role",
        "effect_ablate-mean", "stderr_ablate-mean",
    ]  # fmt: skip
    assert table["name"].tolist() == [str(head) for head in atlas.spec]  # L1H2 does not exist
    scores, pooled = atlas.scores("sums").mean("seed"), atlas.pooled_effects("sums", "ablate-mean")
    for row in table.itertuples(index=False):
        head = Head(row.layer, row.head)
        assert row.facilitation == float(scores["facilitation"].values[head])
        assert row.irrelevance == float(scores["irrelevance"].values[head])
        assert row[-2] == float(pooled["effect"].values[head])
    assert table["role"].tolist() == ["facilitating", "interfering", "irrelevant", "irrelevant", "anomaly"]
    # pooled: seeds 0 and 2 are 2 apart
    assert table["effect_ablate-mean"].tolist() == pytest.approx([1.0, 1.1, 1.2, 1.3, 1.4])


def test_a_table_of_seeds():
    table = gated((0, 1)).merge(measured("ablate-mean", seeds=(0, 2))).to_dataframe("seed")
    assert table.groupby("seed").size().to_dict() == {0: 5, 1: 5, 2: 5}
    by_seed = {seed: rows.reset_index(drop=True) for seed, rows in table.groupby("seed")}
    assert by_seed[0].loc[4, "effect_ablate-mean"] == pytest.approx(0.4)
    assert by_seed[0].loc[0, "interference"] == pytest.approx(0.1)
    assert by_seed[1].loc[0, "interference"] == pytest.approx(0.11)
    assert by_seed[1]["effect_ablate-mean"].isna().all() and by_seed[2]["facilitation"].isna().all()
    assert by_seed[2]["role"].tolist() == [None] * 5
    with pytest.raises(UnknownNameError, match="level of the table named 'heads'; did you mean 'head'"):
        gated().to_dataframe("heads")
    assert Atlas(spec_of(2), [], []).to_dataframe().empty


def test_tables_are_written_and_joined(tmp_path):
    table = gated().scores().mean("seed").to_dataframe()
    mine = table[["facilitation"]].rename(columns={"facilitation": "copy"})
    table.join(mine).to_parquet(tmp_path / "heads.parquet")
    gated().to_dataframe("seed").to_parquet(tmp_path / "seeds.parquet")
