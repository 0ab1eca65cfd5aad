"""What only an NVIDIA GPU can show: recorded passes, compiled blocks, memory. One command: pytest -m gpu.

Imports only what a GPU machine has: PyTorch, transformers and headatlas, and the engines of `bench/`.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

from headatlas import load_model
from support.tiny import build_tiny

# Warnings of whatever versions a GPU machine has are not this suite's concern.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

BENCH = Path(__file__).parents[2] / "bench"
GIB = 2**30
SHAPE = "SmolLM2-135M"


@pytest.fixture(autouse=True)
def _needs_cuda():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA GPU on this machine")


@pytest.fixture
def bench(monkeypatch):
    """bench(name): a module of `bench/`."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


@pytest.fixture
def replays(monkeypatch):
    """A list that grows with every recording that is played."""
    played = []
    replay = torch.cuda.CUDAGraph.replay

    def counted(graph):
        played.append(graph)
        replay(graph)

    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", counted)
    return played


def rows_of_three_lengths(bench, vocabulary):
    random_rows = bench("shapes").random_rows
    return [row for length in (12, 24, 40) for row in random_rows(8, length, 2, vocabulary)]


def updated(bench, model, updates, **way):
    """A fit of two gate sets after so many updates, recorded or compiled or neither; always in the same
    passes."""
    engines = bench("engines")
    fit = engines.ours(model, rows_of_three_lengths(bench, model.spec.vocabulary), 2, **way)
    fit.budget = 4096
    update = engines.update_of(fit)
    for _ in range(updates):
        update()
    torch.cuda.synchronize()
    return fit


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_recorded_passes_give_the_bits_of_eager_ones(bench, replays, kind, dtype):
    model = load_model(build_tiny(kind).to(dtype).cuda(), check=False)
    eager = updated(bench, model, 12, recorded=False, compiled=False)
    assert not replays
    recorded = updated(bench, model, 12, recorded=True, compiled=False)
    assert len(replays) >= 8  # a shape is recorded when it comes for the second time
    assert recorded.arrays().keys() == eager.arrays().keys()
    for name, values in eager.arrays().items():
        assert values.tobytes() == recorded.arrays()[name].tobytes(), name


def test_recorded_passes_of_a_real_shape_give_the_bits_of_eager_ones(bench, replays):
    model = load_model(bench("shapes").random_model(SHAPE), check=False)
    eager = updated(bench, model, 6, recorded=False, compiled=False)
    recorded = updated(bench, model, 6, recorded=True, compiled=False)
    assert replays and torch.equal(recorded.logits, eager.logits)


def test_compiled_blocks_give_roughly_the_gradient_of_eager_ones(bench):
    """Adam's mean after one update is a tenth of the gradient."""
    model = load_model(bench("shapes").random_model(SHAPE), check=False)
    eager = updated(bench, model, 1, recorded=False, compiled=False)
    compiled = updated(bench, model, 1, recorded=False, compiled=True)
    assert compiled.compiler and not eager.compiler  # code was made
    one, other = (torch.from_numpy(fit.arrays()["mean"]).double().flatten() for fit in (eager, compiled))
    assert torch.cosine_similarity(one, other, dim=0) > 0.99


def test_a_fit_keeps_to_the_memory_that_it_may_use(bench):
    """Ten gate sets on 64 rows of 40 tokens in 2 GiB, without running out on the way."""
    engines, shapes = bench("engines"), bench("shapes")
    model = load_model(shapes.random_model(SHAPE), check=False)
    rows = shapes.random_rows(64, 40, 1, model.spec.vocabulary)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    failed_before = torch.cuda.memory_stats()["num_ooms"]
    torch.cuda.set_per_process_memory_fraction(2 * GIB / torch.cuda.mem_get_info()[1])
    try:
        fit = engines.ours(model, rows, 10)
        update = engines.update_of(fit)
        for _ in range(3):
            update()
        torch.cuda.synchronize()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.cuda.memory_stats()["num_ooms"] == failed_before
    assert torch.cuda.max_memory_reserved() <= 2 * GIB
    assert fit.budget < 10 * 64 * 40  # not all at once
    assert torch.isfinite(fit.logits).all()
