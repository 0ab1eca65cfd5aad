"""Names that an atlas knows without the code of the methods are those that the code declares."""

from __future__ import annotations

from headatlas.core import EFFECT_METHODS, method_named
from headatlas.method.method import METHODS


def test_the_atlas_knows_the_built_in_methods():
    measured = [method for method in METHODS.values() if method.measure is not None]
    built_in = [each.name for each in measured if each.measure.__module__.startswith("headatlas.")]
    assert built_in == list(EFFECT_METHODS)
    aliases = {alias: method.name for method in METHODS.values() for alias in method.aliases}
    assert aliases == {alias: method_named(alias) for alias in aliases} != {}
