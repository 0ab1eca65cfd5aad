"""Metrics against the same thing by hand: logit differences, KL divergences and functions of a user."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from headatlas import (
    AtlasError,
    MetricBatch,
    RequestError,
    TaskError,
    load_model,
    map_heads,
    open_atlas,
    validate_atlas,
)
from headatlas.core import UnknownNameError, metric_to_json
from headatlas.method import GatingSettings
from headatlas.method.attribution import GradientOptions
from headatlas.method.engine.ablate import ablate
from headatlas.method.engine.attribute import attribute, integrate
from headatlas.method.engine.likelihood import evaluate, evaluate_sets
from headatlas.method.engine.mediate import mediate
from headatlas.method.engine.metric import RowLoss
from headatlas.method.engine.rows import RowTable
from headatlas.method.gating import resolve
from headatlas.method.method import MetricOptions
from headatlas.request.map_request import MapRequest
from headatlas.run.executor import execute
from headatlas.run.ray_executor import Ray
from headatlas.task import Row, load_task
from support.fitting import fitted_gates
from support.planted import ANSWERS, ASK, planted_model
from support.small_run import SMALL, small_model
from support.tiny import build_tiny

NAMED = ["logit_diff", "kl"]


def margin(logits, batch: MetricBatch):
    """The logit difference as a user writes it."""
    first = batch.places == 0
    chosen, rows = logits[first].float(), batch.rows[first]
    assert rows.tolist() == list(range(batch.size))
    target = chosen.gather(1, batch.targets[first, None])
    return (chosen.gather(1, batch.foils[rows, :1]) - target)[:, 0]


def foil_rows(count=4, seed=0):
    """Of several lengths, targets of one to three tokens, foils of one or two."""
    draw, rows = np.random.default_rng(seed), []
    for place in range(count):
        ids = tuple(int(token) for token in draw.integers(1, 100, size=6 + place))
        start = len(ids) - 1 - place % 3
        foil = (ids[start] % 99 + 1, 7)[: 1 + place % 2]
        rows.append(Row(ids, start, foil=foil))
    return rows


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def model(request):
    return load_model(build_tiny(request.param))


@torch.no_grad()
def logits_by_hand(model, row, gates=None):
    """[target, token] in double precision, one row alone, heads scaled by hooks."""
    handles = []
    for layer in model.anatomy.present() if gates is not None else ():
        width = model.attention(layer.layer).head_dim

        def scale(module, args, gate=gates[layer.layer], width=width):
            return (args[0] * gate.repeat_interleave(width)[: args[0].shape[-1]], *args[1:])

        handles.append(model.hf.get_submodule(layer.output).register_forward_pre_hook(scale))
    logits = model.hf(input_ids=torch.tensor([row.ids]), use_cache=False).logits[0].double()
    for handle in handles:
        handle.remove()
    return logits[row.start - 1 : len(row.ids) - 1]


def loss_by_hand(model, row, metric, gates=None):
    logits = logits_by_hand(model, row, gates)
    if metric == "logit_diff":
        return float(logits[0, row.foil[0]] - logits[0, row.target[0]])
    known = torch.log_softmax(logits_by_hand(model, row), -1)
    return float((known.exp() * (known - torch.log_softmax(logits, -1))).sum(-1).mean())


def random_gates(model, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).uniform(size=model.spec.shape)).float()


@pytest.mark.parametrize("metric", NAMED)
def test_losses_under_gates(model, metric):
    rows, gates = foil_rows(), random_gates(model)
    wanted = [loss_by_hand(model, row, metric, gates) for row in rows]
    outcome = evaluate(model, rows, gates, budget=16, row_loss=RowLoss(metric))
    np.testing.assert_allclose(outcome.loss, wanted, atol=2e-5)
    assert outcome.mean_nll == evaluate(model, rows, gates, budget=16).mean_nll
    losses, _ = evaluate_sets(model, rows, np.stack([gates.numpy()] * 2), row_loss=RowLoss(metric))
    np.testing.assert_allclose(losses, [wanted] * 2, atol=2e-5)


@pytest.mark.parametrize("metric", NAMED)
def test_ablation_by_brute_force(model, metric):
    rows = foil_rows()
    found = ablate(model, rows, metric=metric)
    for head in model.spec:
        gates = torch.ones(model.spec.shape)
        gates[head.layer, head.head] = 0
        effects = [loss_by_hand(model, row, metric, gates) - loss_by_hand(model, row, metric) for row in rows]
        np.testing.assert_allclose(found.per_row[:, head.layer, head.head], effects, atol=2e-5)
    assert found.plain == pytest.approx(np.mean([loss_by_hand(model, row, metric) for row in rows]), abs=1e-5)


@pytest.mark.parametrize("instead", ["mean", "resample"])
def test_other_replacements_take_the_metric(model, instead):
    """KL is never below zero, and zero where nothing was changed."""
    found = ablate(model, foil_rows(), instead, metric="kl")
    assert found.plain == 0 and found.per_row.min() > -1e-6 and found.whole > 0


def test_a_function_computes_the_same(model):
    rows = foil_rows()
    for method in (ablate, attribute):
        named, own = (method(model, rows, metric=metric) for metric in ("logit_diff", margin))
        np.testing.assert_allclose(named.per_row, own.per_row, atol=1e-5)


def test_the_gradient_by_finite_differences(model):
    model.hf.double()
    try:
        rows, step = foil_rows(), 1e-3
        found = attribute(model, rows, metric="logit_diff")
        for head in list(model.spec)[::5]:
            losses = []
            for gate in (1 + step, 1 - step):
                gates = torch.ones(model.spec.shape)
                gates[head.layer, head.head] = gate
                losses.append([loss_by_hand(model, row, "logit_diff", gates) for row in rows])
            slopes = (np.array(losses[1]) - np.array(losses[0])) / (2 * step)
            np.testing.assert_allclose(found.per_row[:, head.layer, head.head], slopes, atol=2e-3)
    finally:
        model.hf.float()


@pytest.mark.parametrize("metric", NAMED)
def test_integrated_gradients_are_complete(model, metric):
    rows = foil_rows()
    found = integrate(model, rows, metric=metric, tolerance=0.005)
    none = torch.zeros(model.spec.shape)
    whole = [loss_by_hand(model, row, metric, none) - loss_by_hand(model, row, metric) for row in rows]
    assert found.whole == pytest.approx(np.mean(whole), abs=1e-4)
    assert np.nansum(found.values) == pytest.approx(found.whole, abs=0.02 * abs(found.whole) + 1e-4)


@pytest.mark.parametrize("metric", NAMED)
def test_mediation(model, metric):
    """Patching all positions of all heads of the corrupted prompt; KL compares with the clean prompt."""
    rows = [
        Row(row.ids, row.start, tuple(token % 99 + 1 for token in row.prompt), foil=row.foil)
        for row in foil_rows()
    ]
    found = mediate(model, rows, prompts="own", positions="target", metric=metric)
    totals, plain = [], []
    for row in rows:
        corrupted = Row((*row.corrupted, *row.target), row.start, foil=row.foil)
        if metric == "logit_diff":
            clean, other = (loss_by_hand(model, each, metric) for each in (row, corrupted))
        else:
            known, seen = (torch.log_softmax(logits_by_hand(model, each), -1) for each in (row, corrupted))
            clean, other = 0.0, float((known.exp() * (known - seen)).sum(-1).mean())
        totals.append(other - clean)
        plain.append(other)
    assert found.plain == pytest.approx(np.mean(plain), abs=1e-4)
    assert found.whole == pytest.approx(np.mean(totals), abs=1e-4)


def test_kl_counts_a_token_that_is_ruled_out_as_nothing():
    logits = torch.tensor([[0.0, 1.0, -torch.inf]], requires_grad=True)
    from headatlas.method.engine.metric import _kl

    loss = _kl(torch.tensor([[1.0, 0.0, -torch.inf]]), logits)
    loss.sum().backward()
    assert loss.item() == pytest.approx(np.tanh(0.5), abs=1e-6) and logits.grad.isfinite().all()


# Passes


def test_rows_that_fill_up_a_pass_lose_nothing(model):
    rows = foil_rows(5)
    table, gates = RowTable(rows), random_gates(model)
    for metric in (*NAMED, margin):
        row_loss = RowLoss(metric)
        wanted = evaluate(model, rows, gates, row_loss=row_loss).loss
        for batch in table.passes(np.arange(5)[:, None], 10_000, "cpu", pieces=2):
            reference = row_loss.reference(model, batch)
            with torch.no_grad(), model.gates(gates):
                losses = row_loss(model, batch, reference=reference)
            count = len(batch.members)
            assert len(losses) == batch.shape[0] and not losses[count:].any()
            np.testing.assert_allclose(losses[:count], wanted[batch.members], atol=2e-5)


def test_rows_without_foils_make_the_same_passes():
    rows = [Row(row.ids, row.start) for row in foil_rows()]
    (batch,) = RowTable(rows).passes(np.arange(4)[:, None], 1000, "cpu")
    rows_, length, targets, _ = batch.shape
    assert batch.foils.shape == (4, 0) and len(batch.numbers) == rows_ * (length + 1) + 5 * targets


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        (lambda logits, batch: logits.sum(), r"shape \[4\]"),
        (lambda logits, batch: [0.0] * batch.size, "returned list"),
        (lambda logits, batch: torch.zeros(batch.size), "has no gradient"),
    ],
)
def test_a_function_that_returns_something_else(model, metric, problem):
    with pytest.raises(RequestError, match=problem):
        attribute(model, foil_rows(), metric=metric)


# Gating


def planted_foils():
    """The answer against the next one, which a head of the kind `mistake` writes."""
    return [Row((answer, ASK, answer), 2, foil=((answer + 1) % ANSWERS,)) for answer in range(ANSWERS)]


@pytest.mark.parametrize("metric", ["logit_diff", margin])
def test_gating_finds_the_planted_heads(metric):
    model = planted_model("copy", "mistake", "nothing")
    settings = resolve(seeds=2, metric=metric)
    gates = fitted_gates(model, planted_foils(), settings)
    low = gates.sel(fit="remove").mean("seed").values[0]
    high = gates.sel(fit="retain").mean("seed").values[0]
    assert low[0] > 0.9 and low[1] < 0.1 and low[2] < 0.1  # needed: only the head that copies
    assert high[0] > 0.9 and high[1] < 0.1 and high[2] > 0.9  # in the way: only the mistake


def test_gating_with_kl_keeps_what_the_model_does():
    """The head that hurts the task belongs to the model's behavior: it is kept, unlike with the NLL."""
    model = planted_model("copy", "mistake", "nothing")
    gates = fitted_gates(model, planted_foils(), resolve(seeds=2, metric="kl", updates=80))
    low = gates.sel(fit="remove").mean("seed").values[0]
    high = gates.sel(fit="retain").mean("seed").values[0]
    assert high[1] > 0.8 and low[1] > 0.3 and low[2] < 0.1


# Requests, files and atlases


def write_foils(path, records=60, foil=True):
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(records):
            *words, target, other = (f"w{n}" for n in draw.choice(90, draw.integers(5, 8), replace=False))
            record = {"prompt": " ".join(words), "target": f" {target}"}
            file.write(json.dumps({**record, **({"foil": f" {other}"} if foil else {})}) + "\n")
    return path


@pytest.fixture
def task(tmp_path):
    return write_foils(tmp_path / "words.jsonl")


def test_foils_come_from_a_column(task, tmp_path):
    items = load_task(task).items()
    assert all(item.foil.startswith(" w") for item in items.train)
    plain = write_foils(tmp_path / "plain.jsonl", foil=False)
    assert not any(item.foil for item in load_task(plain).items().train)
    lines = [json.loads(line) for line in task.read_text().splitlines()]
    for line in lines:
        line["wrong"] = line.pop("foil")
    renamed = tmp_path / "renamed.jsonl"
    renamed.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert load_task(f"{renamed}?foil=wrong").items().train == items.train
    assert load_task(renamed).items().content_hash == load_task(f"{plain}?name=renamed").items().content_hash
    described = tmp_path / "described.yaml"
    described.write_text(
        "name: described\nsource: {file: renamed.jsonl}\n"
        'prompt: "{prompt}"\ntarget: "{target}"\nfoil: "{wrong}"\n'
    )
    assert load_task(described).items().train == items.train
    assert "foil" not in load_task(plain).spec.to_json()


def test_an_item_without_a_foil_is_named_before_a_model_is_loaded(tmp_path):
    plain = write_foils(tmp_path / "plain.jsonl", foil=False)
    first = json.loads(plain.read_text().splitlines()[0])
    with pytest.raises(TaskError, match=f"'{first['prompt']}' → '{first['target']}' has no foil"):
        MapRequest.of("no-such-model", plain, "ablate-zero", metric="logit_diff")


def test_a_foil_that_begins_as_the_target_does(tmp_path):
    task = tmp_path / "same.jsonl"
    task.write_text("".join(f'{{"prompt": "w{n}", "target": " w1", "foil": " w1 w2"}}\n' for n in range(9)))
    with pytest.raises(TaskError, match="'w1 w2', which begins with the same token"):
        map_heads(small_model(), task, method="ablate-zero", metric="logit_diff")


def test_wrong_metrics():
    for options in (MetricOptions, GatingSettings.of):
        with pytest.raises(UnknownNameError, match="did you mean 'logit_diff'"):
            options(metric="logit-diff")
        with pytest.raises(RequestError, match="metric is 3; give nll, logit_diff, kl or a function"):
            options(metric=3)
    with pytest.raises(RequestError, match="slope 0 where all gates are open"):
        GradientOptions(metric="kl")


def test_the_default_is_stored_as_before(task):
    assert "metric" not in MetricOptions().to_json() and "metric" not in resolve().to_json()
    for method in ("gating", "ablate-zero"):
        request = MapRequest.of("smollm2", task, method, metric="nll")
        assert request.to_json() == MapRequest.of("smollm2", task, method).to_json()


@pytest.mark.parametrize("method", ["ablate-mean", "attribute-integrated", "mediate"])
@pytest.mark.parametrize("metric", [*NAMED, margin])
def test_effects_in_an_atlas(task, tmp_path, method, metric):
    atlas = map_heads(small_model(), task, method=method, metric=metric, items=4, out=tmp_path / "atlas")
    run = open_atlas(tmp_path / "atlas").run("words", method)
    stored = metric_to_json(metric)
    assert run.decides["metric"] == run.settings["given"]["metric"] == stored
    assert run.request["options"]["metric"] == stored
    assert run.unit == {"logit_diff": "logits", "kl": "nats of KL divergence"}.get(metric, "margin")
    summary = atlas.effect_summary("words", method)
    assert summary.nll is None and np.isfinite(summary.mean) and "metric" in run.baseline
    if metric == "logit_diff":
        assert run.baseline["metric"] == pytest.approx(-atlas_loss(task), abs=1e-4)


def atlas_loss(task):
    """The mean loss by logit_diff of the held-out rows."""
    from headatlas.run.prepare import read_rows

    model = small_model()
    rows = read_rows(model, load_task(task), None, 64).held_out
    return np.mean([loss_by_hand(model, row, "logit_diff") for row in rows])


def test_another_metric_is_another_identity(task, tmp_path):
    model, out = small_model(), tmp_path / "atlas"
    map_heads(model, task, method="ablate-zero", items=4, out=out)
    with pytest.raises(AtlasError, match="metric nll instead of logit_diff"):
        map_heads(model, task, method="ablate-zero", items=4, out=out, metric="logit_diff", resume=True)


def test_gating_and_validation_in_the_metric_of_the_gates(task, tmp_path):
    model, out = small_model(), tmp_path / "atlas"
    map_heads(model, task, out=out, metric="logit_diff", **SMALL)
    summary = open_atlas(out).summary("words")
    assert set(summary.metric) == {"baseline", "retain", "remove"}
    assert summary.metric_label == "logit difference"
    few = {"model": model, "tasks": [str(task)], "items": 4, "draws": 2, "effect_items": 4}
    atlas = validate_atlas(out, methods=["ablate-zero"], **few)
    check = atlas.validation("words")
    assert check.facts["metric"] == atlas.run("words", "ablate-zero").decides["metric"] == "logit_diff"
    assert check.metric.unit == "logits"
    plain = np.mean([loss_by_hand(model, row, "logit_diff") for row in validated_rows(model, task)])
    assert check.keep[0][-1].mean() == pytest.approx(plain, abs=1e-4)
    assert any("logits" in words for words in check.explanation())
    again = validate_atlas(out, methods=[], metric="kl", **few).validation("words")
    assert again.facts["metric"] == "kl" and again.keep[0][-1].max() < 1e-5


def validated_rows(model, task):
    from headatlas.run.prepare import read_rows

    return read_rows(model, load_task(task), None, 4).held_out


def test_a_function_must_be_given_again(task, tmp_path):
    model, out = small_model(), tmp_path / "atlas"
    given = {**SMALL, "out": out, "metric": margin}
    map_heads(model, task, **given)
    map_heads(model, task, resume=True, **given)
    few = {"model": model, "tasks": [str(task)], "methods": [], "items": 4, "draws": 2}
    with pytest.raises(RequestError, match="'margin' is a Python function, which an atlas does not store"):
        validate_atlas(out, **few)
    with pytest.raises(RequestError, match="give it again"):
        MapRequest.resumed(out, method="gating")
    check = validate_atlas(out, metric=margin, **few).validation("words")
    assert check.metric.unit == "margin"


def test_workers_refuse_a_function(task, tmp_path):
    request = MapRequest.of("smollm2", task, "ablate-zero", metric=margin)
    with pytest.raises(RequestError, match="'margin' is a Python function, which workers do not have"):
        execute(request, tmp_path / "atlas", executor=Ray())
