"""The command `headatlas` in tests: inside this process, or as a process of its own."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

__all__ = ["assert_refused", "headatlas", "invoke"]

Result = subprocess.CompletedProcess[str]

#: Variables that would change the width or the colors of what a command prints.
_PLAIN = {"COLUMNS": "80"}
_ABSENT = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


def invoke(*arguments: object, **env: str) -> Result:
    """Run `headatlas ARGUMENTS` in this process. Nothing that it changes in the process is left behind.

    Warnings are what pytest makes of them: errors. Variables that libraries read when they are imported
    (HF_HOME and the like) have no effect here; use `headatlas` for those.
    """
    from headatlas.cli import main

    out, err = _stream(), _stream()
    with _restored_process_state(), mock.patch.dict(os.environ, _PLAIN | env):
        for name in _ABSENT:
            if name not in env:
                os.environ.pop(name, None)
        sys.argv = ["headatlas", *map(str, arguments)]
        sys.stdout, sys.stderr = out, err
        try:
            main()
            code: Any = 0
        except SystemExit as end:
            code = end.code
    return Result([*map(str, arguments)], code or 0, _text(out), _text(err))


def headatlas(*arguments: object, **env: str) -> Result:
    """Run the command as a user does, in a process of its own; this takes the seconds that torch takes to
    import."""
    return subprocess.run(
        [sys.executable, "-m", "headatlas", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | _PLAIN | {"OMP_NUM_THREADS": "2"} | env,
        timeout=300,
    )


def assert_refused(result: Result, *words: str, code: int = 2) -> None:
    """One line on standard error with these words, nothing else there, and the right exit code."""
    assert result.returncode == code, result.stderr
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr


def _stream() -> io.TextIOWrapper:
    """A text stream over bytes, as standard output is one."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    # the stream stays open: a logging handler may have kept it
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode("utf-8")


@contextmanager
def _restored_process_state() -> Iterator[None]:
    streams, argv, folder = (sys.stdout, sys.stderr), sys.argv, Path.cwd()
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    torch_state = _torch_state()
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.stdout, sys.stderr = streams
        sys.argv = argv
        os.chdir(folder)
        root.setLevel(level)
        root.handlers[:] = handlers
        _restore_torch(torch_state)


def _torch_state() -> tuple[Any, ...] | None:
    if "torch" not in sys.modules:
        return None
    import torch

    return (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.get_rng_state(),
    )


def _restore_torch(state: tuple[Any, ...] | None) -> None:
    if state is None:
        return
    import torch

    threads, dtype, deterministic, warn_only, random_state = state
    torch.set_num_threads(threads)
    torch.set_default_dtype(dtype)
    torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
    torch.set_rng_state(random_state)
