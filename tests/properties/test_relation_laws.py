"""Laws of relation scores, for any architecture kind, any pairs and any k."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headatlas import load_model
from headatlas.method import relation_scores
from headatlas.method.relation.top_k import Vocabulary
from support.heads import KINDS
from support.relations import in_top_by_sorting, relation_of, words
from support.tiny import build_tiny
from support.top_k import in_top

#: expert layers have no kernels for double precision
EXPERTS = {
    "gated output", "heads differ from layer to layer", "hybrid with linear attention",
    "hybrid with state space", "latent", "mixture of experts", "sinks",
}  # fmt: skip


@functools.cache
def tiny(kind, double=False):
    """In double precision weights can be scaled, and the same tokens run in other batches, without other
    roundings."""
    name, overrides = KINDS[kind]
    hf = build_tiny(name, **overrides)
    return load_model(hf.double() if double else hf, tokenizer=words(), check=False)


kinds = st.sampled_from(sorted(KINDS))
in_double = st.sampled_from(sorted(set(KINDS) - EXPERTS))
tokens = st.integers(0, 149)
pairs = st.lists(st.tuples(tokens, tokens), min_size=30, max_size=60, unique=True)
limits = st.integers(1, 159)
sources = st.sampled_from(["embedding", "first_mlp"])


def scores(model, *relations, k, source="first_mlp"):
    return relation_scores(model, relations, k=k, source=source)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(kinds, pairs, limits, limits, sources)
def test_scores_are_shares_and_grow_with_k(kind, chosen, one, other, source):
    model, relation = tiny(kind), relation_of("r", chosen)
    small = scores(model, relation, k=min(one, other), source=source).values
    large = scores(model, relation, k=max(one, other), source=source).values
    there = np.zeros(model.spec.shape, dtype=bool)
    for head in model.spec:
        there[head.layer, head.head] = True
    for values in (small, large):
        assert (np.isnan(values) == ~there).all()
        inside = values[..., there]
        assert ((inside >= 0) & (inside <= 1)).all()
        counts = inside * len(chosen)  # a share of the pairs
        np.testing.assert_allclose(counts, counts.round(), atol=1e-4)
    assert (small[..., there] <= large[..., there]).all()
    # no target is among the top and the bottom unless they meet
    if 2 * max(one, other) <= model.spec.vocabulary:
        assert (large[..., there].sum(axis=1) <= 1).all()


@settings(max_examples=30, deadline=None)
@given(kinds, pairs, limits, st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_is_irrelevant(kind, chosen, k, chance):
    mixed = list(chosen)
    chance.shuffle(mixed)
    one, other = (scores(tiny(kind), relation_of("r", some), k=k) for some in (chosen, mixed))
    np.testing.assert_array_equal(one.values, other.values)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    in_double, st.lists(st.tuples(pairs, limits), min_size=2, max_size=4), st.randoms(use_true_random=False)
)
def test_a_relation_alone_is_the_same_among_others_in_any_order(kind, drawn, chance):
    model = tiny(kind, double=True)
    relations = [relation_of(f"r{place}", some) for place, (some, _) in enumerate(drawn)]
    k = {f"r{place}": limit for place, (_, limit) in enumerate(drawn)}
    order = list(relations)
    chance.shuffle(order)
    together, mixed = scores(model, *relations, k=k), scores(model, *order, k=k)
    for relation in relations:
        alone = scores(model, relation, k={relation.name: k[relation.name]}).sel(relation=relation.name)
        for found in (together, mixed):
            np.testing.assert_array_equal(found.sel(relation=relation.name).values, alone.values)
            assert found.sel(relation=relation.name).k == k[relation.name]


def changed(model, change):
    """A twin of the model with other output projections, value paths or unembedding."""
    hf = copy.deepcopy(model.hf)
    with torch.no_grad():
        change(hf)
    return load_model(hf, tokenizer=words(), check=False)


@settings(max_examples=15, deadline=None)
@given(kinds, pairs, limits, sources)
def test_the_other_sign_of_w_o_swaps_promote_and_suppress(kind, chosen, k, source):
    model, relation = tiny(kind), relation_of("r", chosen)

    def flip(hf):
        for found in model.anatomy.present():
            hf.get_submodule(found.output).weight.neg_()

    plain = scores(model, relation, k=k, source=source)
    flipped = scores(changed(model, flip), relation, k=k, source=source)
    np.testing.assert_array_equal(plain.values, flipped.values[:, ::-1])


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(in_double, pairs, limits, st.floats(1e-6, 1e6), st.sampled_from(["W_V", "W_O", "W_U"]))
def test_positive_factors_change_nothing(kind, chosen, k, factor, which):
    model, relation = tiny(kind, double=True), relation_of("r", chosen)

    def scale(hf):
        if which == "W_U":
            hf.get_output_embeddings().weight = torch.nn.Parameter(
                factor * hf.get_output_embeddings().weight
            )  # not in place: it may be tied to the embedding
        names = {
            found.output if which == "W_O" else found.value.last_linear for found in model.anatomy.present()
        }
        for name in names if which != "W_U" else ():
            hf.get_submodule(name).weight.mul_(factor)

    plain = scores(model, relation, k=k, source="embedding")
    scaled = scores(changed(model, scale), relation, k=k, source="embedding")
    np.testing.assert_array_equal(plain.values, scaled.values)


DTYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
}


@st.composite
def questions(draw):
    """(inner, output, unembedding, targets, k) of any size; numbers with or without ties."""
    size = draw(st.one_of(st.integers(2, 60), st.integers(61, 1100), st.integers(1101, 5000)))
    rows, width, hidden = draw(st.integers(1, 40)), draw(st.integers(1, 6)), draw(st.integers(1, 9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    dtype = DTYPES[draw(st.sampled_from(sorted(DTYPES)))]
    whole = draw(st.booleans())

    def matrix(*shape):
        if whole:  # exact in every precision, with many ties
            return torch.randint(-3, 4, shape, generator=generator).to(dtype)
        return torch.randn(shape, generator=generator).to(dtype)

    inner, output, unembedding = matrix(rows, width), matrix(width, hidden), matrix(hidden, size)
    if draw(st.booleans()):
        inner[draw(st.integers(0, rows - 1))] = 0
    if draw(st.booleans()):  # tokens that are the same to the last bit
        same = torch.randint(0, size, (draw(st.integers(1, size)),), generator=generator)
        unembedding[:, same] = unembedding[:, same[:1]]
    targets = torch.randint(0, size, (rows,), generator=generator)
    highest = draw(st.sampled_from([1, min(10, size - 1), size - 1]))
    k = torch.randint(1, highest + 1, (rows,), generator=generator)
    if draw(st.booleans()):
        k = (size - k).clamp(min=1)  # near the size of the vocabulary
    return inner, output, unembedding, targets, k


@settings(max_examples=150, deadline=None)
@given(questions())
def test_the_answers_are_those_of_a_full_sort_in_double_precision(asked):
    inner, output, unembedding, targets, k = asked
    top, bottom = in_top(inner, output, Vocabulary.of(unembedding), targets, k)
    # rounded to what the size of the factors lets be seen in double precision: equals are equal
    rows = (inner.double() @ output.double() @ unembedding.double()).numpy()
    size = float(inner.double().norm() * output.double().norm() * unembedding.double().norm(dim=0).max())
    step = 2.0 ** np.ceil(np.log2(max(size, 1e-300) * 1e-13))
    expected = in_top_by_sorting(np.round(rows / step), targets.numpy(), k.numpy())
    np.testing.assert_array_equal(torch.stack([top, bottom]).numpy(), expected)
