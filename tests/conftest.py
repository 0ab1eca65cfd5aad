"""Set-up of all tests, and the rule that nothing is skipped silently.

A test that cannot run on this machine may skip, with its reason; the reason is in the summary. With
CI=true a skip is a failure, unless the test is on the list below.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from uuid import uuid4

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports the hub's client
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest

try:
    from hypothesis import settings
except ImportError:  # a GPU machine need not have hypothesis
    settings = None

try:
    from support.shapes import ShapeError, check_shapes
except ImportError:  # a GPU machine need not have jaxtyping and beartype
    ShapeError = None
else:
    check_shapes()

# How long an example takes says nothing about the code on a machine that does other work.
if settings is not None:
    settings.register_profile("headatlas", deadline=None)
    settings.load_profile("headatlas")

#: Tests that CI cannot run, and why.
MAY_SKIP_IN_CI = {
    "tests/house/test_dependencies.py::test_nothing_with_a_known_hole": "asks a service on the network",
    "tests/run/test_large_models.py::test_weights_by_torchao": "torchao would write to all error outputs",
    "tests/model/test_device.py::test_gates_on_an_accelerator": "CI has no accelerator",
    **dict.fromkeys(
        (
            "tests/gpu/test_engine_on_gpu.py::test_recorded_passes_give_the_bits_of_eager_ones",
            "tests/gpu/test_engine_on_gpu.py::test_recorded_passes_of_a_real_shape_give_the_bits_of_eager_ones",
            "tests/gpu/test_engine_on_gpu.py::test_compiled_blocks_give_roughly_the_gradient_of_eager_ones",
            "tests/gpu/test_engine_on_gpu.py::test_a_fit_keeps_to_the_memory_that_it_may_use",
        ),
        "CI has no GPU",
    ),
    "tests/atlas/test_store.py::test_a_really_full_disk": "needs a root that may mount",
    "tests/atlas/test_store.py::test_a_read_only_folder": "as root: needs one that may mount",
    "tests/model/test_gates.py::test_compiled_to_machine_code": "needs a C++ compiler and no spaces in paths",
}

#: What a test with this marker may take; only the order of the files depends on it.
ROUGH_SECONDS = {"cluster": 20, "process": 8, "browser": 3, "slow": 2}


def pytest_ignore_collect(collection_path, config):
    """With `-m gpu` only files that have such tests are read: the others import packages that a GPU machine
    need not have."""
    if config.option.markexpr.strip() != "gpu" or collection_path == Path(__file__).parent:
        return None
    files = collection_path.rglob("test_*.py") if collection_path.is_dir() else [collection_path]
    return None if any("mark.gpu" in file.read_text(encoding="utf-8") for file in files) else True


def pytest_collection_modifyitems(items):
    """Files that take long come first: processes that share the tests by file then end together."""
    seconds = Counter()
    for item in items:
        seconds[item.path] += sum(ROUGH_SECONDS.get(mark.name, 0) for mark in item.iter_markers())
    items.sort(key=lambda item: -seconds[item.path])


@pytest.fixture(autouse=True)
def _no_open_figures():
    """Figures are registered with pyplot once a test has imported it, and pyplot keeps them."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        name = item.nodeid.split("[")[0]
        if name not in MAY_SKIP_IN_CI:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} was skipped in CI and is not on the list: {call.excinfo.value}"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """A whole file can be skipped while it is read, by `importorskip`."""
    report = (yield).get_result()
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped in CI: {report.longrepr}"


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch, tmp_path_factory):
    """Each test loads and checks its models anew, and leaves nothing in the user's cache folder."""
    try:
        from headatlas.model import idle_model, proof_cache
    except ImportError:  # a GPU machine need not have every dependency
        yield
        return
    folder = tmp_path_factory.getbasetemp() / "checks" / uuid4().hex
    monkeypatch.setattr(proof_cache, "checks_folder", lambda: folder)
    yield
    idle_model.forget_model()


@pytest.fixture(autouse=True)
def shapes_are_as_annotated():
    yield
    if ShapeError is not None:
        errors, ShapeError.errors[:] = list(ShapeError.errors), []
        assert not errors, errors[0]


def pytest_report_header(config):
    return "skips allowed in CI: " + "; ".join(f"{test} ({why})" for test, why in MAY_SKIP_IN_CI.items())
