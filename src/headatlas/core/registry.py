"""Named values that built-in modules and installed plugins provide; public names that load on first use.

A module provides values in its list `PROVIDES`. A plugin names such a module, or a single value, in an entry
point of the registry's group:

    [project.entry-points."headatlas.methods"]
    entropy = "my_package.entropy"
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import get_data, iter_modules
from typing import Any, Generic, TypeVar

from headatlas.core.errors import ExtensionError, UnknownNameError

__all__ = ["Registry", "lazy_exports"]

_Value = TypeVar("_Value")


class Registry(Mapping[str, _Value], Generic[_Value]):
    """The values of one kind by name: those of the modules of `package` (if there is one) in the order of
    `first`, then the others by name, then those of plugins.

    Modules are imported when the registry is first used. A value has a `name` and may have `aliases`. A
    plugin that cannot be loaded, or whose name is taken, is left out with a warning.
    """

    def __init__(
        self, what: str, of: type[_Value], package: str | None, group: str, first: Iterable[str] = ()
    ) -> None:
        self.what, self.of, self.package, self.group = what, of, package, group
        self._first = tuple(first)

    @cached_property
    def _values(self) -> dict[str, _Value]:
        values: dict[str, _Value] = {}
        origins: dict[str, str] = {}
        provided = [(value, origin) for origin, value in self._built_in()]
        rank = {name: place for place, name in enumerate(self._first)}
        provided.sort(key=lambda pair: (rank.get(self._name(pair[0]), len(rank)), self._name(pair[0])))
        for value, origin in provided:
            name = self._name(value)
            if name in values:
                raise ExtensionError(
                    f"two {self.what}s are named {name!r}: one of {origins[name]}, one of {origin}; "
                    "rename one of them."
                )
            values[name], origins[name] = value, origin
        self._built_in_names = tuple(values)
        for value, origin in self._of_plugins():
            name = self._name(value)
            if name in values:
                warnings.warn(
                    f"{origin} is left out: its {self.what} {name!r} has the name of one of {origins[name]}; "
                    "uninstall or rename one of them",
                    RuntimeWarning,
                    stacklevel=2,
                )
                continue
            values[name], origins[name] = value, origin
        return values

    @property
    def built_in(self) -> tuple[str, ...]:
        """The names of the values that no plugin provides."""
        _ = self._values
        return self._built_in_names

    def _built_in(self) -> Iterator[tuple[str, _Value]]:
        if self.package is None:
            return
        for module in iter_modules(import_module(self.package).__path__):
            if not module.ispkg:
                name = f"{self.package}.{module.name}"
                provided = getattr(import_module(name), "PROVIDES", [])
                for value in self._checked(provided, name):
                    yield name, value

    def _of_plugins(self) -> Iterator[tuple[_Value, str]]:
        for point in entry_points(group=self.group):
            origin = f"the plugin {point.value}"
            try:
                values = list(self._provided(point))
            except Exception as error:  # a broken plugin must not keep the others from working
                reason = f"{type(error).__name__}: {error}"
                warnings.warn(f"{origin} could not be loaded ({reason})", RuntimeWarning, stacklevel=2)
                continue
            yield from ((value, origin) for value in values)

    def _provided(self, point: EntryPoint) -> Iterator[_Value]:
        loaded = point.load()
        yield from [loaded] if isinstance(loaded, self.of) else self._checked(loaded.PROVIDES, point.value)

    def _checked(self, provided: Any, origin: str) -> Iterable[_Value]:
        """The list `PROVIDES` of a module, refused if it holds anything but values of this registry."""
        if not isinstance(provided, list | tuple):
            raise ExtensionError(f"PROVIDES of {origin} is {provided!r:.60}, which is not a list.")
        for value in provided:
            if not isinstance(value, self.of):
                raise ExtensionError(
                    f"PROVIDES of {origin} holds {value!r:.60}, which is not a {self.of.__name__}."
                )
        return provided

    @staticmethod
    def _name(value: Any) -> str:
        return str(value.name)

    @cached_property
    def _aliases(self) -> dict[str, str]:
        aliases: dict[str, str] = {}
        for name, value in self._values.items():
            for alias in getattr(value, "aliases", ()):
                if (
                    alias not in self._values
                ):  # a name comes before an alias, a built-in one before a plugin's
                    aliases.setdefault(alias, name)
        return aliases

    def __getitem__(self, name: str) -> _Value:
        """The value of that name or alias; an unknown name is answered with the closest ones."""
        value = self._values.get(self._aliases.get(name, name))
        if value is None:
            raise UnknownNameError(self.what, name, self._values)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._aliases

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """(`__getattr__`, `__dir__`) of a package whose public names load on first use. The imports below its
    `if TYPE_CHECKING:` say where they are."""

    @cache
    def modules() -> dict[str, str]:
        source = get_data(package, "__init__.py")
        if source is None:
            raise ImportError(f"the source of {package} is missing; its public names cannot be read.")
        blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
        typing_only = [block for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING"]
        imports = [node for block in typing_only for node in block.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        is_module = modules()[name] == package  # `from headatlas import figure`
        value = (
            import_module(f"{package}.{name}") if is_module else getattr(import_module(modules()[name]), name)
        )
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules()})

    return load, names
