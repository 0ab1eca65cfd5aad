"""Makes docs/cli.md and docs/api.md from the commands and the public names themselves.

python scripts/reference.py             writes both
python scripts/reference.py --check     says which of them are not up to date, writes nothing
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import typer

import headatlas
from headatlas.cli.app import app

DOCS = Path(__file__).parent.parent / "docs"
#: what a method, a figure or an export format is made of
EXTENSIONS = {
    "headatlas.method": ("Method", "EffectOptions", "HeadEffects"),
    "headatlas.figure": ("FigureKind",),
    "headatlas.export": ("ExportFormat",),
}
MADE = "Made by `scripts/reference.py`; not edited by hand."


def cli() -> str:
    lines = ["# Commands", "", MADE, ""]
    for path, command in commands(typer.main.get_command(app), "headatlas"):
        lines += [f"## {path}", "", *paragraphs(command.help or command.short_help or ""), ""]
        shown = command.get_params(typer.Context(command))
        rows = [row(one) for one in shown if one.name != "help" and not getattr(one, "hidden", False)]
        if rows:
            lines += ["| option | what | default |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, one in inner.items():
        yield from commands(one, f"{path} {name}")


def row(option: Any) -> str:
    is_option = option.param_type_name == "option"
    names = ", ".join(f"`{one}`" for one in (*option.opts, *option.secondary_opts))
    shown = names if is_option else f"`{option.metavar or option.name.upper()}`"
    default = option.default
    plain = default is None or default is False or callable(default) or type(default).__name__ == "Sentinel"
    said = "needed" if option.required else "" if plain else f"`{default}`"
    return f"| {shown} | {escape(option.help or '')} | {said} |"


def escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def paragraphs(text: str) -> list[str]:
    blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n", inspect.cleandoc(text))]
    return [line for block in blocks for line in (block, "")][:-1]


def api() -> str:
    lines = ["# Library", "", MADE, "", "Everything is imported from `headatlas`.", ""]
    names = [name for name in headatlas.__all__ if not name.startswith("_")]
    errors = [name for name in names if name.endswith(("Error", "Warning"))]
    modules = [name for name in names if inspect.ismodule(getattr(headatlas, name))]
    for name in names:
        if name not in (*errors, *modules):
            lines += described(name, getattr(headatlas, name), "##")
    for name in modules:
        module = getattr(headatlas, name)
        lines += [f"## {name}", "", *paragraphs(inspect.getdoc(module) or ""), ""]
        functions = [inner for inner in module.__all__ if inspect.isfunction(getattr(module, inner))]
        for inner in functions:
            lines += described(f"{name}.{inner}", getattr(module, inner), "###")
    lines += ["## Parts of results", "", "Values that the functions and properties above give.", ""]
    for one in parts_of_results(names):
        lines += described(one.__name__, one, "###")
    lines += ["## For extensions", "", "[Extending](extending.md) shows how to use them.", ""]
    for module, provided in EXTENSIONS.items():
        for name in provided:
            lines += described(f"{module}.{name}", getattr(import_module(module), name), "###")
    lines += ["## Errors and warnings", ""]
    for name in errors:
        one = getattr(headatlas, name)
        lines += [f"- `{name}` ({one.__bases__[0].__name__}): {' '.join(paragraphs(one.__doc__ or ''))}"]
    return "\n".join([*lines, ""])


def described(name: str, one: Any, level: str) -> list[str]:
    call = "" if isinstance(one, property) else signature(one)
    lines = [f"{level} {name}", "", "```python", f"{name.rpartition('.')[2]}{call}", "```", ""]
    lines += [*paragraphs(inspect.getdoc(one) or ""), ""]
    if inspect.isclass(one):
        lines += field_table(one)
        for inner, value in vars(one).items():
            is_public = not inner.startswith("_") and (
                inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
            )
            if is_public:
                bare = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                lines += described(f"{name}.{inner}", bare, f"{level}#")
    return lines


def fields_of(one: type) -> dict[str, str]:
    """The public fields of a dataclass or a named tuple with their types."""
    if is_dataclass(one):
        types = {field.name: field.type for field in fields(one)}
    else:
        hints = {name: hint for base in reversed(one.__mro__) for name, hint in class_hints(base).items()}
        types = {name: hints.get(name, "") for name in getattr(one, "_fields", ())}
    return {name: repr(Plain(hint)) for name, hint in types.items() if not name.startswith("_")}


def class_hints(one: type) -> dict[str, Any]:
    return {
        name: getattr(hint, "__forward_arg__", hint)
        for name, hint in vars(one).get("__annotations__", {}).items()
    }


def field_table(one: type) -> list[str]:
    rows = [f"| `{name}` | {escape(f'`{hint}`')} |" for name, hint in fields_of(one).items()]
    return ["| field | type |", "| --- | --- |", *rows, ""] if rows else []


def parts_of_results(names: list[str]) -> list[type]:
    """Dataclasses and named tuples that public functions, properties and fields give, and that are not public
    themselves, by name."""
    classes = result_classes()
    open_types = [getattr(headatlas, name) for name in names]
    parts: dict[str, type] = {}
    while open_types:
        for word in re.findall(r"[A-Za-z]\w*", " ".join(results_of(open_types.pop()))):
            if word in classes and word not in names and word not in parts:
                parts[word] = classes[word]
                open_types.append(classes[word])
    return [parts[name] for name in sorted(parts)]


def results_of(one: Any) -> Iterator[str]:
    """The types of what a function gives, or of the fields, properties and methods of a class."""
    if inspect.isfunction(one):
        yield str(one.__annotations__.get("return", ""))
    elif inspect.isclass(one):
        yield from fields_of(one).values()
        for name, value in vars(one).items():
            bare = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if not name.startswith("_") and inspect.isfunction(bare):
                yield str(bare.__annotations__.get("return", ""))


def result_classes() -> dict[str, type]:
    """Public dataclasses and named tuples of the package, by name."""
    classes: dict[str, type] = {}
    for info in walk_packages(headatlas.__path__, "headatlas."):
        if ".cli" in info.name or info.name.endswith("__main__"):
            continue
        for name, value in vars(import_module(info.name)).items():
            is_part = inspect.isclass(value) and (is_dataclass(value) or hasattr(value, "_fields"))
            if is_part and not name.startswith("_") and value.__module__ == info.name:
                classes[name] = value
    return classes


def signature(one: Any) -> str:
    try:
        found = inspect.signature(one)
    except (TypeError, ValueError):
        return ""
    # annotations are text, which would be shown in quotes
    parts = [
        value.replace(annotation=Plain(value.annotation)) if value.annotation is not value.empty else value
        for name, value in found.parameters.items()
        if name not in ("self", "cls")
    ]
    result = found.return_annotation
    shown = str(found.replace(parameters=parts, return_annotation=inspect.Signature.empty))
    shown = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", shown.replace("<factory>", "{}"))
    return shown if result in (found.empty, "None", None) else f"{shown} -> {Plain(result)!r}"


class Plain:
    """Text that is its own representation."""

    def __init__(self, text: Any) -> None:
        self.text = text if isinstance(text, str) else inspect.formatannotation(text)

    def __repr__(self) -> str:
        return self.text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for name, text in (("cli.md", cli()), ("api.md", api())):
        file = DOCS / name
        if check and (not file.exists() or file.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            file.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"not up to date: {', '.join(stale)}; 'python scripts/reference.py' makes them anew")


if __name__ == "__main__":
    main()
