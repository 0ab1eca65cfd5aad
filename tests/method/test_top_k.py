"""`in_top` against a full sort, at the edges: blocks, ties, rounding, precision settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headatlas import FitError
from headatlas.method.relation import top_k
from headatlas.method.relation.top_k import TopK, Vocabulary, full_precision
from support.relations import in_top_by_sorting
from support.top_k import in_top


def ask(inner, output, unembedding, targets, k):
    top, bottom = in_top(inner, output, Vocabulary.of(unembedding), torch.tensor(targets), torch.tensor(k))
    return torch.stack([top, bottom]).numpy()


def whole_numbers(*shape, seed=0, most=4):
    """Small whole numbers: products of them are exact in any precision, so that ties are ties."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-most, most + 1, shape, generator=generator).double()


#: around the ends of the blocks: 1024, then 3072, and 8192 more each
@pytest.mark.parametrize("size", [2, 3, 40, 1023, 1024, 1025, 4095, 4096, 4097, 12288, 12289, 20480, 20485])
def test_any_size_of_vocabulary(size):
    """Whole numbers have many ties; the targets lie all over the vocabulary."""
    inner, output = whole_numbers(24, 3, seed=size), whole_numbers(3, 5, seed=size + 1)
    unembedding = whole_numbers(5, size, seed=size + 2)
    targets = np.linspace(0, size - 1, 24).astype(int)
    rows = (inner @ output @ unembedding).numpy()
    for share in (0.01, 0.3, 0.9):
        k = np.full(24, max(1, int(share * size)))
        found = ask(inner, output, unembedding, targets, k)
        np.testing.assert_array_equal(found, in_top_by_sorting(rows, targets, k))
    if size > 40:
        assert 0 < found.mean() < 1


@pytest.mark.parametrize("size", [50, 1500, 5000])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_k_next_to_the_rank_itself(size, dtype):
    """The closest call: k such that the target is just in, and just out."""
    generator = torch.Generator().manual_seed(size)
    inner = torch.randn(30, 4, generator=generator).to(dtype)
    output = torch.randn(4, 8, generator=generator).to(dtype)
    unembedding = torch.randn(8, size, generator=generator).to(dtype)
    targets = torch.randint(0, size, (30,), generator=generator).numpy()
    rows = (inner.double() @ output.double() @ unembedding.double()).numpy()
    own = rows[np.arange(30), targets][:, None]
    above, below = (rows >= own).sum(1), (rows <= own).sum(1)
    found = ask(inner, output, unembedding, targets, above)
    assert found[0].all()
    found = ask(inner, output, unembedding, targets, np.maximum(above - 1, 1))
    assert not found[0][above > 1].any()
    found = ask(inner, output, unembedding, targets, below)
    assert found[1].all()
    found = ask(inner, output, unembedding, targets, np.maximum(below - 1, 1))
    assert not found[1][below > 1].any()


def test_a_head_that_writes_nothing_has_nothing_on_top():
    for inner, output in ((torch.zeros(6, 3), torch.ones(3, 5)), (torch.ones(6, 3), torch.zeros(3, 5))):
        for k in (1, 10, 99):
            assert not ask(inner, output, whole_numbers(5, 100), [0, 1, 50, 98, 99, 7], [k] * 6).any()


def test_equal_tokens_count_against_each_other():
    """Tokens 1, 2 and 3 are the same; token 0 is above, token 4 below, the rest far below."""
    unembedding = torch.tensor([[5.0, 3, 3, 3, 2, *[-1] * 95]])
    one = torch.ones(1, 1)
    for target, rank in ((0, 1), (1, 4), (2, 4), (3, 4), (4, 5), (5, 100), (99, 100)):
        for k in range(1, 100):
            found = ask(one, one, unembedding, [target], [k])
            assert found[0, 0] == (rank <= k), (target, k)
    assert ask(one, one, unembedding, [4], [96])[1, 0] and not ask(one, one, unembedding, [4], [95])[1, 0]


@pytest.mark.parametrize("difference", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("size", [60, 6000])
def test_numbers_that_single_precision_cannot_tell_apart(difference, size):
    """1 for the target, a little less for half of the others and a little more for the rest: the weights are
    plain single-precision ones, their product needs double precision."""
    inner = torch.tensor([[1.0, difference]], dtype=torch.float64)
    unembedding = torch.ones(2, size)
    unembedding[1, ::2], unembedding[1, 1::2] = -1, 1
    unembedding[1, 7] = 0
    more = size // 2 - 1
    for k, expected in ((more, False), (more + 1, True), (1, False), (size - 1, True)):
        assert ask(inner, torch.eye(2), unembedding, [7], [k])[0, 0] == expected
    for k, expected in ((size // 2, False), (size // 2 + 1, True)):
        assert ask(inner, torch.eye(2), unembedding, [7], [k])[1, 0] == expected


def test_nearly_tied_columns():
    """Columns that differ by a billionth, in double-precision weights: equal once rounded to single."""
    generator = torch.Generator().manual_seed(0)
    column = torch.rand(16, 1, generator=generator, dtype=torch.float64) + 0.5
    steps = torch.randperm(2000, generator=generator).double()
    unembedding = column * (1 + 1e-9 * steps)
    inner, output = torch.rand(20, 4, generator=generator).double(), torch.rand(4, 16, generator=generator)
    targets = np.arange(0, 2000, 100)
    rank = 2000 - steps[targets].numpy().astype(int)  # the largest step is on top
    assert ask(inner, output, unembedding, targets, rank)[0].all()
    assert not ask(inner, output, unembedding, targets, np.maximum(rank - 1, 1))[0][rank > 1].any()
    assert ask(inner, output, unembedding, targets, 2001 - rank)[1].all()
    assert not ask(inner, output, unembedding, targets, np.maximum(2000 - rank, 1))[1][rank < 2000].any()


def test_many_heads_that_have_to_be_worked_out_again():
    """Heads wait for each other until they are a thousand rows; each gets its own answers. Here all numbers
    are 1 and a billionth of a small whole number, of which there are ties."""
    small = whole_numbers(4, 300)
    unembedding = torch.cat([torch.ones(1, 300).double(), small])
    targets, k = np.arange(700) % 300, 1 + np.arange(700) % 150
    asking = TopK(Vocabulary.of(unembedding), torch.tensor(targets), torch.tensor(k))
    expected = {}
    for seed in range(5):
        inner, output = whole_numbers(700, 2, seed=seed, most=2), whole_numbers(2, 4, seed=seed + 9, most=2)
        expected[seed] = in_top_by_sorting((inner @ output @ small).numpy(), targets, k)
        whole = torch.block_diag(torch.ones(1, 1).double(), output)
        asking.ask([seed], [torch.cat([torch.ones(700, 1).double(), 1e-9 * inner], dim=1)], [whole])
    asking.ask(["silent"], torch.zeros(1, 700, 2), torch.zeros(1, 2, 5))
    expected["silent"] = np.zeros((2, 700), dtype=bool)
    answers = asking.answers()
    assert list(answers) == list(expected)
    for key, wanted in expected.items():
        np.testing.assert_array_equal(answers[key].numpy(), wanted)
        assert key == "silent" or 0.1 < wanted.mean() < 0.9


def test_many_rows_at_once():
    """More than are compared together."""
    inner, output, unembedding = (
        whole_numbers(5000, 3),
        whole_numbers(3, 5, seed=1),
        whole_numbers(5, 1100, seed=2),
    )
    targets, k = np.arange(5000) % 1100, 1 + np.arange(5000) % 300
    found = ask(inner, output, unembedding, targets, k)
    np.testing.assert_array_equal(
        found, in_top_by_sorting((inner @ output @ unembedding).numpy(), targets, k)
    )


@full_precision()
def broken():
    assert torch.get_float32_matmul_precision() == "highest" and not torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")
    return 1 / 0


def test_the_callers_precision_does_not_matter():
    """Autocast and shortened products would break the bounds; the caller's settings come back."""
    generator = torch.Generator().manual_seed(3)
    inner, output = torch.randn(50, 4, generator=generator), torch.randn(4, 8, generator=generator)
    unembedding = torch.randn(8, 3000, generator=generator)
    targets = torch.randint(0, 3000, (50,), generator=generator).numpy()
    rows = (inner.double() @ output.double() @ unembedding.double()).numpy()
    k = (rows >= rows[np.arange(50), targets][:, None]).sum(1)
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = ask(inner, output, unembedding, targets, k)
            assert torch.is_autocast_enabled("cpu")
        assert torch.get_float32_matmul_precision() == "medium"
        with pytest.raises(ZeroDivisionError):
            broken()
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    np.testing.assert_array_equal(found, in_top_by_sorting(rows, targets, k))
    assert found[0].all()


@pytest.mark.parametrize("scale", [1e-44, 1e-40, 1e-30, 1e-3, 1e30, 1e60])
@pytest.mark.parametrize("which", ["inner", "output", "both"])
def test_the_size_of_what_a_head_writes_does_not_matter(scale, which):
    """Also where single precision ends: heads that weight decay has shrunk away are still heads."""
    generator = torch.Generator().manual_seed(1)
    inner = torch.randn(400, 8, generator=generator).double()
    output = torch.randn(8, 16, generator=generator).double()
    unembedding = torch.randn(16, 500, generator=generator)
    targets = torch.randint(0, 500, (400,), generator=generator).numpy()
    rows = (inner @ output @ unembedding.double()).numpy()
    k = (rows >= rows[np.arange(400), targets][:, None]).sum(1)
    k = np.clip(k - np.arange(400) % 2, 1, 499)  # just in, just out
    each = {"inner": (scale, 1), "output": (1, scale), "both": (scale**0.5, scale**0.5)}[which]
    found = ask(inner * each[0], output * each[1], unembedding, targets, k)
    np.testing.assert_array_equal(found, in_top_by_sorting(rows, targets, k))


def test_the_newer_way_to_ask_for_shortened_products():
    """Where a caller uses it, PyTorch refuses the older one."""
    place = torch.backends.cuda.matmul
    before = place.fp32_precision
    place.fp32_precision = "tf32"
    try:
        with full_precision():
            pass
        assert place.fp32_precision == "tf32"
    finally:
        place.fp32_precision = before


def test_what_is_no_number_is_refused():
    vocabulary = Vocabulary.of(torch.randn(8, 50))
    targets, k = torch.tensor([1]), torch.tensor([3])
    for inner, output in (
        (torch.tensor([[torch.nan, 0.0]]), torch.ones(2, 8)),
        (torch.ones(1, 2), torch.full((2, 8), torch.inf)),
    ):
        with pytest.raises(FitError, match="no numbers"):
            in_top(inner, output, vocabulary, targets, k)


@pytest.mark.parametrize("double", [set(), {"cpu"}])
@pytest.mark.parametrize("kept", [0, 1, 9])
@pytest.mark.parametrize("size", [900, 5000, 30_000])
def test_heads_that_are_asked_together(monkeypatch, double, kept, size):
    """As on a GPU, where blocks are made anew each time and rows wait in larger numbers: each head's answers
    are those of a sort of its own numbers. One head writes nothing, one reads nothing for some rows."""
    monkeypatch.setitem(top_k._KEPT, "cpu", kept)
    monkeypatch.setattr(top_k, "_DOUBLE", double)
    monkeypatch.setitem(top_k._TOGETHER, "cpu", 97)
    monkeypatch.setitem(top_k._CELLS, "cpu", 40_000)
    inner, output = whole_numbers(4, 60, 3, seed=size), whole_numbers(4, 3, 6, seed=size + 1)
    output[2], inner[1, ::7] = 0, 0
    unembedding = whole_numbers(6, size, seed=size + 2)
    targets, k = np.arange(60) * 13 % size, np.resize([1, 3, 25, size // 20, size // 3], 60)
    asking = TopK(Vocabulary.of(unembedding), torch.tensor(targets), torch.tensor(k))
    asking.ask("abc", inner[:3], output[:3])
    asking.ask("d", inner[3:], output[3:])
    answers = asking.answers()
    assert list(answers) == list("abcd") and not answers["c"].any()
    for key in "abd":
        head = "abcd".index(key)
        numbers = (inner[head] @ output[head] @ unembedding).numpy()
        np.testing.assert_array_equal(answers[key].numpy(), in_top_by_sorting(numbers, targets, k))
    assert 0 < answers["a"].float().mean() < 1


@pytest.mark.parametrize("double", [set(), {"cpu"}])
def test_weights_in_double_precision_that_cancel(monkeypatch, double):
    """What single precision makes of the columns is larger than what the head makes of their differences."""
    monkeypatch.setattr(top_k, "_DOUBLE", double)
    generator = torch.Generator().manual_seed(0)
    column = torch.rand(16, 1, generator=generator, dtype=torch.float64) + 0.5
    unembedding = column + 1e-8 * torch.randn(16, 2000, generator=generator, dtype=torch.float64)
    output = torch.randn(4, 16, generator=generator, dtype=torch.float64)
    output = output - (output @ column) @ column.T / (column.T @ column)  # blind to what all have in common
    inner = torch.randn(200, 4, generator=generator, dtype=torch.float64)
    targets, k = np.arange(200) * 7 % 2000, np.resize([5, 60, 400], 200)
    found = ask(inner, output, unembedding, targets, k)
    np.testing.assert_array_equal(
        found, in_top_by_sorting((inner @ output @ unembedding).numpy(), targets, k)
    )
    assert 0 < found.mean() < 1
