"""Laws of gating, for any architecture kind, any gates and any text."""

from __future__ import annotations

import functools

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headatlas import gates
from support.heads import KINDS, logits, model_of

cached = functools.cache(lambda kind: model_of(kind, check=False))
kinds = st.sampled_from(sorted(KINDS))
seeds = st.integers(0, 2**31)
sizes = st.tuples(st.integers(1, 4), st.integers(1, 9))


def drawn(model, size, seed):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 140, size, generator=generator)
    values = 2 * torch.rand(size[0], *model.spec.shape, generator=generator)
    return ids, values


def gated(model, ids, values):
    with torch.no_grad(), gates(model, values):
        return logits(model, ids)


@settings(max_examples=60, deadline=None)
@given(kinds, sizes, seeds)
def test_rows_are_independent(kind, size, seed):
    """A row's result does not depend on which rows stand beside it, nor on their order."""
    model = cached(kind)
    ids, values = drawn(model, size, seed)
    together = gated(model, ids, values)
    backwards = gated(model, ids.flip(0), values.flip(0)).flip(0)
    alone = torch.cat([gated(model, ids[r : r + 1], values[r]) for r in range(size[0])])
    assert torch.allclose(together, backwards, atol=1e-4)
    assert torch.allclose(together, alone, atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(kinds, sizes, seeds)
def test_one_set_for_all_is_that_set_in_every_row(kind, size, seed):
    model = cached(kind)
    ids, values = drawn(model, size, seed)
    repeated = values[:1].expand_as(values)
    assert torch.allclose(gated(model, ids, values[0]), gated(model, ids, repeated), atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(kinds, sizes, seeds)
def test_gates_scale_the_weights(kind, size, seed):
    """Gating equals multiplying the slices of W_O: what `export` will rest on."""
    model = cached(kind)
    ids, values = drawn(model, size, seed)
    expected = gated(model, ids, values[0])
    kept = []
    with torch.no_grad():
        for found in model.anatomy.present():
            module = model.hf.get_submodule(found.output)
            kept.append((module.weight, module.weight.clone()))
            factors = values[0, found.layer, : found.heads].repeat_interleave(found.head_dim)
            conv = type(module).__name__ == "Conv1D"
            module.weight.mul_(factors[:, None] if conv else factors)
        scaled = logits(model, ids)
        for weight, old in kept:
            weight.copy_(old)
    assert torch.allclose(expected, scaled, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(kinds, seeds)
def test_later_tokens_do_not_change_earlier_logits(kind, seed):
    model = cached(kind)
    ids, values = drawn(model, (2, 8), seed)
    changed = ids.clone()
    changed[:, -1] = (changed[:, -1] + 1).clamp_max(139)
    one, other = gated(model, ids, values), gated(model, changed, values)
    assert torch.allclose(one[:, :-1], other[:, :-1], atol=1e-4)
