"""Effects of single heads: ablation, attribution and mediation, each against the same thing done by hand."""

from __future__ import annotations

import copy
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headatlas import GateError, Head, RequestError, gates, load_model
from headatlas.core import FitError, UnknownNameError
from headatlas.method.engine import attribute as attribution
from headatlas.method.engine import determinism
from headatlas.method.engine import metric as metrics
from headatlas.method.engine.ablate import STAND_INS, ablate, mean_outputs, partners
from headatlas.method.engine.attribute import _Points, attribute, integrate
from headatlas.method.engine.likelihood import evaluate, evaluate_sets
from headatlas.method.engine.mediate import choose_corruption, corrupted_rows, mediate
from headatlas.method.relation.causal_check import accuracy
from headatlas.task import Row
from support.heads import LAYOUTS, model_of
from support.tiny import build_tiny

SOME = [
    "separate, grouped, head_dim != hidden/heads",
    "Conv1D, fused thirds",
    "fused, interleaved by head",
    "latent",
    "hybrid with linear attention",
    "heads differ from layer to layer",
]
#: without experts, whose choice makes a loss jump
SMOOTH = [
    "separate, full",
    "separate, grouped, head_dim != hidden/heads",
    "Conv1D, fused thirds",
    "fused, interleaved by head",
    "parallel block",
]


def some_rows(count=5, seed=0, vocabulary=100):
    """Of several lengths, targets of one to three tokens."""
    draw = np.random.default_rng(seed)
    rows = []
    for place in range(count):
        ids = tuple(int(token) for token in draw.integers(1, vocabulary, size=6 + place))
        rows.append(Row(ids, len(ids) - 1 - place % 3))
    return rows


@pytest.fixture(scope="module")
def llama():
    return load_model(build_tiny("llama"))


@torch.no_grad()
def loss_by_hand(model, row, edit=None):
    """The mean loss of a row's targets; `edit(layer, z)` gives what the heads of a layer put out instead."""
    handles = []
    for found in model.anatomy.present() if edit else ():

        def change(module, args, found=found):
            return (edit(found.layer, args[0].clone()), *args[1:])

        handles.append(model.hf.get_submodule(found.output).register_forward_pre_hook(change))
    logits = model.hf(input_ids=torch.tensor([row.ids]), use_cache=False).logits[0]
    for handle in handles:
        handle.remove()
    log = torch.log_softmax(logits.double(), -1)
    places = range(row.start, len(row.ids))
    return -float(np.mean([log[place - 1, row.ids[place]] for place in places]))


@torch.no_grad()
def outputs_by_hand(model, row):
    seen = {}
    handles = []
    for found in model.anatomy.present():

        def keep(module, args, layer=found.layer):
            seen[layer] = args[0].detach()[0].clone()

        handles.append(model.hf.get_submodule(found.output).register_forward_pre_hook(keep))
    model.hf(input_ids=torch.tensor([row.ids]), use_cache=False)
    for handle in handles:
        handle.remove()
    return seen


def channels(model, head):
    width = model.attention(head.layer).head_dim
    return slice(head.head * width, (head.head + 1) * width)


def replaced(model, row, head, value):
    """The loss with the head's output replaced by `value` [position, channel of the layer], or zeros."""

    def edit(layer, z):
        if layer == head.layer:
            part = channels(model, head)
            z[..., part] = 0 if value is None else value[..., part]
        return z

    return loss_by_hand(model, row, edit)


@pytest.mark.parametrize("instead", STAND_INS)
@pytest.mark.parametrize("kind", SOME)
def test_ablation(kind, instead):
    model, rows = model_of(kind), some_rows()
    found = ablate(model, rows, instead, seed=3)
    outputs = [outputs_by_hand(model, row) for row in rows]
    mean = {layer: torch.cat([one[layer] for one in outputs]).mean(0) for layer in outputs[0]}
    plain = np.array([loss_by_hand(model, row) for row in rows])
    others = partners(len(rows), 3)
    for head in model.spec:
        losses = []
        for place, row in enumerate(rows):
            if instead == "resample":
                other = rows[others[place]]
                last = len(other.ids) - 1
                where = [min(max(p - row.start + other.start, 0), last) for p in range(len(row.ids))]
                value = outputs[others[place]][head.layer][where]
            else:
                value = mean[head.layer] if instead == "mean" else None
            losses.append(replaced(model, row, head, value))
        effects = np.array(losses) - plain
        assert found.values[head.layer, head.head] == pytest.approx(effects.mean(), abs=2e-5)
        error = effects.std(ddof=1) / np.sqrt(len(rows))
        assert found.errors[head.layer, head.head] == pytest.approx(error, abs=2e-5)
    assert found.plain == pytest.approx(plain.mean(), abs=2e-5) and found.rows == len(rows)
    off = []
    for place, row in enumerate(rows):

        def edit(layer, z, place=place, row=row):
            if instead == "zero":
                return torch.zeros_like(z)
            if instead == "mean":
                return mean[layer].expand_as(z).clone()
            other = rows[others[place]]
            last = len(other.ids) - 1
            where = [min(max(p - row.start + other.start, 0), last) for p in range(len(row.ids))]
            return outputs[others[place]][layer][where].reshape(z.shape).clone()

        off.append(loss_by_hand(model, row, edit))
    assert found.whole == pytest.approx(np.mean(off) - plain.mean(), abs=2e-5)
    assert np.isnan(found.values).sum() == np.prod(model.spec.shape) - len(model.spec)


@pytest.mark.parametrize("kind", SMOOTH)
def test_the_gradient_is_that_of_small_steps(kind):
    """Central differences of the loss, gate by gate."""
    model, rows = model_of(kind), some_rows(3)
    found = attribute(model, rows)
    step = 1e-2
    for head in list(model.spec)[::3]:
        ends = []
        for sign in (1, -1):
            losses = []
            for row in rows:

                def edit(layer, z, sign=sign, head=head):
                    if layer == head.layer:
                        z[..., channels(model, head)] *= 1 + sign * step
                    return z

                losses.append(loss_by_hand(model, row, edit))
            ends.append(np.mean(losses))
        slope = (ends[1] - ends[0]) / (2 * step)
        assert found.values[head.layer, head.head] == pytest.approx(slope, rel=1e-2, abs=2e-4)


@pytest.mark.parametrize("kind", SMOOTH)
def test_integrated_gradients_sum_up_to_the_whole(kind):
    """Completeness: over all heads, the loss with all heads off less the loss with all on."""
    model, rows = model_of(kind), some_rows(3)
    fine = integrate(model, rows, tolerance=0.002)
    assert np.nansum(fine.values) == pytest.approx(fine.whole, abs=5e-3 * max(1, abs(fine.whole)))
    coarse = integrate(model, rows, most_points=2)
    assert fine.completeness_error < coarse.completeness_error
    assert coarse.points == 2 < fine.points
    ends = [np.mean([loss_by_hand(model, row, edit) for row in rows]) for edit in (shut, None)]
    assert fine.whole == pytest.approx(ends[0] - ends[1], abs=2e-5)


def shut(layer, z):
    return torch.zeros_like(z)


def test_integrated_gradients_of_a_rough_path():
    """Loud heads make the loss swing on the path: evenly spaced points miss it, halved intervals do not."""
    hf = build_tiny("llama")
    for layer in hf.model.layers:
        layer.self_attn.o_proj.weight.data *= 30
    model, rows = load_model(hf), some_rows(6)
    even = np.array([midpoints(model, row, 16) for row in rows]).mean()
    found = integrate(model, rows)
    assert abs(even - found.whole) > 0.05 * abs(found.whole)
    assert found.completeness_error < 0.05
    assert found.points > 17


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_integrated_gradients_of_a_half_precision_model_are_measured_in_float32(dtype):
    """Half precision rounds the losses of this path by more than short intervals change them: measured in it,
    the effects miss their sum by more than 5 %. The weights are the same bits afterwards."""
    hf = build_tiny("llama")
    for layer in hf.model.layers:
        layer.self_attn.o_proj.weight.data *= 30
    model, rows = load_model(hf.to(dtype)), some_rows(6)
    before = {name: weight.clone() for name, weight in hf.state_dict().items()}
    found = integrate(model, rows)
    assert found.completeness_error < 0.05 and found.dtype == "float32"
    for name, weight in hf.state_dict().items():
        assert weight.dtype == before[name].dtype and torch.equal(weight, before[name])
    single = integrate(load_model(copy.deepcopy(hf).float()), rows)
    np.testing.assert_array_equal(found.values, single.values)


def test_integrated_gradients_without_room_for_float32(monkeypatch):
    """They are measured in the dtype of the model, whose weights are as before, and say so."""
    model, rows = load_model(build_tiny("llama").to(torch.bfloat16)), some_rows(2)
    wanted = attribution._integrate(
        model, rows, attribution.TOLERANCE, attribution.MOST_POINTS, metrics.RowLoss(), None
    )
    plain, calls = torch.Tensor.float, []

    def runs_out_of_memory(tensor):
        calls.append(tensor)
        if len(calls) == 3:
            raise torch.OutOfMemoryError("fake")
        return plain(tensor)

    monkeypatch.setattr(torch.Tensor, "float", runs_out_of_memory)
    found = integrate(model, rows)
    assert found.dtype == "bfloat16"
    np.testing.assert_array_equal(found.values, wanted.values)
    assert {weight.dtype for weight in model.hf.parameters()} == {torch.bfloat16}


def test_a_row_that_fits_in_half_precision_alone(monkeypatch):
    model, rows, plain = load_model(build_tiny("llama").to(torch.bfloat16)), some_rows(2), metrics.row_nll

    def tight(model, batch, *others):
        if model.hf.dtype == torch.float32:
            raise torch.OutOfMemoryError("fake")
        return plain(model, batch, *others)

    monkeypatch.setattr(metrics, "row_nll", tight)
    assert integrate(model, rows).dtype == "bfloat16"
    single = load_model(build_tiny("llama"))
    with pytest.raises(FitError, match="one row at a time does not fit"):
        integrate(single, rows)


def test_rows_are_integrated_some_at_a_time(llama, monkeypatch):
    rows = some_rows(5)
    wanted = [integrate(llama, rows[start : start + 2]) for start in (0, 2, 4)]
    monkeypatch.setattr(attribution, "_ROWS", 2)
    found = integrate(llama, rows)
    np.testing.assert_array_equal(found.per_row, np.concatenate([part.per_row for part in wanted]))
    assert found.points == pytest.approx(sum(part.points * part.rows for part in wanted) / 5)


def midpoints(model, row, count):
    """The integral of the slope of all gates together, by central differences at evenly spaced points."""
    total, step = 0.0, 1e-3
    for number in range(count):
        place = (number + 0.5) / count
        ends = [
            evaluate(model, [row], torch.full(model.spec.shape, place + sign * step)).mean_nll
            for sign in (-1, 1)
        ]
        total += (ends[0] - ends[1]) / (2 * step * count)
    return total


def test_the_heads_of_a_path_worked_by_hand():
    """Two heads with losses t² and a step: each gets its share, and most points lie near the step."""

    def slopes(place):
        step = 40 / np.cosh(40 * (place - 0.3)) ** 2
        return np.stack([-2 * place, step], axis=-1)[:, None, :]

    def losses(place):
        return place**2 - np.tanh(40 * (place - 0.3))

    row, place = np.zeros(5, dtype=int), np.linspace(0, 1, 5)
    points = _Points(row, place, losses(place), slopes(place))
    while len(chosen := points.to_halve(0.001)):
        middle = (points.place[chosen] + points.place[chosen + 1]) / 2
        points = points.joined(_Points(row[:1].repeat(len(chosen)), middle, losses(middle), slopes(middle)))
    np.testing.assert_allclose(points.integrals(1)[0, 0], [-1, 2], atol=0.02)
    assert (np.abs(points.place - 0.3) < 0.15).mean() > 0.5


@pytest.mark.parametrize("kind", SOME)
def test_mediation_of_other_prompts(kind):
    """A head is given its clean output where the target is predicted, and nowhere else."""
    model, rows = model_of(kind), some_rows()
    found = mediate(model, rows, seed=1)
    bad = corrupted_rows(rows, 1)
    clean = [outputs_by_hand(model, row) for row in rows]
    dirty = [outputs_by_hand(model, row) for row in bad]
    plain = np.array([loss_by_hand(model, row) for row in bad])
    for head in list(model.spec)[::2]:
        gains = []
        for place, (row, other) in enumerate(zip(rows, bad, strict=True)):
            value = dirty[place][head.layer].clone()
            for offset in range(len(row.target)):
                source = clean[place][head.layer][row.start - 1 + offset]
                value[other.start - 1 + offset] = source
            # what the layer is given depends on the layers below, which nobody has touched
            gains.append(plain[place] - replaced(model, other, head, value))
        assert found.values[head.layer, head.head] == pytest.approx(np.mean(gains), abs=2e-5)
    total = plain.mean() - np.mean([loss_by_hand(model, row) for row in rows])
    assert found.whole == pytest.approx(total, abs=2e-5)


def test_mediation_of_pairs_of_one_length(llama):
    """The task's own corrupted prompts, as many tokens each: a head is given its clean output everywhere."""
    draw = np.random.default_rng(5)
    rows = [
        Row(row.ids, row.start, tuple(int(token) for token in draw.integers(1, 100, size=row.start)))
        for row in some_rows()
    ]
    bad = corrupted_rows(rows, prompts="own")
    assert [row.prompt for row in bad] == [row.corrupted for row in rows]
    assert [row.target for row in bad] == [row.target for row in rows]
    found = mediate(llama, rows, prompts="own", positions="all")
    for head in llama.spec:
        gains = [
            loss_by_hand(llama, other) - replaced(llama, other, head, outputs_by_hand(llama, row)[head.layer])
            for row, other in zip(rows, bad, strict=True)
        ]
        assert found.values[head.layer, head.head] == pytest.approx(np.mean(gains), abs=2e-5)


def test_pairs_of_other_lengths_are_changed_at_the_target_alone(llama):
    rows = [Row(row.ids, row.start, (1, 2, 3)) for row in some_rows()]
    longer = [Row(row.ids, row.start, (*row.prompt, 5)) for row in some_rows()]
    for some in (rows, longer):
        assert np.isfinite(mediate(llama, some, prompts="own").values).all()


def test_one_pair_of_another_length_does_not_change_where_heads_are_patched(llama):
    """The definition is that of the task: the other items keep their effects, and "all" is refused."""
    equal = [Row(row.ids, row.start, tuple(reversed(row.prompt))) for row in some_rows(4)]
    odd = Row(equal[0].ids, equal[0].start, (*equal[0].prompt, 5))
    at_target = mediate(llama, equal, prompts="own", positions="target")
    mixed = mediate(llama, [*equal, odd], prompts="own", positions="target")
    np.testing.assert_allclose(mixed.per_row[:4], at_target.per_row, atol=1e-5)
    everywhere = mediate(llama, equal, prompts="own", positions="all")
    assert np.abs(everywhere.values - at_target.values).max() > 0.01
    with pytest.raises(RequestError, match="1 of 5 corrupted prompts have another length"):
        mediate(llama, [*equal, odd], prompts="own", positions="all")
    with pytest.raises(RequestError, match="no item has a corrupted prompt"):
        mediate(llama, some_rows(), prompts="own")
    with pytest.raises(UnknownNameError, match="everywhere"):
        mediate(llama, equal, positions="everywhere")


def test_a_task_chooses_its_corruption():
    plain = some_rows(3)
    equal = [Row(row.ids, row.start, row.prompt) for row in plain]
    longer = Row(plain[0].ids, plain[0].start, (*plain[0].prompt, 5))
    chosen = [choose_corruption(rows) for rows in (equal, [*equal, longer], [*equal, plain[0]], plain)]
    assert [(one.prompts, one.positions) for one in chosen] == [
        ("own", "all"),
        ("own", "target"),
        ("others", "target"),
        ("others", "target"),
    ]
    assert [bool(one.because) for one in chosen] == [False, True, True, True]


@given(st.integers(2, 40), st.integers(0, 5))
def test_partners_are_others(count, seed):
    found = partners(count, seed)
    assert sorted(found) == list(range(count)) and all(found[place] != place for place in range(count))
    assert found == partners(count, seed)


def test_rows_that_all_ask_the_same(llama):
    rows = [Row((1, 2, 3), 2), Row((4, 2, 3), 2)]
    with pytest.raises(RequestError, match="no other prompt to corrupt"):
        mediate(llama, rows)


def test_requests(llama):
    with pytest.raises(UnknownNameError, match="median"):
        ablate(llama, some_rows(), "median")
    with pytest.raises(RequestError, match="most_points is 1"):
        integrate(llama, some_rows(), most_points=1)
    with pytest.raises(RequestError, match="tolerance is 0"):
        integrate(llama, some_rows(), tolerance=0)


def test_one_row_has_no_error(llama):
    found = ablate(llama, some_rows(1))
    assert np.isfinite(found.values).all() and np.isnan(found.errors).all()


def test_progress_counts_to_the_end(llama):
    for method in (ablate, attribute, integrate, mediate):
        told = []
        method(llama, some_rows(), progress=lambda done, total, told=told: told.append((done, total)))
        done = [one for one, _ in told]
        assert done == sorted(set(done)) and done[-1] == told[-1][1]
        assert all(count <= total for count, total in told)


def test_a_model_with_weights_that_learn_is_left_as_it_was(llama):
    llama.hf.requires_grad_(True)
    attribute(llama, some_rows())
    assert all(weight.requires_grad and weight.grad is None for weight in llama.hf.parameters())


def test_when_memory_runs_out_passes_get_smaller(llama, monkeypatch):
    """The same numbers, whatever the passes; and a sentence when not even a row has room."""
    rows, plain, sizes = some_rows(), metrics.row_nll, []

    def tight(model, batch, *others):
        sizes.append(batch.ids.numel())
        if batch.ids.numel() > most:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return plain(model, batch, *others)

    wanted = ablate(llama, rows)
    monkeypatch.setattr(metrics, "row_nll", tight)
    most = 24
    np.testing.assert_allclose(ablate(llama, rows).values, wanted.values, atol=1e-5)
    assert max(sizes) > most
    most = 3
    with pytest.raises(FitError, match="one row at a time does not fit"):
        ablate(llama, rows)


@pytest.mark.parametrize("method", [attribute, integrate])
def test_gradients_in_smaller_passes(llama, monkeypatch, method):
    rows, plain, sizes = some_rows(), metrics.row_nll, []

    def tight(model, batch, *others):
        sizes.append(batch.ids.numel())
        if batch.ids.numel() > 24:
            raise torch.OutOfMemoryError("fake")
        return plain(model, batch, *others)

    wanted = method(llama, rows)
    monkeypatch.setattr(metrics, "row_nll", tight)
    np.testing.assert_allclose(method(llama, rows).values, wanted.values, atol=1e-5)
    assert max(sizes) > 24


def test_a_pass_that_failed_is_freed_before_the_next(llama, monkeypatch):
    """The error's traceback holds the tensors of the failed pass; a second try needs their memory."""
    plain, held, alive = metrics.row_nll, [], []

    def needs_any_order(model, batch, *others):
        alive.extend(ref() is not None for ref in held)
        if not held:
            large = torch.zeros(10)
            held.append(weakref.ref(large))
            raise RuntimeError("this operation has no deterministic implementation")
        return plain(model, batch, *others)

    monkeypatch.setattr(determinism, "allow_any_order", lambda error: "deterministic" in str(error))
    monkeypatch.setattr(metrics, "row_nll", needs_any_order)
    attribute(llama, some_rows())
    assert alive and not any(alive)


# Losses that overflow


def bad_losses(plain, call):
    """`row_nll` that gives NaN for the second row, or an infinite loss, at one call."""
    count = 0

    def overflowing(model, batch, *others):
        nonlocal count
        count += 1
        losses = plain(model, batch, *others)
        if count == call:
            losses = losses.clone()
            losses[1] = losses[1] * torch.nan if call % 2 else torch.inf
        return losses

    return overflowing


@pytest.mark.parametrize(
    ("call", "what"), [(1, "losses"), (3, "losses without L0H1"), (4, "losses without L0H2")]
)
@pytest.mark.parametrize("method", [ablate, mediate])
def test_a_head_whose_loss_overflows_is_named(llama, monkeypatch, method, call, what):
    monkeypatch.setattr(metrics, "row_nll", bad_losses(metrics.row_nll, call))
    with pytest.raises(
        FitError, match=rf"^{what} are NaN or infinite in 1 of 5 rows; the model is in float32"
    ):
        method(llama, some_rows())


@pytest.mark.parametrize("method", [attribute, integrate])
def test_gradients_that_overflow_are_an_error(llama, monkeypatch, method):
    monkeypatch.setattr(metrics, "row_nll", bad_losses(metrics.row_nll, 1))
    with pytest.raises(FitError, match="NaN or infinite in 1 of"):
        method(llama, some_rows())


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_logits_that_overflow_are_an_error(monkeypatch, value):
    """Losses, gate sets (where NaN once meant "not yet done") and answers."""
    model, rows = load_model(build_tiny("llama")), some_rows()
    plain = type(model).logits_at

    def overflowing(self, ids, rows, positions):
        logits = plain(self, ids, rows, positions).clone()
        logits[0] = value
        return logits

    monkeypatch.setattr(type(model), "logits_at", overflowing)
    with pytest.raises(FitError, match="losses are NaN or infinite in 1 of 5 rows"):
        evaluate(model, rows)
    with pytest.raises(FitError, match="NaN or infinite"):
        evaluate_sets(model, rows, np.ones((2, *model.spec.shape), dtype=np.float32))
    with pytest.raises(FitError, match="logits are NaN or infinite"):
        accuracy(model, [Row(row.ids, len(row.ids) - 1) for row in rows], [])


@pytest.mark.slow
def test_holes_are_no_errors():
    """A model with a layer of fewer heads has NaN where there is no head, and only there."""
    model = model_of("heads differ from layer to layer")
    for method in (ablate, attribute, integrate, mediate):
        found = method(model, some_rows())
        assert np.isnan(found.values).sum() == np.prod(model.spec.shape) - len(model.spec)


# `gates(…, replacement=…)` and what it is fed with


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_closed_gate_leaves_what_stands_in(kind):
    """The head outputs of another text put in for all heads: each layer writes what it wrote there; half
    closed gates mix."""
    model = model_of(kind)
    ids, other = (torch.tensor([some_rows(1, seed)[0].ids] * 2) for seed in (0, 1))
    replacement = model.head_activations(other)
    shape = model.spec.shape
    with gates(model, torch.zeros(shape), replacement=replacement):
        inside = model.head_activations(ids)
    for layer, wanted in replacement.items():
        assert torch.allclose(inside[layer], wanted, atol=1e-6)
    first = model.anatomy.present()[0].layer
    plain = model.head_activations(ids)
    with gates(model, torch.full(shape, 0.25), replacement=replacement):
        mixed = model.head_activations(ids)[first]
    assert torch.allclose(mixed, 0.25 * plain[first] + 0.75 * replacement[first], atol=1e-5)


@torch.no_grad()
def test_open_gates_are_the_model_whatever_stands_in(llama):
    ids = torch.tensor([some_rows(1)[0].ids])
    replacement = {layer: torch.randn_like(one) for layer, one in llama.head_activations(ids).items()}
    with gates(llama, torch.ones(llama.spec.shape), replacement=replacement):
        inside = llama.hf(ids).logits
    assert torch.equal(inside, llama.hf(ids).logits)


@torch.no_grad()
def test_a_mask_of_positions(llama):
    ids = torch.tensor([some_rows(1)[0].ids] * 2)
    mask = torch.zeros(ids.shape, dtype=torch.bool)
    mask[0, 2] = mask[0, 4] = mask[1, 5] = True
    plain = llama.head_activations(ids)[0]
    with gates(llama, {"L0H1": 0}, positions=mask):
        inside = llama.head_activations(ids)[0]
    assert ((inside != plain).any(-1) == mask).all()
    with (
        gates(llama, {"L0H1": 0}, positions=mask[:, :3]),
        pytest.raises(GateError, match="positions of shape"),
    ):
        llama.hf(ids)


@pytest.mark.parametrize(
    "replacement",
    [torch.zeros(3), {0: [1.0]}, {7: torch.zeros(32)}, {0: torch.zeros(5)}, {0: torch.zeros(2, 32)}],
)
def test_what_cannot_stand_in(llama, replacement):
    with pytest.raises(GateError):
        gates(llama, {"L0H1": 0}, replacement=replacement)


def test_the_mean_is_over_tokens_not_over_padding(llama):
    rows = some_rows(4)
    found = mean_outputs(llama, rows)
    for layer, mean in found.items():
        wanted = torch.cat([outputs_by_hand(llama, row)[layer] for row in rows]).mean(0)
        assert torch.allclose(mean, wanted, atol=1e-5)


def test_evaluate_agrees_with_the_loss_by_hand(llama):
    rows = some_rows()
    wanted = [loss_by_hand(llama, row) for row in rows]
    np.testing.assert_allclose(evaluate(llama, rows).nll, wanted, atol=1e-5)
    assert Head(0, 1) in llama.spec


def test_a_corrupted_row_is_no_longer_than_the_longest():
    """A long prompt before a long target might not fit the model."""
    rows = [Row((1, 2, 3, 4, 5, 6, 7), 6), Row((1, 8, 9, 10, 11, 12, 13), 2), Row((2, 3, 9), 2)]
    for seed in range(5):
        bad = corrupted_rows(rows, seed)
        assert max(len(row.ids) for row in bad) <= 7
        assert [row.target for row in bad] == [row.target for row in rows]


def test_one_row_alone_has_no_other(llama):
    with pytest.raises(RequestError, match="at least 2"):
        ablate(llama, some_rows(1), "resample")
