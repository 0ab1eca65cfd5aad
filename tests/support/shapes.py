"""Annotated shapes, such as `Float[Tensor, "row hidden"]`, are checked at every call while tests run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, ClassVar

__all__ = ["ShapeError", "check_shapes"]

SOURCE = Path(__file__).parents[2] / "src" / "headatlas"
ROOMS = ("model", "method")
#: modules with functions that torch.compile traces: a checked function would end up in the compiled graph
TRACED = {"headatlas.model.gate_modules", "headatlas.method.engine.likelihood"}


def check_shapes() -> None:
    """Check the modules of `ROOMS` that are imported from now on, if jaxtyping and beartype are installed."""
    if not all(importlib.util.find_spec(name) for name in ("jaxtyping", "beartype")):
        return
    from jaxtyping import install_import_hook

    paths = (path for room in ROOMS for path in (SOURCE / room).rglob("*.py") if path.stem != "__init__")
    modules = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in paths}
    install_import_hook(sorted(modules - TRACED), "support.shapes.checked")


class ShapeError(Exception):
    """Is remembered in `errors`: code under test may catch what it takes for an error of a model."""

    errors: ClassVar[list[ShapeError]] = []

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errors.append(self)


def checked(function: Any) -> Any:
    """`function` with its shapes checked, and no other annotation: tests pass wrong types on purpose."""
    from beartype import BeartypeConf, beartype

    hints = function.__annotations__
    function.__annotations__ = {name: hint for name, hint in hints.items() if "jaxtyping." in repr(hint)}
    return beartype(conf=BeartypeConf(violation_type=ShapeError))(function)
