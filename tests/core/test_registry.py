"""Registries: built-in modules, plugins, names that clash, plugins that are broken."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.metadata import EntryPoint

import pytest

from headatlas.core import ExtensionError, UnknownNameError
from headatlas.core import registry as module
from headatlas.core.registry import Registry, lazy_exports
from support.things import Thing


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with two modules that provide things and one that provides none."""
    folder = tmp_path / "things_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    line = "from support.things import Thing\nPROVIDES = [Thing({!r}, ({!r},))]\n"
    for name in ("beta", "alpha"):
        (folder / f"{name}.py").write_text(line.format(name, name[0]))
    (folder / "nothing.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder.name
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


def with_plugin(monkeypatch, value):
    monkeypatch.setattr(module, "entry_points", lambda group: [EntryPoint("plugin", value, group)])


def registry(package, first=()):
    return Registry("thing", Thing, package, "headatlas.things", first)


def test_modules_provide_values(package):
    things = registry(package)
    assert list(things) == ["alpha", "beta"] and list(registry(package, ["beta"])) == ["beta", "alpha"]
    assert things["a"] is things["alpha"] and "b" in things and "c" not in things
    with pytest.raises(UnknownNameError, match="no thing named 'alpa'; did you mean 'alpha'"):
        _ = things["alpa"]


def test_plugins_provide_values(package, monkeypatch):
    with_plugin(monkeypatch, "support.things:PLUGGED")
    assert list(registry(package)) == ["alpha", "beta", "plugged"]


def test_a_plugin_does_not_replace_a_value(package, monkeypatch):
    with_plugin(monkeypatch, "support.things:ALPHA")
    things = registry(package)
    with pytest.warns(
        RuntimeWarning, match=r"support\.things:ALPHA is left out: its thing 'alpha' has the name"
    ):
        assert list(things) == ["alpha", "beta"]
    assert things["alpha"].aliases == ("a",)


def test_an_alias_replaces_neither_a_name_nor_an_earlier_alias(package, monkeypatch):
    with_plugin(monkeypatch, "support.things:GREEDY")
    things = registry(package)
    assert things["beta"].name == "beta" and things["a"].name == "alpha" and things["g"].name == "greedy"


def test_built_in_values_are_told_from_those_of_plugins(package, monkeypatch):
    with_plugin(monkeypatch, "support.things:PLUGGED")
    assert registry(package).built_in == ("alpha", "beta")


@pytest.mark.parametrize("value", ["no_such_module_anywhere", "json", "support.things:NotThings"])
def test_a_broken_plugin_is_named_and_left_out(package, monkeypatch, value):
    with_plugin(monkeypatch, value)
    with pytest.warns(RuntimeWarning, match=f"the plugin {value} could not be loaded"):
        assert list(registry(package)) == ["alpha", "beta"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("PROVIDES = ['alpha']", r"PROVIDES of things_of_a_test\.alpha holds 'alpha', which is not a Thing"),
        (
            "PROVIDES = Thing('alpha')",
            r"PROVIDES of things_of_a_test\.alpha is Thing\(.*, which is not a list",
        ),
        ("PROVIDES = [Thing('beta')]", r"two things are named 'beta': one of things_of_a_test\.alpha"),
    ],
)
def test_a_mistake_in_a_built_in_module_is_an_error(package, tmp_path, line, message):
    (tmp_path / package / "alpha.py").write_text(f"from support.things import Thing\n{line}\n")
    with pytest.raises(ExtensionError, match=message):
        list(registry(package))


def test_public_names_are_the_imports_for_type_checkers(tmp_path, monkeypatch):
    folder = tmp_path / "exports_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "from os.path import basename\n"
        "if TYPE_CHECKING:\n"
        "    from json import dumps\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import_module(folder.name)
    load, names = lazy_exports(folder.name)
    assert load("dumps") is json.dumps
    assert set(names()) - set(vars(sys.modules[folder.name])) == set()
    for name in ("basename", "TYPE_CHECKING", "annotations"):
        with pytest.raises(AttributeError):
            load(name)
    del sys.modules[folder.name]


def test_public_names_need_the_source(monkeypatch):
    monkeypatch.setattr(module, "get_data", lambda package, name: None)
    load, _ = lazy_exports("headatlas.atlas")
    with pytest.raises(ImportError, match=r"the source of headatlas\.atlas is missing"):
        load("Atlas")
