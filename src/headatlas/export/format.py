"""Formats in which an atlas leaves for other programs, and the request to write one: `ExportRequest`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from headatlas.atlas import Atlas, open_atlas
from headatlas.core import ModelRef, Options, Progress, RequestError, Update, require_options, silent
from headatlas.core.registry import Registry
from headatlas.request.map_request import given_options
from headatlas.request.origin import named_model, task_from_json, task_to_json
from headatlas.request.validate_request import check_held_out, gated_names, gated_tasks
from headatlas.task import Task, TaskSource, listed_tasks

__all__ = ["FORMATS", "ExportFormat", "ExportRequest"]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format is a value: modules in this folder and plugins provide it in their list `PROVIDES`.

    `options` is a frozen dataclass, a subclass of `Options`. `check(atlas, task, options)` refuses what can
    be refused without a model. `write(request, atlas, model)` writes `request.out`, a path that does not
    exist, and returns what to tell the user: a value with `to_json()` and `lines()`. A format that needs no
    model gets None for it; it also exports imported gates, and tasks whose files are gone.
    """

    name: str
    summary: str
    options: type[Options]
    write: Callable[..., Any]
    check: Callable[[Atlas, str, Any], None] | None = None
    needs_model: bool = False

    def __post_init__(self) -> None:
        require_options(f"the export format {self.name!r}", self.options)


FORMATS = Registry("export format", ExportFormat, "headatlas.export", "headatlas.exports", ["checkpoint"])


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What the atlas knows of the task named `task`, written to `out` in one of `FORMATS`. `definition` says
    how to read the task's items; None for a format that needs no model."""

    kind: ClassVar[str] = "export"

    folder: Path
    model: ModelRef
    task: str
    out: Path
    format: str
    options: Any
    definition: Task | None = None

    @classmethod
    def of(
        cls,
        folder: str | Path,
        task: TaskSource | None,
        out: str | Path,
        *,
        format: str = "checkpoint",  # noqa: A002
        model: Any = None,
        trust_code: bool = False,
        load: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ExportRequest:
        """Without `task` the only one that was gated; the model as the atlas remembers it."""
        chosen = FORMATS[format]
        given = given_options(**options)
        settings = chosen.options.given(chosen.name, given)
        path = Path(out)
        if path.exists() or path.is_symlink():
            raise RequestError(f"{path} already exists; choose a new folder or file.")
        atlas = open_atlas(folder)
        definitions: Sequence[Task | None] = [None]
        selected = [] if task is None else listed_tasks(task)
        if chosen.needs_model:
            definitions, _ = gated_tasks(atlas, selected, trust_code=trust_code)
            names = [each.name for each in definitions]
        else:
            names = gated_names(atlas, selected, trust_code=trust_code)
        if len(names) > 1:
            raise RequestError(f"the atlas has several tasks; choose one with task=…: {', '.join(names)}.")
        if chosen.needs_model:
            check_held_out(atlas, names[0], "check the checkpoint on")
        if chosen.check is not None:
            chosen.check(atlas, names[0], settings)
        given_load = {
            "dtype": "auto",
            **{key: value for key, value in (load or {}).items() if value is not None},
        }
        ref = named_model(model, atlas, **given_load)
        return cls(Path(folder), ref, names[0], path, chosen.name, settings, definitions[0])

    def write(self, model: Any = None, tokenizer: Any = None, progress: Progress = silent) -> Any:
        """Write it, with a loaded model (transformers: with its `tokenizer`) or as the request says."""
        chosen = FORMATS[self.format]
        loaded = None
        if chosen.needs_model:
            from headatlas.run.executor import load_for_run

            progress(Update("load the model", 0, 2))
            loaded = load_for_run(self.model if model is None else model, tokenizer)
        title = f"{self.task}: write {self.out.name}"
        progress(Update(title, 1, 2))
        written = chosen.write(self, open_atlas(self.folder), loaded)
        progress(Update(title, 2, 2))
        return written

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "folder": str(self.folder),
            "model": self.model.to_json(),
            "task": self.task,
            "definition": None if self.definition is None else task_to_json(self.definition),
            "out": str(self.out),
            "format": self.format,
            "options": self.options.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ExportRequest:
        return cls(
            Path(data["folder"]),
            ModelRef.from_json(data["model"]),
            data["task"],
            Path(data["out"]),
            data["format"],
            FORMATS[data["format"]].options.of(**data["options"]),
            None if data["definition"] is None else task_from_json(data["definition"]),
        )
