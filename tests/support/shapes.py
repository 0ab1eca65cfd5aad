"""Annotated shapes, such as `Float[Tensor, "row hidden"]`, are checked at every call while tests run.

An import hook, as jaxtyping has one. Its own also wraps functions inside functions, each time that they are
made: a traced pass makes hundreds, and tests of the model room took twice as long.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any, ClassVar

__all__ = ["ShapeError", "check_shapes"]

ROOMS = ("headatlas.model.", "headatlas.method.")
#: what torch.compile traces: a check would end up in the compiled graph
TRACED = {"_Gated", "_Values", "token_nll"}
SHAPE = re.compile(r"\[(Tensor|np\.ndarray), ['\"]")


class ShapeError(Exception):
    """Is remembered in `errors`: code under test may catch what it takes for an error of a model."""

    errors: ClassVar[list[ShapeError]] = []

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errors.append(self)


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        owned = [value for value in vars(module).values() if getattr(value, "__module__", "") == self.name]
        owners: list[Any] = [module, *(value for value in owned if isinstance(value, type))]
        for owner in owners:
            for name, value in list(vars(owner).items()):
                traced = TRACED & {name, getattr(owner, "__name__", "")}
                if isinstance(value, FunctionType) and value.__module__ == self.name and not traced:
                    setattr(owner, name, _checked(value))


class _Finder(PathFinder):
    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = super().find_spec(fullname, path, target) if fullname.startswith(ROOMS) else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def check_shapes() -> None:
    """Check the modules of `ROOMS` that are imported from now on, if jaxtyping and beartype are installed."""
    if all(importlib.util.find_spec(name) for name in ("jaxtyping", "beartype")):
        sys.meta_path.insert(0, _Finder)


def _checked(function: FunctionType) -> Any:
    """`function` with its shapes checked, and no other annotation: tests pass wrong types on purpose."""
    from beartype import BeartypeConf, beartype
    from jaxtyping import jaxtyped

    written = inspect.unwrap(function)
    hints = {name: hint for name, hint in written.__annotations__.items() if SHAPE.search(str(hint))}
    if not hints:
        return function
    written.__annotations__ = {name: eval(hint, written.__globals__) for name, hint in hints.items()}
    return jaxtyped(typechecker=beartype(conf=BeartypeConf(violation_type=ShapeError)))(function)
