"""An export format: the names of the heads that a task needs, one on a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headatlas.core import Options
from headatlas.export import ExportFormat


@dataclass(frozen=True)
class ListOptions(Options):
    threshold: float = 0.5


@dataclass(frozen=True)
class Written:
    path: Path
    heads: list[str]

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "heads": self.heads}

    def lines(self) -> list[str]:
        return [f"{self.path}: {len(self.heads)} heads"]


def write(request: Any, atlas: Any, model: None) -> Written:
    needed = atlas.always(request.task)["facilitation"].values >= request.options.threshold
    heads = [str(head) for head in atlas.spec if needed[head.layer, head.head]]
    request.out.write_text("".join(f"{head}\n" for head in heads), encoding="utf-8")
    return Written(request.out, heads)


PROVIDES = [ExportFormat("head-list", "the heads that a task needs, by name", ListOptions, write)]
