"""Compiled blocks: the same numbers, one piece of code for all blocks, and no harm where none can be made.

On a CPU, with a compiler that traces and differentiates as on a GPU but makes no machine code.
"""

from __future__ import annotations

import pytest
import torch

from headatlas import load_model
from headatlas.method.engine.block_compiler import BlockCompiler, is_compiler_error
from headatlas.method.engine.determinism import fit_conditions
from headatlas.method.engine.gate_fit import GateFit
from method.test_gating import Failing, free, rows_of
from support.tiny import build_tiny

KINDS = ("llama", "gpt2", "gemma2", "qwen2", "gpt_neox")


class Counting:
    """A backend that counts how often code was made."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, graph, inputs):
        self.made += 1
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(fit: GateFit, backend) -> GateFit:
    fit.runner.compiler = BlockCompiler(fit.model, 1e20, ("cpu",), backend=backend)
    assert fit.runner.compiler
    return fit


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_gates_from_one_piece_of_code_for_all_blocks_and_lengths(kind):
    """Two pieces, as the first block is given embeddings, through which no gradient flows; and one for the
    loss."""
    model, backend = load_model(build_tiny(kind).double(), check=False), Counting()
    rows = [row for longest in (9, 12, 17, 23) for row in rows_of(6, longest)]
    plain, other = (free(model, [0, 1, 2], budget=40, rows=rows) for _ in range(2))
    compiled(other, backend)
    plain.run()
    other.run()
    assert other.runner.compiler and 3 <= backend.made <= 4  # some blocks fall into two
    torch.testing.assert_close(other.logits, plain.logits, rtol=0, atol=1e-9)
    for one, two in zip(plain.results(), other.results(), strict=True):
        assert one.losses == pytest.approx(two.losses, abs=1e-9)


@pytest.mark.slow
def test_where_no_code_can_be_made_the_model_runs_as_it_is():
    def broken(graph, inputs):
        raise RuntimeError("no compiler here")

    model = load_model(build_tiny("llama").double(), check=False)
    plain, other = free(model, [0]), compiled(free(model, [0]), broken)
    plain.run()
    other.run()
    assert not other.runner.compiler
    torch.testing.assert_close(other.logits, plain.logits, rtol=0, atol=0)


def test_errors_of_the_model_stay_errors():
    model = load_model(build_tiny("llama"), check=False)
    fit = compiled(free(model, [0], objective=Failing), Counting())
    fit.objective.error = ValueError("not the compiler's")
    with pytest.raises(ValueError, match="not the compiler's"):
        fit.run()
    assert fit.runner.compiler and not any("forward" in module.__dict__ for module in model.hf.modules())


@pytest.mark.slow
def test_with_layers_that_run_again():
    """Less memory: a compiled block inside a checkpoint."""
    model = load_model(build_tiny("llama").double(), check=False)
    plain, other = free(model, [0, 1]), compiled(free(model, [0, 1]), Counting())
    other.runner.checkpointing = True
    plain.run()
    other.run()
    torch.testing.assert_close(other.logits, plain.logits, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_errors_inside_the_compiler_are_its_own():
    """Some come out as what they are, with no mark of where they come from but the place."""

    def broken(graph, inputs):
        return torch._inductor.utils.cache_on_self  # no code, but something else

    model = load_model(build_tiny("llama"), check=False)
    fit = free(model, [0])
    with pytest.raises(Exception) as caught:  # noqa: PT011
        torch.compile(lambda x: x + 1, backend=broken)(torch.ones(1))
    assert is_compiler_error(caught.value)
    assert not is_compiler_error(_raised(ValueError("the model's"))) and not fit.runner.compiler


def _raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as found:
        return found


def test_on_a_cpu_nothing_is_compiled_unasked():
    model = load_model(build_tiny("llama"), check=False)
    assert not BlockCompiler(model, 1e20) and not free(model, [0]).runner.compiler


def test_blocks_that_are_not_the_models_own_are_left_alone():
    model = load_model(build_tiny("llama"), check=False)
    block = model.hf.model.layers[1]
    block.forward = block.forward  # as offloading does
    assert BlockCompiler(load_model(build_tiny("llama"), check=False), 1e20, ("cpu",))
    assert not BlockCompiler(model, 1e20, ("cpu",))


def test_fixed_gates_are_gates():
    model = load_model(build_tiny("jamba"), check=False)  # with layers that have no attention
    ids = torch.randint(5, 50, (3, 8))
    values = torch.rand(3, *model.spec.shape)
    with torch.no_grad():
        with model.gates(values):
            wanted = model.hf(input_ids=ids, use_cache=False).logits
        with model.fixed_gates(values):
            found = model.hf(input_ids=ids, use_cache=False).logits
        plain = model.hf(input_ids=ids, use_cache=False).logits
    assert torch.equal(found, wanted) and not torch.equal(found, plain)


def test_conditions_are_given_back(monkeypatch):
    """Those of a GPU, which can be set on a CPU too."""
    model = load_model(build_tiny("llama"), check=False)
    monkeypatch.setattr(type(model), "device", torch.device("cuda:0"))
    before = torch.utils.deterministic.fill_uninitialized_memory
    with fit_conditions(model, 8):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.utils.deterministic.fill_uninitialized_memory
    assert torch.utils.deterministic.fill_uninitialized_memory == before
    assert not torch.are_deterministic_algorithms_enabled()


def test_no_memory_is_no_error_of_the_compiler():
    for error in (torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("x is not deterministic")):
        assert not is_compiler_error(_raised(error))
