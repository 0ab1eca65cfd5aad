"""Options that a user gives by name to a method or an export format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from inspect import get_annotations, isclass
from typing import Any, Self

from headatlas.core.errors import ExtensionError, RequestError

__all__ = ["Options", "require_options"]


@dataclass(frozen=True)
class Options:
    """A subclass has a field with a default for each option and checks values in `__post_init__`."""

    @classmethod
    def names(cls) -> list[str]:
        """The options that can be given."""
        return [option.name for option in fields(cls)]

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The options as given, the others at their defaults."""
        return cls(**given)

    @classmethod
    def given(cls, owner: str, options: Mapping[str, Any]) -> Self:
        """As `of`; a name that is no option of `owner` is refused."""
        allowed = cls.names()
        for name in options:
            if name not in allowed:
                raise RequestError(f"{name!r} is not an option of {owner}; it has {', '.join(allowed)}.")
        return cls.of(**options)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def require_options(owner: str, options: Any, base: type[Options] = Options) -> None:
    """Refuse what is given as the options of `owner` if it is not a dataclass derived from `base`."""
    if not (isclass(options) and issubclass(options, base)):
        raise ExtensionError(
            f"the options of {owner} are {options!r:.60}, not a subclass of {base.__name__}."
        )
    known = {option.name for option in fields(options)}
    for name, annotation in get_annotations(options).items():
        if name not in known and "ClassVar" not in str(annotation):
            raise ExtensionError(
                f"the option {name!r} of {owner} is lost: decorate {options.__name__} with "
                "@dataclass(frozen=True)."
            )
