"""Logits at chosen places are the model's own, for every layout, gated or not."""

from __future__ import annotations

import pytest
import torch

from headatlas import gates, load_model
from support.heads import LAYOUTS, logits, sample_ids, shared_model
from support.tiny import build_tiny

ROWS, POSITIONS = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([6, 0, 3, 2, 6])


@pytest.mark.parametrize("kind", LAYOUTS)
def test_chosen_logits_are_the_models_own(kind):
    model = shared_model(kind)
    ids = sample_ids(2, 7)
    wanted = logits(model, ids)[ROWS, POSITIONS]
    found = model.logits_at(ids, ROWS, POSITIONS)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    value = torch.full((2, *model.spec.shape), 0.5)
    value[1] = 0.25
    with gates(model, value):
        gated = logits(model, ids)[ROWS, POSITIONS]
        torch.testing.assert_close(model.logits_at(ids, ROWS, POSITIONS), gated, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(gated, wanted)


@pytest.mark.parametrize("model_type", ["gemma2", "cohere"])  # soft caps, scaled logits
def test_what_a_model_does_to_its_logits_is_kept(model_type):
    model = load_model(build_tiny(model_type), check=False)
    ids = sample_ids(2, 7)
    found = model.logits_at(ids, ROWS, POSITIONS)
    torch.testing.assert_close(found, logits(model, ids)[ROWS, POSITIONS], rtol=1e-4, atol=1e-4)


def test_the_vocabulary_is_visited_for_the_chosen_positions_only():
    model = load_model(build_tiny("llama"), check=False)
    shapes = []
    handle = model.hf.lm_head.register_forward_hook(lambda module, args, output: shapes.append(output.shape))
    ids = sample_ids(2, 7)
    model.logits_at(ids, ROWS, POSITIONS)
    shapes.clear()
    model.logits_at(ids, ROWS, POSITIONS)
    handle.remove()
    assert [tuple(shape[:-1]) for shape in shapes] == [(1, 5)]


def test_a_model_that_does_not_allow_it_gives_all_logits():
    model = load_model(build_tiny("llama"), check=False)
    plain = model.hf.forward

    def needs_positions(*args, **kwargs):
        out = plain(*args, **kwargs)
        out.logits = out.logits - out.logits.mean(dim=1, keepdim=True)  # mixes positions
        return out

    model.hf.forward = needs_positions
    ids = sample_ids(2, 7)
    wanted = model.hf(input_ids=ids, use_cache=False).logits[ROWS, POSITIONS]
    torch.testing.assert_close(model.logits_at(ids, ROWS, POSITIONS), wanted)


def test_the_model_is_itself_again_afterwards():
    model = load_model(build_tiny("llama"), check=False)
    before = model.hf.lm_head
    with pytest.raises(IndexError):
        model.logits_at(sample_ids(2, 7), torch.tensor([0]), torch.tensor([99]))
    assert model.hf.lm_head is before


def test_memory_that_ran_out_during_the_trial_says_nothing_about_the_model():
    """The next call tries again, rather than use what was never proved."""
    model = load_model(build_tiny("llama"), check=False)
    plain, calls = model.hf.forward, []

    def once_too_large(*args, **kwargs):
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        out = plain(*args, **kwargs)
        out.logits = out.logits - out.logits.mean(dim=1, keepdim=True)  # mixes positions: not to be picked
        return out

    model.hf.forward = once_too_large
    ids = sample_ids(2, 7)
    with pytest.raises(torch.OutOfMemoryError):
        model.logits_at(ids, ROWS, POSITIONS)
    wanted = model.hf(input_ids=ids, use_cache=False).logits[ROWS, POSITIONS]
    torch.testing.assert_close(model.logits_at(ids, ROWS, POSITIONS), wanted)


def test_a_model_in_train_mode_is_read_out_without_dropout():
    """Gradients flow, the modes of the modules are left as they were."""
    hf = build_tiny("gpt2", resid_pdrop=0.5, embd_pdrop=0.5)
    ids = sample_ids(2, 7)
    wanted = hf(input_ids=ids, use_cache=False).logits[ROWS, POSITIONS]
    model = load_model(hf.train(), check=False)
    values = torch.ones(model.spec.shape, requires_grad=True)
    with gates(model, values):
        found = model.logits_at(ids, ROWS, POSITIONS)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    found.sum().backward()
    assert values.grad is not None and all(module.training for module in hf.modules())
