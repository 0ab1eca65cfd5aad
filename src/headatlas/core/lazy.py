"""pandas (`pd`) and xarray (`xr`), imported when something of them is first used.

Importing them takes half a second; refusals must be faster.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["pd", "xr"]


class _LazyModule(ModuleType):
    """A module in place of another one, which it imports when an attribute is read."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what tools ask of every module they see
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd, xr = _LazyModule("pandas"), _LazyModule("xarray")
