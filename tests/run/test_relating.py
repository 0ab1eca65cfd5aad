"""`relate_heads` from end to end, on a tiny model with a tokeniser of words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headatlas import (
    AtlasError,
    HeadatlasWarning,
    Relation,
    RelationsRequest,
    RequestError,
    UnknownNameError,
    load_model,
    map_heads,
    open_atlas,
    relate_heads,
    relation_scores,
)
from support.planted import word_tokenizer
from support.small_run import SMALL, small_model, write_task
from support.tiny import build_tiny
from support.watching import Watch

#: `FEW` cannot be measured; one test reads the warning
pytestmark = pytest.mark.filterwarnings("ignore::headatlas.HeadatlasWarning")


@pytest.fixture(scope="module")
def model():
    return small_model()


def pairs(count, shift=1):
    return tuple((f"w{n}", f"w{(n + shift) % 100}") for n in range(count))


NEXT = Relation("next", pairs(60), category="algorithmic")
TWICE = Relation("twice", tuple((f"w{n}", f"w{2 * n}") for n in range(1, 50)), category="linguistic")
FEW = Relation("few", pairs(12), category="knowledge")
#: sources of two tokens: only a text can hold them
PHRASE = Relation("phrase", tuple((f"w{n} w{n + 1}", f"w{n + 2}") for n in range(40)), category="knowledge")
ALL = [NEXT, TWICE, FEW, PHRASE]


@pytest.fixture(scope="module")
def made(model, tmp_path_factory):
    watch = Watch()
    folder = tmp_path_factory.mktemp("made") / "atlas"
    atlas = relate_heads(model, ALL, out=folder, progress=watch, dynamic=True)
    return folder, atlas, watch


def test_the_atlas_holds_what_the_method_gives(model, made):
    folder, atlas, _ = made
    with pytest.warns(HeadatlasWarning, match="few: .* 12 pairs and min_pairs is 30"):
        direct = relation_scores(model, ALL)
    again = open_atlas(folder).relation_scores()
    assert list(again.relation.values) == ["next", "few", "phrase", "twice"]  # category by category
    for name in direct.relation.values:
        np.testing.assert_array_equal(again.sel(relation=name).values, direct.sel(relation=name).values)
        for key in ("category", "kind", "pairs", "single", "listed", "k"):
            assert again.sel(relation=name)[key].item() == direct.sel(relation=name)[key].item()
    assert dict(zip(again.relation.values, again.kind.values, strict=True)) == {
        "next": "static",
        "twice": "static",
        "few": "none",
        "phrase": "multi-token",
    }
    assert np.isnan(again.sel(relation="few").values).all()
    assert atlas.relation_scores("forced").sel(relation="next").shape == (2, 3, 4)


def test_what_cannot_be_measured_is_said(made):
    _, _, watch = made
    assert "few: not measurable: its list has 12 pairs, 30 are needed" in watch.notes
    assert any(
        note.startswith("phrase: not measurable") and "in texts instead" in note for note in watch.notes
    )
    assert any(note.startswith("source vectors: ") for note in watch.notes)
    assert [work[0] for work in watch.works] == [
        "choice of source",
        "weights",
        "multi-token relations",
        "texts",
        "salient tokens",
    ]
    assert all(done == total for _, done, total in watch.works)


def test_the_atlas_says_how_it_was_made(made):
    folder, atlas, _ = made
    run = atlas.runs["relations", "next"]
    assert run.task_facts["content_hash"] == NEXT.content_hash and run.made_with["headatlas"]
    assert run.settings["given"]["source"] == "auto"
    assert run.settings["decides"]["source"] == atlas.notes["source"][1]["source"]
    assert atlas.relation_scores().sel(relation="next")["source"] == run.settings["decides"]["source"]
    # what is measured in texts depends on what goes before them, what is read off weights does not
    assert "first_tokens" in atlas.runs["forced", "next"].settings["decides"]
    assert "first_tokens" in atlas.runs["relations", "phrase"].settings["decides"]
    assert "first_tokens" not in run.settings["decides"]
    data = json.loads((folder / "atlas.json").read_text())
    assert {one["method"] for one in data["runs"]} == {"relations", "attending", "forced"}


def test_what_is_there_is_not_made_again(model, made, tmp_path):
    import shutil

    folder = shutil.copytree(made[0], tmp_path / "atlas")
    known = [path for path in folder.rglob("*.safetensors") if path.stem != "source"]
    before = {path: path.stat().st_mtime_ns for path in known}
    watch = Watch()
    more = Relation("more", pairs(40, 7), category="knowledge")
    atlas = relate_heads(model, [*ALL, more], out=folder, resume=True, progress=watch)
    assert "more" in atlas.relations
    assert [work[0] for work in watch.works] == ["weights"]  # the source is the one chosen before
    assert made[2].notes[0] == watch.notes[0] and "source vectors: " in watch.notes[0]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_norms(model, tmp_path):
    asked = {"out": tmp_path / "atlas", "source": "embedding", "dynamic": True}
    atlas = relate_heads(model, [NEXT], norms="folded", **asked)
    expected = relation_scores(model, [NEXT], norms="folded", source="embedding")
    np.testing.assert_array_equal(atlas.relation_scores().values, expected.values)
    for method in ("relations", "forced"):
        settings = atlas.runs[method, "next"].settings
        assert settings["decides"]["norms"] == settings["given"]["norms"] == "folded"
    assert atlas.runs["relations", "next"].request["norms"] == "folded"
    assert RelationsRequest.resumed(tmp_path / "atlas").norms == "folded"
    for relation in (NEXT, TWICE):
        with pytest.raises(AtlasError, match=r"norms"):
            relate_heads(model, [relation], resume=True, **asked)
    with pytest.raises(UnknownNameError, match="did you mean 'folded'"):
        relate_heads(model, [NEXT], norms="fold")
    published = relate_heads(model, [NEXT], source="embedding", salient=False).runs["relations", "next"]
    assert "norms" not in {**published.settings["decides"], **published.settings["given"]}
    assert "norms" not in published.request


def test_other_settings_are_refused(model, made, tmp_path):
    import shutil

    folder = shutil.copytree(made[0], tmp_path / "atlas")
    with pytest.raises(AtlasError, match=r"has 'next' already, made with k 10 instead of 3"):
        relate_heads(model, [NEXT], out=folder, resume=True, k=3)
    chosen = made[1].notes["source"][1]["source"]
    other = {"embedding": "first_mlp", "first_mlp": "embedding"}[chosen]
    with pytest.raises(AtlasError, match=f"source vectors '{chosen}', and these would be with '{other}'"):
        relate_heads(model, [NEXT], out=folder, resume=True, source=other)
    more = Relation("more", pairs(40, 7), category="knowledge")
    with pytest.raises(AtlasError, match="source vectors"):  # of other relations too: they are compared
        relate_heads(model, [more], out=folder, resume=True, source=other)
    relate_heads(model, [NEXT], out=folder, resume=True, source=chosen)  # what auto came to
    with pytest.raises(AtlasError, match=r"other items"):
        relate_heads(model, [Relation("next", pairs(50), category="algorithmic")], out=folder, resume=True)
    with pytest.raises(AtlasError, match="holds an atlas already"):
        relate_heads(model, [NEXT], out=folder, resume=False)


def test_both_maps_share_an_atlas_also_in_two_dtypes(tmp_path):
    """Weights are read as they are stored, gates are fitted in whatever is quick."""
    path = tmp_path / "model"
    build_tiny("llama").save_pretrained(path)
    word_tokenizer(100).save_pretrained(path)
    folder, task = tmp_path / "atlas", str(write_task(tmp_path / "words.jsonl"))
    exact, coarse = (load_model(str(path), dtype=dtype, check=False) for dtype in ("float32", "bfloat16"))
    relate_heads(exact, [NEXT], out=folder)
    atlas = map_heads(coarse, task, out=folder, resume=True, **SMALL)
    assert atlas.tasks == ["words"] and atlas.relations == ["next"]
    assert atlas.run("words").settings["decides"]["dtype"] == "bfloat16"
    with pytest.raises(AtlasError, match=r"made with dtype bfloat16 instead of float32; choose"):
        map_heads(exact, task, out=folder, resume=True, **SMALL)
    card = atlas.card("L1H2")
    assert [one.task for one in card.tasks] == ["words"] and len(card.tasks[0].roles) == 2
    assert {(one.relation, one.direction) for one in card.relations} == {
        ("next", "promote"),
        ("next", "suppress"),
    }
    assert len(card.salient) == 15 and card.label
    assert set(atlas.to_table()["method"]) == {"gating", "relations"}


def test_a_labeller_of_ones_own(made):
    _, atlas, _ = made
    card = atlas.card((0, 1), labeller=lambda card: f"{card.head} knows {len(card.relations)}")
    assert card.label == "L0H1 knows 6"  # next, twice, phrase in both directions; few has no numbers


def test_without_a_folder_nothing_is_written(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    atlas = relate_heads(model, NEXT, source="embedding", salient=False)
    assert atlas.path is None and atlas.relations == ["next"] and not list(tmp_path.iterdir())


def test_wrong_requests(model, tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'embedding'"):
        relate_heads(model, NEXT, source="embeddings")
    with pytest.raises(RequestError, match="k is 0"):
        relate_heads(model, NEXT, k=0)
    with pytest.raises(RequestError, match="between 1 and 159"):
        relate_heads(model, NEXT, k=1000, source="embedding", out=tmp_path / "atlas")
    with pytest.raises(RequestError, match="two relations are named 'next'"):
        relate_heads(model, [NEXT, NEXT])
    with pytest.raises(UnknownNameError, match="among those that are scored"):
        relate_heads(model, NEXT, causal=["twice"])
    with pytest.raises(UnknownNameError, match="country-capital"):
        relate_heads(model, "country-capitals")
    assert not list(tmp_path.iterdir())


def test_heads_off_for_a_list_of_ones_own(model, tmp_path):
    """Also one that is called as a built-in one: its own pairs are asked."""
    mine = Relation("synonym", pairs(60, 3), category="linguistic", prompt="{source}")
    watch = Watch()
    atlas = relate_heads(
        model, [mine, NEXT, FEW], out=tmp_path / "atlas", causal=["synonym"], salient=False, progress=watch
    )
    (check,) = open_atlas(tmp_path / "atlas").causal_checks()
    assert check == atlas.causal_checks()[0]
    assert (check["relation"], check["questions"]) == ("synonym", 60)
    assert len(check["random"]) == 5 and len(check["top"]) == len(check["steps"]) and check["steps"][-1] <= 6
    assert set(check["controls"]) <= {"next"}  # few cannot be asked
    assert atlas.random_accuracy("synonym") == pytest.approx(np.mean(check["random"], axis=0))
    with pytest.raises(UnknownNameError, match="did you mean 'synonym'"):
        atlas.random_accuracy("synonyms")
    again = relate_heads(
        model, [mine, NEXT, FEW], out=tmp_path / "atlas", causal=["synonym"], salient=False, resume=True
    )
    assert again.causal_checks() == [check]
    with pytest.raises(RequestError, match="'few' cannot be asked"):
        relate_heads(model, [FEW], out=tmp_path / "other", causal=["few"])
    assert not (tmp_path / "other").exists()


def test_another_category_is_another_request(model, tmp_path):
    relate_heads(model, [NEXT], out=tmp_path / "atlas", source="embedding", salient=False)
    other = Relation("next", NEXT.pairs, category="knowledge")
    with pytest.raises(AtlasError, match="made with category algorithmic instead of knowledge"):
        relate_heads(model, [other], out=tmp_path / "atlas", source="embedding", resume=True)


def test_other_weights_in_another_dtype_are_refused(tmp_path):
    one = load_model(build_tiny("llama", seed=0), tokenizer=word_tokenizer(100), check=False)
    other = load_model(build_tiny("llama", seed=1).bfloat16(), tokenizer=word_tokenizer(100), check=False)
    relate_heads(one, [NEXT], out=tmp_path / "atlas", source="embedding", salient=False)
    with pytest.raises(AtlasError, match="whose weights are not those of"):
        relate_heads(other, [TWICE], out=tmp_path / "atlas", source="embedding", resume=True)


def test_a_damaged_file_is_named(made, tmp_path):
    import shutil

    folder = shutil.copytree(made[0], tmp_path / "atlas")
    file = folder / "scores" / "relations" / "next.safetensors"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.raises(AtlasError, match=r"next\.safetensors is damaged"):
        open_atlas(folder)


def test_tokens_before_a_text_are_part_of_what_scores_in_texts_depend_on(model, tmp_path, monkeypatch):
    """Another first token, other numbers: what was made before is not taken for it."""
    folder = tmp_path / "atlas"
    relate_heads(model, [PHRASE], out=folder, source="embedding", salient=False)
    monkeypatch.setattr(type(model), "first_tokens", lambda self: ((3,), "a test says so"))
    with pytest.raises(AtlasError, match="first_tokens"):
        relate_heads(model, [PHRASE], out=folder, source="embedding", salient=False, resume=True)


def test_weights_that_differ_in_single_precision_alone(tmp_path):
    """An atlas takes them for the same model, but not for the same numbers."""
    exact = build_tiny("llama")
    rounded = build_tiny("llama")
    for weight in rounded.parameters():
        weight.data = weight.data.bfloat16().float()
    one, other = (load_model(hf, tokenizer=word_tokenizer(100), check=False) for hf in (exact, rounded))
    assert one.spec.content_hash == other.spec.content_hash and one.weights_hash != other.weights_hash
    relate_heads(one, [NEXT], out=tmp_path / "atlas", source="embedding", salient=False)
    with pytest.raises(AtlasError, match="made with other weights"):
        relate_heads(other, [NEXT], out=tmp_path / "atlas", source="embedding", salient=False, resume=True)


def test_a_check_is_made_again_when_there_are_other_controls(model, tmp_path, monkeypatch):
    from headatlas.method.relation import causal_check as causal
    from headatlas.run import relations_job as relating

    asked = []
    plain = relating.causal_check

    def watched(*args, **options):
        asked.append([one.name for one in options["controls"]])
        return plain(*args, steps=(0, 1), draws=1, most=5, **options)

    monkeypatch.setattr(relating, "causal_check", watched)
    monkeypatch.setattr(causal, "_KNOWN", 0.0)
    some = {"out": tmp_path / "atlas", "source": "embedding", "salient": False, "causal": ["next"]}
    relate_heads(model, [NEXT], **some)
    relate_heads(model, [NEXT], resume=True, **some)
    atlas = relate_heads(model, [NEXT, TWICE], resume=True, **some)
    assert asked == [[], ["twice"]]
    assert [one["relation"] for one in atlas.causal_checks()] == ["next"]


def test_few_targets_are_said(model, tmp_path):
    """Forty sources, two targets: whoever likes both is on top for all."""
    watch = Watch()
    few = Relation("few targets", tuple((f"w{place}", f"w{50 + place % 2}") for place in range(40)))
    relate_heads(model, [few, NEXT], source="embedding", salient=False, progress=watch)
    (note,) = [note for note in watch.notes if "different targets" in note]
    assert note.startswith("few targets: its pairs have 2 different targets, and k is 10")


def test_relations_that_cannot_be_measured_warn_with_the_count_and_the_repair(model):
    with pytest.warns(HeadatlasWarning) as caught:
        relate_heads(model, [FEW, NEXT], source="embedding", salient=False)
    (warning,) = caught
    assert str(warning.message) == (
        "few: every score is NaN, because its list has 12 pairs and min_pairs is 30; give more pairs, or set "
        "min_pairs=12."
    )
    assert warning.filename == __file__


@pytest.mark.filterwarnings("error::headatlas.HeadatlasWarning")
def test_min_pairs_measures_a_short_list(model, tmp_path):
    folder, options = tmp_path / "atlas", {"source": "embedding", "salient": False}
    atlas = relate_heads(model, FEW, min_pairs=12, out=folder, **options)
    scores = atlas.relation_scores()
    assert scores.kind.item() == "static" and not np.isnan(scores.values).any()
    direct = relation_scores(model, FEW, source="embedding", min_pairs=12)
    np.testing.assert_array_equal(scores.values, direct.values)
    with pytest.raises(AtlasError, match="min_pairs"):  # the same relation would be NaN
        relate_heads(model, FEW, out=folder, resume=True, **options)


def test_min_pairs_changes_no_identity_where_it_decides_nothing(model):
    options = {"source": "embedding", "salient": False}
    usual, small = (relate_heads(model, NEXT, min_pairs=count, **options) for count in (30, 2))
    assert usual.run("next", "relations").identity == small.run("next", "relations").identity
    assert "min_pairs" not in usual.run("next", "relations").request


def test_lists_and_mappings_are_relations(model):
    listed = relate_heads(model, list(pairs(60)), source="embedding", salient=False)
    assert listed.relations == ["pairs"]
    named = relate_heads(
        model, {"next": [(f" {a}", f" {b} ") for a, b in pairs(60)]}, source="embedding", salient=False
    )
    expected = relation_scores(model, NEXT, source="embedding")
    for atlas in (listed, named):
        np.testing.assert_array_equal(atlas.relation_scores().values, expected.values)


def test_a_transformers_model_with_its_tokenizer(model):
    hf, tokenizer = build_tiny("llama"), word_tokenizer(100)
    expected = relation_scores(model, NEXT, source="embedding")
    found = relation_scores(hf, NEXT, source="embedding", tokenizer=tokenizer)
    atlas = relate_heads(hf, NEXT, source="embedding", salient=False, tokenizer=tokenizer)
    for values in (found.values, atlas.relation_scores().values):
        np.testing.assert_array_equal(values, expected.values)
    with pytest.raises(RequestError, match="tokenizer is for a transformers model"):
        relation_scores(model, NEXT, tokenizer=tokenizer)
