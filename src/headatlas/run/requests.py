"""What is asked for, looked at before any work is done; and the folder that it goes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from headatlas.atlas import Run, Store, open_atlas
from headatlas.core import AtlasError, RequestError, plural, require_path, require_whole
from headatlas.model import Model
from headatlas.run.fitter import Progress
from headatlas.run.prepare import Prepared
from headatlas.task import Task, load_task

__all__ = ["distinct_tasks", "opened", "report_rows", "require_place", "require_same", "require_sound"]


def require_sound(
    tasks: Sequence[Task], max_tokens: int | None, out: str | Path | None, resume: bool
) -> None:
    """What can be said before a model is loaded. An atlas is gone on with only if that is asked for."""
    if max_tokens is not None:  # a prompt and a target need one each
        require_whole("max_tokens", max_tokens, 2, 1_000_000_000)
    require_place(out, resume)
    for task in tasks:
        task.require_readable()


def require_place(out: str | Path | None, resume: bool) -> None:
    """Can an atlas be written there? One that is there is gone on with only if that is asked for."""
    if out is not None:
        folder = require_path("out", out)
        _require_new(folder, resume)
        Store.require_writable(folder)


def _require_new(out: Path, resume: bool) -> None:
    if Store.exists(out) and not resume:
        raise AtlasError(
            f"{out} holds an atlas already; --resume (resume=True) goes on with it or adds to it."
        )


@contextmanager
def opened(model: Model, out: str | Path | None, resume: bool) -> Iterator[Store]:
    """The folder, locked; without `out` one that goes away again. Made only when the request is sound, and
    all that is in it is read once: damage is to be known now, not after hours."""
    with ExitStack() as stack:
        stack.enter_context(model.measuring())
        root = Path(out) if out is not None else Path(stack.enter_context(TemporaryDirectory()))
        new = not Store.exists(root)
        store = stack.enter_context(Store.writing(root, model.spec))
        if not new:
            _require_new(root, resume)
            open_atlas(root)
        yield store


def distinct_tasks(tasks: str | Path | Task | Sequence[str | Path | Task]) -> list[Task]:
    """The tasks, no two of one name."""
    given = list(tasks) if isinstance(tasks, Iterable) and not isinstance(tasks, str) else [tasks]
    chosen = [load_task(task) for task in given]
    names = [task.name for task in chosen]
    if not names:
        raise RequestError("no task is given.")
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"two tasks are named {name!r}; each needs a name of its own.")
    return chosen


def report_rows(progress: Progress, task: Prepared) -> None:
    """What was left out, and why."""
    seen, spec = task.facts["records"], task.facts["spec"]
    if spec["shortest"] is None and spec["per_group"] is None and seen > spec["rows"]:
        progress.note(f"{task.name}: a fair sample of {spec['rows']:,} of its {seen:,} records")
    if long := task.rows.too_long:
        progress.note(f"{task.name}: left out {plural(long, 'row')} over {task.rows.max_tokens} tokens")
    if copies := task.facts["copies"]:
        progress.note(f"{task.name}: left out {plural(copies, 'held-out record')} that repeat others")
    if unknown := task.rows.unknown_targets:
        progress.note(
            f"{task.name}: left out {plural(unknown, 'row')}: the vocabulary lacks a part of the target, "
            f"such as {task.rows.unknown_example!r}"
        )
    if unknown := task.rows.unknown_prompts:
        progress.note(f"{task.name}: {plural(unknown, 'row')} with an unknown token (<unk>) in the prompt")
    rows = sum(task.facts[f"{side}_rows"] for side in ("train", "test", "known"))
    share = task.facts["test_rows"] / rows
    if "test_split" not in spec["source"] and not spec["test"] / 2 <= share <= 2 * spec["test"]:
        progress.note(
            f"{task.name}: {share:.0%} of {plural(rows, 'row')} are held out, not {spec['test']:.0%}: whole "
            "groups are held out, and they differ in size; change 'group' or 'test' in the task"
        )


def require_same(run: Run, ready: Prepared) -> None:
    """The task is the one that was mapped."""
    for key, what in (("content_hash", "items"), ("rows_hash", "tokens")):
        if run.task_facts.get(key) != ready.facts[key]:
            raise AtlasError(
                f"{run.task!r} has other {what} now than when it was mapped. If it was a file of that name, "
                "give the file with --task; else map it again."
            )
