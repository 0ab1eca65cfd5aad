"""Registries: built-in modules, plugins, names that clash, plugins that are broken."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from headatlas.core import RequestError, UnknownNameError
from headatlas.core import registry as module
from headatlas.core.registry import Registry
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


def test_two_values_of_one_name_are_refused(package, monkeypatch):
    with_plugin(monkeypatch, "things_of_a_test.alpha")
    with pytest.raises(RequestError, match=r"two things are named 'alpha': one of things_of_a_test\.alpha"):
        list(registry(package))


@pytest.mark.parametrize("value", ["no_such_module_anywhere", "json", "support.things:NotThings"])
def test_a_broken_plugin_is_named_and_left_out(package, monkeypatch, value):
    with_plugin(monkeypatch, value)
    with pytest.warns(RuntimeWarning, match="could not be loaded"):
        assert list(registry(package)) == ["alpha", "beta"]
