"""The fitting engine: its gradient, its independence of company, memory and moment."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from headatlas import FitError, gates, load_model
from headatlas.method import GatingSettings
from headatlas.method.engine.gate_fit import GateFit, random_starts
from headatlas.method.engine.likelihood import evaluate, row_nll
from headatlas.method.engine.memory import token_budget, usable_bytes
from headatlas.method.engine.objective import Batch, Contrast, Pressure
from headatlas.method.engine.rows import RowTable, Stream, draw
from headatlas.method.gating import Stage
from headatlas.task import Row
from support.planted import planted_model, planted_rows
from support.tiny import build_tiny, sample_ids


def rows_of(count, seed=0, longest=9):
    """Rows of several lengths with targets of several lengths."""
    ids = sample_ids(count, longest, seed).tolist()
    rows = []
    for place, one in enumerate(ids):
        length = longest - place % 4
        rows.append(Row(tuple(one[:length]), length - 1 - place % 3))
    return rows


def settings(updates=3, batch=4, objective="bounded", rate=0.5, **more):
    return GatingSettings(objective, Stage(updates, rate, rate), Stage(updates, rate, rate), batch, 3, **more)


@pytest.fixture(scope="module")
def tiny():
    return load_model(build_tiny("llama").double(), check=False)


@pytest.fixture(scope="module")
def hybrid():
    """A model with holes: two of three layers have no attention."""
    return load_model(build_tiny("jamba"), check=False)


def free(model, seeds, chosen=None, budget=64, rows=None, objective=Pressure):
    chosen = chosen or settings()
    table = RowTable(rows or rows_of(12))
    sets = [(seed, "free") for seed in seeds]
    starts = random_starts(model, chosen, seeds)
    return GateFit(model, objective(model, table, chosen, "free", sets), starts, budget=budget)


def pressed(model, seeds, chosen=None, budget=64):
    chosen = chosen or settings()
    sets = [(seed, fit) for seed in seeds for fit in ("retain", "remove")]
    starts = random_starts(model, chosen, seeds).repeat_interleave(2, 0)
    objective = Pressure(model, RowTable(rows_of(12)), chosen, "pressed", sets)
    return GateFit(model, objective, starts, budget=budget)


def contrast(model, seeds, budget=40):
    chosen, sets = settings(), [(seed, "retain") for seed in seeds]
    objective = Contrast(model, rows_of(6), rows_of(5, seed=1), chosen, sets)
    return GateFit(model, objective, random_starts(model, chosen, seeds), budget=budget)


def planted_fit(chosen, stage, *fits):
    """Of the model with three planted heads, from open gates to closed ones in the middle."""
    model, sets = planted_model("copy", "mistake", "nothing"), [(0, fit) for fit in fits]
    objective = Pressure(model, RowTable(planted_rows()), chosen, stage, sets)
    return GateFit(model, objective, torch.zeros(len(fits), 1, 3), budget=512)


def first_gradient(fit):
    """(gradient, losses) of the rows of the first update."""
    with fit.runner.ready():
        gradient, losses, _ = fit.runner.gradient(fit.objective.draw(0), fit.logits)
    return gradient, losses


def reference_nll(model, rows, gate):
    """Row by row, with the model's own loss over all logits: nothing of the engine."""
    losses = []
    for row in rows:
        ids = torch.tensor([row.ids])
        with gates(model, gate):
            logits = model.hf(input_ids=ids, use_cache=False).logits[0]
        each = -torch.log_softmax(logits.double(), -1)[torch.arange(len(row.ids) - 1), ids[0, 1:]]
        losses.append(each[row.start - 1 :].mean())
    return torch.stack(losses)


def test_likelihoods_are_those_of_the_plain_model(tiny):
    rows = rows_of(12)
    gate = torch.rand(tiny.spec.shape, generator=torch.Generator().manual_seed(3))
    found = evaluate(tiny, rows, gate, budget=30)
    torch.testing.assert_close(
        found.nll.double(), reference_nll(tiny, rows, gate).detach(), rtol=1e-6, atol=1e-6
    )
    plain = evaluate(tiny, rows)
    torch.testing.assert_close(
        plain.nll, evaluate(tiny, rows, torch.ones(tiny.spec.shape)).nll, rtol=1e-6, atol=1e-6
    )


def test_accuracy_counts_rows_with_every_target_on_top(tiny):
    rows = rows_of(12)
    best = []
    for row in rows:  # the model's own choices make right rows
        ids = list(row.prompt)
        for _ in row.target:
            logits = tiny.hf(input_ids=torch.tensor([ids]), use_cache=False).logits
            ids.append(int(logits[0, -1].argmax()))
        best.append(Row(tuple(ids), row.start))
    assert evaluate(tiny, best).accuracy == 1
    half = [Row((*row.ids[:-1], (row.ids[-1] + 1) % 100), row.start) for row in best[::2]] + best[1::2]
    found = evaluate(tiny, half)
    assert found.accuracy == 0.5
    shares = [1 - (place % 2 == 0) / len(row.target) for place, row in enumerate(best)]
    assert found.token_accuracy == pytest.approx(sum(shares) / len(shares))
    assert found.figures() == {
        "nll": found.mean_nll,
        "accuracy": 0.5,
        "token_accuracy": found.token_accuracy,
    }


@pytest.mark.parametrize("fit", ["free", "pressed", "contrast"])
def test_the_gradient_is_that_of_finite_differences(tiny, fit):
    """Central differences of the loss, for some heads of every set."""
    engine = {"free": free, "pressed": pressed, "contrast": contrast}[fit](tiny, [0, 1])
    gradient, losses = first_gradient(engine)
    assert losses.shape == (len(engine.sets),)
    step = 2**-6  # a power of two: added and taken away without rounding
    for number in range(len(engine.sets)):
        for layer, head in [(0, 0), (1, 2), (2, 3)]:
            values = []
            for sign in (1, -1):
                engine.logits[number, layer, head] += sign * step
                values.append(first_gradient(engine)[1][number])
                engine.logits[number, layer, head] -= sign * step
            slope = (values[0] - values[1]) / (2 * step)
            torch.testing.assert_close(gradient[number, layer, head], slope, rtol=2e-3, atol=2e-5)


def test_an_update_worked_out_by_hand():
    """Adam's first step is the rate times the sign of the gradient, whatever its size."""
    chosen = GatingSettings("paper", Stage(1, 0.25, 0.25), Stage(1, 0.25, 0.25), 8, 1)
    fit = planted_fit(chosen, "free", "free")
    fit.run()
    torch.testing.assert_close(fit.logits, torch.tensor([[[0.25, -0.25, 0.0]]]), atol=1e-5, rtol=0)
    fit = planted_fit(chosen, "pressed", "retain", "remove")
    fit.run()
    torch.testing.assert_close(fit.logits[0, 0, 2], torch.tensor(0.25), atol=1e-5, rtol=0)  # pressed up
    torch.testing.assert_close(fit.logits[1, 0, 2], torch.tensor(-0.25), atol=1e-5, rtol=0)  # pressed down


@pytest.mark.parametrize(
    ("clip", "momentum", "remove"),
    [(1.0, (0.9, 0.999), [0.1] * 4), (0.1, (0.8, 0.99), [0.3, 0.1 * (1 + 4 / 3), 0.1 * (1 + 2 / 3), 0.1])],
)
def test_agrees_with_an_ordinary_training_loop(tiny, clip, momentum, remove):
    """torch's Adam, torch's clipping, one set at a time, one row at a time; a push on remove or none."""
    more = {"clip": clip, "momentum": momentum, "push": remove[0] / 0.1}
    chosen = settings(updates=4, batch=3, objective="paper", rate=0.3, **more)
    fit = pressed(tiny, [5], chosen)
    fit.run()
    rows = rows_of(12)
    for number, sign in enumerate((1.0, -1.0)):
        logits = random_starts(tiny, chosen, [5])[0].double().requires_grad_()
        adam = torch.optim.Adam([logits], lr=0.3, betas=momentum)
        for update in range(4):
            chosen_rows = [rows[place] for place in draw(12, 3, update, 5, 1)]
            loss = reference_nll(tiny, chosen_rows, torch.sigmoid(logits)).mean()
            pressure = 0.1 if sign > 0 else -remove[update]
            loss = loss - pressure * logits.clamp(-4, 4).mean()
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([logits], clip)
            adam.step()
        torch.testing.assert_close(fit.logits[number].double(), logits.detach(), rtol=1e-3, atol=1e-3)


def test_a_seed_alone_is_the_seed_among_others(tiny):
    together = free(tiny, [0, 1, 2, 3])
    together.run()
    for place, seed in enumerate([0, 1, 2, 3]):
        alone = free(tiny, [seed])
        alone.run()
        torch.testing.assert_close(alone.logits[0], together.logits[place], rtol=1e-4, atol=1e-4)
    backwards = free(tiny, [3, 2, 1, 0])
    backwards.run()
    torch.testing.assert_close(backwards.logits.flip(0), together.logits, rtol=1e-4, atol=1e-4)


def test_the_size_of_the_passes_changes_nothing(tiny):
    found = []
    for budget in (1, 20, 10_000):
        fit = pressed(tiny, [0, 1], budget=budget)
        fit.run()
        found.append(fit.logits)
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[0], found[2], rtol=1e-4, atol=1e-4)


def test_the_same_twice_bit_for_bit(tiny):
    first, second = pressed(tiny, [0, 1]), pressed(tiny, [0, 1])
    first.run()
    second.run()
    assert torch.equal(first.logits, second.logits)
    for one, other in zip(first.results(), second.results(), strict=True):
        np.testing.assert_array_equal(one.path, other.path)
        np.testing.assert_array_equal(one.losses, other.losses)


@pytest.mark.parametrize("stop", [1, 2, 4])
def test_saved_and_restored_it_ends_the_same(tiny, stop):
    chosen = settings(updates=5)
    whole = pressed(tiny, [0, 1], chosen)
    whole.run()
    begun = pressed(tiny, [0, 1], chosen)

    class KilledError(Exception):
        pass

    def kill(step):
        if step.update == stop:
            raise KilledError

    with pytest.raises(KilledError):
        begun.run(kill)
    arrays = {name: array.copy() for name, array in begun.arrays().items()}
    again = pressed(tiny, [0, 1], chosen)
    again.restore(arrays, begun.facts())
    assert again.update == stop
    again.run()
    for one, other in zip(whole.results(), again.results(), strict=True):
        assert (one.seed, one.fit) == (other.seed, other.fit)
        for name in ("logits", "path", "path_updates", "losses"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_snapshots_are_thinned(tiny):
    fit = free(tiny, [0], settings(updates=90, batch=1), budget=512)
    fit.run()
    (result,) = fit.results()
    assert len(result.path) == len(result.path_updates) <= 41
    assert result.path_updates[0] == 0 and result.path_updates[-1] == 90 and len(result.losses) == 90
    start = random_starts(tiny, settings(updates=90, batch=1), [0])[0]
    np.testing.assert_allclose(result.path[0], torch.sigmoid(start), rtol=1e-5)
    np.testing.assert_allclose(result.path[-1], 1 / (1 + np.exp(-result.logits)), rtol=1e-5)


def test_holes_have_no_gates(hybrid):
    fit = free(hybrid, [0])
    fit.run()
    (result,) = fit.results()
    there = np.zeros(hybrid.spec.shape, bool)
    for head in hybrid.spec:
        there[head.layer, head.head] = True
    assert (np.isnan(result.logits) == ~there).all() and (np.isnan(result.path[-1]) == ~there).all()
    assert (~there).any()


def test_pressure_is_shared_by_the_heads_that_are_there(hybrid):
    """A hole takes no part in the mean over heads: with no task gradient each head feels 0.1 / 4."""
    fit = pressed(hybrid, [0])
    gradient = fit.objective.add_pressure(torch.zeros_like(fit.logits), fit.logits, 0)
    assert gradient[0, 1].tolist() == pytest.approx([-0.1 / 4] * 4)
    before = fit.logits.clone()
    fit.run()
    hole = [layer for layer, heads in enumerate(hybrid.spec.heads) if not heads]
    assert hole and torch.equal(fit.logits[:, hole], before[:, hole])


def test_weights_are_frozen_for_the_fit_only(tiny):
    tiny.hf.zero_grad(set_to_none=True)
    before = [weight.requires_grad for weight in tiny.hf.parameters()]
    assert any(before)
    seen = []
    fit = free(tiny, [0])
    fit.run(lambda step: seen.append(any(weight.requires_grad for weight in tiny.hf.parameters())))
    assert seen == [False] * 3
    assert [weight.requires_grad for weight in tiny.hf.parameters()] == before
    assert all(weight.grad is None for weight in tiny.hf.parameters())


def test_short_rows_on_a_cpu_take_the_plain_attention_code():
    """Quicker there; the same gates, and afterwards the code that was chosen."""
    found, seen = {}, {}
    for chosen in ("sdpa", "eager"):
        model = load_model(build_tiny("llama", attn_implementation=chosen), check=False)
        fit, seen[chosen] = free(model, [0, 1]), []
        fit.run(
            lambda step, model=model, seen=seen[chosen]: seen.append(model.hf.config._attn_implementation)
        )
        assert model.hf.config._attn_implementation == chosen
        found[chosen] = fit.logits
    assert seen == {"sdpa": ["eager"] * 3, "eager": ["eager"] * 3}
    torch.testing.assert_close(found["sdpa"], found["eager"], rtol=0, atol=0)
    model = load_model(
        build_tiny("llama", attn_implementation="sdpa", max_position_embeddings=512), check=False
    )
    long = free(model, [0], rows=[Row(tuple(sample_ids(1, 300)[0].tolist()), 290)] * 4)
    long.run(lambda step: seen["sdpa"].append(model.hf.config._attn_implementation))
    assert seen["sdpa"][-1] == "sdpa"


def test_too_little_memory_means_smaller_passes(tiny):
    class Scarce(Pressure):
        """Room for two rows."""

        def row_gates(self, parameters, owned, extras):
            if len(owned) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().row_gates(parameters, owned, extras)

    whole, fit = free(tiny, [0, 1]), free(tiny, [0, 1], budget=64, objective=Scarce)
    whole.run()
    fit.run()
    assert fit.runner.budget == 16 and not fit.runner.checkpointing
    torch.testing.assert_close(fit.logits, whole.logits, rtol=1e-4, atol=1e-4)


def test_when_one_row_is_too_much_layers_run_again(tiny):
    """Gradient checkpointing: the same numbers, each layer twice per pass, no dropout."""
    whole = free(tiny, [0])
    whole.run()
    fit = free(tiny, [0], budget=9)
    ran, plain = [], fit.objective.row_gates

    def scarce(parameters, owned, extras):
        if not fit.runner.checkpointing:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(parameters, owned, extras)

    fit.objective.row_gates = scarce
    norm = tiny.hf.model.layers[1].input_layernorm
    handle = norm.register_forward_pre_hook(lambda module, args: ran.append(module.training))
    with fit.runner.ready():
        ran.clear()
        fit.step()
    handle.remove()
    passes = len(list(fit.objective.rows.passes(fit.objective.draw(0).rows, 9, "cpu")))
    assert len(ran) == 2 * passes and not any(ran)
    fit.run()
    torch.testing.assert_close(fit.logits, whole.logits, rtol=1e-4, atol=1e-4)
    assert not any("forward" in vars(module) for module in tiny.hf.modules())  # nothing is left over


def test_layers_that_run_again_bring_no_dropout():
    """OPT drops out inside its layers, by the training mode of the layer itself."""
    model = load_model(build_tiny("opt", dropout=0.5, attention_dropout=0.5), check=False)
    found = []
    for again in (False, True):
        fit = free(model, [0])
        fit.runner.checkpointing = again
        fit.run()
        found.append(fit.logits)
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)


class ToldMemory:
    """GPUs with so many free bytes each, on which a trial pass takes so many."""

    def __init__(self, spent, free):
        self._spent, self._free, self.begun = spent, free, 0

    def begin(self):
        self.begun += 1

    def spent(self):
        return self._spent

    def free(self):
        return self._free


@pytest.mark.parametrize(
    ("free_gib", "budget"),
    [([100], 65_536), ([10], 8192), ([5], 4096), ([5.5], 4096), ([0.001], 256), ([100, 10], 8192)],
)
def test_the_budget_on_a_gpu(tiny, free_gib, budget):
    """From what the second of two trial passes costs, on the tightest GPU, a power of two."""
    table, trial = RowTable(rows_of(12)), 1024 // 9 * 9  # tokens of a trial pass
    memory = ToldMemory([trial * 2**19] * len(free_gib), [int(gib * 2**30) for gib in free_gib])  # ½ MiB each
    passes = []

    def nll(batch):
        passes.append(batch)
        return row_nll(tiny, batch)

    assert token_budget(tiny, table, nll, memory=memory) == budget
    assert memory.begun == 2 and [batch.tokens for batch in passes] == [trial] * 2
    assert token_budget(tiny, table, nll) == 1024  # on a CPU, without a trial


def test_a_process_keeps_to_its_part_of_a_gpu():
    gib = 2**30
    assert usable_bytes(100 * gib, 128 * gib, 1.0, gib, gib) == 100 * gib
    assert usable_bytes(100 * gib, 128 * gib, 11 / 128, gib, gib) == 10 * gib
    assert usable_bytes(0, 128 * gib, 1.0, 5 * gib, 2 * gib) == 3 * gib  # reserved, and not in use


@pytest.fixture
def fixed_order():
    """Only operations that add in a fixed order, as a fit asks for on a GPU."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def needs_any_order(model, monkeypatch):
    """The model says what PyTorch says on a GPU of an operation without a fixed order. -> whether only fixed
    order was allowed, call by call."""
    plain, strict = model.hf.forward, []

    def refuses(*args, **kwargs):
        if torch.are_deterministic_algorithms_enabled():
            strict.append(not torch.is_deterministic_algorithms_warn_only_enabled())
            if strict[-1]:
                raise RuntimeError("cumsum_cuda_kernel does not have a deterministic implementation")
        return plain(*args, **kwargs)

    monkeypatch.setattr(model.hf, "forward", refuses)
    return strict


def test_an_operation_without_a_fixed_order_is_allowed_and_said(monkeypatch, tiny, fixed_order):
    strict, fit = needs_any_order(tiny, monkeypatch), free(tiny, [0])
    tiny.try_readout(torch.from_numpy(fit.objective.rows.ids[:4, :8]).long())
    strict.clear()
    fit.run()
    assert strict[0] and not strict[-1] and fit.runner.any_order
    monkeypatch.undo()
    torch.use_deterministic_algorithms(False)
    normal = free(tiny, [0])
    normal.run()
    assert not normal.runner.any_order
    torch.testing.assert_close(fit.logits, normal.logits)


def test_the_trial_pass_may_meet_such_an_operation_first(monkeypatch, tiny, fixed_order):
    strict = needs_any_order(tiny, monkeypatch)
    memory = ToldMemory([2**20], [2**40])
    nll = partial(row_nll, tiny)
    assert token_budget(tiny, RowTable(rows_of(12)), nll, memory=memory) == 65_536
    assert strict[0] and not strict[-1]


class Failing(Pressure):
    error: Exception

    def loss(self, nll):
        raise self.error


def test_when_nothing_helps_it_says_so(tiny):
    fit = free(tiny, [0], budget=9, objective=Failing)
    fit.objective.error = torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(FitError, match="one row at a time does not fit in memory"):
        fit.run()


def test_other_errors_are_not_taken_for_lack_of_memory(tiny):
    fit = free(tiny, [0], objective=Failing)
    fit.objective.error = RuntimeError("something else")
    with pytest.raises(RuntimeError, match="something else"):
        fit.run()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_number_stops_the_fit(bad):
    model = planted_model("copy", "mistake", "nothing")
    objective = Pressure(model, RowTable(planted_rows()), settings(), "free", [(4, "free")])
    fit = GateFit(model, objective, torch.zeros(1, 1, 3), name="sums", budget=99)

    def spoil(step):
        if step.update == 1:
            with torch.no_grad():
                model.hf.lm_head.weight[0, 0] = bad

    with pytest.raises(
        FitError, match=r"sums, seed 4, fit free: .* at update 2 of 3; .* try dtype='float32'"
    ):
        fit.run(spoil)


def test_no_gradient_is_said(tiny):
    class Cut(Pressure):
        def loss(self, nll):
            return nll[:, 0].detach().requires_grad_()

    fit = free(tiny, [0], objective=Cut)
    with pytest.raises(FitError, match="no gradient reaches the gates"):
        fit.run()


def test_drawing_goes_through_all_rows_before_any_comes_again():
    drawn = [place for update in range(5) for place in draw(10, 4, update, seed=3, stream=0)]
    assert sorted(drawn[:10]) == list(range(10)) and sorted(drawn[10:]) == list(range(10))
    assert drawn[:10] != drawn[10:]
    assert draw(10, 4, 2, 3, 0) != draw(10, 4, 2, 4, 0) != draw(10, 4, 2, 4, 1)
    assert len(draw(3, 8, 0, 0, 0)) == 8  # a batch may be larger than the rows


def test_passes_hold_every_row_once_and_stay_in_budget():
    rows = rows_of(30)
    table = RowTable(rows)
    chosen = np.array([[3, 7], [5, 5], [0, 29], [11, 2]])
    seen = []
    for one in table.passes(chosen, 40, "cpu"):
        assert one.tokens == one.ids.numel() <= 40
        flat = chosen.ravel()[one.members]
        for number, place in enumerate(flat):
            row = rows[place]
            assert tuple(one.ids[number, : len(row.ids)].tolist()) == row.ids
            mine = one.rows == number
            assert one.targets[mine].tolist() == list(row.target)
            assert one.positions[mine].tolist() == list(range(row.start - 1, len(row.ids) - 1))
        seen += one.members.tolist()
        assert one.members[1::2].tolist() == (one.members[::2] + 1).tolist()  # pairs stay together
    assert sorted(seen) == list(range(8))


def test_contrast_follows_its_formula(tiny):
    """-R + max(F - R, -5), for pairs of rows."""
    fit, kept, dropped = contrast(tiny, [2]), rows_of(6), rows_of(5, seed=1)
    loss = first_gradient(fit)[1][0]
    gate = torch.sigmoid(fit.logits[0])
    retain = -reference_nll(tiny, [kept[p] for p in draw(6, 4, 0, 2, Stream.RETAIN)], gate)
    forget = -reference_nll(tiny, [dropped[p] for p in draw(5, 4, 0, 2, Stream.FORGET)], gate)
    wanted = (-retain + torch.maximum(forget - retain, torch.tensor(-5.0))).mean()
    torch.testing.assert_close(loss.double(), wanted.detach(), rtol=1e-5, atol=1e-5)
    nll = torch.tensor([[1.0, 2.0], [1.0, 20.0]])
    assert fit.objective.loss(nll).tolist() == [1 + (1 - 2), 1 - 5]


class Budgets(Pressure):
    """Each row draws how many heads it keeps and has the mask of that many of its set's best ones."""

    def draw(self, update):
        rows = super().draw(update).rows
        kept = np.random.default_rng(update).integers(1, 5, len(rows))
        return Batch(rows, (torch.from_numpy(kept),))

    def row_gates(self, parameters, owned, extras):
        scores = (owned @ parameters.flatten(1).to(owned.dtype)).unflatten(1, parameters.shape[1:])
        edge = scores.flatten(1).sort(dim=1, descending=True).values.gather(1, extras[0][:, None] - 1)
        return torch.sigmoid(scores - edge[..., None]).float()


@pytest.mark.parametrize("pieces", [0, 2])
def test_an_objective_may_give_every_row_its_own_gates(tiny, pieces):
    """However rows are grouped and passes filled up, a row keeps what was drawn for it."""
    fit = free(tiny, [0, 1], objective=Budgets)
    fit.runner.pieces = pieces
    losses, batch, rows = first_gradient(fit)[1], fit.objective.draw(0), rows_of(12)
    for number, scores in enumerate(fit.logits):
        wanted = []
        for unit in range(4 * number, 4 * number + 4):
            edge = scores.flatten().sort(descending=True).values[batch.extras[0][unit] - 1]
            row = rows[batch.rows[unit, 0]]
            wanted.append(reference_nll(tiny, [row], torch.sigmoid(scores - edge))[0])
        mean = torch.stack(wanted).mean().detach()
        torch.testing.assert_close(losses[number].double(), mean, atol=1e-5, rtol=1e-5)
