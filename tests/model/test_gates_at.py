"""`gates(…, positions=positions)`: gates that hold at one position of each row."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from headatlas import GateError, gates, load_model
from support.heads import LAYOUTS, logits, shared_model
from support.tiny import build_tiny, sample_ids

IDS = sample_ids(batch=3, length=6)
AT = torch.tensor([5, 2, 0])


@pytest.fixture(scope="module")
def llama():
    return load_model(build_tiny("llama"))


def random_gates(model, *rows, seed=0):
    return torch.rand(*rows, *model.spec.shape, generator=torch.Generator().manual_seed(seed))


def by_hand(model, values, at):
    """Logits with the slices of the projections' inputs multiplied at those positions, by hooks."""
    handles = []
    for found in model.anatomy.present():

        def scale(module, args, found=found):
            z = args[0].clone().reshape(len(IDS), IDS.shape[1], -1)
            for row, position in enumerate(at):
                own = values[row] if values.ndim == 3 else values
                for head in range(found.heads):
                    part = slice(head * found.head_dim, (head + 1) * found.head_dim)
                    z[row, position, part] *= own[found.layer, head]
            return (z.reshape(args[0].shape), *args[1:])

        handles.append(model.hf.get_submodule(found.output).register_forward_pre_hook(scale))
    try:
        return logits(model, IDS)
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("kind", LAYOUTS)
@torch.no_grad()
def test_only_the_chosen_position_of_each_row_is_gated(kind):
    model = shared_model(kind)
    plain = logits(model, IDS)
    for values in (random_gates(model), random_gates(model, 3), torch.zeros(model.spec.shape)):
        with gates(model, values, positions=AT):
            found = logits(model, IDS)
        assert torch.allclose(found, by_hand(model, values, AT.tolist()), atol=2e-5)
        for row, position in enumerate(AT.tolist()):
            assert torch.allclose(found[row, :position], plain[row, :position], atol=2e-5)
            assert not torch.allclose(found[row, position], plain[row, position], atol=1e-3)
    with gates(model, values):
        assert not torch.allclose(logits(model, IDS), found, atol=1e-3)  # nor is it the same everywhere


@pytest.mark.parametrize("kind", LAYOUTS)
@torch.no_grad()
def test_ones_are_bit_identical(kind):
    model = shared_model(kind)
    plain = logits(model, IDS)
    for values in (torch.ones(model.spec.shape), torch.ones(3, *model.spec.shape)):
        with gates(model, values, positions=AT):
            assert torch.equal(logits(model, IDS), plain)
    assert torch.equal(logits(model, IDS), plain)


@torch.no_grad()
def test_each_row_as_if_alone(llama):
    values = random_gates(llama, 3)
    with gates(llama, values, positions=AT):
        together = logits(llama, IDS)
    for row in range(3):
        with gates(llama, values[row], positions=AT[row : row + 1]):
            alone = logits(llama, IDS[row : row + 1])
        assert torch.allclose(together[row : row + 1], alone, atol=1e-5)


@torch.no_grad()
def test_a_zero_at_one_position_is_that_head_silent_there(llama):
    """Named heads, positions as a list; the other heads and positions write what they wrote."""
    written = {}

    def keep(module, args, output):
        written["now"] = output

    handle = llama.hf.model.layers[0].self_attn.o_proj.register_forward_hook(keep)
    logits(llama, IDS)
    plain = written["now"]
    with gates(llama, {"L0H2": 0}, positions=[1, 3, 5]):
        logits(llama, IDS)
    handle.remove()
    changed = (written["now"] != plain).any(-1)
    assert changed.nonzero().tolist() == [[0, 1], [1, 3], [2, 5]]


@torch.no_grad()
def test_logits_at_of_a_model_that_was_never_asked_before():
    """What is tried once per model, on a short text, has nothing to do with the gates in force."""
    model = load_model(build_tiny("llama"))
    ids, at = sample_ids(batch=3, length=20), torch.tensor([19, 12, 3])
    with gates(model, {"L0H2": 0}, positions=at):
        found = model.logits_at(ids, torch.arange(3), at)
        whole = logits(model, ids)
    assert torch.allclose(found, whole[torch.arange(3), at], atol=1e-5)
    assert not torch.allclose(found, logits(model, ids)[torch.arange(3), at], atol=1e-3)


@torch.no_grad()
def test_a_position_behind_the_text_is_refused(llama):
    """It would gate nothing and say nothing."""
    length = IDS.shape[1]
    with gates(llama, {"L0H2": 0}, positions=[1, 3, length - 1]):
        logits(llama, IDS)
    with (
        gates(llama, {"L0H2": 0}, positions=[1, 3, length]),
        pytest.raises(GateError, match=f"position {length}, "),
    ):
        logits(llama, IDS)


@torch.no_grad()
def test_the_next_block_is_not_bound_to_the_positions_of_the_last(llama):
    values = random_gates(llama)
    with gates(llama, values):
        everywhere = logits(llama, IDS)
    with gates(llama, values, positions=AT):
        logits(llama, IDS)
    with gates(llama, values):
        assert torch.equal(logits(llama, IDS), everywhere)


def test_gradients_flow(llama):
    values = random_gates(llama, 3).requires_grad_()
    with gates(llama, values, positions=AT):
        logits(llama, IDS).square().sum().backward()
    assert (values.grad.abs() > 0).all()


@torch.no_grad()
def test_logits_at_the_gated_position(llama):
    values = random_gates(llama)
    with gates(llama, values, positions=AT):
        whole = logits(llama, IDS)
        picked = llama.logits_at(IDS, torch.arange(3), AT)
    assert torch.allclose(picked, whole[torch.arange(3), AT], atol=1e-5)


@pytest.mark.parametrize(
    "at", [[[1, 2, 3]], 1.5, True, [True], [1j], [0.5, 1, 2], [-1, 0, 2], "abc", [None], object()]
)
def test_what_are_no_positions(llama, at):
    with pytest.raises(GateError, match="positions are one whole number"):
        gates(llama, torch.ones(3, 4), positions=at)


@pytest.mark.parametrize("at", [[1], [1, 2], [1, 2, 3, 4]])
def test_as_many_positions_as_rows(llama, at):
    plain = logits(llama, IDS)
    message = rf"one position of each of {len(at)} rows, but a batch of shape \[3, 6\]"
    with pytest.raises(GateError, match=message), gates(llama, torch.ones(3, 4), positions=at):
        logits(llama, IDS)
    assert torch.equal(logits(llama, IDS), plain)  # nothing is left behind


def test_wrong_gates_are_wrong_with_positions_too(llama):
    with pytest.raises(GateError, match=r"\[layer, head\] = \[3, 4\]"):
        gates(llama, torch.ones(4, 3), positions=AT)
    with pytest.raises(GateError, match="2 rows"), gates(llama, torch.ones(2, 3, 4), positions=AT):
        logits(llama, IDS)


# Key/value caches: the projections see new tokens alone, positions count the whole text


def in_two_passes(model, split):
    first = model.hf(input_ids=IDS[:, :split], use_cache=True)
    second = model.hf(input_ids=IDS[:, split:], past_key_values=first.past_key_values, use_cache=True)
    return torch.cat([first.logits, second.logits], dim=1)


@pytest.mark.parametrize("split", [1, 3, 5])
@torch.no_grad()
def test_with_a_cache_the_same_tokens_are_gated(llama, split):
    values = torch.zeros(llama.spec.shape)
    mask = torch.arange(IDS.shape[1]) == AT[:, None]
    outputs = {layer: z + 1 for layer, z in llama.head_activations(IDS).items()}
    for chosen in (
        {"positions": AT},
        {"positions": mask},
        {"positions": AT, "replacement": outputs},
        {"replacement": outputs},
    ):
        with gates(llama, values, **chosen):
            whole, parts = logits(llama, IDS), in_two_passes(llama, split)
        assert torch.allclose(parts, whole, atol=2e-5)


#: attention in all layers; a recurrent first layer whose cache counts nothing; sliding windows
@pytest.mark.parametrize("kind", ["llama", "recurrent_gemma", "jamba", "gemma3_text"])
@torch.no_grad()
def test_the_first_token_alone_is_gated_while_text_is_generated(kind):
    model = load_model(build_tiny(kind), check=False)

    def greedy(use_cache):
        options = {"max_new_tokens": 6, "do_sample": False, "output_logits": True}
        options |= {"return_dict_in_generate": True, "use_cache": use_cache, "pad_token_id": 0}
        mask = torch.ones_like(IDS[:1])
        return torch.stack(model.hf.generate(IDS[:1], attention_mask=mask, **options).logits)

    with gates(model, torch.zeros(model.spec.shape), positions=[0]):
        cached, plain = greedy(True), greedy(False)
    assert torch.allclose(cached, plain, atol=2e-5)
    with gates(model, torch.zeros(model.spec.shape)):
        assert not torch.allclose(greedy(True), cached, atol=1e-3)


@torch.no_grad()
def test_a_cache_that_is_passed_by_position_counts(llama):
    """Not seen, the second pass would be taken for a new text, and its first token gated."""
    base, values = llama.hf.model, torch.zeros(llama.spec.shape)

    def passes(*mask_and_positions, **named):
        first = base(IDS[:, :3], use_cache=True)
        cache = first.past_key_values
        given = {"past_key_values": cache} if named else {}
        return base(IDS[:, 3:], *mask_and_positions, *([] if named else [cache]), **given).last_hidden_state

    with gates(llama, values, positions=[0, 0, 0]):
        whole = base(IDS, use_cache=False).last_hidden_state[:, 3:]
        by_name, by_position = passes(named=True), passes(None, None)
    assert torch.allclose(by_name, whole, atol=2e-5)
    assert torch.allclose(by_position, whole, atol=2e-5)


@torch.no_grad()
def test_wrong_arguments_are_answered_by_the_model(llama):
    with (
        gates(llama, torch.zeros(llama.spec.shape), positions=AT),
        pytest.raises(TypeError, match=r"LlamaModel\.forward\(\)"),
    ):
        llama.hf.model(*[IDS] * 99)


@torch.no_grad()
def test_copied_or_pickled_a_model_gated_at_positions_is_the_plain_one(llama):
    plain = logits(llama, IDS)
    with gates(llama, torch.zeros(llama.spec.shape), positions=AT):
        twins = [copy.deepcopy(llama.hf), pickle.loads(pickle.dumps(llama.hf))]
        gated = logits(llama, IDS)
    for hf in twins:
        assert torch.equal(hf(input_ids=IDS, use_cache=False).logits, plain)
        twin = load_model(hf, check=False)
        with gates(twin, torch.zeros(twin.spec.shape), positions=AT):
            assert torch.equal(logits(twin, IDS), gated)
            # the copies look at no pass of the original
            assert llama._gating._values.past is None
            logits(twin, IDS)
