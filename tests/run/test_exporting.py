"""`export_model`: an ordinary checkpoint, which plain transformers loads, or no folder at all."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from headatlas import (
    AtlasError,
    FitError,
    ModelRefusedError,
    RequestError,
    StoreError,
    load_model,
    load_task,
    map_heads,
    open_atlas,
)
from headatlas.atlas import Interval
from headatlas.atlas.selection import choose_gates
from headatlas.export import Exported, checkpoint, export_model
from headatlas.export.checkpoint_card import checkpoint_card
from headatlas.export.engine import checkpoint_writer as exporting
from headatlas.method.engine.likelihood import Outcome, evaluate
from headatlas.model.fold import fold_gates, without_groups
from headatlas.model.load import _name_of
from headatlas.run.prepare import read_rows
from support.atlases import atlas_of, spec_of
from support.small_run import SMALL, small_model, write_task
from support.tiny import build_tiny

KINDS = ("llama", "gpt2", "gpt_neox", "gemma2", "qwen3", "phi3", "falcon", "opt")


def logits(hf, seed=3):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 50, (2, 9), generator=generator)
    with torch.no_grad():
        return hf(input_ids=ids, use_cache=False).logits


@pytest.mark.parametrize("kind", KINDS)
def test_folded_is_gated(kind):
    model = load_model(build_tiny(kind).double(), check=False)
    values = torch.rand(model.spec.shape).double()
    with model.gates(values):
        wanted = logits(model.hf)
    plain = logits(model.hf)
    fold_gates(model, values.numpy())
    torch.testing.assert_close(logits(model.hf), wanted, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(plain, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_gates_of_one_change_nothing(kind):
    model = load_model(build_tiny(kind), check=False)
    before = {name: tensor.clone() for name, tensor in model.hf.state_dict().items()}
    fold_gates(model, np.where(np.zeros(model.spec.shape), 0, 1.0))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.hf.state_dict().items())


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("llama", {"num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 8}),
        ("llama", {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8}),
        ("qwen3", {"num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 8}),
        ("gemma2", {"num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 8}),
    ],
)
def test_groups_that_are_off_can_go(kind, sizes):
    """Another one in every layer, and one more in one layer, which has to stay."""
    model = load_model(build_tiny(kind, **sizes).double(), check=False)
    layers, heads = model.spec.shape
    groups = sizes["num_key_value_heads"]
    size = heads // groups
    gates = np.random.default_rng(0).uniform(0.2, 1, (layers, heads))
    for layer in range(layers):
        gates[layer, size * (layer % groups) : size * (layer % groups + 1)] = 0
    gates[0, :] = np.where(np.arange(heads) < 2 * size, 0, gates[0])
    fold_gates(model, gates)
    smaller, said = without_groups(model, gates == 0)
    assert smaller is not None, said
    assert said.startswith(f"1 of {groups} ") and f"each of {layers} layers" in said
    torch.testing.assert_close(logits(smaller), logits(model.hf), rtol=1e-9, atol=1e-9)
    assert sum(p.numel() for p in smaller.parameters()) < sum(p.numel() for p in model.hf.parameters())
    assert smaller.config.num_attention_heads == heads - size


def test_what_cannot_go_stays_with_the_reason():
    model = load_model(build_tiny("gpt2"), check=False)
    off = np.zeros(model.spec.shape, dtype=bool)
    off[:, 0] = True
    fold_gates(model, 1.0 - off)
    none = np.zeros_like(off)
    for given, reason in ((off, "tie the number of heads|not known here"), (none, "no head that is off")):
        smaller, said = without_groups(model, given)
        assert smaller is None and re.search(reason, said), said


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return str(write_task(tmp_path_factory.mktemp("tasks") / "words.jsonl", 120))


@pytest.fixture(scope="module")
def folder(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlases") / "atlas"
    map_heads(small_model(), task, out=folder, **SMALL)
    return folder


@pytest.mark.parametrize(("gates", "hard", "seed"), [("retain", None, None), ("remove", 0.5, 1)])
def test_the_checkpoint_is_ordinary(folder, task, tmp_path, gates, hard, seed):
    out = tmp_path / "deep" / "checkpoint"
    made = export_model(folder, task, out, gates=gates, hard=hard, seed=seed, model=small_model(), items=8)
    assert sorted(path.name for path in out.parent.iterdir()) == ["checkpoint"]
    names = {path.name for path in out.iterdir()}
    assert {"config.json", "model.safetensors", "README.md", "headatlas.json", "tokenizer.json"} <= names
    found = AutoModelForCausalLM.from_pretrained(out)
    model = small_model()
    values = choose_gates(open_atlas(folder), "words", gates, hard, seed)
    with model.gates(values):
        wanted = logits(model.hf)
    torch.testing.assert_close(logits(found.eval()), wanted, rtol=1e-4, atol=1e-4)
    assert made.deviation < 1e-4 and made.items == 8
    assert len(made.off) == (values == 0).sum() and made.scaled == ((values > 0) & (values < 1)).sum()
    assert AutoTokenizer.from_pretrained(out)("a b")["input_ids"] == model.tokenizer("a b")["input_ids"]
    facts = json.loads((out / "headatlas.json").read_text())
    np.testing.assert_allclose(facts["values"], values)
    card = (out / "README.md").read_text()
    assert f"{made.before['nll']:.3f} | {made.after['nll']:.3f}" in card
    assert all(name in card for name in made.off)
    again = load_model(out)  # it can be mapped like any other
    assert again.check.passed


def test_before_and_after_are_those_of_the_models(folder, task, tmp_path):
    made = export_model(folder, task, tmp_path / "x", gates="retain", model=small_model(), items=8)
    model = small_model()
    rows = read_rows(model, load_task(task), None, 8).held_out
    assert made.before == pytest.approx(evaluate(model, rows).figures())
    values = choose_gates(open_atlas(folder), "words", "retain")
    assert made.after == pytest.approx(evaluate(model, rows, values).figures(), abs=1e-4)


def test_always_switches_off_what_interferes_in_every_seed():
    gates = np.full((2, 3, 4), 0.9)  # seed, layer, head
    gates[:, 1, 2] = 0.1
    gates[0, 2, 3] = 0.1  # in one seed
    atlas = atlas_of({"sums": {seed: (gates[seed], gates[seed]) for seed in (0, 1)}}, spec_of(4, 3, 4))
    values = choose_gates(atlas, "sums", "always")
    assert np.nansum(values) == 10 and values[1, 2] == 0 and np.isnan(values[1, 3])
    with pytest.raises(AtlasError, match="no head interferes in every seed"):
        choose_gates(atlas, "sums", "always", threshold=0.99)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gates": "best"}, "no gates named 'best'"),
        ({"gates": "retain", "hard": 2}, "hard is 2"),
        ({"gates": "always", "hard": 0.5}, "hard is for the gates"),
        ({"gates": "retain", "seed": 9}, "seed 9 cannot be taken: there are 0, 1"),
        ({"gates": "always", "seed": 0}, "over all seeds"),
        ({"gates": "retain", "items": 1}, "items is 1"),
        ({"gates": "retain", "items": 2.5}, "items is 2.5; allowed are whole numbers"),
        ({"gates": "retain", "hard": "x"}, "hard is 'x'"),
        ({"threshold": float("nan")}, "threshold is nan"),
    ],
)
def test_wrong_requests(folder, task, tmp_path, options, said):
    with pytest.raises(RequestError, match=said):
        export_model(folder, task, tmp_path / "x", model=small_model(), **options)
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_written_over(folder, task, tmp_path):
    with pytest.raises(RequestError, match="already exists"):
        export_model(folder, task, tmp_path, gates="retain", model=small_model())


def test_another_model_is_refused(folder, task, tmp_path):
    model = small_model()
    with torch.no_grad():
        next(model.hf.parameters()).add_(1)
    other = load_model(model.hf, tokenizer=model.tokenizer, check=False)
    with pytest.raises(AtlasError, match="other weights"):
        export_model(folder, task, tmp_path / "x", gates="retain", model=other)
    assert not list(tmp_path.iterdir())


def test_weights_that_are_not_plain_are_refused(folder, task, tmp_path):
    model = small_model()
    found = model.anatomy.present()[0]
    model.hf.get_submodule(found.output)._hf_hook = object()  # as offloading leaves it
    with pytest.raises(ModelRefusedError, match="quantised, offloaded or adapted"):
        export_model(folder, task, tmp_path / "x", gates="retain", model=model)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_that_is_not_the_gated_model_is_not_kept(folder, task, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "fold_gates", lambda model, values: None)
    with pytest.raises(FitError, match="not the gated model"):
        export_model(folder, task, tmp_path / "x", gates="remove", hard=0.5, model=small_model())
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing(folder, task, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    model = small_model()
    monkeypatch.setattr(type(model.hf), "save_pretrained", full)
    with pytest.raises(StoreError, match="No space left"):
        export_model(folder, task, tmp_path / "x", gates="retain", model=model)
    assert not list(tmp_path.iterdir())


def test_a_model_that_is_given_stays_as_it_is(folder, task, tmp_path):
    model = small_model()
    before = logits(model.hf)
    made = export_model(folder, task, tmp_path / "x", gates="remove", hard=0.5, seed=1, model=model, items=4)
    assert torch.equal(logits(model.hf), before)
    assert made.seed == 1 and "seed 1" in (made.path / "README.md").read_text()


def test_folders_inside_can_be_entered_and_odd_settings_are_saved(folder, task, tmp_path):
    model = small_model()
    model.tokenizer.chat_template = {"default": "{{ messages }}", "tool_use": "{{ messages }}"}
    model.hf.generation_config.temperature = 0.7  # without do_sample, which transformers refuses to write
    out = export_model(folder, task, tmp_path / "x", gates="retain", model=model, items=4).path
    assert any(path.is_dir() for path in out.iterdir())
    for path in (out, *out.rglob("*")):
        assert path.stat().st_mode & 0o444 == 0o444 and (
            path.is_file() or path.stat().st_mode & 0o111 == 0o111
        )


@pytest.mark.parametrize("threshold", [0, 1.5])
def test_thresholds(folder, task, tmp_path, threshold):
    with pytest.raises(RequestError, match="threshold is"):
        export_model(folder, task, tmp_path / "x", threshold=threshold, model=small_model())


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A task that the model knows: the targets are its own choices."""
    model, chance = small_model(), random.Random(0)
    words = [f"w{number}" for number in range(100)]
    ids = model.tokenizer(" ".join(words))["input_ids"][-len(words) :]
    lines = []
    for _ in range(120):
        prompt = " ".join(chance.sample(words, 4))
        given = torch.tensor([model.tokenizer(prompt)["input_ids"]])
        with torch.no_grad():
            best = model.hf(input_ids=given, use_cache=False).logits[0, -1, ids].argmax()
        lines.append(json.dumps({"prompt": prompt, "target": f" {words[int(best)]}"}))
    root = tmp_path_factory.mktemp("known")
    (root / "known.jsonl").write_text("\n".join(lines) + "\n")
    map_heads(small_model(), str(root / "known.jsonl"), out=root / "atlas", **SMALL)
    return root


def let_gates_be(monkeypatch, values):
    """Whatever gates are asked for, it is these that are folded in."""
    for module in (exporting, checkpoint):
        monkeypatch.setattr(module, "choose_gates", lambda *given: values)


@pytest.mark.parametrize(
    "options", [{"gates": "retain"}, {"gates": "remove", "hard": 0.5}, {"prune": True}, {}]
)
def test_a_checkpoint_that_harms_its_task_is_refused(known, tmp_path, monkeypatch, options):
    values = np.zeros(small_model().spec.shape)
    values[:, 1] = 20.0
    let_gates_be(monkeypatch, values)
    task = str(known / "known.jsonl")
    with pytest.raises(FitError, match=r"harm known on .* → .* \(\+.* to .*\).*: worse") as refused:
        export_model(known / "atlas", task, tmp_path / "x", model=small_model(), **options)
    assert "force=True" in str(refused.value) and not list(tmp_path.iterdir())
    made = export_model(known / "atlas", task, tmp_path / "x", model=small_model(), force=True, **options)
    facts = json.loads((made.path / "headatlas.json").read_text())
    assert made.harms and facts["harms"]
    assert 0 < facts["change"]["low"] < facts["change"]["mean"] < facts["change"]["high"]
    assert facts["change"]["mean"] == pytest.approx(made.after["nll"] - made.before["nll"], abs=1e-5)
    assert "harms its task. It was written with `force=True`" in (made.path / "README.md").read_text()


def test_a_harmless_checkpoint_needs_no_force(folder, task, tmp_path, monkeypatch):
    values = np.ones(small_model().spec.shape)
    let_gates_be(monkeypatch, values)
    made = export_model(folder, task, tmp_path / "x", model=small_model(), force=True)
    assert not made.harms and made.change.mean == pytest.approx(0, abs=1e-5)
    assert "harms" not in (made.path / "README.md").read_text()
    assert made.effect.endswith("no clear change")


def outcomes(monkeypatch, before, after):
    """Let the measurements before and after the export find these (NLL, items right) of 16 items."""
    measured = iter([before, after])

    def evaluate(model, rows):
        nll, right = next(measured)
        return Outcome(torch.full((len(rows),), nll), (torch.arange(len(rows)) < right).float())

    monkeypatch.setattr(exporting, "evaluate", evaluate)


def test_a_checkpoint_that_loses_accuracy_is_refused_whatever_its_loss(folder, task, tmp_path, monkeypatch):
    options = {"gates": "retain", "model": small_model(), "items": 16}
    outcomes(monkeypatch, (2.05, 9), (2.0, 0))
    said = (
        r"harm words on 16 held-out items: NLL 2.050 → 2.000 nats per token \(-0.050.*\), "
        r"accuracy 0.562 → 0.000 \(-0.562 \[-0.\d+ to -0.\d+\]\): worse"
    )
    with pytest.raises(FitError, match=said):
        export_model(folder, task, tmp_path / "x", **options)
    assert not list(tmp_path.iterdir())
    outcomes(monkeypatch, (2.05, 9), (2.0, 0))
    made = export_model(folder, task, tmp_path / "x", force=True, **options)
    facts = json.loads((made.path / "headatlas.json").read_text())
    assert facts["harms"] and facts["accuracy_change"]["mean"] == -9 / 16
    assert -1 < facts["accuracy_change"]["low"] < facts["accuracy_change"]["high"] < 0
    card = (made.path / "README.md").read_text()
    assert "NLL in nats -0.050" in card and "accuracy on whole targets -0.562 [-0." in card
    assert "harms its task" in card


def test_a_few_lost_items_are_no_harm():
    """Gates that change nothing lose some items and win others by chance; 3 of 64 lost say nothing."""

    def change_of(lost, groups=range(64)):
        right = Outcome(torch.ones(64), torch.ones(64))
        after = Outcome(torch.ones(64), (torch.arange(64) >= lost).float())
        return exporting._accuracy_change(right, after, SimpleNamespace(groups=groups))

    for lost in (1, 2, 3):
        change = change_of(lost)
        assert change.mean == -lost / 64 and -1 <= change.low < 0 <= change.high
    many = change_of(6)
    assert -1 <= many.low < many.mean == -6 / 64 < many.high < 0
    assert change_of(6, groups=[0] * 64) == Interval(-6 / 64)
    every = change_of(64)
    assert every.mean == -1 and (every.high or every.mean) < 0


def test_half_a_target_is_not_a_right_item():
    before, after = (Outcome(torch.ones(4), torch.tensor(right)) for right in ([1.0] * 4, [0.5, 0.5, 1, 1]))
    change = exporting._accuracy_change(before, after, SimpleNamespace(groups=range(4)))
    assert change.mean == after.accuracy - before.accuracy == -0.5


def test_items_of_one_prompt_give_no_interval_and_an_increase_harms():
    figures = {"nll": 1.0, "accuracy": 0.5, "token_accuracy": 0.5}
    made = Exported(
        path=None, task="t", gates="always", hard=None, seed=None, threshold=0.5, off=[], scaled=0,
        before=figures, after=figures, change=Interval(0.1), accuracy_change=Interval(0.0), items=2,
        deviation=0, parameters=(1, 1), pruned=None, speed=None, heads=1,
    )  # fmt: skip
    assert made.harms and "no 95 % interval" in made.effect
    same, lower, higher = Interval(0.0, -0.1, 0.1), Interval(-0.3, -0.5, -0.1), Interval(0.3, 0.1, 0.5)
    for change, accuracy, harms, word in (
        (Interval(0.1, -0.1, 0.3), same, False, "no clear change"),
        (Interval(0.1, 0.05, 0.15), same, True, "worse"),
        (Interval(0.1, 0.05, 0.15), higher, True, "worse"),
        (Interval(-0.1, -0.15, -0.05), same, False, "better"),
        (Interval(-0.1, -0.15, -0.05), lower, True, "worse"),
        (Interval(-0.1, -0.15, -0.05), Interval(-0.5), True, "worse"),
        (Interval(0.1, -0.1, 0.3), lower, True, "worse"),
        (Interval(0.1, -0.1, 0.3), higher, False, "better"),
        (Interval(float("nan")), same, True, "worse"),
    ):
        other = replace(made, change=change, accuracy_change=accuracy)
        assert other.harms == harms and other.effect.endswith(word)


@pytest.mark.parametrize("name", ["/home/me/model", "C:\\Users\\me\\model"])
def test_a_card_names_no_folder_of_a_model(name):
    figures = {"nll": 1.0, "accuracy": 0.5, "token_accuracy": 0.5}
    made = Exported(
        path=Path("x"), task="t", gates="always", hard=None, seed=None, threshold=0.5, off=[], scaled=0,
        before=figures, after=figures, change=Interval(0.1), accuracy_change=Interval(0.0), items=2,
        deviation=0, parameters=(1, 1), pruned=None, speed=None, heads=1,
    )  # fmt: skip
    card = checkpoint_card(SimpleNamespace(spec=replace(spec_of(1), name=name)), made)
    assert "# model with attention heads" in card and "me" not in card.replace("measure", "").split()
    assert "home" not in card and "Users" not in card and "base_model" not in card
    config = SimpleNamespace(name_or_path=name)
    assert _name_of(SimpleNamespace(config=config)) == "model"


def test_the_facts_of_a_checkpoint_name_no_folder_of_a_model(tmp_path):
    figures = {"nll": 1.0, "accuracy": 0.5, "token_accuracy": 0.5}
    made = Exported(
        path=Path("x"), task="t", gates="always", hard=None, seed=None, threshold=0.5, off=[], scaled=0,
        before=figures, after=figures, change=Interval(0.1), accuracy_change=Interval(0.0), items=2,
        deviation=0, parameters=(1, 1), pruned=None, speed=None, heads=1,
    )  # fmt: skip
    atlas = SimpleNamespace(spec=replace(spec_of(1), name="/home/me/model"))
    request = SimpleNamespace(to_json=dict)
    exporting._describe(made, request, atlas, np.ones((1, 1)), tmp_path)
    assert json.loads((tmp_path / "headatlas.json").read_text())["model"] == "model"
