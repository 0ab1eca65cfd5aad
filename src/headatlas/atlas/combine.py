"""The results of two atlases of one model, in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headatlas.atlas.record import Record, Run
from headatlas.atlas.stability import HALVES
from headatlas.core import AtlasError, difference, warn_user

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = [
    "dtype_advice",
    "merge_notes",
    "merge_records",
    "merge_runs",
    "other_dtypes",
    "warn_of_dtypes",
]

Note = tuple[dict[str, np.ndarray], dict[str, Any]]


def merge_runs(one: Atlas, other: Atlas) -> list[Run]:
    """The runs of both, those of the first before those that only the second has.

    Refuses atlases of different weights, and a task that one method mapped with different settings.
    """
    _check_weights(one, other)
    runs = dict(one.runs)
    for key, run in other.runs.items():
        runs[key] = _merge_run(one, other, runs[key], run) if key in runs else run
    return list(runs.values())


def other_dtypes(run: Run, others: Iterable[Run]) -> dict[str, str]:
    """The results of `others` in another dtype than those of `run`: task (and method if it differs) ->
    dtype."""
    dtype = run.decides.get("dtype")
    return {
        f"{other.task} by {other.method}" if other.method != run.method else other.task: other.decides[
            "dtype"
        ]
        for other in others
        if dtype is not None and other.decides.get("dtype") not in (None, dtype)
    }


def dtype_advice(others: Mapping[str, str]) -> str:
    """Why results of several dtypes are not compared, and how to get results of one."""
    return (
        "rounding changes scores and roles, so compare results of one dtype only "
        f"(dtype={next(iter(others.values()))!r})"
    )


def warn_of_dtypes(one: Atlas, other: Atlas) -> None:
    """Warn if results that are merged are in different dtypes."""
    lines = []
    for run in other.runs.values():
        if run.method not in HALVES and (different := other_dtypes(run, one.runs.values())):
            listed = ", ".join(f"{name} in {dtype}" for name, dtype in different.items())
            lines.append(
                f"{run.task} ({run.method}) is in {run.decides['dtype']}, but the other atlas "
                f"has {listed}; {dtype_advice(different)}"
            )
    if lines:
        warn_user("\n".join(lines))


def _check_weights(one: Atlas, other: Atlas) -> None:
    if not one.spec.has_same_weights(other.spec):
        for spec in (one.spec, other.spec):
            if spec.content_hash is None:
                raise AtlasError(
                    f"these atlases cannot be merged: the weights of {spec.name} are not known, so nothing "
                    "shows that both are of the same model."
                )
        raise AtlasError(
            f"these atlases cannot be merged: the weights of {one.spec.name} and of {other.spec.name} differ;"
            " headatlas.compare sets two models side by side."
        )
    for run in other.runs.values():
        for known in one.runs.values():
            is_same_run = (known.method, known.task) == (run.method, run.task)  # identities say more
            if "weights" in run.decides and not is_same_run:
                known.require_weights(str(run.decides.get("dtype")), str(run.decides["weights"]))


def _merge_run(one: Atlas, other: Atlas, known: Run, run: Run) -> Run:
    if known.identity == run.identity:
        seeds = known.requested_seeds | run.requested_seeds
        larger = run if len(run.requested_seeds) > len(known.requested_seeds) else known
        merged = larger if larger.requested_seeds == seeds else larger.with_seeds(seeds)
        return replace(merged, baseline=known.baseline or run.baseline)
    key = (run.method, run.task)
    if not _has_records(one, key):
        return run
    if not _has_records(other, key):
        return known
    raise AtlasError(
        f"both atlases have {run.task!r} ({run.method}), and not of the same request: "
        f"{difference(known.decides, run.decides)}; give one of the tasks another name, or keep two atlases."
    )


def _has_records(atlas: Atlas, key: tuple[str, str]) -> bool:
    return any(_run_key(record) == key for record in atlas.records())


def _run_key(record: Record) -> tuple[str, str]:
    return record.method, getattr(record, record.SUBJECT)


def merge_records(one: Atlas, other: Atlas, runs: list[Run]) -> list[Record]:
    """The records of these runs in both atlases; what both have is taken from the first."""
    identities = {(run.method, run.task): run.identity for run in runs}
    records: dict[tuple[Any, ...], Record] = {}
    for atlas in (one, other):
        for record in atlas.records():
            key = _run_key(record)
            if identities[key] == atlas.runs[key].identity:
                seeds_and_fits = tuple(getattr(record, name) for name in record.KEY)
                records.setdefault((type(record), *key, *seeds_and_fits), record)
    return list(records.values())


def merge_notes(one: Mapping[str, Note], other: Mapping[str, Note]) -> dict[str, Note]:
    """The notes of both; what both have is taken from the first. Causal checks are joined by relation."""
    notes = {**other, **one}
    if "causal" in one and "causal" in other:
        arrays, about = one["causal"]
        checks = {check["relation"]: check for _, facts in (other["causal"], one["causal"])
                  for check in facts["checks"]}  # fmt: skip
        notes["causal"] = (arrays, {**about, "checks": list(checks.values())})
    return notes
