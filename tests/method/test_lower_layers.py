"""Layers below a changed head are skipped: same bits, fewer layers run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headatlas import load_model
from headatlas.method.engine import head_effects
from headatlas.method.engine.ablate import STAND_INS, ablate
from headatlas.method.engine.lower_layers import KeptStream, can_keep_stream
from headatlas.method.engine.mediate import mediate
from headatlas.task import Row
from support.heads import model_of
from support.tiny import build_tiny

LAYOUTS = [
    "separate, grouped, head_dim != hidden/heads",
    "Conv1D, fused thirds",
    "latent",
    "hybrid with linear attention",
    "heads differ from layer to layer",
]


def rows_of(count: int = 5) -> list[Row]:
    draw = np.random.default_rng(0)
    rows = []
    for place in range(count):
        ids = tuple(int(token) for token in draw.integers(1, 90, size=6 + place))
        rows.append(Row(ids, len(ids) - 1 - place % 3))
    return rows


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_effects_are_the_same_bit_for_bit(layout, dtype, monkeypatch):
    model = load_model(model_of(layout).hf.to(dtype), check=False)
    assert can_keep_stream(model)
    runs = [
        *(lambda instead=instead: ablate(model, rows_of(), instead) for instead in STAND_INS),
        lambda: mediate(model, rows_of()),
    ]
    kept = [run() for run in runs]
    monkeypatch.setattr(head_effects, "can_keep_stream", lambda model: False)
    for effects, run in zip(kept, runs, strict=True):
        np.testing.assert_array_equal(effects.per_row, run().per_row)


def test_lower_layers_run_once_per_pass():
    model = load_model(build_tiny("llama", num_hidden_layers=4), check=False)
    assert can_keep_stream(model)
    counts = dict.fromkeys(range(4), 0)
    for layer, block in enumerate(model.hf.model.layers):
        original = type(block).forward

        def count(self, *args, layer=layer, original=original, **kwargs):
            counts[layer] += 1
            return original(self, *args, **kwargs)

        block.forward = count.__get__(block)
    rows = rows_of(1)
    ablate(model, rows)
    heads = model.spec.heads[0]
    # plain and all heads off, each recording of a stream, and the changes of heads in this layer or below
    assert counts == {layer: 2 + (layer < 3) + heads * (layer + 1) for layer in range(4)}


@pytest.mark.parametrize("reads_lower", [True, False])
def test_a_model_that_reads_lower_layers_directly_runs_whole(reads_lower):
    """The last layer adds the output of the first, which a pass that skips the first does not have. Passes
    that skip nothing equal each other."""
    model = load_model(build_tiny("llama"), check=False)
    first, last = model.hf.model.layers[0], model.hf.model.layers[-1]
    noted: list[torch.Tensor] = []
    model.hf.model.register_forward_pre_hook(lambda module, args: noted.clear())
    first.register_forward_hook(lambda module, args, output: noted.append(output))
    forward = last.forward

    def add_first_output(*args, **kwargs):
        output = forward(*args, **kwargs)
        return output + sum(noted) if reads_lower else output

    last.forward = add_first_output
    ids = torch.arange(1, 7)[None]
    with torch.no_grad():
        assert torch.equal(model(ids), model(ids))
    assert can_keep_stream(model) is not reads_lower


def test_skipping_leaves_the_model_as_it_was():
    model = load_model(build_tiny("llama"), check=False)
    blocks = list(model.hf.model.layers)
    assert KeptStream(model).works()
    assert all("forward" not in block.__dict__ for block in blocks)


def test_the_test_is_made_once_until_the_weights_change(monkeypatch):
    model = load_model(build_tiny("llama"), check=False)
    calls = []
    monkeypatch.setattr(KeptStream, "works", lambda self: calls.append(1) or True)
    assert can_keep_stream(model) and can_keep_stream(model) and calls == [1]
    with torch.no_grad():
        model.hf.model.layers[0].mlp.up_proj.weight.mul_(1.5)
    model.identify_weights()
    assert can_keep_stream(model) and calls == [1, 1]
