"""`relation_scores` and `scores_in_texts`: which pairs are scored how, and scores in texts by hand."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional

from headatlas import HeadatlasWarning, RequestError, UnknownNameError, gates, load_model
from headatlas.method import relation_scores
from headatlas.method.relation.in_text import TEMPLATES, text_scores
from headatlas.method.relation.scorer import Writer, choose_k, relations_for, sampled
from headatlas.method.relation.scores import scores_in_texts
from headatlas.task import Relation
from support.planted import word_tokenizer
from support.relations import WORDS, by_helpers, clear_pairs, relation_of, shares, words
from support.tiny import build_tiny

UNKNOWN = WORDS  # the token of whatever is no word


@pytest.fixture(scope="module")
def llama():
    return load_model(build_tiny("llama"), tokenizer=words(), check=False)


def random_pairs(count, width=1, seed=0):
    """Different sources of `width` words, and a target."""
    chance = np.random.default_rng(seed)
    return sorted({tuple(int(word) for word in chance.integers(0, WORDS, width + 1)) for _ in range(count)})


def in_texts(model, relations, **options):
    with model.measuring():
        return scores_in_texts(Writer(model), relations_for(model, relations), **options)


# Texts, by hand


def weights(hf, name, layer, head):
    """(W_O of the head, W_U)"""
    if name == "gpt2":
        part = slice(12 * head, 12 * head + 12)
        return hf.transformer.h[layer].attn.c_proj.weight[part], hf.lm_head.weight.T
    output = hf.model.layers[layer].self_attn.o_proj.weight[:, 8 * head : 8 * head + 8].T
    if name == "gemma2":
        output = output * (1 + hf.model.layers[layer].post_attention_layernorm.weight)
    return output, hf.lm_head.weight.T


def projection(hf, name, layer):
    return hf.transformer.h[layer].attn.c_proj if name == "gpt2" else hf.model.layers[layer].self_attn.o_proj


def of_equal_length(rows):
    """(places, token ids): rows that can run together without anything behind them."""
    for length in sorted({len(row) for row in rows}):
        places = [place for place, row in enumerate(rows) if len(row) == length]
        yield places, torch.tensor([rows[place] for place in places])


@torch.no_grad()
def forced_by_hand(hf, name, rows, monkeypatch):
    """[layer, head, row, token] in double precision: the model runs once per layer with a softmax that, in
    that layer, puts all attention of the last position on the last position, where the source ends."""
    found = np.zeros((3, 4, len(rows), 160))
    plain = functional.softmax
    for layer in range(3):
        calls, kept = [], []

        def forced(scores, *args, layer=layer, calls=calls, **kwargs):
            pattern = plain(scores, *args, **kwargs)
            if len(calls) == layer:
                pattern[..., -1, :] = 0
                pattern[..., -1, -1] = 1
            calls.append(pattern.shape)
            return pattern

        def keep(module, args, kept=kept):
            kept.append(args[0][:, -1])

        for places, ids in of_equal_length(rows):
            handle = projection(hf, name, layer).register_forward_pre_hook(keep)
            monkeypatch.setattr(functional, "softmax", forced)
            hf(input_ids=ids, use_cache=False)
            monkeypatch.setattr(functional, "softmax", plain)
            handle.remove()
            assert len(calls) == 3
            calls.clear()
            heads = kept.pop().unflatten(-1, (4, -1))
            for head in range(4):
                output, unembedding = weights(hf, name, layer, head)
                found[layer, head, places] = (heads[:, head] @ output @ unembedding).numpy()
    return found


@torch.no_grad()
def attending_by_hand(model, name, rows):
    """The same with the heads as they attend: what the output projection gives with the head and without."""
    found = np.zeros((3, 4, len(rows), 160))

    def written(ids, layer, head, value):
        seen = []

        def keep(module, args, output):
            seen.append(output[:, -1])

        handle = projection(model.hf, name, layer).register_forward_hook(keep)
        with gates(model, {(layer, head): value}):
            model.hf(input_ids=ids, use_cache=False)
        handle.remove()
        return seen[0]

    for places, ids in of_equal_length(rows):
        for layer in range(3):
            gain = 1 + model.hf.model.layers[layer].post_attention_layernorm.weight if name == "gemma2" else 1
            for head in range(4):
                difference = (written(ids, layer, head, 1) - written(ids, layer, head, 0)) * gain
                found[layer, head, places] = (difference @ model.unembedding()).numpy()
    return found


def clear(numbers, pairs):
    """Which rows have no token nearly as high as the target, in any head?"""
    kept = []
    for place, pair in enumerate(pairs):
        rows = numbers[:, :, place]
        apart = np.abs(rows - rows[..., pair[-1], None])
        apart[..., pair[-1]] = np.inf
        if (apart.min(axis=-1) > 1e-5 * np.abs(rows).max(axis=-1)).all():
            kept.append(place)
    assert len(kept) >= 32
    return kept


def shares_of(numbers, pairs, places, k):
    """[direction, layer, head]"""
    found = np.zeros((2, 3, 4))
    for layer in range(3):
        for head in range(4):
            found[:, layer, head] = shares(numbers[layer, head, places], [pairs[p][-1] for p in places], k)
    return found


@pytest.mark.parametrize("first", [False, True], ids=["no first token", "a first token"])
@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2"])
def test_scores_in_texts(name, first, monkeypatch):
    """Sources of one, two and three tokens, in two texts of different lengths, against a model that is run
    text by text, in double precision, with its attention replaced and its heads taken out by hand."""
    hf = build_tiny(name)
    twin = copy.deepcopy(hf).double()
    model = load_model(hf, tokenizer=words(first), check=False)
    assert model.first_tokens()[0] == ((0,) if first else ())
    pairs = [pair for width in (1, 2, 3) for pair in random_pairs(14, width, seed=width)]
    templates = ["w3 w4", "w5 unheard w6 w7"]
    written = [(3, 4), (5, UNKNOWN, 6, 7)]
    by_kind = {"forced": [], "attending": []}
    for before in written:
        rows = [((0,) if first else ()) + before + pair[:-1] for pair in pairs]
        by_kind["forced"].append(forced_by_hand(twin, name, rows, monkeypatch))
        by_kind["attending"].append(attending_by_hand(load_model(twin, check=False), name, rows))
    every = [numbers for both in by_kind.values() for numbers in both]
    places = clear(np.concatenate(every), pairs)
    relation = relation_of("r", [pairs[place] for place in places])
    for k in (1, 20, 100):
        found = in_texts(model, relation, k=k, templates=templates)
        for kind, numbers in by_kind.items():
            each = [shares_of(one, pairs, places, k) for one in numbers]
            np.testing.assert_array_equal(found[kind].values[0], np.mean(each, axis=0).astype(np.float32))
            alone = in_texts(model, relation, k=k, templates=templates[1:])[kind]
            np.testing.assert_array_equal(alone.values[0], each[1].astype(np.float32))
            assert np.std(each[0]) > 0
            assert found[kind].k.values.tolist() == [k] and found[kind].pairs.values.tolist() == [len(places)]
    assert not np.array_equal(found["forced"].values, found["attending"].values)


def test_multi_token_sources_are_scored_in_the_first_text(llama, monkeypatch):
    """Without enough single tokens `relation_scores` puts the sources into a text and looks at their end."""
    pairs = random_pairs(60, 2)
    before = (UNKNOWN,) * len(TEMPLATES[0].split())
    rows = [before + pair[:-1] for pair in pairs]
    numbers = forced_by_hand(copy.deepcopy(llama.hf).double(), "llama", rows, monkeypatch)
    places = clear(numbers, pairs)
    relation = relation_of("r", [pairs[place] for place in places])
    found = relation_scores(llama, relation, k=20)
    assert found.kind.values.tolist() == ["multi-token"] and found.whole.values.tolist() == [True]
    assert found.single.values.tolist() == [0] and found.pairs.values.tolist() == [len(places)]
    expected = shares_of(numbers, pairs, places, 20)
    np.testing.assert_array_equal(found.values[0], expected.astype(np.float32))
    monkeypatch.setattr("headatlas.method.relation.in_text._TOKENS", 17)  # two texts at a time
    np.testing.assert_array_equal(relation_scores(llama, relation, k=20).values, found.values)


# Which pairs are scored, and how


def test_each_relation_in_the_way_that_its_tokens_allow(llama):
    single, several = random_pairs(40), random_pairs(40, 2)
    pieces = Relation("pieces", tuple((f"w{n}", f"w{n + 1} w{n + 2}") for n in range(40)))
    relations = [
        relation_of("few", single[:29], "knowledge"),
        relation_of("single", single, "linguistic"),
        pieces,
        relation_of("several", several),
        relation_of("both", [*single[:30], *several], "knowledge"),
    ]
    with pytest.warns(HeadatlasWarning, match="few: every score is NaN, because its list has 29 pairs"):
        found = relation_scores(llama, relations, source="embedding")
    along = {
        name: found[name].values.tolist() for name in ("kind", "pairs", "single", "listed", "k", "category")
    }
    one, two = len(single), len(several)
    assert along == {
        "kind": ["none", "static", "multi-token", "multi-token", "static"],
        "pairs": [0, one, 40, two, 30],
        "single": [29, one, 0, 0, 30],
        "listed": [29, one, 40, two, 30 + two],
        "k": [10, 10, 1, 10, 10],  # pieces are few and alike: only the top counts
        "category": ["knowledge", "linguistic", "other", "other", "knowledge"],
    }
    assert found.whole.values.tolist() == [True, True, False, True, True]
    assert found.relation.values.tolist() == ["few", "single", "pieces", "several", "both"]
    assert found.dtype == np.float32 and found.layer.values.tolist() == [0, 1, 2]
    there = np.isnan(found.values).reshape(5, -1)
    assert there[0].all() and not there[1:].any()
    # single pairs alone count where they are enough
    alone = relation_scores(llama, relation_of("both", single[:30]), source="embedding")
    np.testing.assert_array_equal(found.sel(relation="both").values, alone.values[0])


def test_the_source_is_said(llama):
    relation = relation_of("r", random_pairs(40))
    found = relation_scores(llama, relation, source="embedding")
    assert (found.attrs["source"], found.attrs["source_because"]) == ("embedding", "asked for")
    assert found.attrs["model"] == llama.spec.name
    auto = relation_scores(llama, relation, k=40)
    assert auto.attrs["source"] in ("embedding", "first_mlp")
    agreement = {name: auto.attrs[f"agreement_{name}"] for name in ("embedding", "first_mlp")}
    assert agreement[auto.attrs["source"]] == max(agreement.values())
    again = relation_scores(llama, relation, k=40, source=auto.attrs["source"])
    np.testing.assert_array_equal(auto.values, again.values)


@pytest.mark.parametrize("name", ["llama", "gemma3_text"])
def test_the_agreement_is_the_concordance_over_heads_with_texts(name):
    """On at most 16 pairs of each relation: a fair sample of the 40."""
    model = load_model(build_tiny(name), tokenizer=words(), check=False)
    pairs = random_pairs(40, seed=5)
    assert len(pairs) == 40
    auto = relation_scores(model, relation_of("r", pairs), k=40)
    both = sampled(pairs, 16)
    assert len(set(both)) == 16
    (ready,) = relations_for(model, relation_of("r", both))
    forced = text_scores(Writer(model), [ready.pairs], [40], TEMPLATES[:1], ["forced"])["forced"][0, 0]
    for source in ("embedding", "first_mlp"):
        matrices = by_helpers(model, source)
        static = np.zeros(model.spec.shape)
        for (layer, head), matrix in matrices.items():
            rows = matrix[[source for source, _ in both]]
            static[layer, head] = shares(rows, [target for _, target in both], 40)[0]
        x, y = static.ravel(), forced.ravel()
        covariance = ((x - x.mean()) * (y - y.mean())).mean()
        expected = 2 * covariance / (x.var() + y.var() + (x.mean() - y.mean()) ** 2)
        assert auto.attrs[f"agreement_{source}"] == pytest.approx(expected, abs=1e-9)


def test_a_model_without_a_first_mlp():
    model = load_model(build_tiny("nemotron_h"), tokenizer=words(), check=False)
    matrices = by_helpers(model, "embedding")
    agreeing = relation_of("r", clear_pairs(matrices))
    found = relation_scores(model, agreeing, k=40)
    assert found.attrs["source"] == "embedding" and "agreement_first_mlp" not in found.attrs


def test_a_model_without_a_first_mlp_where_nothing_agrees_with_anything():
    """Silent heads have no correlation with texts; the one source that there is is taken all the same."""
    model = load_model(build_tiny("nemotron_h"), tokenizer=words(), check=False)
    for part in model.anatomy.present():
        model.hf.get_submodule(part.output).weight.data.zero_()
    found = relation_scores(model, relation_of("r", random_pairs(40)), k=10)
    assert found.attrs["source"] == "embedding" and np.nanmax(found.values) == 0


def test_progress_is_told(llama):
    told = []
    relations = [relation_of("one", random_pairs(40)), relation_of("two", random_pairs(40, 2))]
    relation_scores(llama, relations, progress=told.append)
    stages = {}
    for what, done, total in ((event.what, event.done, event.total) for event in told):
        assert done == stages.get(what, (0, total))[0] + 1 and total == stages.get(what, (0, total))[1]
        stages[what] = done, total
    assert stages == {
        "choice of source": (36, 36), "weights": (12, 12), "multi-token relations": (12, 12)
    }  # fmt: skip


def test_the_choice_of_source_is_made_once_per_model(monkeypatch):
    """It is a property of the model; other weights or another tokenizer need another choice."""
    from headatlas.method.relation import source_choice

    model = load_model(build_tiny("llama", vocab_size=160), tokenizer=words(), check=False)
    built_in = relations_for(model, relation_of("built-in", clear_pairs(by_helpers(model, "embedding"))))
    monkeypatch.setattr(source_choice, "relations_for", lambda model, relations: built_in)
    made = []
    choose = source_choice._choose_by
    monkeypatch.setattr(source_choice, "_choose_by", lambda *args: made.append(1) or choose(*args))
    relation = relation_of("r", random_pairs(40))
    first, second = (relation_scores(model, relation).attrs for _ in range(2))
    assert first == second and len(made) == 1
    with torch.no_grad():
        model.hf.model.layers[0].self_attn.o_proj.weight.mul_(2)
    relation_scores(model, relation)
    assert len(made) == 2
    model.tokenizer = words()
    relation_scores(model, relation)
    assert len(made) == 3


def test_at_most_so_many_pairs_in_texts(llama):
    relation = relation_of("r", random_pairs(400, 2))
    many = len(relation.pairs)
    found = in_texts(llama, relation, k=30, most=50, templates=TEMPLATES[:1])
    assert 34 <= found["forced"].pairs.item() <= 50
    assert found["forced"].pairs.item() == len(range(0, many, -(-many // 50)))
    assert relation_scores(llama, relation, k=30).pairs.item() == len(range(0, many, -(-many // 100)))


def test_relations_that_are_too_short_are_left_out_of_texts(llama):
    long, short = relation_of("long", random_pairs(40)), relation_of("short", random_pairs(9))
    found = in_texts(llama, [short, long], k=20, templates=["w1"])
    for scores in found.values():
        assert scores.relation.values.tolist() == ["long"]


def test_texts_with_nothing_to_score(llama):
    found = in_texts(llama, relation_of("short", random_pairs(9)))
    for scores in found.values():
        assert scores.sizes["relation"] == 0 and scores.shape[1:] == (2, 3, 4)


# k


def test_k_by_the_size_of_the_vocabulary(llama):
    copying = relation_of("same", [(word, word) for word in range(40)])
    other = relation_of("other", random_pairs(40))
    pieces = Relation("pieces", tuple((f"w{n}", f"w{n + 1} w{n + 2}") for n in range(40)))
    ready = relations_for(llama, [copying, other, pieces])
    for vocabulary, expected in ((160, [1, 10, 1]), (100_000, [1, 10, 1]), (128_256, [3, 25, 1])):
        assert [choose_k(one, vocabulary) for one in ready] == expected
        assert [choose_k(one, vocabulary, 7) for one in ready] == [7] * 3
        assert [choose_k(one, vocabulary, {"other": 9}) for one in ready] == [expected[0], 9, 1]


@pytest.mark.parametrize("k", [0, -1, 160, 1000])
def test_k_lies_inside_the_vocabulary(llama, k):
    relation = relation_of("r", random_pairs(40))
    for asked in (k, {"r": k}):
        with pytest.raises(RequestError, match=f"k is {k}; it lies between 1 and 159 here"):
            relation_scores(llama, relation, k=asked)
        with pytest.raises(RequestError, match="between 1 and 159"):
            in_texts(llama, relation, k=asked)


@pytest.mark.parametrize("kind", ["static", "texts"])
def test_weights_that_changed_in_memory_give_other_scores(kind):
    """Source vectors, norms after W_O and first tokens are found once per set of weights."""

    def scores(model):
        if kind == "static":
            return relation_scores(model, relation, k=20, source="embedding").values
        return in_texts(model, relation, k=20)["forced"].values

    relation = relation_of("r", random_pairs(60))
    hf = build_tiny("gemma2")
    model = load_model(hf, tokenizer=words(), check=False)
    before = scores(model)
    hf.train()
    with torch.no_grad():
        for block in hf.model.layers:
            weight = block.post_attention_layernorm.weight
            weight[: len(weight) // 2].sub_(3)  # gains of half the channels change their sign
    after = scores(model)
    assert hf.training
    np.testing.assert_array_equal(
        after, scores(load_model(copy.deepcopy(hf).eval(), tokenizer=words(), check=False))
    )
    assert (after != before).any()


def test_norms_are_found_in_eval_mode():
    """With dropout no module would be given just what the projection wrote."""
    model = load_model(build_tiny("gemma2", attention_dropout=0.5), tokenizer=words(), check=False)
    mixed = load_model(model.hf, check=False)
    seen = []
    handle = model.hf.model.layers[0].register_forward_pre_hook(
        lambda module, args: seen.append(module.training)
    )
    model.hf.train()
    assert mixed.norm_after(1) is not None
    handle.remove()
    assert seen and not any(seen) and model.hf.training


# Wrong requests


def test_wrong_requests(llama):
    relation = relation_of("r", random_pairs(40))
    with pytest.raises(UnknownNameError, match="did you mean 'first_mlp'"):
        relation_scores(llama, relation, source="first-mlp")
    with pytest.raises(RequestError, match="two relations are named 'r'"):
        relation_scores(llama, [relation, relation_of("s", random_pairs(40)), relation])
    with pytest.raises(RequestError, match="no relation is given"):
        relation_scores(llama, [])
    with pytest.raises(UnknownNameError, match="did you mean 'copying'"):
        relation_scores(llama, "copyin")
    bare = load_model(llama.hf, check=False)
    with pytest.raises(RequestError, match="has no tokenizer; pass tokenizer"):
        relation_scores(bare, relation)


def test_files_and_names_are_relations_too(llama, tmp_path):
    path = tmp_path / "mine.csv"
    relation = relation_of("mine", random_pairs(40))
    path.write_text("source,target\n" + "\n".join(",".join(pair) for pair in relation.pairs))
    found = relation_scores(llama, str(path), source="embedding", k=20)
    expected = relation_scores(llama, relation, source="embedding", k=20)
    assert found.relation.values.tolist() == ["mine"]
    np.testing.assert_array_equal(found.values, expected.values)


def test_a_k_for_a_relation_that_is_not_there(llama):
    relation = relation_of("r", random_pairs(40))
    found = relation_scores(llama, relation, k={"r": 7}, source="embedding")
    assert found.k.item() == 7
    with pytest.raises(UnknownNameError, match="no relation among these named 'rr'"):
        relation_scores(llama, relation, k={"rr": 7}, source="embedding")


def test_when_memory_runs_out_texts_are_read_in_smaller_passes(monkeypatch):
    model = load_model(build_tiny("llama"), tokenizer=word_tokenizer(100), check=False)
    relation = Relation("next", [(f"w{number}", f"w{number + 1}") for number in range(60)])
    wanted, plain, sizes = in_texts(model, relation), model.head_activations_at, []

    def tight(ids, positions):
        sizes.append(ids.numel())
        if ids.numel() > 60:
            raise torch.OutOfMemoryError("fake")
        return plain(ids, positions)

    monkeypatch.setattr(model, "head_activations_at", tight)
    given = in_texts(model, relation)
    assert max(sizes) > 60 >= min(sizes)
    for kind in wanted:
        np.testing.assert_allclose(given[kind].values, wanted[kind].values, atol=1e-6)


def test_what_is_no_model_is_one_sentence():
    for given in (5, None):
        with pytest.raises(RequestError, match="is not a Model; give what load_model returns"):
            relation_scores(given, "plural")


def test_folded_norms_are_the_published_scores_of_an_equal_model():
    """Moving the weights of the final norm into the unembedding changes no logit: there the two agree."""
    hf = build_tiny("llama", tie_word_embeddings=False)
    with torch.no_grad():
        hf.model.norm.weight.copy_(torch.linspace(0.1, 3, len(hf.model.norm.weight)))
    moved = copy.deepcopy(hf)
    with torch.no_grad():
        moved.lm_head.weight.mul_(hf.model.norm.weight)
        moved.model.norm.weight.fill_(1)
    relation = relation_of("pairs", random_pairs(60))
    folded, published, equal = (
        relation_scores(
            load_model(part, tokenizer=words(), check=False), relation, source="embedding", k=5, norms=norms
        )
        for part, norms in ((hf, "folded"), (hf, "published"), (moved, "published"))
    )
    np.testing.assert_array_equal(folded.values, equal.values)
    assert not np.array_equal(folded.values, published.values) and folded.norms == "folded"
    with pytest.raises(UnknownNameError, match="folded"):
        relation_scores(load_model(hf, tokenizer=words(), check=False), relation, norms="fold")
