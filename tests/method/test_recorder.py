"""When passes are recorded and played: with a graph that is told what to do, as there is no GPU here."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import masking_utils

from headatlas import load_model
from headatlas.method.engine import recorder as module
from headatlas.method.engine.recorder import Recorder
from headatlas.method.engine.rows import RowTable
from method.test_gating import rows_of
from support.tiny import build_tiny


class Graph:
    """Does the work again, on the tensors that it was recorded with."""

    def pool(self):
        return "pool"

    def replay(self):
        for result, new in zip(self.results, self.work(*self.tensors), strict=True):
            result.copy_(new)


class Cuda:
    """In place of `torch.cuda`: one stream, and graphs that repeat what ran while they were recorded."""

    CUDAGraph = Graph

    def __init__(self, cuda):
        self._cuda, self.ran, self.broken = cuda, [], False

    def __getattr__(self, name):
        return getattr(self._cuda, name)

    @contextmanager
    def graph(self, graph, pool=None):
        if self.broken:
            raise RuntimeError("operation not permitted when stream is capturing")
        yield
        graph.work, graph.tensors, graph.results = self.ran[-1]

    def Stream(self):  # noqa: N802
        return SimpleNamespace(wait_stream=lambda stream: None)

    current_stream = Stream

    def stream(self, stream):
        return nullcontext()

    device = stream

    def set_stream(self, stream):
        pass

    def synchronize(self):
        pass


@pytest.fixture
def recorder(monkeypatch):
    cuda, calls = Cuda(torch.cuda), []
    monkeypatch.setattr(torch, "cuda", cuda)

    def results_of(group, owners, logits):
        return group.ids.sum() + owners.sum() * logits, logits * 2

    def work(group, owners, logits):
        calls.append(group.shape)
        results = results_of(group, owners, logits)
        cuda.ran.append((results_of, (group, owners, logits), results))
        return results

    play = Recorder(load_model(build_tiny("llama"), check=False))
    play.on = True
    return play, work, calls


def groups(count):
    """Passes of one shape with other rows each."""
    table = RowTable(rows_of(40, 9))
    for start in range(count):
        chosen = np.arange(start, start + 8)[:, None]
        (group,) = table.passes(chosen, 10**6, "cpu", pieces=1)
        yield group


def wanted(group, number):
    return group.ids.sum() + 8.0 * number, torch.tensor(2.0 * number)


def test_a_shape_is_recorded_when_it_comes_again_and_gives_the_same(recorder):
    play, work, calls = recorder
    shapes = set()
    for number, group in enumerate(groups(6), 1):
        shapes.add(group.shape)
        found = play(work, group, torch.ones(8), torch.tensor(float(number)))
        assert [float(one) for one in found] == [float(one) for one in wanted(group, number)]
    assert len(play._recordings) <= len(shapes)
    assert len(calls) < 6 + len(shapes) + 2  # once as it is, and twice to record: not at every pass


def test_what_cannot_be_recorded_is_run(recorder):
    play, work, _ = recorder
    torch.cuda.broken = True
    own = masking_utils.find_packed_sequence_indices
    for number, group in enumerate(groups(4), 1):
        found = play(work, group, torch.ones(8), torch.tensor(float(number)))
        assert float(found[1]) == 2.0 * number
    assert not play.on and not play._recordings
    assert masking_utils.find_packed_sequence_indices is own


def test_there_is_an_end_to_recordings(recorder, monkeypatch):
    play, work, _ = recorder
    monkeypatch.setattr(module, "_MOST", 0)
    for number, group in enumerate(groups(4), 1):
        assert float(play(work, group, torch.ones(8), torch.tensor(float(number)))[1]) == 2.0 * number
    assert not play._recordings


def test_on_a_cpu_nothing_is_recorded():
    assert not Recorder(load_model(build_tiny("llama"), check=False)).on


def test_several_threads_at_once():
    own = masking_utils.find_packed_sequence_indices
    one, other = module._as_rows_are(), module._as_rows_are()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert masking_utils.find_packed_sequence_indices is not own
    other.__exit__(None, None, None)
    assert masking_utils.find_packed_sequence_indices is own
